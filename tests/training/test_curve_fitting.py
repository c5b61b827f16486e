"""Fitting: published optima, recovered curves, solvers against each other, and every trap of real tables."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from tests.real_data import REAL_DATA, needs_real_data
from torchrank.errors import DataError, ShapeError, TorchRankError
from torchrank.models.curve import MARGIN, RankingCurve
from torchrank.ops import bezier_curve, project
from torchrank.training import fit_curve

F64 = torch.float64
SOLVERS = ["gauss_newton", "gradient", "paper"]
# Table I of Li, Mei & Hu: A or A', B, C.
TABLE_1A = torch.tensor([[0.3, 0.25], [0.25, 0.55], [0.7, 0.7]], dtype=F64)
TABLE_1B = torch.tensor([[0.35, 0.4], [0.25, 0.55], [0.7, 0.7]], dtype=F64)
BENT = torch.tensor([[0.0, 0.1, 0.2, 1.0], [0.0, 0.8, 0.9, 1.0], [1.0, 0.6, 0.1, 0.0]], dtype=F64)


def table(n, control_points=BENT, noise=0.02, seed=0):
    g = torch.Generator().manual_seed(seed)
    s = torch.rand(n, dtype=F64, generator=g)
    points = bezier_curve(control_points, s)
    return points + noise * torch.randn(points.shape, dtype=F64, generator=g), s


def ranks(values):
    return torch.as_tensor(values).argsort().argsort()


def quiet_fit(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_curve(*args, **options)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("objects", "objective", "scores"),
    [(TABLE_1A, 0.0226748, (0.1369, 0.3208, 0.8657)), (TABLE_1B, 0.0126473, (0.5677, 0.4434, 0.8648))],
)
def test_the_optimum_of_the_published_example(objects, objective, scores, solver):
    # The optimum without a margin, .022662 and .012622, lies on the cube's faces.
    curve = fit_curve(objects, [1, 1], scaling=None, solver=solver, score="parameter", starts=4)
    assert curve.report.objective == pytest.approx(objective, abs=2e-7)
    assert curve.report.converged
    torch.testing.assert_close(curve(objects), torch.tensor(scores, dtype=F64), atol=2e-4, rtol=0)


def test_the_straight_start_alone_ends_in_a_worse_optimum_that_reverses_two_objects():
    alone = fit_curve(TABLE_1B, [1, 1], scaling=None, starts=1)
    many = fit_curve(TABLE_1B, [1, 1], scaling=None)
    assert alone.report.objective > 1.1 * many.report.objective
    assert ranks(alone(TABLE_1B)).tolist() == [0, 1, 2]
    assert ranks(many(TABLE_1B)).tolist() == [1, 0, 2]
    assert len(many.report.optima) > 1
    assert many.report.optima[0].spearman == 1.0
    assert many.report.optima[-1].spearman < 1.0
    assert sum(o.starts for o in many.report.optima) == len(many.report.runs) == 8


@pytest.mark.parametrize("step", ["printed", "pseudo_inverse"])
def test_the_papers_step_as_printed_does_not_reach_the_optimum(step):
    # Eq 29 diverges at n = 3, and the unbounded solve of eq 27 leaves the cube: J rises, and the last curve is kept.
    with pytest.warns(UserWarning, match="stopped before it converged"):
        curve = fit_curve(TABLE_1A, [1, 1], scaling=None, solver="paper", step=step)
    assert curve.report.objective > 0.02267
    assert not curve.report.converged


def test_the_papers_printed_step_shrinks_with_the_number_of_objects():
    x, _ = table(2000)
    with pytest.warns(UserWarning, match="stopped before it converged"):
        printed = fit_curve(x, [1, 1, -1], solver="paper", step="printed", starts=1, max_iterations=200)
    fixed = quiet_fit(x, [1, 1, -1], solver="paper", starts=1, max_iterations=200)
    assert printed.report.objective > 2 * fixed.report.objective


@pytest.mark.parametrize("ends", ["corner", "free"])
@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_j_never_rises(solver, degree, ends):
    x, _ = table(200, noise=0.1)
    curve = quiet_fit(x, [1, 1, -1], solver=solver, degree=degree, ends=ends, starts=2, max_iterations=60)
    for run in curve.report.runs:
        assert (np.diff(run.objectives) <= 1e-12).all()
    s, squared = curve.place(x)
    assert squared.sum().item() <= curve.report.objective * (1 + 1e-9)
    if ends == "corner":
        torch.testing.assert_close(curve.control_points[:, [0, -1]].detach(), curve.corners)
    assert s.shape == (200,)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("ends", ["corner", "free"])
def test_solvers_agree(degree, ends):
    x, _ = table(80, noise=0.05)
    found = [quiet_fit(x, [1, 1, -1], solver=s, degree=degree, ends=ends, starts=2).report.objective for s in SOLVERS]
    assert found[1] == pytest.approx(found[0], rel=1e-5)
    # Golden-section search sees a slightly larger J, and first-order steps creep.
    assert found[0] * (1 - 1e-9) <= found[2] <= found[0] * 1.01


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_known_curve_is_recovered(solver):
    x, s = table(300, noise=0.005)
    curve = quiet_fit(x, [1, 1, -1], scaling=None, solver=solver, starts=1)
    assert torch.corrcoef(torch.stack([ranks(curve(x).detach()), ranks(s)]).double())[0, 1] > 0.999
    torch.testing.assert_close(curve.control_points.detach(), BENT, atol=0.02, rtol=0)
    assert curve.report.explained_variance > 0.999


@pytest.mark.parametrize("degree", [1, 2])
def test_a_lower_degree_fits_no_better(degree):
    x, _ = table(300)
    assert fit_curve(x, [1, 1, -1], degree=degree).report.objective > fit_curve(x, [1, 1, -1]).report.objective


def test_gauss_newton_reaches_a_stationary_point():
    x, _ = table(300, noise=0.1)
    curve = fit_curve(x, [1, 1, -1])
    p = curve.control_points.detach().requires_grad_()
    project(curve.to_cube(x), p)[1].sum().backward()
    slope, inner = p.grad[:, 1:3], p.detach()[:, 1:3]
    free = (inner > 1.001 * MARGIN) & (inner < 1 - 1.001 * MARGIN)
    assert slope[free].abs().max() < 1e-4 * len(x)
    assert (slope[inner <= 1.001 * MARGIN] >= 0).all()
    assert (slope[inner >= 1 - 1.001 * MARGIN] <= 0).all()


def test_scale_and_translation_change_nothing():
    x, _ = table(200)
    moved = x * torch.tensor([1000.0, 0.001, 7.0]) + torch.tensor([5.0, -3.0, 100.0])
    torch.testing.assert_close(fit_curve(moved, [1, 1, -1])(moved), fit_curve(x, [1, 1, -1])(x), atol=1e-6, rtol=0)


def test_turning_an_attribute_round_changes_nothing():
    x, _ = table(200)
    turned = x * torch.tensor([1.0, -1.0, 1.0])
    torch.testing.assert_close(fit_curve(turned, [1, -1, -1])(turned), fit_curve(x, [1, 1, -1])(x), atol=1e-5, rtol=0)


def test_the_same_seed_gives_the_same_curve():
    x, _ = table(100)
    one, two = fit_curve(x, [1, 1, -1], seed=3), fit_curve(x, [1, 1, -1], seed=3)
    assert torch.equal(one.control_points, two.control_points)
    assert one.report == two.report


def test_an_initial_curve_takes_the_first_start():
    x, _ = table(300)
    best = fit_curve(x, [1, 1, -1])
    again = fit_curve(x, [1, 1, -1], starts=1, initial=best.control_points)
    assert again.report.objective == pytest.approx(best.report.objective, rel=1e-9)
    assert again.report.runs[0].projections <= 4
    with pytest.raises(ShapeError, match="initial"):
        fit_curve(x, [1, 1, -1], initial=torch.zeros(2, 4))


@pytest.mark.parametrize("kind", ["float32", "numpy", "list", "pandas", "polars", "int"])
def test_what_tables_may_be(kind):
    x = table(60)[0]
    want = fit_curve(x, [1, 1, -1])(x)
    if kind == "int":
        x = (1000 * x).round()
        want = fit_curve(x, [1, 1, -1])(x)
    given = {
        "float32": lambda: x.float(),
        "numpy": x.numpy,
        "list": x.tolist,
        "pandas": lambda: pd.DataFrame(x.numpy()),
        "polars": lambda: pl.DataFrame(x.numpy()),
        "int": lambda: x.long(),
    }[kind]()
    torch.testing.assert_close(fit_curve(given, [1, 1, -1])(x), want, atol=1e-4, rtol=0)


# Traps of real tables.


def test_constant_attributes_are_dropped_recorded_and_without_influence():
    x, _ = table(100)
    wide = torch.cat([x[:, :1], torch.full((100, 1), 7.0), x[:, 1:]], 1)
    with pytest.warns(UserWarning, match="'dull': constant"):
        curve = fit_curve(wide, [1, 1, 1, -1], names=["a", "dull", "b", "c"])
    assert curve.report.dropped == ("'dull'",)
    plain = fit_curve(x, [1, 1, -1])
    torch.testing.assert_close(curve(wide), plain(x))
    other = wide.clone()
    other[:, 1] = 1e6
    torch.testing.assert_close(curve(other), plain(x))
    torch.testing.assert_close(curve.curve(torch.tensor([0.0, 1.0]))[:, 1], torch.full((2,), 7.0, dtype=F64))
    assert curve.report.objective == plain.report.objective


def test_missing_values_are_an_error_that_names_them():
    x, _ = table(50)
    x[17, 2] = torch.nan
    with pytest.raises(DataError, match=r"'tb' of object 17 is missing.*missing='observed'"):
        fit_curve(x, [1, 1, -1], names=["gdp", "life", "tb"])


@pytest.mark.parametrize("solver", SOLVERS)
def test_missing_values_count_for_nothing(solver):
    x, s = table(150, noise=0.01)
    holes = torch.rand(x.shape, generator=torch.Generator().manual_seed(9)) < 0.2
    holes[holes.all(1)] = False
    full = quiet_fit(x, [1, 1, -1], solver=solver, starts=2)
    curve = quiet_fit(torch.where(holes, torch.nan, x), [1, 1, -1], solver=solver, starts=2, missing="observed")
    scores = curve(torch.where(holes, torch.nan, x)).detach()
    assert torch.corrcoef(torch.stack([ranks(scores), ranks(s)]).double())[0, 1] > 0.98
    torch.testing.assert_close(curve(x), full(x), atol=0.02, rtol=0)
    assert curve.report.explained_variance > 0.99


def test_without_holes_both_policies_agree():
    x, _ = table(100)
    a, b = (fit_curve(x, [1, 1, -1], missing=m) for m in ("error", "observed"))
    torch.testing.assert_close(a.control_points, b.control_points, atol=1e-6, rtol=0)


def test_an_object_or_attribute_with_nothing_observed():
    x, _ = table(20)
    x[4] = torch.nan
    with pytest.raises(DataError, match="object 4 has no observed attribute"):
        fit_curve(x, [1, 1, -1], missing="observed")
    x, _ = table(20)
    x[:, 1] = torch.nan
    with pytest.raises(DataError, match="attribute 1 has no value"):
        fit_curve(x, [1, 1, -1], missing="observed")


def test_infinite_values():
    x, _ = table(20)
    x[3, 1] = -torch.inf
    with pytest.raises(DataError, match="attribute 1 of object 3 is infinite"):
        fit_curve(x, [1, 1, -1])


def test_duplicates_share_their_score():
    x, _ = table(30)
    scores = fit_curve(torch.cat([x, x[:10]]), [1, 1, -1])(torch.cat([x, x[:10]]))
    assert torch.equal(scores[:10], scores[30:])


@pytest.mark.parametrize("x", [torch.rand(1, 3), torch.rand(0, 3)])
def test_one_row_or_none(x):
    with pytest.raises(DataError, match="at least two objects"):
        fit_curve(x, [1, 1, 1])


def test_all_rows_equal():
    with pytest.raises(DataError, match="all 5 objects are equal"):
        fit_curve(torch.rand(1, 3).repeat(5, 1), [1, 1, 1])


def test_two_objects():
    curve = fit_curve(torch.tensor([[1.0, 5.0], [2.0, 3.0]]), [1, -1])
    assert curve(torch.tensor([[1.0, 5.0], [2.0, 3.0]])).tolist() == [0.0, 1.0]


def test_an_outlier_is_warned_of_and_other_scalings_bear_it():
    x, s = table(200)
    x[0] = torch.tensor([1000.0, 1.0, 0.0])
    with pytest.warns(UserWarning, match=r"attribute 0 runs from .* to 1000.*scaling='robust' or scaling='rank'"):
        squeezed = fit_curve(x, [1, 1, -1])
    assert any("sliver" in w for w in squeezed.report.warnings)
    for scaling in ("robust", "rank"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            curve = fit_curve(x, [1, 1, -1], scaling=scaling)
        scores = curve(x).detach()
        agree = torch.corrcoef(torch.stack([ranks(scores[1:]), ranks(s[1:])]).double())[0, 1]
        assert agree > 0.99
        # Mid-ranks forget how far the outlier lies; whiskers do not.
        assert (scores.argmax() == 0) == (scaling == "robust")


@pytest.mark.parametrize("scaling", ["minmax", "robust", "rank", None])
def test_dominance_holds_whatever_the_scaling(scaling):
    x, _ = table(300, noise=0.1)
    curve = fit_curve(x, [1, 1, -1], scaling=scaling)
    g = torch.Generator().manual_seed(1)
    lower = torch.rand(5000, 3, dtype=F64, generator=g) * 4 - 1.5
    gain = torch.rand(5000, 3, dtype=F64, generator=g) * (torch.rand(5000, 3, generator=g) < 0.5)
    upper = lower + gain * torch.tensor([1.0, 1.0, -1.0])
    differ = (gain > 1e-6).any(1)
    assert (curve(lower) < curve(upper))[differ].all()


def test_a_direction_of_0_is_named():
    with pytest.raises(TorchRankError, match="attribute 'life' has direction 0"):
        fit_curve(table(20)[0], [1, 0, -1], names=["gdp", "life", "tb"])


def test_one_attribute_is_its_own_ranking():
    x = torch.rand(100, 1, dtype=F64, generator=torch.Generator().manual_seed(0))
    curve = fit_curve(x, [-1])
    torch.testing.assert_close(curve(x), ((x.max() - x) / (x.max() - x.min())).squeeze(1))
    assert curve.report.explained_variance == pytest.approx(1)


def test_objects_on_a_straight_line():
    t = torch.rand(100, 1, dtype=F64, generator=torch.Generator().manual_seed(0))
    curve = fit_curve(torch.cat([t, 2 * t, 5 - t], 1), [1, 1, -1])
    spread = (t - t.min()) / (t.max() - t.min())
    torch.testing.assert_close(curve(torch.cat([t, 2 * t, 5 - t], 1)), spread.squeeze(1), atol=1e-6, rtol=0)


def test_objects_beyond_the_fitted_box_are_scored_without_refitting():
    x, _ = table(100)
    curve = fit_curve(x, [1, 1, -1])
    far = torch.tensor([[5.0, 5.0, -5.0], [6.0, 5.0, -5.0], [-5.0, -5.0, 6.0]], dtype=F64)
    best, better, worst = curve(far)
    assert 1 < best < better
    assert worst < 0
    assert fit_curve(x, [1, 1, -1], extend=False)(far).tolist() == [1.0, 1.0, 0.0]


def test_free_ends_fit_better_and_say_what_they_lose():
    x, _ = table(300, noise=0.15)
    corner = fit_curve(x, [1, 1, -1])
    free = quiet_fit(x, [1, 1, -1], ends="free")
    assert free.report.objective < corner.report.objective
    assert corner.report.monotone
    p = free.control_points
    assert ((p >= 0) & (p <= 1)).all()
    if not free.monotone:
        assert any("not strictly monotone" in w for w in free.report.warnings)


def test_a_free_curve_that_bends_back_is_warned_of():
    g = torch.Generator().manual_seed(0)
    x = torch.rand(300, 2, dtype=F64, generator=g)
    x[:, 1] = 4 * (x[:, 0] - 0.5) ** 2
    with pytest.warns(UserWarning, match="not strictly monotone"):
        curve = fit_curve(x, [1, 1], ends="free")
    assert not curve.monotone
    assert not curve.report.monotone


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"scaling": "zscore"}, TorchRankError, "scaling"),
        ({"solver": "newton"}, TorchRankError, "solver"),
        ({"step": "printed"}, TorchRankError, "solver='paper'"),
        ({"solver": "paper", "step": "print"}, TorchRankError, "did you mean 'printed'"),
        ({"starts": 0}, TorchRankError, "starts=0"),
        ({"degree": 4}, TorchRankError, "monotone"),
        ({"ends": "corners"}, TorchRankError, "ends"),
        ({"names": ["a"]}, ShapeError, "1 names for 3"),
    ],
)
def test_bad_options(options, error, says):
    with pytest.raises(error, match=says):
        fit_curve(table(20)[0], [1, 1, -1], **options)


def test_bad_tables():
    with pytest.raises(ShapeError, match="2 directions for 3"):
        fit_curve(table(20)[0], [1, 1])
    with pytest.raises(ShapeError, match=r"one attribute is \(n, 1\)"):
        fit_curve(torch.rand(5), [1])
    with pytest.raises(DataError, match="no number"):
        fit_curve([["a", 1.0], ["b", 2.0]], [1, 1])


def test_the_report_reads_well():
    x, _ = table(100)
    text = str(fit_curve(x, [1, 1, -1]).report)
    for part in ("100 objects", "converged", "explained variance", "distinct optima"):
        assert part in text


# Large tables.


def test_a_large_table_is_sampled_first_and_finished_on_all(monkeypatch):
    x, _ = table(3000, noise=0.05)
    whole = fit_curve(x, [1, 1, -1], starts=4)
    monkeypatch.setattr("torchrank.training.curve_fitting._SAMPLE", 1000)
    sampled = fit_curve(x, [1, 1, -1], starts=4)
    assert sampled.report.objective == pytest.approx(whole.report.objective, rel=1e-7)
    assert all(700 < run.rows <= 1000 for run in sampled.report.runs)
    assert sum(o.starts for o in sampled.report.optima) == 4


def test_a_table_in_a_file_is_read_in_chunks(tmp_path, monkeypatch):
    x, _ = table(2000, noise=0.05)
    np.save(tmp_path / "table.npy", x.numpy())
    want = fit_curve(x, [1, 1, -1], starts=2)
    monkeypatch.setattr("torchrank.training.curve_table._KEEP", 0)
    monkeypatch.setattr("torchrank.training.curve_table._ROWS", {"cpu": 300, "cuda": 300})
    mapped = np.load(tmp_path / "table.npy", mmap_mode="r")
    curve = fit_curve(mapped, [1, 1, -1], starts=2)
    torch.testing.assert_close(curve.control_points, want.control_points, atol=1e-6, rtol=0)
    assert curve.report.explained_variance == pytest.approx(want.report.explained_variance, rel=1e-9)


@pytest.mark.slow
def test_a_million_objects():
    x, s = table(1_000_000, noise=0.02)
    curve = fit_curve(x, [1, 1, -1], starts=2)
    assert curve.report.converged
    with torch.no_grad():
        scores = curve(x)
    assert torch.corrcoef(torch.stack([ranks(scores), ranks(s)]).double())[0, 1] > 0.99


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_points_on_a_gpu():
    x, _ = table(500, noise=0.05)
    here, there = fit_curve(x, [1, 1, -1]), fit_curve(x.cuda(), [1, 1, -1])
    assert there.corners.is_cuda
    torch.testing.assert_close(here.control_points, there.control_points.cpu(), atol=1e-5, rtol=0)


# Published examples and real tables.


@pytest.mark.parametrize("scaling", ["minmax", "rank"])
def test_example_2_four_countries_come_out_in_order(scaling):
    countries = torch.tensor(
        [[2.1, 62.7, 75, 59], [11.3, 75.5, 12, 30], [32.1, 79.2, 6, 4], [47.6, 80.1, 3, 3]], dtype=F64
    )
    assert fit_curve(countries, [1, 1, -1, -1], scaling=scaling)(countries).argsort().tolist() == [0, 1, 2, 3]


def test_example_1_pairs_that_other_curves_confuse_are_told_apart():
    # Life expectancy and GDP: each pair shares its place on a polyline or on a general principal curve.
    pairs = torch.tensor([[[58, 1.4], [58, 16.2]], [[74, 40.2], [82, 40.2]], [[75, 62.5], [81, 64.8]]], dtype=F64)
    curve = fit_curve(pairs.flatten(0, 1), [1, 1])
    assert (curve(pairs).diff(dim=1) > 0).all()
    for seed in range(20):
        other = RankingCurve([1, 1])
        other.set_scaling(curve.knots, curve.levels)
        other.set_control_points(torch.rand(2, 4, generator=torch.Generator().manual_seed(seed)))
        assert (other(pairs).diff(dim=1) > 0).all()


@needs_real_data
def test_countries():
    frame = pl.read_csv(REAL_DATA / "gapminder-life-quality-2005" / "life_quality_2005.csv")
    columns = ["gdp_per_capita_ppp", "life_expectancy", "infant_mortality", "infectious_tb"]
    curve = fit_curve(frame.select(columns), [1, 1, -1, -1], names=columns)
    assert curve.report.explained_variance > 0.87
    assert len(curve.report.optima) == 1
    scores = curve(torch.from_numpy(frame.select(columns).to_numpy()))
    assert frame["country"][int(scores.argmax())] == "Luxembourg"
