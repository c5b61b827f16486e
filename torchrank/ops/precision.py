"""The precision losses are computed in, and functions kept exact in it."""

import torch
from torch import Tensor
from torch.nn import functional as F


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


def softplus(values: Tensor) -> Tensor:
    """Compute log(1 + exp(x)) to working precision at every x.

    Args:
        values: any tensor.

    Returns:
        the same shape and dtype.

    Example:
        >>> softplus(torch.tensor([-200.0, 0.0, 1e4]))
        tensor([0.0000e+00, 6.9315e-01, 1.0000e+04])
    """
    # torch's own threshold, 20, drops exp(−20): visible in float64. exp(80) is still finite in float32.
    return F.softplus(values, threshold=80)
