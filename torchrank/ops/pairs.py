"""Sums over pairs of documents in blocks of rows, so that no L × L matrix is ever held."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from torchrank.ops.checks import refuse_transforms
from torchrank.ops.once import once_only

# Entries of a block: what a core's cache holds, what keeps a GPU busy. A compiler fuses a block's operations, and
# takes longer the more blocks there are.
_CACHED, _PARALLEL = 1 << 18, 1 << 26


def row_blocks(lists: Tensor) -> Iterator[slice]:
    """Cut the rows of the pairs (i, j) of padded lists into blocks that fit a cache.

    Args:
        lists: ``(..., L)``; only its shape and device count.

    Yields:
        slices of 0 … L, in order.

    Example:
        >>> list(row_blocks(torch.zeros(1, 100_000)))[:2]
        [slice(0, 8, None), slice(8, 16, None)]
    """
    length = lists.shape[-1]
    if lists.numel() == 0:
        return
    cells = _CACHED if lists.device.type == "cpu" and not torch.compiler.is_compiling() else _PARALLEL
    rows = max(8, cells // lists.numel())
    for start in range(0, length, rows):
        yield slice(start, min(start + rows, length))


@torch.no_grad()
def sum_pairs(
    scores: Tensor,
    terms: Callable[[Tensor, slice, slice], tuple[Tensor | None, Tensor]],
    *,
    triangular: bool = False,
) -> tuple[Tensor, Tensor]:
    """Sum a function of the score differences over the pairs of every list, with its gradient.

    Args:
        scores: ``(..., L)`` without padding that is not finite.
        terms: given the differences ``s_j − s_i`` ``(..., rows, columns)`` of a block and its rows i and columns j,
            returns the terms of the sum (None for zeros) and their derivatives in the difference.
        triangular: only pairs with j before i count; blocks leave out columns behind their rows.

    Returns:
        ``(...)`` the sum of each list, and ``(..., L)`` its gradient.

    Example:
        >>> sum_pairs(torch.tensor([0.0, 1.0]), lambda d, rows, columns: (d**2, 2 * d))
        (tensor(2.), tensor([-4.,  4.]))
    """
    total = scores.new_zeros(scores.shape[:-1])
    gradient = torch.zeros_like(scores)
    for rows in row_blocks(scores):
        columns = slice(rows.stop if triangular else None)
        difference = scores[..., None, columns] - scores[..., rows, None]
        values, slopes = terms(difference, rows, columns)
        if values is not None:
            total += values.sum((-1, -2))
        gradient[..., columns] += slopes.sum(-2)
        gradient[..., rows] -= slopes.sum(-1)
    return total, gradient


class _WithGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, scores: Tensor, gradient: Tensor) -> Tensor:
        ctx.save_for_backward(scores, gradient)
        return value.clone()

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[None, Tensor, None]:
        scores, gradient = ctx.saved_tensors
        return None, outer.unsqueeze(-1) * once_only(gradient, scores), None


def with_gradient(value: Tensor, scores: Tensor, gradient: Tensor) -> Tensor:
    """Return ``value`` as a function of ``scores`` whose gradient was computed beside it.

    Args:
        value: ``(...)``, one per list.
        scores: ``(..., L)``.
        gradient: ``(..., L)``, of each list's value in its scores.

    Returns:
        ``(...)``; it can be differentiated once, and refuses a second time.

    Example:
        >>> scores = torch.tensor([3.0, 4.0], requires_grad=True)
        >>> with_gradient(torch.tensor(25.0), scores, torch.tensor([6.0, 8.0])).backward()
        >>> scores.grad
        tensor([6., 8.])
    """
    refuse_transforms("this loss")
    return _WithGradient.apply(value, scores, gradient)  # type: ignore[no-any-return, no-untyped-call]  # torch ships it untyped
