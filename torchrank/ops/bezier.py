"""Bézier curves of any degree: points, derivatives, degree elevation, arc length, monotonicity.

Control points are ``(d, k + 1)``: one row an attribute, one column a point. Source: Li, Mei & Hu (arXiv 1402.4542),
eq 12 to 18.
"""

import math

import numpy as np
import torch
from torch import Tensor

from torchrank.errors import ShapeError

_PANELS = 64
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)


def bernstein_basis(degree: int, s: Tensor) -> Tensor:
    """Evaluate the Bernstein polynomials ``B_r(s) = C(k, r) (1 − s)^(k − r) s^r``.

    Args:
        degree: ``k``, at least 0.
        s: ``(...)`` parameters, floating point.

    Returns:
        ``(..., k + 1)``.

    Example:
        >>> bernstein_basis(2, torch.tensor(0.5))
        tensor([0.2500, 0.5000, 0.2500])
    """
    rest = 1 - s
    columns = []
    for r in range(degree + 1):
        columns.append(math.comb(degree, r) * rest ** (degree - r) * s**r)
    return torch.stack(columns, -1)


def bezier_curve(control_points: Tensor, s: Tensor) -> Tensor:
    """Evaluate a Bézier curve.

    Args:
        control_points: ``(d, k + 1)``, any degree ``k`` from 0 up.
        s: ``(...)`` parameters; 0 is the first control point, 1 the last.

    Returns:
        ``(..., d)``.

    Raises:
        ShapeError: control points that are no matrix.

    Source:
        Li, Mei & Hu, eq 12.

    Example:
        >>> bezier_curve(torch.tensor([[0.0, 0.0, 1.0]]), torch.tensor([0.0, 0.5, 1.0]))
        tensor([[0.0000],
                [0.2500],
                [1.0000]])
    """
    check_control_points(control_points)
    return bernstein_basis(control_points.shape[1] - 1, s) @ control_points.T


def check_control_points(control_points: Tensor) -> None:
    """Refuse what is not a floating-point ``(d, k + 1)`` matrix with at least one row and one column.

    Raises:
        ShapeError: anything else.
    """
    if control_points.ndim != 2 or 0 in control_points.shape or not control_points.is_floating_point():
        raise ShapeError(
            f"control points have shape {tuple(control_points.shape)} and dtype {control_points.dtype}; they must be"
            " (d, degree + 1), floating point, one row an attribute"
        )


def derivative_points(control_points: Tensor) -> Tensor:
    """Give the control points of the derivative: ``k (p_{r+1} − p_r)``, a curve one degree lower.

    Args:
        control_points: ``(d, k + 1)``.

    Returns:
        ``(d, k)``; ``(d, 1)`` zeros when ``k = 0``.

    Source:
        Li, Mei & Hu, eq 18.

    Example:
        >>> derivative_points(torch.tensor([[0.0, 0.0, 1.0]]))
        tensor([[0., 2.]])
    """
    degree = control_points.shape[1] - 1
    return degree * control_points.diff(dim=1) if degree else torch.zeros_like(control_points)


def elevate(control_points: Tensor, degree: int) -> Tensor:
    """Write the same curve with a higher degree.

    Args:
        control_points: ``(d, k + 1)``.
        degree: at least ``k``.

    Returns:
        ``(d, degree + 1)``.

    Example:
        >>> elevate(torch.tensor([[0.0, 1.0]]), 2)
        tensor([[0.0000, 0.5000, 1.0000]])
    """
    while (k := control_points.shape[1]) <= degree:
        share = torch.arange(1, k, dtype=control_points.dtype, device=control_points.device) / k
        inner = share * control_points[:, :-1] + (1 - share) * control_points[:, 1:]
        control_points = torch.cat([control_points[:, :1], inner, control_points[:, -1:]], 1)
    return control_points


def monomial_coefficients(control_points: Tensor) -> Tensor:
    """Give the coefficients ``c`` of ``f(s) = Σ_m c_m s^m``: ``(d, k + 1)`` to ``(d, k + 1)``, constant first."""
    k = control_points.shape[1] - 1
    matrix = [
        [math.comb(k, m) * math.comb(m, r) * (-1) ** (m - r) if r <= m else 0 for m in range(k + 1)]
        for r in range(k + 1)
    ]
    return control_points @ torch.tensor(matrix, dtype=control_points.dtype, device=control_points.device)


def arc_length(control_points: Tensor, s: Tensor) -> Tensor:
    """Measure the curve from 0 to ``s``.

    Six-point Gauss–Legendre quadrature on 64 panels and on the part of the last one: within 1e-9 of the curve's
    length for cubic curves from corner to corner of the unit cube whose inner points stay 1e-3 away from its faces, and
    near rounding for those with no near cusp. Beyond 0 and 1 it goes on along the end tangents, negative below 0.
    Differentiable in both arguments.

    Args:
        control_points: ``(d, k + 1)``.
        s: ``(...)``.

    Returns:
        ``(...)``, in the units of the control points.

    Example:
        >>> arc_length(torch.tensor([[0.0, 1.5, 3.0], [0.0, 2.0, 4.0]]), torch.tensor([0.5, 1.0]))
        tensor([2.5000, 5.0000])
    """
    check_control_points(control_points)
    velocity = monomial_coefficients(derivative_points(control_points))
    squared = _sum_of_squares(velocity)
    like: dict[str, object] = {"dtype": s.dtype, "device": s.device}
    nodes = torch.as_tensor((_NODES + 1) / 2, **like)  # type: ignore[arg-type]
    weights = torch.as_tensor(_WEIGHTS / 2, **like)  # type: ignore[arg-type]
    starts = torch.arange(_PANELS, **like) / _PANELS  # type: ignore[call-overload]
    panels = (_speed(squared, starts[:, None] + nodes / _PANELS) @ weights) / _PANELS
    before = torch.cat([panels.new_zeros(1), panels.cumsum(0)])
    inside = s.clamp(0, 1)
    panel = (inside.detach() * _PANELS).to(torch.int64).clamp(max=_PANELS - 1)
    width = inside - starts[panel]
    part = (_speed(squared, starts[panel].unsqueeze(-1) + width.unsqueeze(-1) * nodes) @ weights) * width
    ends = _speed(squared, torch.tensor([0.0, 1.0], **like))  # type: ignore[arg-type]
    length: Tensor = before[panel] + part + s.clamp(max=0) * ends[0] + (s - 1).clamp(min=0) * ends[1]
    return length


def _sum_of_squares(coefficients: Tensor) -> list[Tensor]:
    """Coefficients of ``Σ_j p_j(t)²``, constant first, from those of the polynomials ``p_j``, ``(d, m)``."""
    products = coefficients.T @ coefficients
    size = len(products)
    return [products.flip(0).diagonal(k).sum() for k in range(1 - size, size)]


def _speed(squared: list[Tensor], t: Tensor) -> Tensor:
    value = squared[-1].expand_as(t)
    for coefficient in squared[-2::-1]:
        value = torch.addcmul(coefficient, value, t)
    # Rounding may leave −1e-17 at a cusp; the floor keeps the square root's slope finite there.
    return value.clamp(min=1e-30).sqrt()


def is_monotone(control_points: Tensor, directions: Tensor) -> bool:
    """Say whether a curve of degree 1 to 3 strictly improves in every attribute all along ``[0, 1]``.

    Exact: the least slope of a quadratic lies at an end or at its vertex. Reads values, so a GPU is waited for.

    Args:
        control_points: ``(d, k + 1)``, ``k`` from 1 to 3.
        directions: ``(d,)`` of ±1.

    Returns:
        True when ``α_j f_j'(s) > 0`` for every attribute ``j`` and ``s`` in ``[0, 1]``.

    Example:
        >>> is_monotone(torch.tensor([[0.0, 1.0, 0.0, 1.0]]), torch.tensor([1.0]))
        False
    """
    slope = elevate(derivative_points(control_points.detach()), 2) * directions[:, None]
    first, middle, last = slope.unbind(1)
    bend = first - 2 * middle + last
    vertex = torch.where(bend > 0, (first - middle) / bend, 0).clamp(0, 1)
    at_vertex = (bernstein_basis(2, vertex) * slope).sum(1)
    return bool((torch.stack([first, last, at_vertex]) > 0).all())
