"""Rankings of objects by their attributes that need no fit: what a ranking curve is compared with."""

import torch
from torch import Tensor

from torchrank.errors import ShapeError


def competition_ranks(scores: Tensor) -> Tensor:
    """Rank scores, 1 is best; equal scores share the smallest rank (1, 2, 2, 4).

    Args:
        scores: ``(n,)``, higher is better.

    Returns:
        ``(n,)`` int64.

    Example:
        >>> competition_ranks(torch.tensor([0.5, 0.9, 0.5, 0.1])).tolist()
        [2, 1, 2, 4]
    """
    rising = (-scores).sort().values
    return torch.searchsorted(rising, -scores) + 1


def mean_rank(points: Tensor, directions: Tensor) -> Tensor:
    """Score objects by the mean of their ranks in each attribute, as a share: 1 is best everywhere, 0 worst.

    Args:
        points: ``(n, d)``.
        directions: ``(d,)`` of +1 and −1.

    Returns:
        ``(n,)`` in [0, 1]; values that tie share their mean rank.

    Raises:
        ShapeError: directions that do not fit the points.

    Source:
        Eq 31 of Li, Mei & Hu (arXiv 1402.4542), where it is called median rank aggregation.

    Example:
        >>> mean_rank(torch.tensor([[1.0, 9.0], [2.0, 5.0], [3.0, 7.0]]), torch.tensor([1.0, -1.0]))
        tensor([0.0000, 0.7500, 0.7500])
    """
    _check(points, directions)
    columns = (points * directions).T.contiguous()
    rising = columns.sort(-1).values
    below = torch.searchsorted(rising, columns)
    upto = torch.searchsorted(rising, columns, right=True)
    ranks = (below + upto - 1).to(points.dtype) / 2
    return ranks.mean(0) / max(len(points) - 1, 1)


def principal_component(points: Tensor, directions: Tensor) -> Tensor:
    """Score objects along their first principal component, turned so that it agrees with the directions.

    Args:
        points: ``(n, d)``, scaled: the component depends on the units.
        directions: ``(d,)`` of +1 and −1.

    Returns:
        ``(n,)`` from 0 for the least to 1 for the greatest; all 0 where the objects do not differ.

    Raises:
        ShapeError: directions that do not fit the points.

    Example:
        >>> principal_component(torch.tensor([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]), torch.tensor([1.0, -1.0]))
        tensor([0.0000, 0.5000, 1.0000])
    """
    _check(points, directions)
    centred = points - points.mean(0)
    axis = torch.linalg.svd(centred, full_matrices=False).Vh[0]
    along = centred @ torch.where((axis * directions).sum() < 0, -axis, axis)
    return _unit(along)


def topsis(points: Tensor, directions: Tensor) -> Tensor:
    """Score objects by their distance to the worst corner of the data's box against that to the best.

    Args:
        points: ``(n, d)``; each attribute is divided by its Euclidean norm, all weigh the same.
        directions: ``(d,)`` of +1 and −1.

    Returns:
        ``(n,)`` in [0, 1].

    Raises:
        ShapeError: directions that do not fit the points.

    Source:
        Hwang & Yoon, "Multiple Attribute Decision Making", 1981.

    Example:
        >>> topsis(torch.tensor([[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]]), torch.tensor([1.0, -1.0]))
        tensor([0.0000, 0.5000, 1.0000])
    """
    _check(points, directions)
    norm = torch.linalg.vector_norm(points, dim=0)
    shares = points * directions / torch.where(norm > 0, norm, torch.ones_like(norm))
    to_worst: Tensor = torch.linalg.vector_norm(shares - shares.amin(0), dim=1)
    to_best: Tensor = torch.linalg.vector_norm(shares - shares.amax(0), dim=1)
    total = to_worst + to_best
    return to_worst / torch.where(total > 0, total, torch.ones_like(total))


def _unit(scores: Tensor) -> Tensor:
    low, high = scores.amin(), scores.amax()
    return (scores - low) / torch.where(high > low, high - low, torch.ones_like(high))


def _check(points: Tensor, directions: Tensor) -> None:
    if points.ndim != 2 or len(points) == 0 or directions.shape != points.shape[1:]:
        raise ShapeError(
            f"points have shape {tuple(points.shape)} and directions {tuple(directions.shape)}; give (n, d) with n at"
            " least 1, and (d,)"
        )
