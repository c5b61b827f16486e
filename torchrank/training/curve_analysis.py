"""How far a ranking by a curve can be trusted: resampled ranks, attributes left out, what each attribute adds."""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from torchrank.errors import TorchRankError
from torchrank.models.curve import RankingCurve
from torchrank.ops.aggregation import competition_ranks
from torchrank.training.curve_fitting import fit_curve

#: attributes up to which every coalition is scored; the number doubles with each
_MOST_ATTRIBUTES = 12
#: random orders, each with its reverse, beyond that
_ORDERS = 128

Progress = Callable[[Iterable[int]], Iterable[int]]


def rank_intervals(
    curve: RankingCurve,
    points: Tensor,
    *,
    rounds: int = 200,
    level: float = 0.95,
    scaling: str | None = "minmax",
    solver: str = "gauss_newton",
    seed: int = 0,
    progress: Progress = iter,
) -> Tensor:
    """Bootstrap intervals of every object's rank: how it moves when other objects had been in the table.

    Each round draws as many objects with replacement, fits a curve from where ``curve`` lies, and ranks all objects.

    Args:
        curve: the fitted curve.
        points: ``(n, d)`` in the user's units.
        rounds: number of resamples, at least 1.
        level: share of the rounds between the bounds.
        scaling: as in :func:`fit_curve`.
        solver: as in :func:`fit_curve`.
        seed: of the resamples.
        progress: wraps the rounds, for a progress bar.

    Returns:
        ``(n, 2)`` int64, lowest and highest rank; 1 is best.

    Raises:
        TorchRankError: ``rounds`` below 1 or ``level`` outside (0, 1).

    Source:
        Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7(1), 1979; percentile interval.

    Example:
        >>> points = torch.linspace(0, 1, 20, dtype=torch.float64)[:, None].repeat(1, 2)
        >>> curve = fit_curve(points, [1, 1])
        >>> rank_intervals(curve, points, rounds=5)[0].tolist()
        [20, 20]
    """
    if rounds < 1 or not 0 < level < 1:
        raise TorchRankError(f"rounds={rounds} and level={level}; give at least one round and a level between 0 and 1")
    generator = np.random.default_rng(seed)
    start = curve.control_points.detach()
    ranks = np.empty((rounds, len(points)), np.int32)
    for i in progress(range(rounds)):
        sample = points[_two_kinds(generator, points)]
        other = _fit_like(curve, sample, curve.directions, scaling=scaling, solver=solver, starts=1, initial=start)
        ranks[i] = competition_ranks(other(points).detach()).cpu()
    tail = (1 - level) / 2
    low = np.quantile(ranks, tail, axis=0, method="inverted_cdf")
    high = np.quantile(ranks, 1 - tail, axis=0, method="inverted_cdf")
    return torch.from_numpy(np.stack([low, high], 1).astype(np.int64))


def _two_kinds(generator: np.random.Generator, points: Tensor) -> np.ndarray:
    """Draw rows with replacement, again where they are all the same object."""
    while True:
        drawn = generator.integers(0, len(points), len(points))
        if bool((points[drawn] != points[drawn[0]]).any()):
            return drawn


def _fit_like(
    curve: RankingCurve,
    points: Tensor,
    directions: Sequence[int],
    *,
    scaling: str | None,
    solver: str,
    starts: int,
    initial: Tensor | None = None,
) -> RankingCurve:
    """Fit another curve of the same kind, silently: the user has read the first one's warnings."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_curve(
            points,
            directions,
            scaling=scaling,
            solver=solver,
            degree=curve.degree,
            ends=curve.ends,
            score=curve.score,
            extend=curve.extend,
            missing=curve.missing,
            starts=starts,
            initial=initial,
        )


class LeftOut(NamedTuple):
    """What becomes of a ranking without one attribute.

    Attributes:
        attribute: its column.
        spearman: rank correlation with the ranking by all attributes.
        largest_move: the most places that an object moves.
        moved: the object that moves them.
        explained_variance: of the curve without the attribute.
    """

    attribute: int
    spearman: float
    largest_move: int
    moved: int
    explained_variance: float


def leave_one_out(
    curve: RankingCurve,
    points: Tensor,
    *,
    scaling: str | None = "minmax",
    solver: str = "gauss_newton",
    starts: int = 8,
) -> list[LeftOut]:
    """Fit the curve without each attribute in turn.

    Args:
        curve: the fitted curve.
        points: ``(n, d)`` in the user's units.
        scaling: as in :func:`fit_curve`.
        solver: as in :func:`fit_curve`.
        starts: as in :func:`fit_curve`.

    Returns:
        one row an attribute that took part; none where only one did.

    Example:
        >>> points = torch.linspace(0, 1, 9, dtype=torch.float64)[:, None].repeat(1, 3)
        >>> [row.largest_move for row in leave_one_out(fit_curve(points, [1, 1, 1]), points)]
        [0, 0, 0]
    """
    kept = curve.kept.nonzero().flatten().tolist()
    if len(kept) < 2:
        return []
    scores = curve(points).detach().cpu()
    rows = []
    for attribute in kept:
        others = [j for j in range(points.shape[1]) if j != attribute]
        part = points[:, others]
        seen = ~part.isnan().all(1)
        directions = [curve.directions[j] for j in others]
        other = _fit_like(curve, part[seen], directions, scaling=scaling, solver=solver, starts=starts)
        left = other(part[seen]).detach().cpu()
        moves = (competition_ranks(left) - competition_ranks(scores[seen.cpu()])).abs()
        report = other.report
        rows.append(
            LeftOut(
                attribute=attribute,
                spearman=float(spearmanr(left, scores[seen.cpu()]).statistic),
                largest_move=int(moves.max()),
                moved=int(seen.nonzero().flatten()[int(moves.argmax())]),
                explained_variance=float("nan") if report is None else report.explained_variance,
            )
        )
    return rows


@torch.no_grad()
def contributions(curve: RankingCurve, points: Tensor, *, seed: int = 0) -> Tensor:
    """What each attribute adds to each object's score, against the median object: Shapley values.

    They add up, over the attributes, to the object's score minus the median object's: the mean, over all orders in
    which attributes go from the median's value to the object's, of what the score gains at each. With more than 12
    attributes the mean is over 128 random orders and their reverses; what it adds up to stays exact.

    Args:
        curve: the fitted curve.
        points: ``(n, d)`` in the user's units; a missing value adds nothing.
        seed: of the random orders.

    Returns:
        ``(n, d)`` in units of the score.

    Source:
        Shapley, "A value for n-person games", 1953; Lundberg & Lee (NeurIPS 2017) for their use here.

    Example:
        >>> points = torch.tensor([[0.0, 0.0], [0.5, 0.5], [1.0, 0.5]], dtype=torch.float64)
        >>> added = contributions(fit_curve(points, [1, 1]), points)
        >>> added[1].tolist(), bool(added[2, 0] > 0), float(added[2, 1])
        ([0.0, 0.0], True, 0.0)
    """
    points = points.double()
    median = points.nanmedian(0).values
    points = torch.where(points.isnan(), median, points)
    base = median.expand_as(points)
    if points.shape[1] <= _MOST_ATTRIBUTES:
        return _over_coalitions(curve, points, base)
    return _over_orders(curve, points, base, seed)


def _over_coalitions(curve: RankingCurve, points: Tensor, base: Tensor) -> Tensor:
    d = points.shape[1]
    value = {}
    for size in range(d + 1):
        for members in combinations(range(d), size):
            mixed = base.clone()
            mixed[:, list(members)] = points[:, list(members)]
            value[frozenset(members)] = curve(mixed)
    added = torch.zeros_like(points)
    for coalition, with_all in value.items():
        for j in coalition:
            share = 1 / (d * comb(d - 1, len(coalition) - 1))
            added[:, j] += share * (with_all - value[coalition - {j}])
    return added


def _over_orders(curve: RankingCurve, points: Tensor, base: Tensor, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    added = torch.zeros_like(points)
    for _ in range(_ORDERS):
        order = torch.randperm(points.shape[1], generator=generator).tolist()
        for each in (order, order[::-1]):
            mixed, before = base.clone(), curve(base)
            for j in each:
                mixed[:, j] = points[:, j]
                after = curve(mixed)
                added[:, j] += (after - before) / (2 * _ORDERS)
                before = after
    return added
