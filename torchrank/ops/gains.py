"""Gains and discounts of the cumulative-gain measures.

Source: formulas ``G(r) = 2^r − 1`` and ``D(i) = 1/log2(1 + i)`` as in Chaudhuri & Tewari (arXiv 1405.0591), §2; the
older discount 1, 1, 1/log2 3, 1/log2 4, … is Järvelin & Kekäläinen's, as LETOR's evaluation script has it.
"""

import torch
from torch import Tensor

from torchrank.errors import check_option

GAINS = ("exponential", "linear")
DISCOUNTS = ("log2", "jarvelin")
_LN2 = 0.6931471805599453


def scaled_gains(relevance: Tensor, *, gain: str = "exponential", top: Tensor | None = None) -> Tensor:
    """Gain of each document, divided per list by a power of two so that large grades stay finite.

    NDCG and SLAM use ratios of gains inside a list only, so the common factor cancels.

    Args:
        relevance: ``(..., L)`` at least 0, floating point, padding already 0.
        gain: ``"exponential"`` (2^r − 1) or ``"linear"`` (r).
        top: ``(..., 1)`` the highest grade of each list, where it is known already.

    Returns:
        ``(..., L)``: ``(2^r − 1) / 2^top`` or ``r``; 0 exactly where the relevance is 0.

    Raises:
        TorchRankError: an unknown gain.

    Example:
        >>> scaled_gains(torch.tensor([2.0, 1.0, 0.0]))
        tensor([0.7500, 0.2500, 0.0000])
    """
    check_option("gain", gain, GAINS)
    if gain == "linear" or relevance.shape[-1] == 0:
        return relevance
    if top is None:
        top = relevance.amax(-1, keepdim=True)
    # (1 − 2^−r) · 2^(r − top): exact for small fractional grades, where 2^(r − top) − 2^−top would cancel
    return -torch.expm1(relevance * -_LN2) * torch.exp2(relevance - top)


def discounts(length: int, *, discount: str = "log2", like: Tensor) -> Tensor:
    """Discount of each rank 1 … ``length``, in the dtype and on the device of ``like``.

    Args:
        length: number of ranks.
        discount: ``"log2"`` (1/log2(1+i)) or ``"jarvelin"`` (1, then 1/log2 i).
        like: a floating-point tensor.

    Returns:
        ``(length,)``.

    Raises:
        TorchRankError: an unknown discount.

    Example:
        >>> discounts(3, discount="jarvelin", like=torch.zeros(1))
        tensor([1.0000, 1.0000, 0.6309])
    """
    check_option("discount", discount, DISCOUNTS)
    rank = torch.arange(
        1, length + 1, device=like.device, dtype=torch.float64 if like.device.type == "cpu" else like.dtype
    )
    value = 1 / torch.log2(rank + 1) if discount == "log2" else 1 / torch.log2(rank.clamp(min=2))
    return value.to(like.dtype)


def cut_discounts(length: int, k: int | None, *, like: Tensor) -> Tensor:
    """Discounts 1/log2(1+i) of ranks 1 … ``length``, 0 beyond the cut-off ``k``.

    Args:
        length: number of ranks.
        k: the cut-off, or None.
        like: a floating-point tensor.

    Returns:
        ``(length,)``.

    Example:
        >>> cut_discounts(3, 2, like=torch.zeros(1))
        tensor([1.0000, 0.6309, 0.0000])
    """
    value = discounts(length, like=like)
    return value if k is None else torch.where(torch.arange(length, device=like.device) < k, value, 0)
