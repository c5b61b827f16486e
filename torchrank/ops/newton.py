"""Damped Newton steps on many small convex problems side by side."""

from collections.abc import Callable

import torch
from torch import Tensor

from torchrank.errors import ConvergenceError

Evaluate = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]

#: a step is halved at most this often: a convex function falls long before
_HALVINGS = 30


@torch.no_grad()
def newton(evaluate: Evaluate, start: Tensor, *, steps: int = 50, tolerance: float = 1e-7) -> Tensor:
    """Minimise B strictly convex functions of d numbers each, every one by steps of its own length.

    Args:
        evaluate: ``(B, d)`` points to ``(B,)`` values, ``(B, d)`` gradients and ``(B, d, d)`` second derivatives,
            positive definite.
        start: ``(B, d)`` float64.
        steps: the most there may be.
        tolerance: done when no entry of a gradient is larger.

    Returns:
        ``(B, d)``.

    Raises:
        ConvergenceError: the steps did not suffice.

    Example:
        >>> def away_from_three(x):
        ...     return (x - 3).square().sum(-1), 2 * (x - 3), 2 * torch.eye(2).double().expand(len(x), 2, 2)
        >>> newton(away_from_three, torch.zeros(1, 2, dtype=torch.float64)).round(decimals=6).tolist()
        [[3.0, 3.0]]
    """
    point = start
    value, gradient, second = evaluate(point)
    for _ in range(steps):
        if gradient.numel() == 0 or float(gradient.abs().max()) <= tolerance:
            return point
        direction = torch.cholesky_solve(gradient[..., None], torch.linalg.cholesky(second)).squeeze(-1)
        promised = (gradient * direction).sum(-1)
        length = torch.ones_like(value)
        for _ in range(_HALVINGS):
            trial = point - length[:, None] * direction
            found = evaluate(trial)
            # Armijo's rule; to rounding, since near the end a value no longer falls by what is promised
            short = found[0] > value - 1e-4 * length * promised + 1e-12 * value.abs().clamp(min=1)
            if not bool(short.any()):
                break
            length = torch.where(short, length / 2, length)
        point, (value, gradient, second) = trial, found
    worst = float(gradient.abs().max())
    if worst <= tolerance:
        return point
    raise ConvergenceError(f"{steps} Newton steps leave a gradient of {worst:.1e}; give more steps or a larger μ")
