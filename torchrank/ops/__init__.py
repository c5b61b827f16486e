"""Pure tensor mathematics and compiled loops underneath everything else; names load when first used."""

from torchrank._lazy import lazy_names

# one name a line, sorted
_NAMES: dict[str, str] = {
    "padded_to_ragged": "torchrank.ops.ragged",
    "ragged_index": "torchrank.ops.ragged",
    "ragged_take": "torchrank.ops.ragged",
    "ragged_to_padded": "torchrank.ops.ragged",
}
__all__ = sorted(_NAMES)
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
