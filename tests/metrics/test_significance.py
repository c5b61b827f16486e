"""Paired tests of two rankers."""

import itertools
import math

import pytest
import torch
from scipy import stats

from torchrank.errors import DataError, ShapeError, TorchRankError
from torchrank.metrics import fisher_randomization, paired_bootstrap, significance

BOTH = pytest.mark.parametrize("test", [paired_bootstrap, fisher_randomization])


def pair(lists, shift, seed=0):
    generator = torch.Generator().manual_seed(seed)
    second = torch.rand(lists, generator=generator, dtype=torch.float64)
    noise = torch.randn(lists, generator=generator, dtype=torch.float64)
    return second + shift + 0.1 * noise, second


def test_fisher_agrees_with_all_exchanges_of_a_short_list():
    first, second = pair(9, 0.05)
    differences = (first - second).tolist()
    observed = abs(math.fsum(differences))
    sums = [
        math.fsum(s * d for s, d in zip(signs, differences, strict=True))
        for signs in itertools.product([1, -1], repeat=9)
    ]
    exact = sum(abs(s) >= observed - 1e-12 for s in sums) / len(sums)
    assert fisher_randomization(first, second, samples=40_000).p_value == pytest.approx(exact, abs=0.01)


def test_long_lists_agree_with_student():
    first, second = pair(400, 0.01)
    reference = stats.ttest_rel(first.numpy(), second.numpy())
    low, high = reference.confidence_interval(0.9)
    for test in (paired_bootstrap, fisher_randomization):
        found = test(first, second, confidence=0.9)
        assert found.difference == pytest.approx((first - second).mean().item())
        assert found.p_value == pytest.approx(reference.pvalue, abs=0.02)
        assert (found.low, found.high) == pytest.approx((low, high), abs=1e-3)
        assert found.lists == 400


def test_the_interval_of_fisher_holds_the_shifts_it_does_not_refuse():
    first, second = pair(30, 0.03)
    found = fisher_randomization(first, second)
    width = found.high - found.low
    for shift, refused in [
        (found.low - 0.02 * width, True),
        (found.low + 0.02 * width, False),
        (found.high - 0.02 * width, False),
        (found.high + 0.02 * width, True),
    ]:
        assert (fisher_randomization(first - shift, second).p_value <= 0.05) == refused


@BOTH
def test_the_share_of_false_alarms_is_what_the_level_says(test):
    alarms = sum(test(*pair(40, 0.0, seed), samples=200).p_value <= 0.1 for seed in range(200))
    assert alarms == pytest.approx(20, abs=4 * math.sqrt(200 * 0.1 * 0.9))


@BOTH
def test_seeded_and_chunked(test, monkeypatch):
    first, second = pair(25, 0.02)
    assert test(first, second, seed=1) == test(first, second, seed=1)
    assert test(first, second, seed=1) != test(first, second, seed=2)
    whole = test(first, second, samples=2000)
    monkeypatch.setattr(significance, "_CHUNK", 100)
    assert test(first, second, samples=2000) == pytest.approx(whole, abs=0.05)


@BOTH
def test_exchanging_the_rankers_turns_the_difference_round(test):
    first, second = pair(25, 0.02)
    there, back = test(first, second), test(second, first)
    assert there.difference == pytest.approx(-back.difference)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))
    assert there.p_value == back.p_value


@BOTH
def test_lists_that_one_ranker_has_no_value_on_are_left_out(test):
    first, second = pair(25, 0.02)
    gap = torch.full((1,), math.nan, dtype=torch.float64)
    found = test(torch.cat([first, gap, first[:1]]), torch.cat([second, second[:1], gap]))
    assert found == test(first, second)


@BOTH
def test_equal_rankers(test):
    assert test(torch.ones(9), torch.ones(9)) == (0.0, 0.0, 0.0, 1.0, 9)


def test_five_lists_bound_no_interval_of_95_percent():
    # all five exchanged, or none, has probability 2/32 > 0.05 under any shift
    found = fisher_randomization(torch.ones(5), torch.zeros(5))
    assert (found.low, found.high) == (-math.inf, math.inf)
    assert found.p_value == pytest.approx(2 / 32, abs=0.01)


@BOTH
def test_bad_input(test):
    with pytest.raises(ShapeError, match="shapes"):
        test(torch.ones(3), torch.ones(4))
    with pytest.raises(ShapeError, match="two vectors"):
        test(torch.ones(3, 1), torch.ones(3, 1))
    with pytest.raises(DataError, match="nothing to compare"):
        test(torch.full((3,), math.nan), torch.ones(3))
    with pytest.raises(TorchRankError, match="samples=0"):
        test(torch.ones(3), torch.ones(3), samples=0)
    with pytest.raises(TorchRankError, match="confidence=95"):
        test(torch.ones(3), torch.ones(3), confidence=95)
