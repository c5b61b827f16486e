"""The position-based click model: a shown document is clicked when its place is examined and it attracts.

``P(click | document i at position k) = θ_k γ_i``. Source: Richardson, Dominowska & Ragno, "Predicting Clicks" (WWW
2007); Joachims, Swaminathan & Schnabel, "Unbiased Learning-to-Rank with Biased Feedback" (arXiv 1608.04468).
"""

from typing import NamedTuple

import torch
from torch import Tensor

from torchrank.errors import ConvergenceError, DataError, ShapeError, TorchRankError, check_number
from torchrank.ops.checks import check_tensors, values_can_be_read

_NEARLY_ONE = 1 - 1e-12


def rank_propensities(count: int, eta: float = 1.0) -> Tensor:
    """Examination probabilities ``(1 / k)^η`` of positions k = 1 … count.

    Args:
        count: number of positions.
        eta: η ≥ 0, how severe the bias is; 0 for none.

    Returns:
        ``(count,)`` float64.

    Raises:
        TorchRankError: ``count`` below 1, or an ``eta`` that is negative or not finite.

    Source:
        Joachims, Swaminathan & Schnabel (arXiv 1608.04468), §6.1.

    Example:
        >>> rank_propensities(4).tolist()
        [1.0, 0.5, 0.3333333333333333, 0.25]
    """
    check_number("eta", eta, least=0)
    if count < 1:
        raise TorchRankError(f"count={count} must be at least 1 position")
    return torch.arange(1, count + 1, dtype=torch.float64) ** -eta


def inverse_propensities(positions: Tensor, propensities: Tensor, *, clip: float = 0.0) -> Tensor:
    """Weights ``1 / max(θ_k, clip)`` of what was clicked at positions k.

    In expectation over the clicks, a sum of clicks with these weights (and no clipping) is the sum over all documents
    shown, as if every place were examined: so weighted losses estimate without bias what unbiased labels would give.
    The variance grows with the largest weight. ``clip`` bounds that weight by 1 / clip, and leaves the bias at the
    places of smaller propensity.

    Args:
        positions: ``(...)`` int64, from 1.
        propensities: ``(K,)`` in (0, 1], θ of positions 1 … K; on another scale, the weights are too.
        clip: the smallest propensity that counts, in [0, 1]; 0 clips nothing.

    Returns:
        ``(...)`` weights in the precision of the propensities.

    Raises:
        ShapeError: propensities that are no vector of floating-point numbers, positions that are no integers.
        DataError: a position beyond the propensities, or a propensity of an occurring position that is not above 0
            (eager CPU tensors).
        TorchRankError: a clip outside [0, 1].

    Source:
        Joachims, Swaminathan & Schnabel (arXiv 1608.04468), eq 5; clipping: Strehl et al. (arXiv 1003.0120).

    Example:
        >>> inverse_propensities(torch.tensor([1, 2, 4]), rank_propensities(4), clip=0.3)
        tensor([1.0000, 2.0000, 3.3333], dtype=torch.float64)
    """
    check_tensors({"positions": positions, "propensities": propensities})
    if propensities.ndim != 1 or not propensities.is_floating_point() or len(propensities) == 0:
        raise ShapeError(f"propensities have shape {tuple(propensities.shape)}; give (K,) floating-point numbers")
    if not 0 <= clip <= 1:
        raise TorchRankError(f"clip={clip!r} must lie in [0, 1]")
    check_positions(positions, len(propensities))
    found = propensities[positions - 1]
    if values_can_be_read(found) and not bool(((found > 0) & (found < torch.inf)).all()):
        worst = int(positions.flatten()[int((~((found > 0) & (found < torch.inf))).flatten().nonzero()[0])])
        raise DataError(
            f"the propensity of position {worst} is {propensities[worst - 1].item()}; what is never examined cannot be"
            " weighted: leave such positions out"
        )
    return 1 / found.clamp(min=clip)


def check_positions(positions: Tensor, count: int | None = None) -> None:
    """Refuse what are no positions from 1 to ``count``.

    Raises:
        ShapeError: another dtype than int32 and int64.
        DataError: a position below 1 or above ``count`` (eager CPU tensors).
    """
    if positions.dtype not in (torch.int32, torch.int64):
        raise ShapeError(f"positions have dtype {positions.dtype}; give int64 numbers, 1 for the first place")
    if not values_can_be_read(positions) or positions.numel() == 0:
        return
    low, high = (int(x) for x in positions.aminmax())
    if low < 1:
        raise DataError(f"there is a position {low}; positions begin with 1")
    if count is not None and high > count:
        raise DataError(f"there is a position {high}, and propensities of {count} positions; give one a position")


class PositionBias(NamedTuple):
    """A fitted position-based model.

    Attributes:
        propensities: ``(K,)`` float64, how often a position is examined, as a multiple of position 1.
        attraction: ``(I,)`` float64, how often an item is clicked at position 1.
        iterations: how many steps the fit took.
        log_likelihood: of all clicks and non-clicks.

    Example:
        >>> PositionBias._fields
        ('propensities', 'attraction', 'iterations', 'log_likelihood')
    """

    propensities: Tensor
    attraction: Tensor
    iterations: int
    log_likelihood: float

    def __repr__(self) -> str:
        return (
            f"PositionBias({len(self.propensities)} positions, {len(self.attraction)} items,"
            f" iterations={self.iterations}, log_likelihood={self.log_likelihood:.6g})"
        )


def fit_position_bias(
    items: Tensor, positions: Tensor, clicked: Tensor, *, iterations: int = 10_000, tolerance: float = 1e-6
) -> PositionBias:
    """Estimate the position-based model from a click log, by expectation maximisation.

    Items must have been shown at several positions, as experiments, drift or several rankers do: what the clicks of one
    item at two positions say about these needs no knowledge of relevance. A log in which every item keeps its place
    says nothing, and is refused.

    The log is counted once into cells (item, position); each step is a few sums over cells. It starts where clicks
    equal their expectation in every item and every position, which alternating finds in a few steps.

    Args:
        items: ``(M,)`` integers ≥ 0, what was shown: a number for each (query, document), or for each item of a shop.
        positions: ``(M,)`` int64, from 1.
        clicked: ``(M,)`` boolean.
        iterations: steps at most.
        tolerance: stop when no propensity moves by more than this.

    Returns:
        the model. An item that was never shown has attraction 0.

    Raises:
        ShapeError: tensors of other shapes or types.
        DataError: no click, a position below 1, a position 1 … K that nothing was shown at, or positions that no item
            joins: then only ratios inside each group are determined.
        ConvergenceError: the steps did not suffice.

    Source:
        Wang et al., "Position Bias Estimation for Unbiased Learning to Rank in Personal Search" (WSDM 2018), eq 1 and
        2, with an attraction of its own for every item; Agarwal et al., "Estimating Position Bias without Intrusive
        Interventions" (arXiv 1806.03555), for what identifies it.

    Example:
        >>> items, positions = torch.tensor([0, 0, 1, 1]).repeat(50), torch.tensor([1, 2, 1, 2]).repeat(50)
        >>> clicked = torch.arange(200) % 8 < torch.tensor([8, 0, 4, 8]).repeat(50)
        >>> fit_position_bias(items, positions, clicked).propensities.shape
        torch.Size([2])
    """
    check_tensors({"items": items, "positions": positions, "clicked": clicked})
    if items.ndim != 1 or not items.shape == positions.shape == clicked.shape or clicked.dtype != torch.bool:
        raise ShapeError(
            f"items have shape {tuple(items.shape)}, positions {tuple(positions.shape)}, clicked"
            f" {tuple(clicked.shape)} and dtype {clicked.dtype}; give (M,) integers, integers and booleans"
        )
    check_positions(positions)
    if not bool(clicked.any()):
        raise DataError("the log has no click: nothing can be learned from it")
    cells = _count(items.to(torch.int64), positions.to(torch.int64), clicked)
    _check_joined(cells)
    theta, gamma = _alternate(cells)
    moved, step = torch.inf, 0
    while moved > tolerance and step < iterations:
        step += 1
        seen = (theta[cells.position] * gamma[cells.item]).clamp(max=_NEARLY_ONE)
        # Of the showings without a click: examined but not attractive, and attractive but not examined.
        missed = (cells.shown - cells.clicks) / (1 - seen)
        examined = cells.clicks + missed * (theta[cells.position] - seen)
        attracted = cells.clicks + missed * (gamma[cells.item] - seen)
        new_theta = cells.by_position(examined) / cells.by_position(cells.shown)
        gamma = cells.by_item(attracted) / cells.by_item(cells.shown).clamp(min=1)
        moved = float((new_theta / new_theta[0] - theta / theta[0]).abs().max())
        theta = new_theta
    if moved > tolerance:
        raise ConvergenceError(
            f"after {iterations} steps the propensities still move by {moved:.2g}; allow more iterations, a larger"
            " tolerance, or leave out positions with few clicks"
        )
    seen = (theta[cells.position] * gamma[cells.item]).clamp(max=_NEARLY_ONE)
    likelihood = torch.special.xlogy(cells.clicks, seen) + torch.special.xlog1py(cells.shown - cells.clicks, -seen)
    return PositionBias(theta / theta[0], gamma * theta[0], step, float(likelihood.sum()))


class _Cells(NamedTuple):
    """What was shown where: one row for each (item, position) that occurs."""

    item: Tensor
    position: Tensor
    shown: Tensor
    clicks: Tensor
    num_items: int
    num_positions: int

    def by_item(self, values: Tensor) -> Tensor:
        return values.new_zeros(self.num_items).index_add_(0, self.item, values)

    def by_position(self, values: Tensor) -> Tensor:
        return values.new_zeros(self.num_positions).index_add_(0, self.position, values)


def _count(items: Tensor, positions: Tensor, clicked: Tensor) -> _Cells:
    low, high = (int(x) for x in items.aminmax())
    if low < 0:
        raise DataError(f"there is an item {low}; items are numbered from 0")
    columns = int(positions.max())
    keys, cell = torch.unique(items * columns + positions - 1, return_inverse=True)
    shown = torch.bincount(cell, minlength=len(keys)).double()
    clicks = torch.bincount(cell, weights=clicked.double(), minlength=len(keys))
    cells = _Cells(keys // columns, keys % columns, shown, clicks, high + 1, columns)
    empty = (cells.by_position(shown) == 0).nonzero().flatten().tolist()
    if empty:
        raise DataError(f"nothing was shown at position {empty[0] + 1} of {columns}; number positions without gaps")
    return cells


def _check_joined(cells: _Cells) -> None:
    """Refuse positions between which no chain of items with clicks leads."""
    telling = cells.by_item(cells.clicks)[cells.item] > 0
    item, position = cells.item[telling], cells.position[telling]
    group = torch.arange(cells.num_positions, device=item.device)
    while True:
        of_item = group.new_full((cells.num_items,), cells.num_positions)
        of_item.scatter_reduce_(0, item, group[position], "amin")
        new = group.scatter_reduce(0, position, of_item[item], "amin")
        if torch.equal(new, group):
            break
        group = new
    apart = (group != 0).nonzero().flatten().tolist()
    if apart:
        raise DataError(
            f"no item with clicks joins position {apart[0] + 1} to position 1, directly or by others between: the log"
            " cannot tell examination from attraction there; show items at several positions, or leave the position out"
        )


def _alternate(cells: _Cells, *, steps: int = 200) -> tuple[Tensor, Tensor]:
    """Start: clicks equal their expectation ``n θ γ`` in every position and every item; at most 1."""
    theta = torch.ones(cells.num_positions, dtype=torch.float64, device=cells.shown.device)
    for _ in range(steps):
        gamma = cells.by_item(cells.clicks) / cells.by_item(cells.shown * theta[cells.position]).clamp(min=1e-12)
        new = cells.by_position(cells.clicks) / cells.by_position(cells.shown * gamma[cells.item])
        new = new / new[0] if bool(new[0] > 0) else new / new.max()
        done = bool((new - theta).abs().max() < 1e-9)
        theta = new
        if done:
            break
    # A position nobody clicked at starts at a small number: EM cannot leave 0.
    theta = theta.clamp(min=1e-6)
    largest = theta.max()
    return theta / largest, (gamma * largest).clamp(1e-6, 1 - 1e-6)
