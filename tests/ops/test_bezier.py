"""Bézier curves against their definition, and arc length against scipy's quadrature."""

import math
from itertools import pairwise

import pytest
import torch
from scipy.integrate import quad

from torchrank.errors import ShapeError
from torchrank.ops.bezier import (
    arc_length,
    bernstein_basis,
    bezier_curve,
    derivative_points,
    elevate,
    is_monotone,
    monomial_coefficients,
)

F64 = torch.float64


def control_points(d, degree, seed):
    return torch.rand(d, degree + 1, dtype=F64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 7])
def test_a_curve_is_its_definition(degree):
    p = control_points(3, degree, degree)
    s = torch.linspace(-0.5, 1.5, 9, dtype=F64)
    wanted = sum(
        math.comb(degree, r) * (1 - s[:, None]) ** (degree - r) * s[:, None] ** r * p[:, r] for r in range(degree + 1)
    )
    torch.testing.assert_close(bezier_curve(p, s), wanted)
    powers = torch.stack([s**m for m in range(degree + 1)], 1)
    torch.testing.assert_close(powers @ monomial_coefficients(p).T, wanted)
    torch.testing.assert_close(bezier_curve(p, torch.tensor([0.0, 1.0], dtype=F64)).T, p[:, [0, -1]])
    torch.testing.assert_close(bernstein_basis(degree, s).sum(-1), torch.ones_like(s))


def test_any_shape_of_parameters():
    assert bezier_curve(control_points(3, 3, 0), torch.rand(2, 5, dtype=F64)).shape == (2, 5, 3)


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_derivative_points_are_the_derivative(degree):
    p = control_points(2, degree, 1)
    s = torch.linspace(0, 1, 7, dtype=F64, requires_grad=True)
    for j in range(2):
        (slope,) = torch.autograd.grad(bezier_curve(p, s)[:, j].sum(), s)
        torch.testing.assert_close(bezier_curve(derivative_points(p), s)[:, j], slope)


def test_elevation_keeps_the_curve():
    p = control_points(3, 1, 2)
    s = torch.linspace(0, 1, 11, dtype=F64)
    torch.testing.assert_close(bezier_curve(elevate(p, 4), s), bezier_curve(p, s))


@pytest.mark.parametrize("bad", [torch.zeros(4), torch.zeros(0, 4), torch.zeros(3, 0), torch.zeros(2, 4, dtype=int)])
def test_what_is_no_control_points(bad):
    with pytest.raises(ShapeError, match="control points"):
        bezier_curve(bad, torch.zeros(1))


def near_cusps(seed):
    """Curves that nearly stand still half way: inner points 1e-3 from opposite faces."""
    g = torch.Generator().manual_seed(seed)
    near = 10 ** (-3 * torch.rand(3, 2, dtype=F64, generator=g))
    p = torch.stack([0 * near[:, 0], 1 - near[:, 0], near[:, 1], 0 * near[:, 0] + 1], 1)
    p[:, 1:3] = p[:, 1:3].clamp(1e-3, 1 - 1e-3)
    return p


@pytest.mark.parametrize("p", [control_points(3, 3, 0), control_points(2, 1, 1), *map(near_cusps, range(6))])
def test_arc_length_within_the_stated_accuracy(p):
    velocity = derivative_points(p)

    def speed(t):
        return float(bezier_curve(velocity, torch.tensor(t, dtype=F64)).norm())

    for s in (0.0, 0.3, 0.5, 1.0):
        pieces = torch.linspace(0, s, 100, dtype=F64).tolist()
        wanted = sum(quad(speed, a, b, epsabs=1e-13)[0] for a, b in pairwise(pieces))
        assert arc_length(p, torch.tensor(s, dtype=F64)).item() == pytest.approx(wanted, abs=1e-9)


def test_arc_length_goes_on_along_the_tangents():
    p = control_points(3, 3, 4)
    start, end = derivative_points(p)[:, 0].norm(), derivative_points(p)[:, -1].norm()
    length = arc_length(p, torch.tensor([-2.0, 1.0, 1.5], dtype=F64))
    torch.testing.assert_close(length[[0, 2]], torch.stack([-2 * start, length[1] + 0.5 * end]))


def test_arc_length_grows_strictly_across_its_panels():
    p = control_points(2, 3, 5)
    p[:, 0], p[:, 3] = 0, 1
    s = (torch.arange(1, 64, dtype=F64)[:, None] / 64 + torch.tensor([-1e-14, 0.0, 1e-14], dtype=F64)).flatten()
    assert (arc_length(p, s).diff() > 0).all()


def test_gradients_of_arc_length():
    p = control_points(2, 3, 6).requires_grad_()
    s = torch.tensor([-0.3, 0.1, 0.55, 0.99, 1.2], dtype=F64, requires_grad=True)
    assert torch.autograd.gradcheck(arc_length, (p, s))


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_is_monotone_against_a_dense_grid(degree):
    g = torch.Generator().manual_seed(degree)
    s = torch.linspace(0, 1, 2001, dtype=F64)
    found = set()
    for _ in range(200):
        p = torch.rand(1, degree + 1, dtype=F64, generator=g)
        alpha = torch.tensor([1.0 if torch.rand((), generator=g) < 0.5 else -1.0], dtype=F64)
        least = (bezier_curve(derivative_points(p), s) * alpha).min()
        if least.abs() > 1e-4:
            assert is_monotone(p, alpha) == bool(least > 0)
            found.add(bool(least > 0))
    assert found == {True, False}
