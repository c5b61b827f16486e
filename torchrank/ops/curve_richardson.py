"""Algorithm 1 of Li, Mei & Hu (arXiv 1402.4542): projections and one preconditioned Richardson step in turn."""

from collections.abc import Callable

import torch
from torch import Tensor

from torchrank.errors import check_option
from torchrank.ops.curve_moments import Moments
from torchrank.ops.curve_solver import Box, Descent

STEPS = ("spectrum", "printed", "pseudo_inverse")


def richardson(
    evaluate: Callable[[Tensor], Moments],
    start: Tensor,
    box: Box,
    *,
    step: str = "spectrum",
    tolerance: float = 1e-9,
    max_iterations: int = 2000,
) -> Descent:
    """Minimise J as published: ``P ← P − γ (P G − X Zᵀ) D⁻¹``, clipped to the box, until J falls no more.

    With projections held fixed a step of ``γ < 2 / λ_max(D⁻¹ G)`` never raises J, clipped or not, and exact projections
    never raise it either: it can rise only where the projections are not exact, or with the printed γ.

    Args:
        evaluate: control points to the sums there.
        start: ``(d, k + 1)`` float64.
        box: what may move.
        step: ``"spectrum"`` takes γ = 2 / (λ_min + λ_max) of ``D⁻¹ G``; ``"printed"`` of ``G`` itself, eq 29 as it
            stands, whose steps shrink with the number of objects; ``"pseudo_inverse"`` replaces the step by eq 27.
        tolerance: stop when an iteration lowers J by at most this part (ξ = tolerance · J).
        max_iterations: limit.

    Returns:
        the curve and how it was reached. When J rises, the curve before that is kept and the run counts as not
        converged.

    Raises:
        TorchRankError: an unknown step.
    """
    check_option("step", step, STEPS)
    current = box.clip(start)
    now = evaluate(current)
    objectives, converged = [now.objective], not box.columns
    for projections in range(2, max_iterations + 2):
        if converged:
            break
        candidate = box.clip(box.place(current, _step(now, current, box, step)))
        there = evaluate(candidate)
        gain = now.objective - there.objective
        if gain < 0:
            return Descent(current, tuple(objectives), projections, False)
        converged = gain <= tolerance * now.objective
        current, now = candidate, there
        objectives.append(now.objective)
    return Descent(current, tuple(objectives), len(objectives), converged)


def _step(now: Moments, current: Tensor, box: Box, step: str) -> Tensor:
    columns = box.columns
    gram = now.gram[:, columns][:, :, columns]
    free, slope = current[:, columns], now.slope(current)[:, columns]
    if step == "pseudo_inverse":
        whole: Tensor = torch.linalg.pinv(gram, hermitian=True) @ slope.unsqueeze(-1)
        return free - whole.squeeze(-1)
    preconditioner = gram.norm(dim=1).clamp(min=1e-300)
    root = preconditioner.rsqrt()
    matrix = gram if step == "printed" else root.unsqueeze(2) * gram * root.unsqueeze(1)
    spectrum = torch.linalg.eigvalsh(matrix)
    rate: Tensor = 2 / (spectrum[:, 0] + spectrum[:, -1]).clamp(min=1e-300)
    change: Tensor = rate.unsqueeze(1) * slope / preconditioner
    return free - change
