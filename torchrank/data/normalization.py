"""Query-level normalisation: features made comparable between queries."""

import torch
from torch import Tensor

from torchrank.errors import check_option

METHODS = ("minmax", "rank", "zscore")


def normalize_queries(features: Tensor, offsets: Tensor, *, method: str = "minmax") -> Tensor:
    """Rescale every feature inside every list.

    A feature that is constant over a list tells its documents apart by nothing: it becomes 0.

    Args:
        features: ``(N, d)``.
        offsets: ``(Q + 1,)`` int64; every list holds at least one document.
        method: ``"minmax"`` (to [0, 1], as LETOR's own files are), ``"rank"`` (the share of the other documents with a
            smaller value, an equal one counting half) or ``"zscore"`` (mean 0, standard deviation 1).

    Returns:
        ``(N, d)``.

    Raises:
        TorchRankError: an unknown method.

    Example:
        >>> normalize_queries(torch.tensor([[2.0], [4.0], [3.0]]), torch.tensor([0, 3]))
        tensor([[0.0000],
                [1.0000],
                [0.5000]])
    """
    check_option("method", method, METHODS)
    lengths = offsets.diff()
    owner = torch.repeat_interleave(torch.arange(len(lengths), device=features.device), lengths)
    where = owner[:, None].expand_as(features)
    empty = features.new_zeros(len(lengths), features.shape[1])
    low = empty.scatter_reduce(0, where, features, "amin", include_self=False)
    high = empty.scatter_reduce(0, where, features, "amax", include_self=False)
    if method == "rank":
        shares = torch.stack([_rank_shares(column, owner, offsets) for column in features.unbind(1)], 1)
        return torch.where((high > low)[owner], shares, 0)
    if method == "minmax":
        shift, span = low, high - low
    else:
        shift = empty.scatter_reduce(0, where, features, "mean", include_self=False)
        square = (features - shift[owner]).square()
        span = empty.scatter_reduce(0, where, square, "mean", include_self=False).sqrt()
    # compare the extremes: the rounded mean of a constant need not be that constant
    factor = torch.where(high > low, 1 / span, 0)
    return (features - shift[owner]) * factor[owner]


def _rank_shares(values: Tensor, owner: Tensor, offsets: Tensor) -> Tensor:
    """Rank ``(N,)`` values inside their lists, ties at their mean rank, from 0 for the least to 1 for the greatest."""
    order = values.argsort(stable=True)
    order = order[owner[order].argsort(stable=True)]  # list after list, rising inside each
    place = torch.arange(len(values), device=values.device)
    sorted_values = values[order]
    first = torch.ones_like(place, dtype=torch.bool)
    first[1:] = (sorted_values[1:] != sorted_values[:-1]) | (owner[1:] != owner[:-1])
    last = torch.ones_like(first)
    last[:-1] = first[1:]
    tie = first.cumsum(0) - 1
    middle = (place[first] + place[last])[tie] / 2 - offsets[owner]
    shares = middle / (offsets.diff()[owner] - 1).clamp(min=1)
    return torch.empty_like(values).index_put((order,), shares.to(values.dtype))
