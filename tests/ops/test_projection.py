"""Exact projection: against dense grids, against the batched chain, its gradients, and every trap known."""

import pytest
import torch

from torchrank.errors import ShapeError, TorchRankError
from torchrank.ops import bezier_curve, project
from torchrank.ops.bezier import elevate
from torchrank.ops.projection import _search_rows

F64 = torch.float64
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]
S_CURVE = torch.tensor([[0.0, 0.95, 0.05, 1.0], [0.0, 0.05, 0.95, 1.0]], dtype=F64)


def random_curve(d, generator, *, corner=True):
    p = torch.rand(d, 4, dtype=F64, generator=generator)
    if corner:
        p[:, 0], p[:, 3] = 0, 1
    return p


def adversarial(seed):
    """Curves with near cusps, hairpins and straight parts, and points around them."""
    g = torch.Generator().manual_seed(seed)
    d = 1 + seed % 4
    p = random_curve(d, g, corner=seed % 5 != 0)
    if seed % 2:
        near = 10 ** (-3 * torch.rand(d, 2, dtype=F64, generator=g))
        swap = torch.rand(d, 1, generator=g) < 0.5
        p[:, 1:3] = torch.where(swap, torch.stack([1 - near[:, 0], near[:, 1]], 1), near)
    if seed % 7 == 0:
        p = elevate(p[:, [0, 3]], 3)
    if seed % 11 == 0:
        p = p[:, [0, 0, 3, 3]]
    x = torch.rand(1500, d, dtype=F64, generator=g) * 2 - 0.5
    return (x.clamp(0, 1) if seed % 3 == 0 else x), p


@pytest.mark.parametrize("seed", range(40))
def test_no_point_of_a_dense_grid_is_nearer(seed):
    x, p = adversarial(seed)
    s, squared = project(x, p)
    assert ((s >= 0) & (s <= 1)).all()
    torch.testing.assert_close((bezier_curve(p, s) - x).square().sum(-1), squared, atol=1e-12, rtol=1e-12)
    grid = torch.cdist(x, bezier_curve(p, torch.linspace(0, 1, 4001, dtype=F64))).square().amin(-1)
    assert (squared <= grid + 1e-12).all()


@pytest.mark.parametrize("extend", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_compiled_loop_and_batched_chain_agree(seed, extend):
    x, p = adversarial(seed)
    observed = None
    if seed % 4 == 1:
        observed = torch.rand(x.shape, generator=torch.Generator().manual_seed(seed)) < 0.7
        observed[:, 0] = True
    s, squared = project(x, p, extend=extend, observed=observed)
    chain, there = _search_rows(x, elevate(p, 3), observed, "newton", extend)
    torch.testing.assert_close(squared, there, atol=1e-10, rtol=1e-10)
    # Where the curve folds back on itself two places are equally near to rounding.
    assert ((s - chain).abs() < 1e-5).double().mean() > 0.999


def test_agreement_of_both_golden_section_searches():
    x, p = adversarial(2)
    s, squared = project(x, p, method="golden_section")
    chain, there = _search_rows(x, p, None, "golden_section", False)
    torch.testing.assert_close(squared, there)
    torch.testing.assert_close(s, chain)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_every_degree_is_projected_on_exactly(degree):
    g = torch.Generator().manual_seed(degree)
    p = torch.rand(3, degree + 1, dtype=F64, generator=g)
    x = torch.rand(500, 3, dtype=F64, generator=g)
    s, squared = project(x, p)
    grid = torch.cdist(x, bezier_curve(p, torch.linspace(0, 1, 20001, dtype=F64))).square().amin(-1)
    assert (squared <= grid + 1e-12).all()
    torch.testing.assert_close(s, project(x, elevate(p, 3))[0], atol=1e-7, rtol=0)


def test_where_golden_section_fails():
    x = torch.tensor([[0.0, 0.45]], dtype=F64)
    exact, golden = project(x, S_CURVE), project(x, S_CURVE, method="golden_section")
    assert exact[0].item() == pytest.approx(0.0127, abs=1e-4)
    assert exact[1].item() == pytest.approx(0.2017, abs=1e-4)
    assert golden[0].item() == pytest.approx(0.4341, abs=1e-4)
    assert golden[1].item() == pytest.approx(0.2459, abs=1e-4)


def test_scores_jump_at_the_medial_axis():
    s, squared = project(torch.tensor([[0.0, 0.5003], [0.0, 0.5005]], dtype=F64), S_CURVE)
    assert s[0] < 0.02
    assert s[1] > 0.47
    assert abs(squared[1] - squared[0]) < 3e-4


@pytest.mark.parametrize("d", [1, 3])
def test_a_straight_curve_is_no_special_case(d):
    p = torch.tensor([[0.0, 1 / 3, 2 / 3, 1.0]], dtype=F64).repeat(d, 1)
    x = torch.rand(200, d, dtype=F64, generator=torch.Generator().manual_seed(0))
    for method in ("newton", "golden_section"):
        s, _ = project(x, p, method=method)
        torch.testing.assert_close(s, x.mean(-1), atol=1e-8, rtol=0)
    chain, _ = _search_rows(x, p, None, "newton", False)
    torch.testing.assert_close(chain, x.mean(-1))


def test_of_equidistant_places_the_last_is_taken():
    # A bow that mirrors itself at x + y = 1: points of that line are as near to s as to 1 − s.
    bow = torch.tensor([[0.0, 0.1, 0.3, 1.0], [0.0, 0.7, 0.9, 1.0]], dtype=F64)
    t = torch.linspace(0.55, 1.0, 10, dtype=F64)
    x = torch.stack([t, 1 - t], 1)
    for s in (project(x, bow)[0], _search_rows(x, bow, None, "newton", False)[0]):
        beyond = s > 0.5 + 1e-9
        mirrored = (bezier_curve(bow, 1 - s) - x).square().sum(-1)
        torch.testing.assert_close(mirrored, (bezier_curve(bow, s) - x).square().sum(-1))
        assert beyond[-5:].all()
        assert (s >= 0.5 - 1e-9).all()
    arch = torch.tensor([[0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 0.0]], dtype=F64)
    below = torch.tensor([[0.5, -1.0]], dtype=F64)
    assert project(below, arch)[0].item() == _search_rows(below, arch, None, "newton", False)[0].item() == 1.0


def test_points_beyond_the_ends_are_held_or_extended():
    p = torch.tensor([[0.0, 0.2, 0.8, 1.0], [0.0, 0.4, 0.6, 1.0]], dtype=F64)
    beyond = torch.tensor([[-1.0, -2.0], [3.0, 2.0]], dtype=F64)
    held, _ = project(beyond, p)
    assert held.tolist() == [0.0, 1.0]
    s, squared = project(beyond, p, extend=True)
    first, last = 3 * (p[:, 1] - p[:, 0]), 3 * (p[:, 3] - p[:, 2])
    torch.testing.assert_close(s[0], (beyond[0] - p[:, 0]) @ first / (first @ first))
    torch.testing.assert_close(s[1], 1 + (beyond[1] - p[:, 3]) @ last / (last @ last))
    foot = torch.stack([p[:, 0] + s[0] * first, p[:, 3] + (s[1] - 1) * last])
    torch.testing.assert_close(squared, (foot - beyond).square().sum(-1))


def test_an_end_without_a_tangent_is_not_extended():
    p = torch.tensor([[0.0, 0.0, 0.5, 1.0], [0.0, 0.0, 0.5, 1.0]], dtype=F64)
    x = torch.tensor([[-1.0, -1.0]], dtype=F64)
    assert project(x, p, extend=True)[0].item() == 0.0
    assert _search_rows(x, p, None, "newton", True)[0].item() == 0.0


@pytest.mark.parametrize("device", DEVICES)
def test_float32_is_projected_in_float64(device):
    g = torch.Generator().manual_seed(0)
    p, x = random_curve(3, g).float().to(device), torch.rand(1000, 3, generator=g).to(device)
    s, squared = project(x, p)
    assert s.dtype == squared.dtype == torch.float32
    exact, there = project(x.double(), p.double())
    assert torch.equal(s, exact.float())
    assert torch.equal(squared, there.float())


@pytest.mark.parametrize("device", DEVICES)
def test_shapes_are_kept(device):
    p, x = random_curve(3, torch.Generator().manual_seed(0)).to(device), torch.rand(4, 5, 3, dtype=F64, device=device)
    s, squared = project(x, p)
    assert s.shape == squared.shape == (4, 5)
    assert project(x[0, 0], p)[0].shape == ()
    assert project(x[:, :0], p)[0].shape == (4, 0)
    assert project(x, p, method="golden_section")[0].shape == (4, 5)


def test_missing_attributes_do_not_count():
    g = torch.Generator().manual_seed(0)
    p, x = random_curve(4, g), torch.rand(300, 4, dtype=F64, generator=g)
    seen = torch.tensor([True, False, True, True])
    s, squared = project(torch.where(seen, x, torch.nan), p, observed=seen.expand(300, 4))
    less, there = project(x[:, seen], p[seen])
    torch.testing.assert_close(s, less, atol=1e-9, rtol=0)
    torch.testing.assert_close(squared, there)


@pytest.mark.parametrize("extend", [False, True])
def test_what_cannot_be_placed_is_nan(extend):
    x = torch.tensor([[torch.nan, 0.5], [torch.inf, 0.5], [0.5, 0.5]], dtype=F64)
    for s, squared in (project(x, S_CURVE, extend=extend), _search_rows(x, S_CURVE, None, "newton", extend)):
        assert s.isnan().tolist() == squared.isnan().tolist() == [True, True, False]
    s, squared = project(x, S_CURVE, observed=torch.zeros(3, 2, dtype=torch.bool), extend=extend)
    assert s.isnan().all()
    assert squared.isnan().all()


@pytest.mark.parametrize("method", ["newton", "golden_section"])
@pytest.mark.parametrize("extend", [False, True])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_gradients(degree, extend, method):
    g = torch.Generator().manual_seed(degree)
    p = torch.rand(3, degree + 1, dtype=F64, generator=g)
    p[:, 0], p[:, -1] = 0, 1
    x = (torch.rand(10, 3, dtype=F64, generator=g) * 1.6 - 0.3).requires_grad_()
    observed = torch.rand(10, 3, generator=g) < 0.7
    observed[:, 0] = True

    def place(a, b):
        return project(a, b, extend=extend, method=method, observed=observed)

    assert torch.autograd.gradcheck(place, (x, p.requires_grad_()), atol=1e-5, rtol=1e-4)
    if method == "newton":
        assert torch.autograd.gradgradcheck(place, (x, p), atol=1e-4, rtol=1e-3)


def test_no_gradient_of_s_where_it_is_held_at_an_end():
    x = torch.tensor([[-1.0, -1.0], [0.4, 0.6]], dtype=F64, requires_grad=True)
    (slope,) = torch.autograd.grad(project(x, S_CURVE)[0].sum(), x)
    assert slope[0].tolist() == [0.0, 0.0]
    assert slope[1].abs().sum() > 0


def test_second_derivative_of_the_objective_sees_the_projections_move():
    """The Hessian of J in the control points against finite differences of its gradient."""
    g = torch.Generator().manual_seed(3)
    p, x = random_curve(2, g), torch.rand(50, 2, dtype=F64, generator=g)
    hessian = torch.autograd.functional.hessian(lambda q: project(x, q)[1].sum(), p).reshape(8, 8)
    rows = []
    for k in range(8):
        step = torch.zeros(8, dtype=F64)
        step[k] = 1e-6
        slopes = [
            torch.autograd.functional.jacobian(lambda q: project(x, q)[1].sum(), p + sign * step.reshape(2, 4))
            for sign in (1, -1)
        ]
        rows.append(((slopes[0] - slopes[1]) / 2e-6).flatten())
    torch.testing.assert_close(hessian, torch.stack(rows), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("points", "columns", "options", "error", "says"),
    [
        (torch.zeros(3, 2), 5, {}, TorchRankError, "degree 4"),
        (torch.zeros(3, 2), 1, {}, TorchRankError, "degree 0"),
        (torch.zeros(3, 3), 4, {}, ShapeError, "2 attributes"),
        (torch.zeros(3, 2, dtype=torch.int64), 4, {}, ShapeError, "floating point"),
        (torch.zeros(3, 2), 4, {"method": "newtown"}, TorchRankError, "did you mean 'newton'"),
        (torch.zeros(3, 2), 4, {"observed": torch.ones(3, 2)}, ShapeError, "boolean"),
    ],
)
def test_bad_input_is_refused(points, columns, options, error, says):
    with pytest.raises(error, match=says):
        project(points, torch.zeros(2, columns), **options)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*should not be instantiated")  # torch's tracer does that itself
def test_a_compiled_graph_takes_the_batched_chain_and_its_gradients():
    g = torch.Generator().manual_seed(0)
    p, x = random_curve(2, g).requires_grad_(), torch.rand(50, 2, dtype=F64, generator=g)
    compiled = torch.compile(project, backend="eager", fullgraph=True)
    slopes = []
    for find in (project, compiled):
        s, squared = find(x, p)
        slopes.append(torch.autograd.grad(s.sum() + squared.sum(), p)[0])
    torch.testing.assert_close(compiled(x, p), project(x, p))
    torch.testing.assert_close(slopes[0], slopes[1])


@pytest.mark.slow
def test_a_million_points():
    g = torch.Generator().manual_seed(0)
    p, x = random_curve(4, g), torch.rand(1_000_000, 4, dtype=F64, generator=g)
    s, squared = project(x, p)
    grid = bezier_curve(p, torch.linspace(0, 1, 65, dtype=F64))
    for part in torch.arange(len(x)).split(100_000):
        assert (squared[part] <= torch.cdist(x[part], grid).square().amin(-1) + 1e-12).all()
    torch.testing.assert_close(project(x[-1000:], p)[0], s[-1000:])
