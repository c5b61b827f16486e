"""Pure tensor mathematics underneath the losses, metrics and models."""

from torchrank.ops.ragged import padded_to_ragged, ragged_index, ragged_take, ragged_to_padded

# one name a line, sorted
__all__ = [
    "padded_to_ragged",
    "ragged_index",
    "ragged_take",
    "ragged_to_padded",
]
