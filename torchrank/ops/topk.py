"""The best items of each row of scores, with some left out."""

import torch
from torch import Tensor

from torchrank.errors import DataError, ShapeError
from torchrank.ops.checks import values_can_be_read


def top_k(scores: Tensor, k: int, *, exclude: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Take the k best of each row.

    Args:
        scores: ``(B, I)`` finite scores; not changed.
        k: how many, at least 1; rows with fewer left give fewer.
        exclude: rows ``(P,)`` and columns ``(P,)`` of entries to leave out; an entry may occur twice.

    Returns:
        ``(B, k)`` columns, best first, their scores, and a mask that is False where nothing is left; under it the
        column is 0 and the score is 0.

    Raises:
        ShapeError: ``scores`` is not a matrix or ``k`` is below 1.
        DataError: a NaN score (eager CPU tensors only).

    Example:
        >>> top_k(torch.tensor([[1.0, 3.0, 2.0]]), 3, exclude=(torch.tensor([0]), torch.tensor([1])))
        (tensor([[2, 0, 0]]), tensor([[2., 1., 0.]]), tensor([[ True,  True, False]]))
    """
    if scores.ndim != 2 or k < 1:
        raise ShapeError(f"scores have shape {tuple(scores.shape)} and k={k}; give a (B, I) matrix and k of at least 1")
    if values_can_be_read(scores) and bool(scores.isnan().any()):
        raise DataError("a score is NaN; a ranking needs comparable scores")
    left = torch.ones(scores.shape, dtype=torch.bool, device=scores.device)
    if exclude is not None:
        left[exclude] = False
    best, columns = torch.where(left, scores, -torch.inf).topk(min(k, scores.shape[1]), dim=1)
    mask = left.gather(1, columns)
    short = (0, k - columns.shape[1])
    columns, best, mask = (torch.nn.functional.pad(x, short) for x in (columns, best, mask))
    return columns.masked_fill(~mask, 0), best.masked_fill(~mask, 0), mask
