"""The best items of each row of scores, with some left out."""

from collections.abc import Callable

import torch
from torch import Tensor

from torchrank.errors import DataError, ShapeError
from torchrank.ops.checks import check_indices, values_can_be_read

#: columns that are made for a row though there are fewer to fill them
_MOST = 2**16


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
        ShapeError: ``scores`` is not a matrix, or ``k`` is below 1 or far beyond the columns.
        DataError: a NaN score (eager CPU tensors only).

    Example:
        >>> top_k(torch.tensor([[1.0, 3.0, 2.0]]), 3, exclude=(torch.tensor([0]), torch.tensor([1])))
        (tensor([[2, 0, 0]]), tensor([[2., 1., 0.]]), tensor([[ True,  True, False]]))
    """
    if scores.ndim != 2 or k < 1:
        raise ShapeError(f"scores have shape {tuple(scores.shape)} and k={k}; give a (B, I) matrix and k of at least 1")
    if k > max(_MOST, scores.shape[1]):
        raise ShapeError(f"k={k}, of {scores.shape[1]} that there are to choose from; give at most these")
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


@torch.no_grad()
def top_k_of_chunks(
    score_all: Callable[[Tensor], Tensor],
    users: Tensor,
    k: int,
    *,
    num_users: int,
    num_items: int,
    exclude: tuple[Tensor, Tensor] | None = None,
    items: Tensor | None = None,
    held: int = 2**22,
) -> tuple[Tensor, Tensor, Tensor]:
    """Take the k best items of many users without ever holding users × items scores.

    Args:
        score_all: ``(b,)`` users to ``(b, num_items)`` scores.
        users: ``(B,)``.
        k: how many, at least 1.
        num_users: how many there are.
        num_items: I.
        exclude: places ``(P,)`` in ``users``, ascending, and items ``(P,)``: pairs to leave out.
        items: ``(C,)`` the items to choose from, each once; all by default.
        held: scores held at once.

    Returns:
        ``(B, k)`` items, best first, their scores, and a mask that is False where nothing is left.

    Raises:
        ShapeError: ``k`` below 1, or indices of another shape or type.
        DataError: a NaN score, or an index that does not exist (eager CPU tensors only).

    Example:
        >>> score_all = lambda users: torch.tensor([[1.0, 3.0, 2.0]]).expand(len(users), -1)
        >>> top_k_of_chunks(score_all, torch.tensor([4, 7]), 1, num_users=9, num_items=3)[0].tolist()
        [[1], [1]]
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ShapeError(f"k={k!r}; give an int of at least 1")
    check_indices("user", users, num_users)
    if users.ndim != 1:
        raise ShapeError(f"users have shape {tuple(users.shape)}; give (B,)")
    if items is not None:
        check_indices("item", items, num_items)
        if items.ndim != 1 or len(items) == 0:
            raise ShapeError(f"items have shape {tuple(items.shape)}; give (C,), at least one")
    if exclude is not None:
        places, left_out_items = exclude
        check_indices("place", places, len(users))
        check_indices("item", left_out_items, num_items)
        if places.ndim != 1 or places.shape != left_out_items.shape:
            raise ShapeError(f"exclude has shapes {tuple(places.shape)}, {tuple(left_out_items.shape)}; give (P,) each")
    size = max(1, held // num_items)
    column = None
    if items is not None:
        column = torch.full((num_items,), -1, dtype=torch.int64, device=items.device)
        column[items] = torch.arange(len(items), device=items.device)
    parts = []
    for first in range(0, len(users), size):
        scores = score_all(users[first : first + size])
        scores = scores if items is None else scores[:, items]
        left_out = None if exclude is None else _within(exclude, first, first + size, column)
        best, values, mask = top_k(scores, k, exclude=left_out)
        parts.append((best if items is None else items[best].masked_fill(~mask, 0), values, mask))
    if not parts:
        empty = torch.empty(0, k, device=users.device)
        return empty.long(), empty, empty.bool()
    found, values, mask = (torch.cat(part) for part in zip(*parts, strict=True))
    return found, values, mask


def _within(exclude: tuple[Tensor, Tensor], first: int, last: int, column: Tensor | None) -> tuple[Tensor, Tensor]:
    rows, items = exclude
    low, high = torch.searchsorted(rows, torch.tensor([first, last], device=rows.device)).tolist()
    rows, columns = rows[low:high] - first, items[low:high]
    if column is None:
        return rows, columns
    columns = column[columns]
    return rows[columns >= 0], columns[columns >= 0]
