"""Agreement with public evaluators where the definitions coincide."""

import math

import numpy as np
import pytest
import pytrec_eval
import torch
from sklearn.metrics import (
    average_precision_score,
    label_ranking_average_precision_score,
    ndcg_score,
    roc_auc_score,
)

from torchrank import metrics


def lists(count=60, length=12, *, levels=None, seed=0, grades=4):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(count, length, generator=generator)
    if levels is not None:
        scores = torch.randint(-levels, levels, (count, length), generator=generator).float()
    relevance = torch.randint(-2, grades, (count, length), generator=generator).clamp(min=0).float()
    relevance[0] = 0
    return scores, relevance


def by_trec_eval(scores, relevance, mask, measure):
    """trec_eval's values; it puts equal scores in falling order of the document's name."""
    names = [f"{999 - i}" for i in range(scores.shape[-1])]

    def rows(values, kind):
        return {
            f"{q}": {name: kind(v) for name, v, real in zip(names, row, keep, strict=True) if real}
            for q, (row, keep) in enumerate(zip(values.tolist(), mask.tolist(), strict=True))
        }

    evaluator = pytrec_eval.RelevanceEvaluator(rows(relevance, int), {measure})
    found = evaluator.evaluate(rows(scores, float))
    key = measure.replace(".", "_")
    return torch.tensor([found[f"{q}"][key] for q in range(len(scores))])


@pytest.mark.parametrize("levels", [None, 3], ids=["distinct", "ties"])
@pytest.mark.parametrize(
    ("measure", "function", "options"),
    [
        ("ndcg", metrics.ndcg, {"gain": "linear"}),
        ("ndcg_cut.5", metrics.ndcg, {"gain": "linear", "k": 5}),
        ("ndcg_cut.100", metrics.ndcg, {"gain": "linear", "k": 100}),
        ("map", metrics.average_precision, {}),
        ("map_cut.5", metrics.average_precision, {"k": 5}),
        ("P.5", metrics.precision, {"k": 5}),
        ("P.20", metrics.precision, {"k": 20}),
        ("recall.5", metrics.recall, {"k": 5}),
        ("recip_rank", metrics.reciprocal_rank, {}),
        ("success.5", metrics.hit_rate, {"k": 5}),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_trec_eval(measure, function, options, levels):
    scores, relevance = lists(levels=levels)
    mask = torch.arange(12) < torch.randint(1, 13, (60, 1), generator=torch.Generator().manual_seed(1))
    want = by_trec_eval(scores, relevance, mask, measure)
    torch.testing.assert_close(function(scores, relevance, mask, **options), want, atol=1e-5, rtol=0)


@pytest.mark.parametrize("levels", [None, 3], ids=["distinct", "ties"])
@pytest.mark.parametrize("k", [None, 3, 30])
def test_scikit_learn_ndcg_averages_over_ties(levels, k):
    scores, relevance = (x.double() for x in lists(levels=levels))
    got = metrics.ndcg(scores, relevance, k=k, gain="linear", ties="mean")
    want = [ndcg_score(r[None], s[None], k=k) for s, r in zip(scores.numpy(), relevance.numpy(), strict=True)]
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_scikit_learn_average_precision_without_ties():
    scores, relevance = (x[1:].double() for x in lists())
    want = [average_precision_score(r > 0, s) for s, r in zip(scores.numpy(), relevance.numpy(), strict=True)]
    np.testing.assert_allclose(metrics.average_precision(scores, relevance), want, atol=1e-12)
    want = label_ranking_average_precision_score(relevance.numpy() > 0, scores.numpy())
    assert metrics.average_precision(scores, relevance).mean().item() == pytest.approx(want)


@pytest.mark.parametrize("levels", [None, 3], ids=["distinct", "ties"])
def test_scikit_learn_area_under_the_curve(levels):
    scores, relevance = (x.double() for x in lists(levels=levels))
    got = metrics.auc(scores, relevance, empty="skip")
    for value, s, r in zip(got.tolist(), scores.numpy(), relevance.numpy(), strict=True):
        both = 0 < (r > 0).sum() < len(r)
        assert value == pytest.approx(roc_auc_score(r > 0, s)) if both else math.isnan(value)


def letor_script(labels, scores):
    """MAP, NDCG@5 and MeanNDCG of one query, step by step as LETOR 4.0's evaluation script takes them."""
    rates = [labels[i] for i in sorted(range(len(labels)), key=lambda i: -scores[i])]

    def dcg(rates):
        sums = [2.0 ** rates[0] - 1]
        for position in range(1, len(rates)):
            gain = 2.0 ** rates[position] - 1
            if position >= 2:
                gain *= math.log(2.0) / math.log(position + 1.0)
            sums.append(sums[-1] + gain)
        return sums

    found, best = dcg(rates), dcg(sorted(rates, reverse=True))
    ndcg = [f / b if b != 0 else 0.0 for f, b in zip(found, best, strict=True)]
    relevant, precision = 0, 0.0
    for position, rate in enumerate(rates):
        if rate > 0:
            relevant += 1
            precision += relevant / (position + 1)
    return precision / relevant if relevant else 0.0, ndcg[4], sum(ndcg) / len(ndcg)


@pytest.mark.parametrize("levels", [None, 3], ids=["distinct", "ties"])
def test_letor(levels):
    scores, relevance = (x.double() for x in lists(levels=levels, grades=3))
    want = [letor_script(r, s) for r, s in zip(relevance.tolist(), scores.tolist(), strict=True)]
    np.testing.assert_allclose(metrics.average_precision(scores, relevance), [w[0] for w in want], atol=1e-12)
    ndcg_at_5 = metrics.ndcg(scores, relevance, k=5, discount="jarvelin")
    np.testing.assert_allclose(ndcg_at_5, [w[1] for w in want], atol=1e-12)
    np.testing.assert_allclose(metrics.mean_ndcg(scores, relevance), [w[2] for w in want], atol=1e-12)
