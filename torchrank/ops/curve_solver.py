"""Gauss–Newton for principal curves: control points in a box, every point's place on the curve projected out."""

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from torchrank.ops.curve_moments import Moments

_LEAST_DAMPING = 1e-9
_MOST_TRIES = 10
#: damping up to which a step is near the undamped one
_SMALL_DAMPING = 1e-2
#: an iteration that lowers J by less than this part gains little
_LITTLE = 1e-3


class Descent(NamedTuple):
    """How a solver went.

    Attributes:
        control_points: ``(d, k + 1)``, the best curve met.
        objectives: J at the start and after every iteration.
        projections: how often all points were projected.
        converged: whether it stopped because nothing was left to gain, not at a limit.
    """

    control_points: Tensor
    objectives: tuple[float, ...]
    projections: int
    converged: bool


class Box(NamedTuple):
    """What a solver may move, and how far.

    Attributes:
        columns: which control points are free.
        low: ``(d, len(columns))`` lower bounds.
        high: ``(d, len(columns))`` upper bounds.
    """

    columns: list[int]
    low: Tensor
    high: Tensor

    def clip(self, control_points: Tensor) -> Tensor:
        """Return the control points with the free ones moved into the box."""
        return self.place(control_points, control_points[:, self.columns].clamp(self.low, self.high))

    def place(self, control_points: Tensor, free: Tensor) -> Tensor:
        """Return the control points with the free ones replaced."""
        out = control_points.clone()
        out[:, self.columns] = free
        return out


def gauss_newton(
    evaluate: Callable[[Tensor, bool], Moments],
    start: Tensor,
    box: Box,
    *,
    tolerance: float = 1e-10,
    max_iterations: int = 200,
) -> Descent:
    """Minimise J by variable projection: damped Gauss–Newton steps in the control points alone, Newton's at the end.

    Moving a control point moves a residual by ``−(I − t tᵀ) B``, ``t`` the unit tangent: sliding along the curve costs
    nothing to first order. The normal matrix is ``Σ B Bᵀ ⊗ I − Σ w wᵀ`` with ``w = B ⊗ t``; each step minimises its
    damped quadratic (Levenberg–Marquardt) over the box. Once steps gain little, large residuals make that slow: then
    ``w`` takes in the curve's bend, which makes the matrix J's own Hessian, and eigenvalues below 0 change sign. Where
    no damping finds a descent, one exact box-constrained least-squares step with the projections held fixed is taken,
    which never raises J.

    Args:
        evaluate: control points, and whether the bend is wanted, to the sums there, with ``tangent`` for the free ones.
        start: ``(d, k + 1)`` float64.
        box: what may move.
        tolerance: stop when an iteration lowers J by less than this part.
        max_iterations: limit.

    Returns:
        the curve and how it was reached; J never rises.

    Source:
        Golub & Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose variables
        separate", 1973, in Kaufman's approximation; Levenberg–Marquardt.
    """
    current = box.clip(start)
    bent = False
    now = evaluate(current, bent)
    objectives, projections = [now.objective], 1
    # Residuals of 1e-10 in the unit cube are none.
    floor = 1e-20 * float(now.gram.sum())
    damping = _SMALL_DAMPING / 10
    converged = not box.columns or now.objective <= floor
    while not converged and len(objectives) <= max_iterations:
        enough = tolerance * now.objective
        better, damping, tried = _damped_step(evaluate, now, current, box, damping, bent, enough)
        projections += tried
        if better is None:
            candidate = box.place(current, box_least_squares(now, current, box))
            better = (candidate, evaluate(candidate, bent))
            projections += 1
        gain = now.objective - better[1].objective
        converged = gain <= enough and damping <= _SMALL_DAMPING
        bent = bent or gain < _LITTLE * now.objective
        if gain > 0:
            current, now = better
            objectives.append(now.objective)
            converged = converged or now.objective <= floor
        elif not converged:
            break
    return Descent(current, tuple(objectives), projections, converged)


def _damped_step(
    evaluate: Callable[[Tensor, bool], Moments],
    now: Moments,
    current: Tensor,
    box: Box,
    damping: float,
    bent: bool,
    enough: float,
) -> tuple[tuple[Tensor, Moments] | None, float, int]:
    """Raise the damping until J falls; the better curve, the next damping, the evaluations.

    A step that promises no more than ``enough`` is not tried: the curve stays what it is.
    """
    free = current[:, box.columns]
    low, high = (box.low - free).T.flatten(), (box.high - free).T.flatten()
    descent = -now.slope(current)[:, box.columns].T.flatten()
    normal = _normal_matrix(now, box)
    scale = normal.diagonal().clone()
    for tried in range(1, _MOST_TRIES + 1):
        step = minimize_in_box(normal + torch.diag(damping * scale), descent, low, high)
        promise = float(step @ (2 * descent - normal @ step))
        if promise <= enough and damping <= _SMALL_DAMPING:
            return (current, now), damping, tried - 1
        candidate = box.place(current, (free + step.reshape(free.T.shape).T).clamp(box.low, box.high))
        there = evaluate(candidate, bent)
        if there.objective < now.objective:
            return (candidate, there), max(0.1 * damping, _LEAST_DAMPING), tried
        damping = 10 * max(damping, 1e-5)
    return None, _SMALL_DAMPING, _MOST_TRIES


def _normal_matrix(now: Moments, box: Box) -> Tensor:
    """Positive definite matrix for the free control points, column after column."""
    gram = now.gram[:, box.columns][:, :, box.columns].permute(1, 2, 0)
    size = gram.shape[0] * gram.shape[2]
    matrix = torch.diag_embed(gram).permute(0, 2, 1, 3).reshape(size, size)
    if now.tangent is not None:
        matrix = matrix - now.tangent
    values, vectors = torch.linalg.eigh(matrix)
    values = values.abs().clamp(min=1e-12 * float(gram.abs().max()) + 1e-300)
    positive: Tensor = vectors * values @ vectors.T
    return positive


def minimize_in_box(matrix: Tensor, linear: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Minimise ``½ xᵀ H x − cᵀ x`` over a box by an active set.

    Args:
        matrix: ``(m, m)`` symmetric positive definite H.
        linear: ``(m,)`` c.
        low: ``(m,)`` lower bounds, at most 0.
        high: ``(m,)`` upper bounds, at least 0.

    Returns:
        ``(m,)``; no worse than 0, and the minimum unless the active set keeps changing.

    Example:
        >>> eye, one = torch.eye(2), torch.ones(2)
        >>> minimize_in_box(eye, torch.tensor([0.5, 3.0]), -one, one)
        tensor([0.5000, 1.0000])
    """
    x = torch.zeros_like(linear)
    held = ((low >= 0) & (linear < 0)) | ((high <= 0) & (linear > 0))
    for _ in range(3 * len(linear)):
        free = ~held
        if bool(free.any()):
            right = linear[free] - matrix[free][:, held] @ x[held]
            wish = torch.linalg.solve(matrix[free][:, free], right)
            delta = wish - x[free]
            room = torch.where(delta > 0, high[free] - x[free], low[free] - x[free])
            share = torch.where(delta != 0, room / delta, torch.inf)
            stretch = float(share.min().clamp(max=1))
            moved = x.clone()
            moved[free] = (x[free] + stretch * delta).clamp(low[free], high[free])
            if stretch < 1:
                # Only what met its bound first is held: H x falls all the way there.
                blocked = free.nonzero().squeeze(1)[share <= stretch]
                moved[blocked] = torch.where(delta[share <= stretch] > 0, high[blocked], low[blocked])
                held = held.clone()
                held[blocked] = True
                x = moved
                continue
            x = moved
        gain = linear - matrix @ x
        wrong = held & (((x <= low) & (gain > 0)) | ((x >= high) & (gain < 0)))
        wrong &= gain.abs() > 1e-14 * linear.abs().max()
        if not bool(wrong.any()):
            break
        held = held.clone()
        held[torch.where(wrong, gain.abs(), -1).argmax()] = False
    return x


def box_least_squares(now: Moments, current: Tensor, box: Box) -> Tensor:
    """Best free control points while every point keeps its place on the curve: exact, attribute by attribute.

    At most four variables an attribute: every choice of which of them lie on which bound is solved, and the best
    feasible one taken.

    Args:
        now: sums at the current curve.
        current: ``(d, k + 1)``.
        box: what may move.

    Returns:
        ``(d, m)``.

    Source:
        eq 22 of Li, Mei & Hu (arXiv 1402.4542), with its bounds.
    """
    columns = box.columns
    rest = [r for r in range(current.shape[1]) if r not in columns]
    gram = now.gram[:, columns][:, :, columns]
    right = now.cross[:, columns] - (now.gram[:, columns][:, :, rest] @ current[:, rest, None]).squeeze(-1)
    best, least = current[:, columns], torch.full((len(current),), torch.inf, dtype=current.dtype)
    for choice in product("lfh", repeat=len(columns)):
        x = torch.zeros_like(right)
        free = [i for i, c in enumerate(choice) if c == "f"]
        for i, c in enumerate(choice):
            if c != "f":
                x[:, i] = (box.low if c == "l" else box.high)[:, i]
        if free:
            known = (gram @ x.unsqueeze(-1)).squeeze(-1)
            solved = torch.linalg.lstsq(gram[:, free][:, :, free], (right - known)[:, free].unsqueeze(-1)).solution
            x[:, free] = solved.squeeze(-1)
        feasible = ((x >= box.low) & (x <= box.high)).all(1)
        value = (x * ((gram @ x.unsqueeze(-1)).squeeze(-1) - 2 * right)).sum(1)
        take = feasible & (value < least)
        best, least = torch.where(take[:, None], x, best), torch.where(take, value, least)
    return best
