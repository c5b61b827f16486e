"""Strictly increasing piecewise-linear maps, one an attribute, from the user's units to the unit cube and back.

A map is a row of ``K ≥ 2`` knots with their levels, both strictly increasing; beyond the outer knots it goes on with
the slope of the outer piece. Two knots are an affine map.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from torchrank.errors import check_option

SCALINGS = ("minmax", "robust", "rank")
#: levels that a rank map keeps at most; distinct values in between are interpolated
_RANK_KNOTS = 1024


def scale(points: Tensor, knots: Tensor, levels: Tensor) -> Tensor:
    """Apply one map an attribute; NaN stays NaN.

    Args:
        points: ``(..., d)``.
        knots: ``(d, K)`` strictly increasing.
        levels: ``(d, K)`` strictly increasing.

    Returns:
        ``(..., d)`` in the wider of the two precisions; a knot gives its level exactly.

    Example:
        >>> knots, levels = torch.tensor([[10.0, 30.0]]), torch.tensor([[0.0, 1.0]])
        >>> scale(torch.tensor([[10.0], [25.0], [40.0]]), knots, levels).squeeze(1)
        tensor([0.0000, 0.7500, 1.5000])
    """
    points = points.to(torch.promote_types(points.dtype, knots.dtype))
    if knots.shape[1] == 2:
        share = (points - knots[:, 0]) / (knots[:, 1] - knots[:, 0])
        return levels[:, 0] + share * (levels[:, 1] - levels[:, 0])
    columns = points.movedim(-1, 0)
    flat = columns.reshape(len(knots), -1)
    piece = torch.searchsorted(knots, flat.detach().contiguous(), right=True).clamp(1, knots.shape[1] - 1) - 1
    low, high = knots.gather(1, piece), knots.gather(1, piece + 1)
    base, top = levels.gather(1, piece), levels.gather(1, piece + 1)
    return (base + (flat - low) / (high - low) * (top - base)).reshape(columns.shape).movedim(0, -1)


def scaling_knots(columns: Iterable[Tensor], scaling: str | None) -> tuple[Tensor, Tensor]:
    """Learn one map an attribute.

    Args:
        columns: one ``(n_j,)`` tensor of finite values an attribute, with at least two distinct values each.
        scaling: ``"minmax"`` takes least and greatest to 0 and 1; ``"robust"`` the whiskers of a box plot, the least
            and greatest values within 1.5 interquartile ranges of the quartiles; ``"rank"`` is the mid-rank among the
            values, from 0 to 1, interpolated between 1,024 of them; None leaves the values as they are.

    Returns:
        knots and levels, ``(d, K)`` float64 on the CPU.

    Raises:
        TorchRankError: an unknown scaling.

    Source:
        ``"minmax"`` is eq 30 of Li, Mei & Hu (arXiv 1402.4542).

    Example:
        >>> scaling_knots([torch.tensor([3.0, 1.0, 2.0, 2.0, 99.0])], "robust")[0]
        tensor([[1., 3.]], dtype=torch.float64)
    """
    if scaling is not None:
        check_option("scaling", scaling, SCALINGS)
    maps = []
    for column in columns:
        values = column.detach().double().cpu()
        if scaling is None:
            maps.append(torch.tensor([[0.0, 1.0], [0.0, 1.0]], dtype=torch.float64))
        elif scaling == "rank":
            maps.append(_mid_ranks(values))
        else:
            low, high = whiskers(values) if scaling == "robust" else tuple(values.aminmax())
            maps.append(torch.stack([torch.stack([low, high]), torch.tensor([0.0, 1.0], dtype=torch.float64)]))
    size = max(m.shape[1] for m in maps)
    padded = torch.stack([_pad(m, size) for m in maps])
    return padded[:, 0].contiguous(), padded[:, 1].contiguous()


def whiskers(values: Tensor) -> tuple[Tensor, Tensor]:
    """Find the whiskers of a box plot: the least and greatest values within 1.5 interquartile ranges of the quartiles.

    Args:
        values: ``(n,)`` finite, with at least two distinct values.

    Returns:
        two scalars; least and greatest of all values where more than half of them are equal.

    Source:
        Tukey, "Exploratory Data Analysis", 1977.

    Example:
        >>> whiskers(torch.tensor([3.0, 1.0, 2.0, 2.0, 99.0]))
        (tensor(1.), tensor(3.))
    """
    ordered = values.sort().values
    last = len(ordered) - 1
    first, third = ordered[round(0.25 * last)], ordered[round(0.75 * last)]
    reach = 1.5 * (third - first)
    inside = ordered[(ordered >= first - reach) & (ordered <= third + reach)]
    if inside[0] == inside[-1]:
        return ordered[0], ordered[-1]
    return inside[0], inside[-1]


def _mid_ranks(values: Tensor) -> Tensor:
    distinct, counts = torch.unique(values, return_counts=True)
    rank = counts.cumsum(0) - 0.5 * (counts + 1)
    if len(distinct) > _RANK_KNOTS:
        keep = torch.linspace(0, len(distinct) - 1, _RANK_KNOTS).round().long()
        distinct, rank = distinct[keep], rank[keep]
    level = (rank - rank[0]) / (rank[-1] - rank[0])
    # One more knot on either side, so that values beyond the data go on with the overall slope, not an end's.
    width = distinct[-1] - distinct[0]
    knots = torch.cat([distinct[:1] - width, distinct, distinct[-1:] + width])
    return torch.stack([knots, torch.cat([level[:1] - 1, level, level[-1:] + 1])])


def _pad(one: Tensor, size: int) -> Tensor:
    """Lengthen a map's last piece to ``size`` knots."""
    steps = torch.arange(1, size - one.shape[1] + 1, dtype=one.dtype)
    return torch.cat([one, one[:, -1:] + steps * (one[:, -1:] - one[:, -2:-1])], 1)
