"""Values written as arithmetic."""

import math

import pytest
import torch

from torchrank import metrics

T = torch.tensor
L2 = math.log2


def approx(value):
    return pytest.approx(value, abs=1e-6)


def test_ndcg_of_both_gains_and_discounts():
    scores, relevance = T([4.0, 3, 2, 1]), T([1, 0, 2, 3])
    ideal = 7 + 3 / L2(3) + 1 / L2(4)
    assert metrics.ndcg(scores, relevance).item() == approx((1 + 3 / L2(4) + 7 / L2(5)) / ideal)
    ideal = 3 + 2 / L2(3) + 1 / L2(4)
    got = metrics.ndcg(scores, relevance, gain="linear", k=3)
    assert got.item() == approx((1 + 2 / L2(4)) / ideal)
    ideal = 7 + 3 / 1 + 1 / L2(3)
    got = metrics.ndcg(scores, relevance, discount="jarvelin")
    assert got.item() == approx((1 + 3 / L2(3) + 7 / L2(4)) / ideal)


def test_ndcg_of_what_was_retrieved():
    scores, relevance = -torch.arange(12.0), T([0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 3])
    assert metrics.ndcg(scores, relevance, ideal="retrieved").item() == approx(1 / L2(4))
    # only what was retrieved counts, also at a deeper cut-off
    deep = metrics.ndcg(scores, relevance, k=12, ideal="retrieved", retrieved=11)
    assert deep.item() == approx((1 / L2(4) + 7 / L2(12)) / (7 + 1 / L2(3)))
    assert metrics.ndcg(scores, relevance, ideal="retrieved", retrieved=2).item() == 0
    assert metrics.ndcg(scores, relevance, ideal="retrieved", retrieved=2, empty="one").item() == 0


def test_ndcg_against_the_full_ideal():
    scores, relevance = T([3.0, 2.0]), T([0, 1])
    assert metrics.ndcg(scores, relevance, ideal="full").item() == approx((1 / L2(3)) / (1 + 1 / L2(3)))
    assert metrics.ndcg(scores, relevance, k=3, ideal="full").item() == approx(
        (1 / L2(3)) / (1 + 1 / L2(3) + 1 / L2(4))
    )
    got = metrics.ndcg(scores, T([0, 3]), ideal="full")  # a gain of 7 where the ideal has 1
    assert got.item() == approx((7 / L2(3)) / (1 + 1 / L2(3)))
    got = metrics.ndcg(scores, T([0, 3]), ideal="full", gain="linear", discount="jarvelin")
    assert got.item() == approx(3 / 2)
    mask = T([True, True, False])
    padded = metrics.ndcg(T([3.0, 2.0, 9.0]), T([0, 1, 1]), mask, ideal="full")
    assert padded.item() == approx((1 / L2(3)) / (1 + 1 / L2(3)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large_and_small_grades(dtype):
    scores = T([0.0, 1.0], dtype=dtype)
    for grade in (40.0, 200.0, 1e4):
        assert metrics.ndcg(scores, T([grade, 0.0], dtype=dtype)).item() == approx(1 / L2(3))
        assert metrics.ndcg(scores, T([grade, 0.0], dtype=dtype), ties="mean").item() == approx(1 / L2(3))
        assert metrics.mean_ndcg(scores, T([grade, 0.0], dtype=dtype)).item() == approx((0 + 1) / 2)
    # a full ideal is a constant: what is not ranked cannot overflow, what is ranked may exceed the type
    assert metrics.ndcg(scores, T([200.0, 0.0], dtype=dtype), k=1, ideal="full").item() == 0
    for grade in (1e-3, 1e-6):
        got = metrics.ndcg(scores, T([2 * grade, grade], dtype=dtype)).item()
        g1, g2 = math.expm1(grade * math.log(2)), math.expm1(2 * grade * math.log(2))
        assert got == pytest.approx((g1 + g2 / L2(3)) / (g2 + g1 / L2(3)), rel=1e-6)


def test_mean_ndcg_by_letors_definition():
    scores, relevance = T([4.0, 3, 2, 1]), T([1, 0, 2, 0])
    at = [1 / 3, 1 / (3 + 1), (1 + 3 / L2(3)) / (3 + 1), (1 + 3 / L2(3)) / (3 + 1)]
    assert metrics.mean_ndcg(scores, relevance).item() == approx(sum(at) / 4)


def test_precision_and_recall():
    scores, relevance = T([4.0, 3, 2, 1]), T([1, 0, 2, 1])
    assert metrics.precision(scores, relevance, k=2).item() == approx(1 / 2)
    assert metrics.precision(scores, relevance, k=10).item() == approx(3 / 10)
    assert metrics.precision(scores, relevance).item() == approx(3 / 4)
    assert metrics.recall(scores, relevance, k=2).item() == approx(1 / 3)
    mask = T([True, True, True, False])
    assert metrics.precision(scores, relevance, mask).item() == approx(2 / 3)


def test_average_precision():
    scores, relevance = T([5.0, 4, 3, 2, 1]), T([0, 1, 0, 1, 1])
    at = [1 / 2, 2 / 4, 3 / 5]
    assert metrics.average_precision(scores, relevance).item() == approx(sum(at) / 3)
    assert metrics.average_precision(scores, relevance, k=4).item() == approx(sum(at[:2]) / 3)
    assert metrics.average_precision(scores, relevance, k=2, normalize="cutoff").item() == approx(at[0] / 2)
    assert metrics.average_precision(scores, relevance, k=4, normalize="hits").item() == approx(sum(at[:2]) / 2)
    assert metrics.average_precision(scores, relevance, k=1, normalize="hits").item() == 0


def test_expected_average_precision_over_hits():
    # three tied documents, two relevant, two places: 110 → 1, 101 → 1, 011 → (1/2)/1
    got = metrics.average_precision(torch.zeros(3), T([1, 1, 0]), k=2, normalize="hits", ties="mean")
    assert got.item() == approx((1 + 1 + 1 / 2) / 3)


def test_expectations_of_a_long_tie():
    n, m = 2000, 3
    relevance = torch.zeros(n)
    relevance[:m] = 1
    scores = torch.zeros(n)
    miss = math.prod((n - m - j) / (n - j) for j in range(10))
    assert metrics.hit_rate(scores, relevance, k=10, ties="mean").item() == approx(1 - miss)
    assert metrics.precision(scores, relevance, k=10, ties="mean").item() == approx(m / n)
    assert metrics.recall(scores, relevance, k=10, ties="mean").item() == approx(10 / n)
    first = [m / (n - i) * math.prod((n - m - j) / (n - j) for j in range(i)) for i in range(n)]
    expected = sum(p / (i + 1) for i, p in enumerate(first))
    assert metrics.reciprocal_rank(scores, relevance, ties="mean").item() == approx(expected)
    expected = sum(1 / i * (1 + (i - 1) * (m - 1) / (n - 1)) for i in range(1, n + 1)) / n
    assert metrics.average_precision(scores, relevance, ties="mean").item() == approx(expected)


def test_reciprocal_rank_and_hit_rate():
    scores, relevance = T([4.0, 3, 2, 1]), T([0, 0, 2, 1])
    assert metrics.reciprocal_rank(scores, relevance).item() == approx(1 / 3)
    assert metrics.reciprocal_rank(scores, relevance, k=2).item() == 0
    assert metrics.hit_rate(scores, relevance, k=3).item() == 1
    assert metrics.hit_rate(scores, relevance, k=2).item() == 0
    tied = metrics.reciprocal_rank(torch.zeros(3), T([0, 1, 0]), ties="mean")
    assert tied.item() == approx((1 + 1 / 2 + 1 / 3) / 3)


def test_err_as_chapelle_defines_it():
    scores, relevance = T([3.0, 2, 1]), T([2, 4, 1])
    r1, r2, r3 = 3 / 16, 15 / 16, 1 / 16
    expected = r1 + (1 - r1) * r2 / 2 + (1 - r1) * (1 - r2) * r3 / 3
    assert metrics.err(scores, relevance).item() == approx(expected)
    assert metrics.err(scores, relevance, k=2).item() == approx(r1 + (1 - r1) * r2 / 2)
    tied = metrics.err(torch.zeros(2), T([1, 2]), max_grade=2, ties="mean")
    assert tied.item() == approx(((1 / 4 + 3 / 4 * 3 / 4 / 2) + (3 / 4 + 1 / 4 * 1 / 4 / 2)) / 2)


def test_auc_at_a_cut_off():
    scores, relevance = T([4.0, 3, 2, 1]), T([1, 0, 1, 0])
    # pairs: (1,2) right, (1,4) right, (3,2) wrong, (3,4) beyond rank 2
    assert metrics.auc(scores, relevance).item() == approx((1 + 1 + 0 + 1) / 4)
    assert metrics.auc(scores, relevance, k=2).item() == approx((1 + 1 + 0 + 1 / 2) / 4)
    assert metrics.auc(torch.zeros(4), relevance, ties="stable").item() == approx(3 / 4)
    assert metrics.auc(torch.zeros(4), relevance).item() == approx(1 / 2)
