"""Fit a ranking principal curve to a table of objects."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from torchrank.errors import ShapeError, TorchRankError, as_option, check_count, check_option
from torchrank.models.curve import MARGIN, RankingCurve, check_degree, check_directions, end_points
from torchrank.models.curve_report import CurveOptimum, CurveReport, CurveRun
from torchrank.ops.bezier import elevate
from torchrank.ops.curve_gradient import gradient_descent
from torchrank.ops.curve_moments import Moments, curve_moments
from torchrank.ops.curve_richardson import STEPS, richardson
from torchrank.ops.curve_solver import Box, Descent, gauss_newton
from torchrank.ops.projection import project
from torchrank.ops.scaling import SCALINGS
from torchrank.training.curve_table import CurveTable, ScaledTable

SOLVERS = ("gauss_newton", "paper", "gradient")
#: rows of the sample that every start of a larger table runs on; what wins there is finished on all rows
_SAMPLE = 1 << 13
#: starts end in the same optimum when J agrees to this part and the rank correlation of their scores is at least this
_SAME_OBJECTIVE, _SAME_RANKING = 1e-5, 0.9999
#: optima of the sample whose J exceeds the best by more than this part are not finished on all rows
_HOPELESS = 0.1


class _Problem(NamedTuple):
    """What all starts share."""

    solver: str
    step: str
    tolerance: float
    max_iterations: int
    box: Box


def fit_curve(
    points: Any,
    directions: Sequence[int] | Tensor,
    *,
    scaling: str | None = "minmax",
    solver: str = "gauss_newton",
    degree: int = 3,
    ends: str = "corner",
    score: str = "arc_length",
    extend: bool = True,
    missing: str = "error",
    starts: int = 8,
    seed: int = 0,
    initial: Tensor | None = None,
    step: str = "spectrum",
    tolerance: float = 1e-10,
    max_iterations: int = 1000,
    names: Sequence[str] | None = None,
) -> RankingCurve:
    """Fit the curve from the worst to the best corner that lies nearest to all objects.

    Minimises J, the sum of squared distances in the unit cube. J has several minima: the fit starts from the straight
    line and from random curves, and reports what they ended in. A table of more than 8,192 rows is sampled for that,
    and what wins there is finished on all rows; points are read chunk by chunk, so a ``numpy.memmap`` need not fit in
    memory. Needs no Lightning; points on a GPU are projected there.

    Args:
        points: ``(n, d)`` tensor, array or data frame of numbers, one row an object.
        directions: ``d`` numbers, +1 where more is better, −1 where less is.
        scaling: how attributes are mapped to the unit cube: ``"minmax"`` (eq 30); ``"robust"``, the whiskers of a box
            plot to 0 and 1, which outliers do not move; ``"rank"``, mid-ranks; None takes them as they are.
        solver: ``"gauss_newton"`` (variable projection), ``"paper"`` (Algorithm 1: golden-section search, Richardson
            steps, starts at sampled objects) or ``"gradient"`` (L-BFGS on sigmoid parameters).
        degree: 1, 2 or 3.
        ends: ``"corner"``, or ``"free"`` to let the end points move in the cube too; strict monotonicity is then
            checked and, where it fails, warned of.
        score: ``"arc_length"`` or ``"parameter"``, what the curve's scores measure.
        extend: score objects beyond the box on the curve's end tangents.
        missing: ``"error"`` refuses NaN; ``"observed"`` measures distances in the attributes that are there.
        starts: number of starts, at least 1.
        seed: of the random starts and the sample.
        initial: ``(d, degree + 1)`` control points in the unit cube that take the place of the first start.
        step: for ``solver="paper"``, its step: ``"spectrum"``, ``"printed"`` (eq 29 as it stands) or
            ``"pseudo_inverse"`` (eq 27).
        tolerance: stop when an iteration lowers J by less than this part.
        max_iterations: limit of each run.
        names: the attributes' names, for messages.

    Returns:
        the curve, with ``.report`` saying how it was found.

    Raises:
        ShapeError: shapes that do not fit.
        DataError: fewer than two different objects, infinite values, missing values under ``missing="error"``.
        TorchRankError: a direction that is not ±1, a degree outside 1 to 3, an unknown option.

    Source:
        Li, Mei & Hu (arXiv 1402.4542), eq 19 to 30 and Algorithm 1.

    Example:
        >>> objects = torch.tensor([[0.3, 0.25], [0.25, 0.55], [0.7, 0.7]], dtype=torch.float64)
        >>> curve = fit_curve(objects, [1, 1], scaling=None)
        >>> curve(objects).argsort().tolist(), round(curve.report.objective, 5)
        ([0, 1, 2], 0.02267)
    """
    _check_options(scaling, solver, step, starts, max_iterations)
    check_degree(degree)
    alpha = check_directions(directions, names)
    curve = RankingCurve(alpha, degree=degree, ends=ends, score=score, extend=extend, missing=missing)
    table = CurveTable(points, names=names, missing=missing)
    if len(alpha) != len(table.columns):
        raise ShapeError(f"there are {len(alpha)} directions for {len(table.columns)} attributes")
    dropped = tuple(c.name for c, kept in zip(table.columns, table.kept.tolist(), strict=True) if not kept)
    if dropped:
        table.warn(f"{', '.join(dropped)}: constant, so without influence on the ranking")
    curve.set_scaling(*table.scaling(scaling), table.kept)

    generator = torch.Generator().manual_seed(seed)
    everything = table.scaled(curve.knots, curve.levels)
    few = everything
    if table.rows > _SAMPLE:
        # With replacement, repeats left out: no list of all rows is made.
        drawn = torch.unique(torch.randint(table.rows, (_SAMPLE,), generator=generator))
        few = table.scaled(curve.knots, curve.levels, drawn.numpy())
    corners = end_points([a for a, kept in zip(alpha, table.kept.tolist(), strict=True) if kept])
    problem = _Problem(solver, step, tolerance, max_iterations, _box(corners, degree, ends))
    begin = _starts(corners, degree, starts, solver, few, generator)
    if initial is not None:
        begin[0] = _checked_initial(initial, len(alpha), degree)[table.kept]
    runs = [_solve(problem, few, start) for start in begin]
    best, optima, ended = _finish(problem, runs, everything, few)

    whole = curve.control_points.detach().clone()
    whole[table.kept] = best.control_points
    curve.set_control_points(whole)
    if not best.converged:
        table.warn(f"solver {solver!r} stopped before it converged; raise max_iterations, or take 'gauss_newton'")
    if not curve.monotone:
        table.warn(
            "the curve is not strictly monotone: a dominated object may score higher;"
            f" {as_option('ends', 'corner')} prevents that"
        )
    spread = everything.variance()
    curve.report = CurveReport(
        solver=solver,
        rows=table.rows,
        objectives=best.objectives,
        converged=best.converged,
        explained_variance=1 - best.objectives[-1] / spread,
        monotone=curve.monotone,
        runs=tuple(
            CurveRun(run.objectives, run.projections, run.converged, few.rows, where)
            for run, where in zip(runs, ended, strict=True)
        ),
        optima=optima,
        dropped=dropped,
        warnings=tuple(table.warnings),
    )
    return curve.to(table.device)


def _check_options(scaling: str | None, solver: str, step: str, starts: int, max_iterations: int) -> None:
    if scaling is not None:
        check_option("scaling", scaling, SCALINGS)
    check_option("solver", solver, SOLVERS)
    check_option("step", step, STEPS)
    if step != "spectrum" and solver != "paper":
        raise TorchRankError(f"step={step!r} is an option of solver='paper', not of {solver!r}")
    for name, value in (("starts", starts), ("max_iterations", max_iterations)):
        check_count(name, value)


def _checked_initial(initial: Tensor, d: int, degree: int) -> Tensor:
    if initial.shape != (d, degree + 1):
        raise ShapeError(f"initial has shape {tuple(initial.shape)}, the curve's control points {(d, degree + 1)}")
    return initial.detach().double().cpu()


def _box(corners: Tensor, degree: int, ends: str) -> Box:
    inner = range(1, degree)
    columns = list(inner) if ends == "corner" else list(range(degree + 1))
    low = torch.tensor([MARGIN if r in inner else 0.0 for r in columns], dtype=torch.float64)
    low = low.expand(len(corners), -1).clone()
    return Box(columns, low, 1 - low)


def _starts(
    corners: Tensor, degree: int, count: int, solver: str, table: ScaledTable, generator: torch.Generator
) -> list[Tensor]:
    """The straight line, then random curves: inner control points anywhere in the cube, or objects for the paper's."""
    straight = elevate(corners, degree)
    out = []
    for k in range(count):
        start = straight.clone()
        if solver == "paper":
            start[:, 1:-1] = table.draw(degree - 1, generator).T
        elif k:
            start[:, 1:-1] = torch.rand(len(corners), degree - 1, dtype=torch.float64, generator=generator)
        out.append(start)
    return out


def _solve(problem: _Problem, table: ScaledTable, start: Tensor) -> Descent:
    limits: dict[str, Any] = {"tolerance": problem.tolerance, "max_iterations": problem.max_iterations}
    if problem.solver == "gauss_newton":

        def with_tangents(control_points: Tensor, bent: bool) -> Moments:
            return curve_moments(table, control_points, tangent=problem.box.columns, bent=bent)

        return gauss_newton(with_tangents, start, problem.box, **limits)
    if problem.solver == "gradient":
        return gradient_descent(lambda p: curve_moments(table, p), start, problem.box, **limits)
    golden = partial(curve_moments, table, method="golden_section")
    return richardson(golden, start, problem.box, step=problem.step, **limits)


def _finish(
    problem: _Problem, runs: list[Descent], everything: ScaledTable, few: ScaledTable
) -> tuple[Descent, tuple[CurveOptimum, ...], list[int]]:
    """Group runs by what they ended in, finish the promising groups on all rows; the best, the groups, each run's."""
    groups = _group(runs, few)
    if everything is not few:
        least = min(runs[group[0]].objectives[-1] for group in groups)
        promising = [g for g in groups if runs[g[0]].objectives[-1] <= (1 + _HOPELESS) * least]
        whole = [_solve(problem, everything, runs[g[0]].control_points) for g in promising]
        merged = _group(whole, few)
        finished = [whole[m[0]] for m in merged]
        members = [[i for k in m for i in promising[k]] for m in merged]
        rest = [g for g in groups if g not in promising]
        finished += [runs[g[0]] for g in rest]
        members += rest
    else:
        finished, members = [runs[g[0]] for g in groups], groups
    scores = [_scores(run, few) for run in finished]
    optima = tuple(
        CurveOptimum(run.objectives[-1], len(member), _spearman(scores[0], score))
        for run, member, score in zip(finished, members, scores, strict=True)
    )
    ended = [next(k for k, member in enumerate(members) if i in member) for i in range(len(runs))]
    return finished[0], optima, ended


def _group(runs: list[Descent], table: ScaledTable) -> list[list[int]]:
    """Indices of runs that found the same optimum, best run and best group first."""
    scores = [_scores(run, table) for run in runs]
    groups: list[list[int]] = []
    for i in sorted(range(len(runs)), key=lambda i: runs[i].objectives[-1]):
        for group in groups:
            first = runs[group[0]].objectives[-1]
            close = runs[i].objectives[-1] <= first * (1 + _SAME_OBJECTIVE) + 1e-12
            if close and _spearman(scores[group[0]], scores[i]) >= _SAME_RANKING:
                group.append(i)
                break
        else:
            groups.append([i])
    return groups


def _scores(run: Descent, table: ScaledTable) -> np.ndarray[Any, Any]:
    points = run.control_points
    parts = [project(x, points.to(x.device), extend=True, observed=seen)[0] for x, seen in table]
    return torch.cat(parts).cpu().numpy()


def _spearman(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """Rank correlation; 1 where the scores are the same, constant or not."""
    if np.array_equal(a, b) or np.ptp(a) == 0 or np.ptp(b) == 0:
        return 1.0
    return float(spearmanr(a, b).statistic)
