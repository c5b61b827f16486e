"""Sums over projected points: all that fitting a curve needs to know of them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from torchrank.ops.bezier import bernstein_basis
from torchrank.ops.projection import Local, local_curve, project


class Moments(NamedTuple):
    """Sums over the points at one curve, each point at its projection ``s``; B are the Bernstein polynomials there.

    Attributes:
        objective: J, the sum of squared residuals.
        gram: ``(d, k + 1, k + 1)``, Σ B Bᵀ over the points whose attribute is observed.
        cross: ``(d, k + 1)``, Σ x B.
        tangent: ``(m d, m d)``, Σ w wᵀ with ``w = B ⊗ t`` for the ``m`` columns asked for, ``t`` the unit tangent
            where the point lies inside the curve and 0 where it is held at an end; None where not asked for.
    """

    objective: float
    gram: Tensor
    cross: Tensor
    tangent: Tensor | None = None

    def slope(self, control_points: Tensor) -> Tensor:
        """Half the gradient of J in the control points, ``(d, k + 1)``, by the envelope theorem."""
        return (self.gram @ control_points.unsqueeze(-1)).squeeze(-1) - self.cross


def curve_moments(
    chunks: Iterable[tuple[Tensor, Tensor | None]],
    control_points: Tensor,
    *,
    method: str = "newton",
    tangent: Sequence[int] | None = None,
    bent: bool = False,
) -> Moments:
    """Project points chunk by chunk and sum up.

    Args:
        chunks: ``(n, d)`` float64 points and their ``(n, d)`` boolean mask of observed attributes (None: all); NaN
            where not observed is allowed.
        control_points: ``(d, k + 1)`` float64 on the CPU.
        method: as in :func:`torchrank.ops.project`.
        tangent: the control points for which to sum up the outer products that Gauss–Newton needs; None for no sum.
        bent: take the curve's bend into them: ``w = (B ⊗ f' + B' ⊗ r) / √H``, with r the residual and ``H`` half the
            second derivative of the squared distance along the curve: ``Σ B Bᵀ ⊗ I − Σ w wᵀ`` is then half J's Hessian.

    Returns:
        the sums, float64 on the CPU.
    """
    d, columns = control_points.shape
    objective = torch.zeros((), dtype=torch.float64)
    gram = torch.zeros(d, columns, columns, dtype=torch.float64)
    cross = torch.zeros(d, columns, dtype=torch.float64)
    wide = 0 if tangent is None else len(tangent) * d
    outer = None if tangent is None else torch.zeros(wide, wide, dtype=torch.float64)
    for points, observed in chunks:
        there = control_points.to(points.device)
        s, squared = project(points, there, method=method, observed=observed)
        basis = bernstein_basis(columns - 1, s)
        if observed is None:
            gram += (basis.T @ basis).cpu()
        else:
            points = torch.where(observed, points, 0)
            pairs = (basis.unsqueeze(2) * basis.unsqueeze(1)).flatten(1)
            gram += (observed.to(basis.dtype).T @ pairs).reshape(d, columns, columns).cpu()
        objective += squared.sum().cpu()
        cross += (points.T @ basis).cpu()
        if outer is not None:
            along = _along(local_curve(points, there, observed, s), s, tangent, bent)
            outer += (along.T @ along).cpu()
    return Moments(float(objective), gram, cross, outer)


def _along(at: Local, s: Tensor, tangent: Sequence[int] | None, bent: bool) -> Tensor:
    """The vectors ``w``, ``(n, m d)``."""
    along = at.basis[:, tangent].unsqueeze(2) * at.velocity.unsqueeze(1)
    bend = at.speed
    if bent:
        along = along + at.slopes[:, tangent].unsqueeze(2) * at.residual.unsqueeze(1)
        # Near a centre of curvature H is 0 and the step would be without bounds.
        bend = torch.maximum(at.bend, 1e-3 * at.speed)
    weight = torch.where((s > 0) & (s < 1) & (bend > 0), bend.rsqrt(), 0)
    return (along * weight[:, None, None]).flatten(1)
