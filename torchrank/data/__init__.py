"""Readers, datasets and seeded synthetic data; names load when first used."""

from torchrank._lazy import lazy_names

# one name a line, sorted
_NAMES: dict[str, str] = {
    "Blocks": "torchrank.data.blocks",
    "Catalogue": "torchrank.data.catalogue",
    "InteractionLog": "torchrank.data.log",
    "build_blocks": "torchrank.data.blocks",
    "make_interactions": "torchrank.data.synthetic_log",
}
__all__ = sorted(_NAMES)
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
