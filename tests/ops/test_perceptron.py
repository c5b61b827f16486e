"""One round of the perceptron against the definition, written out pair by pair."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torchrank.errors import TorchRankError
from torchrank.ops.perceptron import check_perceptron_options, hinges, perceptron_round, plan_lists


def levels(relevance, measure):
    return [float(r > 0) if measure == "map" else float(r) for r in relevance]


def slow_weights(relevance, measure):
    """v of formulas §1, every document of a level given the mean weight of its level."""
    r = levels(relevance, measure)
    m, order = len(r), sorted(range(len(r)), key=lambda i: -r[i])
    if measure == "ndcg":
        gains = [(2 ** r[i] - 1) / math.log2(2 + k) for k, i in enumerate(order)]
        raw = [g / sum(gains) if sum(gains) else 0.0 for g in gains]
    else:
        n = int(sum(r))
        raw = [(m - n) / (n * (m - n + k)) if k <= n else 0.0 for k in range(1, m + 1)]
    out = [0.0] * m
    for level in set(r):
        places = [k for k, i in enumerate(order) if r[i] == level]
        for k in places:
            out[order[k]] = sum(raw[p] for p in places) / len(places)
    return out


def slow_measure_loss(scores, relevance, measure):
    """1 − NDCG or 1 − AP, ties against the ranker; 0 where nothing is relevant."""
    r = levels(relevance, measure)
    shown = [r[i] for i in sorted(range(len(r)), key=lambda i: (-scores[i], r[i]))]
    if not any(shown):
        return 0.0
    if measure == "ndcg":

        def dcg(row):
            return sum((2**x - 1) / math.log2(2 + k) for k, x in enumerate(row))

        return 1 - dcg(shown) / dcg(sorted(shown, reverse=True))
    hits = [k for k, x in enumerate(shown, 1) if x]
    return 1 - sum(n / k for n, k in enumerate(hits, 1)) / len(hits)


def slow_round(scores, relevance, v, *, measure, update, active, margin):
    """Coefficients, measure loss, V and f of a round, from the definitions."""
    r, m = levels(relevance, measure), len(relevance)
    loss = slow_measure_loss(scores, relevance, measure)
    out = [0.0] * m
    rivals = [max((j for j in range(m) if r[j] < r[i]), key=lambda j: scores[j], default=None) for i in range(m)]
    h = [0.0 if j is None else max(0.0, margin + scores[j] - scores[i]) for i, j in enumerate(rivals)]
    if not any(j is not None and scores[j] >= scores[i] for i, j in enumerate(rivals)):
        return out, 0.0, 0.0, 0.0
    if update == "pair":
        i = max((i for i in range(m) if rivals[i] is not None), key=lambda i: scores[rivals[i]] - scores[i])
        out[i], out[rivals[i]] = -loss, loss
        return out, loss, loss, loss * h[i]
    if active == "margin":
        moved = [i for i in range(m) if h[i] > 0]
    else:
        moved = [i for i in range(m) if rivals[i] is not None and scores[rivals[i]] >= scores[i]]
    for i in moved:
        out[i] -= v[i]
        out[rivals[i]] += v[i]
    total = sum(v[i] * h[i] for i in (moved if active == "mistakes" else range(m)))
    return out, loss, sum(v[i] for i in moved), total


RULES = [("slam", "margin"), ("slam", "mistakes"), ("pair", "mistakes")]
# Distinct scores, so that the highest rival and the worst pair are unique.
LISTS = st.integers(1, 8).flatmap(
    lambda m: st.tuples(
        st.lists(st.integers(0, 4), min_size=m, max_size=m),
        st.permutations([0.7 * i - 2 + 0.01 * i * i for i in range(m)]),
        st.integers(0, 3),
    )
)


@pytest.mark.parametrize("measure", ["ndcg", "map"])
@pytest.mark.parametrize(("update", "active"), RULES)
@given(LISTS, st.sampled_from([0.5, 1.0, 2.0]))
@settings(max_examples=60, deadline=None)
def test_a_round_is_what_the_definition_says(measure, update, active, lists, margin):
    relevance, scores, padding = lists
    v = slow_weights(relevance, measure)
    want = slow_round(scores, relevance, v, measure=measure, update=update, active=active, margin=margin)
    pad = [float("nan")] * padding
    mask = torch.tensor([True] * len(scores) + [False] * padding)
    got = perceptron_round(
        torch.tensor([*scores, *pad], dtype=torch.float64),
        plan_lists(
            torch.tensor([*relevance, *[9] * padding]),
            torch.tensor([*v, *pad], dtype=torch.float64),
            mask,
            measure=measure,
        ),
        measure=measure,
        update=update,
        active=active,
        margin=margin,
    )
    torch.testing.assert_close(got.coefficients, torch.tensor([*want[0], *[0.0] * padding], dtype=torch.float64))
    for value, expected in zip((got.measure_loss, got.touched, got.surrogate), want[1:], strict=True):
        assert value.item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("measure", ["ndcg", "map"])
def test_all_ties_are_a_mistake_and_the_worst_order(measure):
    """At w = 0 a learner must see the less relevant documents on top."""
    relevance, scores = [1, 0, 2, 0], torch.zeros(4, dtype=torch.float64)
    plan = plan_lists(torch.tensor(relevance), torch.ones(4, dtype=torch.float64), measure=measure)
    got = perceptron_round(scores, plan, measure=measure)
    assert got.measure_loss.item() == pytest.approx(slow_measure_loss([0] * 4, relevance, measure))
    assert got.coefficients.abs().sum() > 0


@pytest.mark.parametrize("measure", ["ndcg", "map"])
@pytest.mark.parametrize(("update", "active"), RULES)
def test_the_chain_of_inequalities_behind_the_bounds(measure, update, active):
    """RML ≤ Σ_M v ≤ V ≤ 1, |coefficients|₁ ≤ 2V, Δ·RML ≤ f(s), and a step from mistakes alone has z·w ≥ 0."""
    generator = torch.Generator().manual_seed(0)
    for length in (2, 5, 30):
        relevance = torch.randint(0, 5, (2000, length), generator=generator)
        scores = torch.randint(-3, 4, (2000, length), generator=generator).double() / 2
        v = torch.tensor([slow_weights(r, measure) for r in relevance.tolist()], dtype=torch.float64)
        plan = plan_lists(relevance, v, measure=measure)
        options = {"measure": measure, "update": update, "active": active}
        got = perceptron_round(scores, plan, margin=0.5, **options)
        eps = 1e-12
        assert (got.measure_loss <= got.touched + eps).all()
        assert (got.touched <= 1 + eps).all()
        assert (got.coefficients.abs().sum(-1) <= 2 * got.touched + eps).all()
        assert (0.5 * got.measure_loss <= got.surrogate + eps).all()
        torch.testing.assert_close(got.surrogate, (got.charged * hinges(scores, plan, margin=0.5)).sum(-1))
        least = -0.5 * got.touched if active == "margin" else 0
        assert ((got.coefficients * scores).sum(-1) >= least - eps).all()


@pytest.mark.parametrize("measure", ["ndcg", "map"])
def test_a_batch_equals_its_lists(measure):
    generator = torch.Generator().manual_seed(1)
    relevance = torch.randint(0, 3, (6, 7), generator=generator)
    mask = torch.arange(7) < torch.tensor([7, 5, 1, 0, 3, 6])[:, None]
    scores = torch.randn(6, 7, generator=generator, dtype=torch.float64)
    v = torch.rand(6, 7, generator=generator, dtype=torch.float64)
    batch = perceptron_round(scores, plan_lists(relevance, v, mask, measure=measure), measure=measure)
    for b in range(6):
        n = int(mask[b].sum())
        one = perceptron_round(scores[b, :n], plan_lists(relevance[b, :n], v[b, :n], measure=measure), measure=measure)
        torch.testing.assert_close(batch.coefficients[b, :n], one.coefficients)
        assert (batch.coefficients[b, n:] == 0).all()
        torch.testing.assert_close(batch.measure_loss[b], one.measure_loss)


def test_mistakes_are_decided_by_comparing_scores_where_hinges_round():
    """1 + (a − b) rounds to 1 here although a < b: only the comparison sees that nothing is outscored."""
    scores = torch.tensor([1e-20, 0.0], dtype=torch.float64)
    plan = plan_lists(torch.tensor([1, 0]), torch.ones(2, dtype=torch.float64))
    assert hinges(scores, plan).tolist() == [0.0, 1.0]
    got = perceptron_round(scores, plan, active="mistakes")
    assert got.measure_loss == 0
    assert (got.coefficients == 0).all()


def test_options_that_cannot_be_are_refused():
    good = {"measure": "ndcg", "update": "slam", "active": "margin", "eta": 1.0, "margin": 1.0}
    check_perceptron_options(**good)
    for bad in ({"measure": "ncdg"}, {"update": "slams"}, {"active": "mistake"}, {"eta": 0.0}, {"margin": -1.0}):
        with pytest.raises(TorchRankError, match=next(iter(bad))):
            check_perceptron_options(**{**good, **bad})
