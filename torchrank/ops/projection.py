"""Projection of points on a Bézier curve of degree 1 to 3: the nearest point of the curve, exactly, with gradients."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchrank.errors import ShapeError, TorchRankError, check_option
from torchrank.ops.bezier import (
    bernstein_basis,
    check_control_points,
    derivative_points,
    elevate,
    monomial_coefficients,
)
from torchrank.ops.checks import refuse_transforms, sizes_are_symbols
from torchrank.ops.quintic import ROUNDING, horner, integral, minimize_exact, minimize_golden

METHODS = ("newton", "golden_section")
#: rows that are worked on at once: intermediate results stay in a CPU's second-level cache, and bounded on a GPU
_ROWS = {"cpu": 8192, "cuda": 1 << 20}
#: a curve whose end point coincides with the next control point has no end tangent: its squared speed there is at most
#: this part of the whole
STANDING = 1e-24


def project(
    points: Tensor,
    control_points: Tensor,
    *,
    method: str = "newton",
    extend: bool = False,
    observed: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Find the nearest point of a curve for each point; of several equally near ones, the one furthest along.

    Works in float64 whatever the inputs' precision, in bounded memory beside the results, and is differentiable, also
    twice, in points and control points: the squared residual by the envelope theorem, ``s`` by the implicit function
    theorem (with zero gradient where it is held at an end). ``s`` as a function of the point jumps where two parts of
    the curve are equally near; its gradient is that of the part chosen.

    Args:
        points: ``(..., d)``, in the units of the control points.
        control_points: ``(d, k + 1)`` with ``k`` 1, 2 or 3.
        method: ``"newton"``, the global minimum: roots of ``g'''`` in closed form bracket those of ``g''``, these those
            of ``g'`` and these those of ``g``, the slope of the squared distance; ``"golden_section"``, the search of
            Li, Mei & Hu, which ends in some local minimum.
        extend: let the curve go on along its end tangents, so that ``s`` may leave [0, 1].
        observed: ``(..., d)`` boolean; attributes where it is False count neither in the distance nor in the residual,
            whatever ``points`` holds there. None when all count.

    Returns:
        ``s`` and the squared residual, both ``(...)``; NaN for a point that is not finite or has nothing observed.

    Raises:
        ShapeError: shapes that do not fit.
        TorchRankError: a degree above 3, or an unknown method.

    Source:
        Li, Mei & Hu (arXiv 1402.4542), eq 23 and A-2.

    Example:
        >>> curve = torch.tensor([[0.0, 0.95, 0.05, 1.0], [0.0, 0.05, 0.95, 1.0]])
        >>> project(torch.tensor([[0.0, 0.45]]), curve)
        (tensor([0.0127]), tensor([0.2017]))
        >>> project(torch.tensor([[0.0, 0.45]]), curve, method="golden_section")
        (tensor([0.4341]), tensor([0.2459]))
    """
    check_control_points(control_points)
    check_option("method", method, METHODS)
    d, columns = control_points.shape
    if not 2 <= columns <= 4:
        raise TorchRankError(f"project is exact for degree 1 to 3, the control points have degree {columns - 1}")
    if points.ndim == 0 or points.shape[-1] != d or not points.is_floating_point():
        raise ShapeError(
            f"points have shape {tuple(points.shape)} and dtype {points.dtype}; the curve has {d} attributes, so they"
            f" must be floating point (..., {d})"
        )
    if observed is not None and (observed.shape != points.shape or observed.dtype != torch.bool):
        raise ShapeError(
            f"observed has shape {tuple(observed.shape)} and dtype {observed.dtype}; it must be boolean of the points'"
            f" shape {tuple(points.shape)}"
        )
    rows = points.reshape(-1, d)
    seen = None if observed is None else observed.reshape(-1, d)
    dtype = torch.promote_types(points.dtype, control_points.dtype)
    refuse_transforms("the projection on a curve")
    s, squared = _Project.apply(rows, control_points, seen, method, extend)  # type: ignore[no-untyped-call] # torch's
    return s.to(dtype).reshape(points.shape[:-1]), squared.to(dtype).reshape(points.shape[:-1])


class _Project(torch.autograd.Function):
    """The search, and its derivatives written with differentiable operations, which gives the second ones too."""

    @staticmethod
    def forward(
        ctx: Any, points: Tensor, control_points: Tensor, observed: Tensor | None, method: str, extend: bool
    ) -> tuple[Tensor, Tensor]:
        s, squared = _search(points, control_points.double(), observed, method, extend)
        ctx.save_for_backward(points, control_points, observed, s)
        ctx.extend = extend
        return s, squared

    @staticmethod
    def backward(ctx: Any, grad_s: Tensor, grad_squared: Tensor) -> tuple[Tensor | None, ...]:
        points, control_points, observed, s = ctx.saved_tensors
        at = local_curve(points, control_points.double(), observed, s)
        free = (at.speed > 0) & (ctx.extend | ((s > 0) & (s < 1))) & (at.bend > 0)
        # ds = −dg / g', and dg/dx = −f', dg/dp_r = B_r' r + B_r f'.
        scale = torch.where(free, -grad_s / torch.where(free, at.bend, 1), 0).unsqueeze(-1)
        pull = 2 * grad_squared.unsqueeze(-1) * at.residual
        grad_points = grad_controls = None
        if ctx.needs_input_grad[0]:
            grad_points = (-scale * at.velocity - pull).to(points.dtype)
        if ctx.needs_input_grad[1]:
            along = (scale * at.velocity + pull).T @ at.basis + (scale * at.residual).T @ at.slopes
            grad_controls = along.to(control_points.dtype)
        return grad_points, grad_controls, None, None, None


class Local(NamedTuple):
    """The curve as seen from points whose projection is known.

    Attributes:
        residual: ``(n, d)`` curve less point, 0 where not observed.
        velocity: ``(n, d)`` derivative of the curve, 0 where not observed.
        speed: ``(n,)`` squared norm of the velocity.
        bend: ``(n,)`` half the second derivative of the squared distance along the curve.
        basis: ``(n, k + 1)`` Bernstein polynomials, extended along the end tangents.
        slopes: ``(n, k + 1)`` their derivatives.
    """

    residual: Tensor
    velocity: Tensor
    speed: Tensor
    bend: Tensor
    basis: Tensor
    slopes: Tensor


def local_curve(points: Tensor, control_points: Tensor, observed: Tensor | None, s: Tensor) -> Local:
    """Evaluate the curve at the places ``s`` of the points; it goes on along its end tangents."""
    degree = control_points.shape[1] - 1
    inside = s.clamp(0, 1)
    lower = bernstein_basis(degree - 1, inside)
    slopes = degree * (torch.nn.functional.pad(lower, (1, 0)) - torch.nn.functional.pad(lower, (0, 1)))
    basis = bernstein_basis(degree, inside) + (s - inside).unsqueeze(-1) * slopes
    residual = basis @ control_points.T - points
    velocity = slopes @ control_points.T
    second = derivative_points(derivative_points(control_points))
    curvature = bernstein_basis(second.shape[1] - 1, inside) @ second.T
    if observed is not None:
        residual, velocity = torch.where(observed, residual, 0), torch.where(observed, velocity, 0)
    speed = (velocity * velocity).sum(-1)
    # Beyond an end the curve is straight.
    bend = speed + torch.where(s == inside, (residual * curvature).sum(-1), 0)
    return Local(residual, velocity, speed, bend, basis, slopes)


def _search(
    points: Tensor, control_points: Tensor, observed: Tensor | None, method: str, extend: bool
) -> tuple[Tensor, Tensor]:
    """``s`` and the squared residual in float64, without gradients, in chunks of rows."""
    cubic = elevate(control_points, 3)
    if sizes_are_symbols():
        s, squared = _search_rows(points.double(), cubic, observed, method, extend)
        return _without_blind(s, squared, observed)
    s = torch.empty(len(points), dtype=torch.float64, device=points.device)
    squared = torch.empty_like(s)
    if points.device.type == "cpu" and not torch.compiler.is_compiling():
        _compiled(points, cubic, observed, method, extend, s, squared)
    else:
        for rows in _chunks(len(points), points.device):
            seen = None if observed is None else observed[rows]
            s[rows], squared[rows] = _search_rows(points[rows].double(), cubic, seen, method, extend)
    return _without_blind(s, squared, observed)


def _without_blind(s: Tensor, squared: Tensor, observed: Tensor | None) -> tuple[Tensor, Tensor]:
    """NaN where nothing was observed."""
    if observed is None:
        return s, squared
    blind = ~observed.any(-1)
    return s.masked_fill(blind, torch.nan), squared.masked_fill(blind, torch.nan)


def _chunks(n: int, device: torch.device) -> Iterator[slice]:
    size = _ROWS.get(device.type, _ROWS["cuda"])
    return (slice(a, a + size) for a in range(0, n, size))


def _constants(coefficients: Tensor) -> Tensor:
    """Coefficients of ``f_j' f_j``, constant first: ``(d, 4)`` to ``(d, 6)``."""
    columns = [torch.zeros_like(coefficients[:, 0]) for _ in range(6)]
    for a in range(4):
        for b in range(1, 4):
            columns[a + b - 1] = columns[a + b - 1] + b * coefficients[:, a] * coefficients[:, b]
    return torch.stack(columns, 1)


def _compiled(
    points: Tensor, cubic: Tensor, observed: Tensor | None, method: str, extend: bool, s: Tensor, squared: Tensor
) -> None:
    kernel = import_module("torchrank.ops.projection_cpu").project_cubic
    if points.dtype not in (torch.float32, torch.float64):
        points = points.double()
    seen = torch.empty(0, 0, dtype=torch.bool) if observed is None else observed
    coefficients = monomial_coefficients(cubic)
    arrays = [t.detach().contiguous().numpy() for t in (points, seen, coefficients, _constants(coefficients))]
    kernel(*arrays, extend, method == "golden_section", STANDING, s.numpy(), squared.numpy())


def _search_rows(
    points: Tensor, cubic: Tensor, observed: Tensor | None, method: str, extend: bool
) -> tuple[Tensor, Tensor]:
    coefficients = monomial_coefficients(cubic)
    slopes = coefficients[:, 1:] * torch.arange(1, 4, dtype=cubic.dtype, device=cubic.device)
    if observed is None:
        along = points @ slopes
        constants = _constants(coefficients).sum(0)
        speeds = torch.stack([slopes[:, 0], slopes.sum(1)]).square().sum(1)
    else:
        seen = observed.to(points.dtype)
        points = torch.where(observed, points, 0)
        along = points @ slopes
        constants = seen @ _constants(coefficients)
        speeds = seen @ torch.stack([slopes[:, 0], slopes.sum(1)], 1).square()
    g = list(constants.unbind(-1))
    g[:3] = [c - u for c, u in zip(g[:3], along.unbind(-1), strict=True)]
    g0, g1 = g[0], horner(g, torch.ones_like(g[0]))
    rounding = ROUNDING * sum((c.abs() for c in g), start=torch.zeros_like(g0))
    before, after = torch.where(g0 > rounding, g0, 0), torch.where(-g1 > rounding, -g1, 0)
    standing = STANDING * slopes.square().sum()
    reach0, reach1 = torch.zeros_like(g0), torch.zeros_like(g0)
    if extend:
        reach0 = torch.where(speeds[..., 0] > standing, before / speeds[..., 0], 0)
        reach1 = torch.where(speeds[..., 1] > standing, after / speeds[..., 1], 0)
    start = torch.where(g0 >= 0, -reach0 * before, torch.inf)
    end = torch.where(g1 <= 0, horner(integral(g), torch.ones_like(g0)) - reach1 * after, torch.inf)
    minimize = minimize_exact if method == "newton" else minimize_golden
    s = minimize(g, start, end)
    s = s - torch.where(s == 0, reach0, 0) + torch.where(s == 1, reach1, 0)
    at = local_curve(points, cubic, observed, s)
    slope = (at.residual * at.velocity).sum(-1)
    # One Newton step on the curve itself takes out the rounding of the quintic's coefficients.
    polish = (s > 0) & (s < 1) & (slope.abs() < 1e-6 * at.bend)
    s = torch.where(polish, (s - slope / at.bend).clamp(0, 1), s)
    return s, at.residual.square().sum(-1)
