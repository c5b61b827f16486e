"""Methods that break one meta-rule each, on purpose, are found out; one that keeps them all is not."""

import pytest
import torch

from torchrank.data import countries
from torchrank.errors import ShapeError, TorchRankError
from torchrank.theory import FittedRanking, check_meta_rules

WAYS = [1, -1, 1]
POINTS = torch.rand(60, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 7 - 2


def scaled_sum(points, directions):
    """Distance along the diagonal of the box: all rules but nonlinear capacity."""
    low, high = points.aminmax(dim=0)
    way = torch.tensor(directions, dtype=points.dtype)
    worst, best = torch.where(way > 0, low, high), torch.where(way > 0, high, low)

    def score(x):
        return ((x - low) / (high - low) * way).sum(-1)

    return FittedRanking(score, lambda s: worst + s[:, None] * (best - worst), 2 * points.shape[1])


def checks(fit, points=POINTS, ways=WAYS):
    return {(c.rule, c.subject): c for c in check_meta_rules(fit, points, ways, trials=400)}


def failed(fit, **kwargs):
    return {rule for (rule, _), c in checks(fit, **kwargs).items() if not c.holds}


def test_a_sum_keeps_all_but_nonlinear_capacity():
    assert failed(scaled_sum) == {"nonlinear capacity"}
    found = checks(scaled_sum)["nonlinear capacity", "f"].counter_example
    assert found.shape == (1, 3)


def test_raw_units_are_found_out():
    def raw(points, directions):
        way = torch.tensor(directions, dtype=points.dtype)
        return scaled_sum(points, directions)._replace(score=lambda x: (x * way).sum(-1))

    assert "scale and translation invariance" in failed(raw)
    pair = checks(raw)["scale and translation invariance", "φ"].counter_example
    assert pair.shape == (2, 3)


@pytest.mark.parametrize("kind", ["reversed", "tied"])
def test_dominance_broken_and_tied_is_found_out(kind):
    def blind(points, directions):
        fitted = scaled_sum(points, directions)
        weight = torch.tensor([1.0, 1.0, -0.5 if kind == "reversed" else 0.0], dtype=points.dtype)
        way = torch.tensor(directions, dtype=points.dtype)
        low, high = points.aminmax(dim=0)
        return fitted._replace(score=lambda x: ((x - low) / (high - low) * way * weight).sum(-1))

    check = checks(blind)["strict monotonicity", "φ"]
    assert not check.holds
    worse, better = check.counter_example
    way = torch.tensor(WAYS, dtype=POINTS.dtype)
    assert ((better - worse) * way >= 0).all()
    score = blind(POINTS, WAYS).score(check.counter_example)
    assert score[0] > score[1] if kind == "reversed" else score[0] == score[1]


def test_a_kink_is_found_out_and_where():
    def kinked(points, directions):
        bend = torch.tensor([1.0, 2.0, 0.5], dtype=points.dtype)
        return scaled_sum(points, directions)._replace(
            curve=lambda s: torch.where(s[:, None] < 0.25, s[:, None], 0.25 + (s[:, None] - 0.25) * bend)
        )

    check = checks(kinked)["smoothness", "f"]
    assert not check.holds
    torch.testing.assert_close(check.counter_example, torch.full((1, 3), 0.25).double(), atol=1e-3, rtol=0)


def test_a_jump_is_found_out_and_where():
    def jumping(points, directions):
        fitted = scaled_sum(points, directions)
        return fitted._replace(score=lambda x: fitted.score(x) + (x[:, 0] > 1.5).double())

    check = checks(jumping)["continuity", "φ"]
    assert not check.holds
    torch.testing.assert_close(check.counter_example[:, 0], torch.full((2,), 1.5).double(), atol=1e-6, rtol=0)


def test_keeping_the_table_is_no_explicit_size():
    assert "explicit size" in failed(lambda p, w: scaled_sum(p, w)._replace(size=len(p)))
    assert "explicit size" in failed(lambda p, w: scaled_sum(p, w)._replace(size=None))


def test_without_a_curve_scores_speak():
    found = checks(lambda p, w: scaled_sum(p, w)._replace(curve=None))
    assert found["linear capacity", "φ"].holds
    assert not found["smoothness", "f"].holds


def test_the_same_seed_says_the_same():
    first, second = (check_meta_rules(scaled_sum, POINTS, WAYS, trials=50, seed=3) for _ in range(2))
    assert [(c.holds, c.evidence) for c in first] == [(c.holds, c.evidence) for c in second]


def test_bad_arguments():
    with pytest.raises(ShapeError, match="there are 2 directions"):
        check_meta_rules(scaled_sum, POINTS, [1, 1])
    with pytest.raises(TorchRankError, match="trials=0"):
        check_meta_rules(scaled_sum, POINTS, WAYS, trials=0)


def test_the_curve_keeps_all_five_and_only_its_score_jumps():
    from torchrank.commands.rankers import first_component, mean_of_ranks, ranking_curve

    table = countries()
    given = {"points": torch.from_numpy(table.values), "ways": table.directions}
    assert failed(ranking_curve, **given) == {"continuity"}
    assert failed(first_component, **given) == {"nonlinear capacity"}
    assert {"strict monotonicity", "explicit size", "smoothness"} <= failed(mean_of_ranks, **given)
