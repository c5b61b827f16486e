"""Ranking methods in one form, so that one check can be run on all of them."""

from collections.abc import Sequence

import torch
from torch import Tensor

from torchrank.commands.elastic_curve import elastic_curve
from torchrank.theory.meta_rules import FittedRanking
from torchrank.training.curve_fitting import fit_curve


def ranking_curve(points: Tensor, directions: Sequence[int]) -> FittedRanking:
    """Fit the ranking curve with its defaults; its size is its control points'."""
    curve = fit_curve(points, directions)
    return FittedRanking(
        score=lambda x: curve(x).detach(), curve=lambda s: curve.curve(s).detach(), size=curve.control_points.numel()
    )


def first_component(points: Tensor, directions: Sequence[int]) -> FittedRanking:
    """Fit the first principal component of min-max scaled attributes; f is its line across the data."""
    low, width = _box(points)
    scaled = (points - low) / width
    mean = scaled.mean(0)
    axis = torch.linalg.svd(scaled - mean, full_matrices=False).Vh[0]
    axis = axis if float((axis * torch.tensor(directions)).sum()) >= 0 else -axis
    along = (scaled - mean) @ axis
    ends = along.min(), along.max()

    def curve(s: Tensor) -> Tensor:
        points: Tensor = low + width * (mean + (ends[0] + s * (ends[1] - ends[0]))[:, None] * axis)
        return points

    return FittedRanking(lambda x: ((x - low) / width - mean) @ axis, curve, 2 * points.shape[1])


def mean_of_ranks(points: Tensor, directions: Sequence[int]) -> FittedRanking:
    """Rank a new object among the table's in each attribute, and take the mean."""
    rising = (points * torch.tensor(directions)).T.contiguous().sort(-1).values

    def score(x: Tensor) -> Tensor:
        columns = (x * torch.tensor(directions)).T.contiguous()
        below, upto = torch.searchsorted(rising, columns), torch.searchsorted(rising, columns, right=True)
        return (below + upto).double().mean(0) / (2 * len(points))

    return FittedRanking(score)


def elastic(points: Tensor, directions: Sequence[int], *, nodes: int = 4) -> FittedRanking:
    """Fit ElPiGraph's curve to min-max scaled attributes; 4 nodes are as many numbers as a cubic's control points."""
    low, width = _box(points)
    line = elastic_curve((points - low) / width, torch.tensor(directions, dtype=points.dtype), nodes=nodes)
    return FittedRanking(
        score=lambda x: line.place((x - low) / width)[0],
        curve=lambda s: low + width * line.curve(s),
        size=nodes * points.shape[1],
    )


def _box(points: Tensor) -> tuple[Tensor, Tensor]:
    low, high = points.aminmax(dim=0)
    return low, torch.where(high > low, high - low, torch.ones_like(high))
