"""L-BFGS for principal curves, on sigmoid parameters of the control points with the envelope gradient."""

from collections.abc import Callable

import torch
from torch import Tensor

from torchrank.ops.curve_moments import Moments
from torchrank.ops.curve_solver import Box, Descent


def gradient_descent(
    evaluate: Callable[[Tensor], Moments],
    start: Tensor,
    box: Box,
    *,
    tolerance: float = 1e-10,
    max_iterations: int = 500,
) -> Descent:
    """Minimise J over ``low + (high − low) σ(z)`` by L-BFGS with a strong-Wolfe line search.

    Args:
        evaluate: control points to the sums there.
        start: ``(d, k + 1)`` float64.
        box: what may move.
        tolerance: stop when an iteration changes J by less than this part of J at the start.
        max_iterations: limit.

    Returns:
        the curve and how it was reached.
    """
    width = box.high - box.low
    # At a bound a sigmoid would not move.
    share = ((start[:, box.columns] - box.low) / width).clamp(0.02, 0.98)
    z = share.logit().requires_grad_()
    best = box.place(start, box.low + width * share)
    first = evaluate(best)
    objectives, projections = [first.objective], 1
    scale = max(first.objective, 1e-300)
    if not box.columns:
        return Descent(best, tuple(objectives), projections, True)

    def closure() -> Tensor:
        nonlocal best, projections
        with torch.no_grad():
            s = z.sigmoid()
            candidate = box.place(start, box.low + width * s)
            there = evaluate(candidate)
            projections += 1
            z.grad = 2 / scale * there.slope(candidate)[:, box.columns] * width * s * (1 - s)
        if there.objective < objectives[-1]:
            best = candidate
            objectives.append(there.objective)
        return torch.tensor(there.objective / scale, dtype=torch.float64)

    optimizer = torch.optim.LBFGS(
        [z], max_iter=max_iterations, tolerance_grad=1e-12, tolerance_change=tolerance, line_search_fn="strong_wolfe"
    )
    optimizer.step(closure)  # type: ignore[no-untyped-call] # torch leaves it untyped
    converged = optimizer.state[z]["n_iter"] < max_iterations
    return Descent(best, tuple(objectives), projections, bool(converged))
