"""Sums over projected points, and the small problems the solvers are made of, against slow references."""

import pytest
import torch
from scipy.optimize import lsq_linear

from torchrank.ops import bezier_curve, project
from torchrank.ops.bezier import bernstein_basis, elevate
from torchrank.ops.curve_gradient import gradient_descent
from torchrank.ops.curve_moments import curve_moments
from torchrank.ops.curve_richardson import richardson
from torchrank.ops.curve_solver import Box, box_least_squares, gauss_newton, minimize_in_box

F64 = torch.float64


def problem(seed=0, n=60, d=3, *, holes=False):
    g = torch.Generator().manual_seed(seed)
    p = torch.rand(d, 4, dtype=F64, generator=g)
    p[:, 0], p[:, 3] = 0, 1
    x = bezier_curve(p, torch.rand(n, dtype=F64, generator=g))
    x = x + 0.1 * torch.randn(x.shape, dtype=F64, generator=g)
    observed = torch.rand(n, d, generator=g) < 0.7 if holes else torch.ones(n, d, dtype=torch.bool)
    observed[:, 0] = True
    q = torch.rand(d, 4, dtype=F64, generator=g)
    q[:, 0], q[:, 3] = 0, 1
    return torch.where(observed, x, torch.nan), observed, q


def box(d, columns=(1, 2), margin=1e-3):
    low = torch.full((d, len(columns)), margin, dtype=F64)
    return Box(list(columns), low, 1 - low)


@pytest.mark.parametrize("holes", [False, True])
def test_moments_are_their_definition_in_any_chunks(holes):
    x, observed, p = problem(holes=holes)
    seen = observed if holes else None
    chunks = [(x[a : a + 17], None if seen is None else seen[a : a + 17]) for a in range(0, 60, 17)]
    got = curve_moments(chunks, p, tangent=[1, 2])
    s, squared = project(x, p, observed=seen)
    basis = bernstein_basis(3, s)
    assert got.objective == pytest.approx(squared.sum().item())
    filled = x.nan_to_num(0)
    torch.testing.assert_close(got.cross, filled.T @ basis)
    torch.testing.assert_close(got.gram, torch.einsum("nj,na,nb->jab", observed.to(F64), basis, basis))


@pytest.mark.parametrize("holes", [False, True])
def test_slope_is_half_the_gradient_of_j(holes):
    x, observed, p = problem(holes=holes)
    seen = observed if holes else None
    p.requires_grad_()
    project(x, p, observed=seen)[1].sum().backward()
    torch.testing.assert_close(2 * curve_moments([(x, seen)], p.detach()).slope(p.detach()), p.grad)


@pytest.mark.parametrize("holes", [False, True])
def test_with_the_bend_the_normal_matrix_is_half_the_hessian(holes):
    x, observed, p = problem(seed=1, holes=holes)
    seen = observed if holes else None
    p[:, 1:3] = torch.tensor([0.3, 0.7], dtype=F64)  # near the points: every H is well above 0
    sums = curve_moments([(x, seen)], p, tangent=[1, 2], bent=True)
    blocks = torch.einsum("jab,jk->ajbk", sums.gram[:, 1:3, 1:3], torch.eye(3, dtype=F64)).reshape(6, 6)
    hessian = torch.autograd.functional.hessian(lambda q: project(x, q, observed=seen)[1].sum(), p)
    want = hessian[:, 1:3][:, :, :, 1:3].permute(1, 0, 3, 2).reshape(6, 6)
    torch.testing.assert_close(2 * (blocks - sums.tangent), want, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_minimum_in_a_box(seed):
    g = torch.Generator().manual_seed(seed)
    m = 1 + seed % 8
    root = torch.randn(m + 2, m, dtype=F64, generator=g)
    target = torch.randn(m + 2, dtype=F64, generator=g)
    low, high = -torch.rand(m, dtype=F64, generator=g), torch.rand(m, dtype=F64, generator=g)
    if seed % 3 == 0:
        low[0] = 0.0
    got = minimize_in_box(root.T @ root, root.T @ target, low, high)
    want = lsq_linear(root.numpy(), target.numpy(), (low.numpy() - 1e-12, high.numpy()), method="bvls", tol=1e-14).x
    torch.testing.assert_close(got, torch.from_numpy(want), atol=1e-6, rtol=0)
    assert ((got >= low) & (got <= high)).all()


@pytest.mark.parametrize("columns", [(1,), (1, 2), (0, 1, 2, 3)])
def test_box_least_squares_is_the_best_curve_for_given_places(columns):
    x, _, p = problem(seed=2)
    p = p[:, : max(columns) + 2] if columns == (1,) else p
    p = p if columns != (1,) else p[:, [0, 1, 2]]
    where = box(3, columns)
    s, _ = project(x, p)
    basis = bernstein_basis(p.shape[1] - 1, s)
    best = box_least_squares(curve_moments([(x, None)], p), p, where)
    rest = [r for r in range(p.shape[1]) if r not in columns]
    for j in range(3):
        right = x[:, j] - basis[:, rest] @ p[j, rest]
        want = lsq_linear(basis[:, columns].numpy(), right.numpy(), (1e-3, 1 - 1e-3), method="bvls", tol=1e-14).x
        torch.testing.assert_close(best[j], torch.from_numpy(want), atol=1e-6, rtol=0)


@pytest.mark.parametrize("holes", [False, True])
def test_three_solvers_meet_where_none_can_go_on(holes):
    x, observed, p = problem(seed=3, holes=holes)
    chunks = [(x, observed if holes else None)]
    newton = gauss_newton(lambda q, bent: curve_moments(chunks, q, tangent=[1, 2], bent=bent), p, box(3))
    gradient = gradient_descent(lambda q: curve_moments(chunks, q), p, box(3))
    steps = richardson(lambda q: curve_moments(chunks, q), p, box(3), max_iterations=5000, tolerance=1e-9)
    # First-order steps creep: they stop a little above.
    for other, near in ((gradient, 1e-4), (steps, 2e-3)):
        assert other.objectives[-1] == pytest.approx(newton.objectives[-1], rel=near)
        assert other.objectives[-1] >= newton.objectives[-1] * (1 - 1e-9)
    for one in (newton, gradient, steps):
        assert one.converged
        assert list(one.objectives) == sorted(one.objectives, reverse=True)


def test_what_fits_exactly_is_found_at_once():
    p = torch.tensor([[0.0, 0.2, 0.7, 1.0], [0.0, 0.6, 0.5, 1.0]], dtype=F64)
    x = bezier_curve(p, torch.linspace(0, 1, 50, dtype=F64))
    run = gauss_newton(
        lambda q, bent: curve_moments([(x, None)], q, tangent=[1, 2], bent=bent), elevate(p[:, [0, 3]], 3), box(2)
    )
    assert run.converged
    assert run.objectives[-1] < 1e-18
    torch.testing.assert_close(run.control_points, p, atol=1e-8, rtol=0)


def test_a_straight_line_has_nothing_to_solve():
    x, _, p = problem()
    line = p[:, [0, 3]]
    empty = Box([], torch.zeros(3, 0, dtype=F64), torch.zeros(3, 0, dtype=F64))
    for run in (
        gauss_newton(lambda q, bent: curve_moments([(x, None)], q, tangent=[], bent=bent), line, empty),
        gradient_descent(lambda q: curve_moments([(x, None)], q), line, empty),
        richardson(lambda q: curve_moments([(x, None)], q), line, empty),
    ):
        assert run.converged
        assert run.projections == len(run.objectives) == 1


def test_limits_are_kept():
    x, _, p = problem()
    run = gauss_newton(
        lambda q, bent: curve_moments([(x, None)], q, tangent=[1, 2], bent=bent), p, box(3), max_iterations=2
    )
    assert not run.converged
    assert len(run.objectives) == 3
