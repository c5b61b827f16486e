"""The precision losses are computed in."""

import torch
from torch import Tensor


def at_least_float32(values: Tensor) -> Tensor:
    """Return half-precision and integer values as float32, float32 and float64 as they are.

    Args:
        values: any tensor.

    Returns:
        the same shape, float32 or float64.

    Example:
        >>> at_least_float32(torch.tensor([1, 2])).dtype, at_least_float32(torch.zeros(1, dtype=torch.float64)).dtype
        (torch.float32, torch.float64)
    """
    return values if values.dtype in (torch.float32, torch.float64) else values.float()
