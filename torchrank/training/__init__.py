"""LightningModules and DataModules, and fitting that needs no Lightning; names load when first used."""

from torchrank._lazy import lazy_names

# one name a line, sorted
_NAMES: dict[str, str] = {
    "QueryDataModule": "torchrank.training.query_data",
    "load": "torchrank.training.checkpoint",
    "recommend": "torchrank.training.recommendation",
}
__all__ = sorted(_NAMES)
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
