"""Query-level normalisation: features made comparable between queries."""

import torch
from torch import Tensor

from torchrank.errors import check_option

METHODS = ("minmax", "zscore")


def normalize_queries(features: Tensor, offsets: Tensor, *, method: str = "minmax") -> Tensor:
    """Rescale every feature inside every list.

    A feature that is constant over a list tells its documents apart by nothing: it becomes 0.

    Args:
        features: ``(N, d)``.
        offsets: ``(Q + 1,)`` int64; every list holds at least one document.
        method: ``"minmax"`` (to [0, 1], as LETOR's own files are) or ``"zscore"`` (mean 0, standard deviation 1).

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
    if method == "minmax":
        shift, span = low, high - low
    else:
        shift = empty.scatter_reduce(0, where, features, "mean", include_self=False)
        square = (features - shift[owner]).square()
        span = empty.scatter_reduce(0, where, square, "mean", include_self=False).sqrt()
    # compare the extremes: the rounded mean of a constant need not be that constant
    factor = torch.where(high > low, 1 / span, 0)
    return (features - shift[owner]) * factor[owner]
