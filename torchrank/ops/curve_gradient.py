"""L-BFGS for principal curves, on sigmoid parameters of the control points with the envelope gradient."""

from collections.abc import Callable

import torch
from torch import Tensor

from torchrank.ops.curve_moments import Moments
from torchrank.ops.curve_solver import Box, Descent

#: a search that lowers J by less than this part gained nothing
_NOTHING = 1e-7


def gradient_descent(
    evaluate: Callable[[Tensor], Moments],
    start: Tensor,
    box: Box,
    *,
    tolerance: float = 1e-10,
    max_iterations: int = 500,
) -> Descent:
    """Minimise J over ``low + (high − low) σ(z)`` by L-BFGS with a strong-Wolfe line search.

    At a bound a sigmoid does not move, and a point that a long step took there would stay. So the search starts anew
    from where it ended, a little inside the bounds, until that gains nothing.

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
    best = box.place(start, box.low + width * _share(start, box))
    objectives, projections, left = [evaluate(best).objective], 1, max_iterations
    scale = max(objectives[0], 1e-300)
    converged, searches = not box.columns, 0
    while not converged and left > 0:
        z = _share(best, box).logit().requires_grad_()

        def closure(z: Tensor = z) -> Tensor:
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

        before = objectives[-1]
        optimizer = torch.optim.LBFGS(
            [z], max_iter=left, tolerance_grad=1e-12, tolerance_change=tolerance, line_search_fn="strong_wolfe"
        )
        optimizer.step(closure)  # type: ignore[no-untyped-call] # torch leaves it untyped
        left -= int(optimizer.state[z]["n_iter"])
        searches += 1
        converged = left > 0 and searches > 1 and before - objectives[-1] <= _NOTHING * before
    return Descent(best, tuple(objectives), projections, converged)


def _share(control_points: Tensor, box: Box) -> Tensor:
    """Where in the box the free control points lie, as shares kept away from its bounds."""
    return ((control_points[:, box.columns] - box.low) / (box.high - box.low)).clamp(0.02, 0.98)
