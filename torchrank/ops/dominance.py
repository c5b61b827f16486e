"""Sums over the documents below in two orders at once, in O(L log L) time and O(L) memory.

A wavelet tree: the documents stand in one order and carry their rank in the other; level by level they are parted by
one bit of the rank, and every query follows the bits of its bound. Each level is a few passes over the list, the same
for all lists of a batch.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F


@torch.no_grad()
def dominance_sums(
    ranks: Tensor, queries: Sequence[tuple[Tensor, Tensor]], weights: Tensor | None = None
) -> list[Tensor]:
    """Sum, for each query (end, bound), the weights of the documents before place ``end`` with rank below ``bound``.

    Args:
        ranks: ``(..., L)`` int64, a permutation of 0 … L − 1 in every list.
        queries: pairs of ``(..., Q)`` int64 tensors, both entries from 0 to L.
        weights: ``(..., L)`` of the documents in their order; None counts them.

    Returns:
        one ``(..., Q)`` tensor a query: int64 counts, or sums in the dtype of the weights.

    Example:
        >>> ranks = torch.tensor([2, 0, 3, 1])
        >>> dominance_sums(ranks, [(torch.tensor([4, 2]), torch.tensor([2, 3]))])
        [tensor([2, 2])]
    """
    length = ranks.shape[-1]
    inside = [torch.broadcast_to(end, bound.shape) for end, bound in queries]
    sums = [torch.zeros_like(bound, dtype=ranks.dtype if weights is None else weights.dtype) for _, bound in queries]
    place = torch.arange(length, device=ranks.device)
    for bit in reversed(range(length.bit_length())):
        half = 1 << bit
        low = (ranks & half) == 0
        before = F.pad(low.cumsum(-1), (1, 0))  # of the first p documents, how many go low
        weight = None if weights is None else F.pad((weights * low).cumsum(-1), (1, 0))
        for q, (_, bound) in enumerate(queries):
            # All ranks below a node's first one stand before it, and half of those are low at this bit.
            start = bound >> (bit + 1) << (bit + 1)
            stop = start + inside[q]
            lows = before.gather(-1, stop) - (start >> 1)
            turn = (bound & half) != 0
            found = lows if weight is None else weight.gather(-1, stop) - weight.gather(-1, start)
            sums[q] += found * turn
            inside[q] = torch.where(turn, inside[q] - lows, lows)
        if bit:
            start = ranks >> (bit + 1) << (bit + 1)
            lows = before[..., :-1] - (start >> 1)
            target = torch.where(low, start + lows, place + half - lows)
            ranks = torch.empty_like(ranks).scatter_(-1, target, ranks)
            if weights is not None:
                weights = torch.empty_like(weights).scatter_(-1, target, weights)
    return sums
