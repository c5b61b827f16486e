"""The curve as a model: what it is before any fit, strict monotonicity, units, extension, layers, checkpoints."""

import pytest
import torch

from torchrank.errors import DataError, ShapeError, TorchRankError
from torchrank.models import RankingCurve
from torchrank.models.curve import MARGIN
from torchrank.ops import arc_length, project
from torchrank.training.spec import build, describe

F64 = torch.float64


def random_curve(directions, seed=0, **options):
    curve = RankingCurve(directions, **options)
    points = torch.rand(len(directions), curve.degree + 1, dtype=F64, generator=torch.Generator().manual_seed(seed))
    if curve.ends == "free":
        points[:, 1:-1] = 0.2 + 0.6 * points[:, 1:-1]
        points[:, [0, -1]] = 0.1 + 0.8 * curve.corners
    curve.set_control_points(points)
    return curve


def dominated_pairs(directions, n, generator, *, box, dtype):
    """Pairs of which the second is at least as good everywhere: better everywhere, in one attribute, or by a little."""
    alpha = torch.tensor(directions, dtype=F64)
    lower = torch.rand(n, len(alpha), dtype=F64, generator=generator) * (box[1] - box[0]) + box[0]
    gain = torch.rand(n, len(alpha), dtype=F64, generator=generator)
    kind = torch.arange(n) % 3
    one = torch.nn.functional.one_hot(torch.randint(len(alpha), (n,), generator=generator), len(alpha))
    gain = torch.where((kind == 1)[:, None], gain * one, gain)
    gain = torch.where((kind == 2)[:, None], gain * 1e-3, gain)
    gain = torch.where((kind == 1)[:, None] & (one == 1), gain.clamp(min=1e-4), gain)
    lower, upper = lower.to(dtype), (lower + alpha * gain).to(dtype)
    # Rounding keeps dominance, but may make two objects equal.
    differ = (lower != upper).any(1)
    assert differ.double().mean() > 0.99
    return lower[differ], upper[differ]


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_starts_as_the_straight_line(degree):
    curve = RankingCurve([1, -1, 1], degree=degree)
    s = torch.linspace(0, 1, degree + 1, dtype=F64)
    torch.testing.assert_close(curve.control_points, torch.stack([s, 1 - s, s]))
    points = torch.rand(20, 3, dtype=F64)
    oriented = (points - torch.tensor([0.0, 1.0, 0.0])).abs().mean(1)
    torch.testing.assert_close(curve(points), oriented)


@pytest.mark.parametrize(
    ("directions", "says"), [([1, 0], "attribute 1 has direction 0"), ([], "no direction"), ([1, 2], "direction 2")]
)
def test_bad_directions(directions, says):
    with pytest.raises(TorchRankError, match=says):
        RankingCurve(directions)


@pytest.mark.parametrize("degree", [0, 4, 5])
def test_a_degree_that_need_not_be_monotone_is_refused(degree):
    with pytest.raises(TorchRankError, match=r"need not be\s+monotone"):
        RankingCurve([1, 1], degree=degree)


@pytest.mark.parametrize("option", ["ends", "score", "missing"])
def test_unknown_options(option):
    with pytest.raises(TorchRankError, match=option):
        RankingCurve([1], **{option: "corners"})


@pytest.mark.parametrize("score", ["arc_length", "parameter"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("box", [(0.0, 1.0), (-1.0, 2.0)])
def test_dominance_is_never_broken_or_tied(box, dtype, score):
    directions = [1, -1, 1]
    for seed in range(5):
        g = torch.Generator().manual_seed(seed)
        curve = random_curve(directions, seed, score=score)
        lower, upper = dominated_pairs(directions, 10_000, g, box=box, dtype=dtype)
        with torch.no_grad():
            assert (curve(lower) < curve(upper)).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_dominance_in_a_million_pairs(dtype):
    for seed in range(10):
        directions = [[1], [1, 1], [1, -1], [-1, 1, 1], [1, 1, -1, -1]][seed % 5]
        g = torch.Generator().manual_seed(100 + seed)
        curve = random_curve(directions, seed)
        box = (0.0, 1.0) if seed < 5 else (-1.0, 2.0)
        lower, upper = dominated_pairs(directions, 102_000, g, box=box, dtype=dtype)
        with torch.no_grad():
            assert (curve(lower) < curve(upper)).all()


def test_without_extension_objects_beyond_the_box_tie():
    curve = random_curve([1, 1], extend=False)
    assert curve(torch.tensor([[2.0, 2.0], [3.0, 3.0]])).tolist() == [1.0, 1.0]
    assert random_curve([1, 1])(torch.tensor([[2.0, 2.0], [3.0, 3.0]])).diff() > 0


@pytest.mark.parametrize("ends", ["corner", "free"])
@pytest.mark.parametrize("score", ["arc_length", "parameter"])
def test_scores_inside_the_box_lie_between_0_and_1(ends, score):
    curve = random_curve([1, -1, 1], ends=ends, score=score)
    assert curve.monotone
    curve.set_scaling(torch.tensor([[10.0, 20.0]] * 3), torch.tensor([[0.0, 1.0]] * 3))
    scores = curve(10 + 10 * torch.rand(1000, 3, dtype=F64))
    assert scores.min() >= 0
    assert scores.max() <= 1
    corners = torch.tensor([[10.0, 20.0, 10.0], [20.0, 10.0, 20.0]])
    torch.testing.assert_close(curve(corners), torch.tensor([0.0, 1.0], dtype=F64))
    assert curve(corners + torch.tensor([[-5.0, 5.0, -5.0], [5.0, -5.0, 5.0]])).tolist() != [0.0, 1.0]


def test_arc_length_scores_are_the_way_along_the_curve():
    curve = random_curve([1, 1, -1])
    x = torch.rand(100, 3, dtype=F64)
    p = curve.control_points
    length = arc_length(p, project(x, p, extend=True)[0]) / arc_length(p, torch.ones((), dtype=F64))
    torch.testing.assert_close(curve(x), length)
    by_parameter = random_curve([1, 1, -1], score="parameter")(x)
    assert torch.equal(curve(x).argsort(), by_parameter.argsort())
    torch.testing.assert_close(by_parameter, project(x, p)[0])


def test_on_a_diagonal_the_parameter_is_arbitrary_and_the_arc_length_is_not():
    middle = torch.tensor([[0.5, 0.5]], dtype=F64)
    # f(s) = 1 − (1 − s)³ and f(s) = s³, but for the margin.
    for inner, s in ((1 - MARGIN, 1 - 0.5 ** (1 / 3)), (MARGIN, 0.5 ** (1 / 3))):
        for score, want, near in (("parameter", s, 1e-3), ("arc_length", 0.5, 1e-9)):
            curve = RankingCurve([1, 1], score=score)
            curve.set_control_points(torch.tensor([[0.0, inner, inner, 1.0]] * 2))
            assert curve(middle).item() == pytest.approx(want, abs=near)
            assert curve.place(middle)[1].item() < 1e-20


def test_points_of_the_curve_come_back_in_units():
    curve = random_curve([1, -1])
    knots = torch.tensor([[100.0, 300.0], [-1.0, 0.0]], dtype=F64)
    curve.set_scaling(knots, torch.tensor([[0.0, 1.0]] * 2))
    s = torch.tensor([-0.2, 0.0, 0.3, 1.0, 1.4], dtype=F64)
    points = curve.curve(s)
    torch.testing.assert_close(points[[1, 3]], torch.tensor([[100.0, 0.0], [300.0, -1.0]], dtype=F64))
    found, squared = curve.place(points)
    torch.testing.assert_close(found, s)
    assert squared.max() < 1e-20
    torch.testing.assert_close(curve.to_units(curve.to_cube(points)), points)


def test_inner_points_stay_inside_and_can_come_back():
    curve = RankingCurve([1, 1])
    with torch.no_grad():
        curve.inner.fill_(50.0)
    torch.testing.assert_close(curve.control_points[:, 1:3].detach(), torch.full((2, 2), 1 - MARGIN, dtype=F64))
    curve.control_points.sum().backward()
    torch.testing.assert_close(curve.inner.grad, torch.full((2, 2), MARGIN * (1 - MARGIN), dtype=F64))


def test_a_free_curve_says_when_it_is_not_monotone():
    curve = RankingCurve([1, 1], ends="free")
    assert curve.monotone
    curve.set_control_points(torch.tensor([[0.5, 0.1, 0.9, 1.0], [0.0, 0.3, 0.6, 1.0]]))
    assert not curve.monotone
    assert "NOT monotone" in repr(curve)


def test_a_dropped_attribute_moves_no_score():
    curve = random_curve([1, 1, 1])
    curve.set_scaling(curve.knots, curve.levels, torch.tensor([True, False, True]))
    x = torch.rand(50, 3, dtype=F64)
    other = x.clone()
    other[:, 1] = 100 * torch.rand(50, dtype=F64)
    torch.testing.assert_close(curve(x), curve(other))


def test_missing_values():
    x = torch.tensor([[0.2, torch.nan], [0.7, 0.1]])
    with pytest.raises(DataError, match=r"object 0 has nan in attribute 1.*observed"):
        RankingCurve([1, 1])(x)
    curve = random_curve([1, 1], missing="observed")
    assert curve(x)[0] == curve(torch.tensor([[0.2, torch.nan]]))
    with pytest.raises(DataError, match="object 1 has no observed attribute"):
        curve(torch.tensor([[0.5, 0.5], [torch.nan, torch.nan]]))
    with pytest.raises(DataError, match="inf"):
        curve(torch.tensor([[0.5, torch.inf]]))


def test_lists_and_masks():
    curve = random_curve([1, -1])
    x = torch.rand(3, 4, 2)
    mask = torch.ones(3, 4, dtype=torch.bool)
    mask[0, 2:] = False
    padded = x.clone()
    padded[0, 2:] = torch.nan
    scores = curve(padded, mask)
    assert scores.shape == (3, 4)
    torch.testing.assert_close(scores[mask], curve(x)[mask])
    scores[mask].sum().backward()
    assert curve.inner.grad.isfinite().all()


@pytest.mark.parametrize("ends", ["corner", "free"])
@pytest.mark.parametrize("score", ["arc_length", "parameter"])
def test_gradients_of_scores(score, ends):
    curve = random_curve([1, -1], score=score, ends=ends)
    x = (torch.rand(6, 2, dtype=F64, generator=torch.Generator().manual_seed(1)) * 1.4 - 0.2).requires_grad_()
    names, values = zip(*curve.named_parameters(), strict=True)

    def scores(x, *values):
        return torch.func.functional_call(curve, dict(zip(names, values, strict=True)), (x,))

    inside = [v.detach().clamp(0.1, 0.9) if n == "outer" else v.detach() for n, v in zip(names, values, strict=True)]
    assert torch.autograd.gradcheck(scores, (x, *(v.requires_grad_() for v in inside)), atol=1e-5, rtol=1e-4)


def test_wrong_shapes():
    curve = RankingCurve([1, 1])
    with pytest.raises(ShapeError, match=r"takes floating point \(..., 2\)"):
        curve(torch.rand(3, 3))
    with pytest.raises(ShapeError, match="mask"):
        curve(torch.rand(3, 2), torch.ones(3))
    with pytest.raises(ShapeError, match="control points"):
        curve.set_control_points(torch.rand(2, 3))
    with pytest.raises(ShapeError, match="knots"):
        curve.set_scaling(torch.rand(3, 2), torch.rand(3, 2))


def test_is_rebuilt_from_its_description_and_weights():
    curve = random_curve([1, -1], degree=2, ends="free", score="parameter", extend=False, missing="observed")
    knots = torch.linspace(0, 9, 10, dtype=F64).repeat(2, 1)
    curve.set_scaling(knots, knots / 9, torch.tensor([True, False]))
    again = build(describe(curve))
    again.load_state_dict(curve.state_dict())
    x = 10 * torch.rand(20, 2, dtype=F64)
    assert torch.equal(again(x), curve(x))


def test_no_points_and_single_points():
    curve = RankingCurve([1, 1])
    assert curve(torch.zeros(0, 2)).shape == (0,)
    assert curve(torch.zeros(2)).shape == ()
