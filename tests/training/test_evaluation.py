"""Protocols against plain Python, and the known line of ItemRate on the real log."""

import math

import numpy as np
import polars as pl
import pytest
import torch

from tests.real_data import REAL_DATA, needs_real_data
from torchrank.data import Catalogue, InteractionLog, make_interactions
from torchrank.errors import DataError
from torchrank.models import ItemRate, MostPop
from torchrank.training.evaluation import (
    PublishedEvaluation,
    StandardEvaluation,
    evaluate_catalogue,
    evaluate_loss,
    evaluate_published,
    evaluate_shown,
)
from torchrank.training.shown_lists import ShownLists


class Table(torch.nn.Module):
    """Scores from a fixed table; counts how many are asked for at once."""

    def __init__(self, table):
        super().__init__()
        self.table = torch.nn.Parameter(table, requires_grad=False)
        self.most = 0

    def forward(self, users, items):
        self.most = max(self.most, users.numel())
        return self.table[users, items]


class FastTable(Table):
    def score_all(self, users):
        self.most = max(self.most, len(users))
        return self.table[users]


DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


def example(seed=0, users=40, items=60):
    """A split log of lists of very different lengths, one user with a single test item, and scores with ties."""
    log, _ = make_interactions(num_users=users, num_items=items, num_interactions=users * 15, seed=seed)
    train, test = log.split_per_user(train=0.7)
    scores = torch.randn(log.num_users, log.num_items, generator=torch.Generator().manual_seed(seed)).round(decimals=1)
    return train, test, Table(scores)


def ranked_lists(test, table):
    """(user, relevance in ranked order) of every user with test items; ties in log order."""
    for user in range(test.num_users):
        own = range(test.offsets[user], test.offsets[user + 1])
        order = sorted(own, key=lambda row: -float(table[user, test.items[row]]))
        if order:
            yield user, [int(test.preferred[row]) for row in order]


def dcg(relevance, weight):
    return sum(r * weight(rank) for rank, r in enumerate(relevance, 1))


def published(relevance, k):
    hits = [rank for rank, r in enumerate(relevance[:k], 1) if r]
    ap = sum(sum(relevance[:rank]) / rank for rank in hits) / len(hits) if hits else 0.0
    weight = lambda rank: 1.0 if rank == 1 else 1 / math.log2(rank)  # noqa: E731 - a formula
    ideal = dcg(sorted(relevance[:10], reverse=True)[:k], weight)
    return ap, dcg(relevance[:k], weight) / ideal if ideal else 0.0


def standard(relevance, k, relevant=None):
    relevant = sum(relevance) if relevant is None else relevant
    if not relevant:
        return 0.0, 0.0, 0.0
    hits = [rank for rank, r in enumerate(relevance[:k], 1) if r]
    ap = sum(sum(relevance[:rank]) / rank for rank in hits) / min(k, relevant)
    weight = lambda rank: 1 / math.log2(1 + rank)  # noqa: E731 - a formula
    return ap, dcg(relevance[:k], weight) / dcg([1] * min(k, relevant), weight), len(hits) / relevant


@pytest.mark.parametrize("seed", range(3))
def test_published_protocol(seed):
    _, test, scorer = example(seed)
    result = evaluate_published(scorer, test, cutoffs=[2, 5, 10])
    kept = [(user, r) for user, r in ranked_lists(test, scorer.table) if sum(r) and len(r) > 1]
    assert len(kept) < test.num_users
    assert result.users.tolist() == [test.user_ids[user] for user, _ in kept]
    for k in (2, 5, 10):
        expected = np.array([published(r, k) for _, r in kept])
        np.testing.assert_allclose(result.values[f"map@{k}"], expected[:, 0], atol=1e-6)
        np.testing.assert_allclose(result.values[f"ndcg@{k}"], expected[:, 1], atol=1e-6)
        assert result.mean[f"map@{k}"] == pytest.approx(expected[:, 0].mean(), abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_standard_protocol_on_shown_items(seed):
    _, test, scorer = example(seed)
    result = evaluate_shown(scorer, test, cutoffs=[3, 10])
    kept = list(ranked_lists(test, scorer.table))
    assert result.users.tolist() == [test.user_ids[user] for user, _ in kept]
    for k in (3, 10):
        expected = np.array([standard(r, k) for _, r in kept])
        np.testing.assert_allclose(result.values[f"map@{k}"], expected[:, 0], atol=1e-6)
        np.testing.assert_allclose(result.values[f"ndcg@{k}"], expected[:, 1], atol=1e-6)
    assert np.isnan(result.values["auc"]).tolist() == [sum(r) in (0, len(r)) for _, r in kept]
    assert 0 < result.mean["auc"] < 1


@pytest.mark.parametrize("kind", [Table, FastTable])
def test_catalogue_protocol(kind, monkeypatch):
    train, test, scorer = example(5, items=30)
    scorer = kind(scorer.table + torch.rand(scorer.table.shape, generator=torch.Generator().manual_seed(1)) / 50)
    monkeypatch.setattr("torchrank.training.recommendation._PAIRS", 7 * train.num_items)
    monkeypatch.setattr("torchrank.training.recommendation._DENSE", 7 * train.num_items)
    result = evaluate_catalogue(scorer, train, test, cutoffs=[1, 10, 25])
    assert scorer.most == (7 if kind is FastTable else 7 * train.num_items)
    shown = set(train.items.tolist())
    users = np.flatnonzero(np.diff(test.offsets))
    for k in (1, 10, 25):
        expected = []
        for user in users:
            seen = set(train.items[train.offsets[user] : train.offsets[user + 1]].tolist())
            own = slice(test.offsets[user], test.offsets[user + 1])
            relevant = set(test.items[own][test.preferred[own]].tolist()) - seen
            order = sorted(shown - seen, key=lambda item: -float(scorer.table[user, item]))
            expected.append(standard([int(item in relevant) for item in order], k, len(relevant)))
        np.testing.assert_allclose(result.values[f"ndcg@{k}"], [e[1] for e in expected], atol=1e-6)
        np.testing.assert_allclose(result.values[f"recall@{k}"], [e[2] for e in expected], atol=1e-6)


def test_loss_is_the_mean_over_users_of_the_mean_over_pairs():
    _, test, scorer = example()
    losses = []
    for user in range(test.num_users):
        own = range(test.offsets[user], test.offsets[user + 1])
        score = {row: float(scorer.table[user, test.items[row]]) for row in own}
        pairs = [(i, j) for i in own for j in own if test.preferred[i] and not test.preferred[j]]
        if pairs:
            losses.append(np.mean([math.log1p(math.exp(-(score[i] - score[j]))) for i, j in pairs]))
    assert evaluate_loss(scorer, test) == pytest.approx(np.mean(losses), abs=1e-6)


def test_loss_never_overflows():
    rows = {"user": [1, 1], "item": [1, 2], "feedback": [1, 0], "time": [1, 2]}
    log = InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1)
    assert evaluate_loss(Table(torch.tensor([[-1e4, 1e4]])), log) == 2e4
    assert evaluate_loss(Table(torch.tensor([[1e4, -1e4]])), log) == 0


def test_lists_made_once_measure_as_the_log():
    _, test, scorer = example()
    lists = ShownLists.from_log(test)
    for evaluate in (evaluate_published, evaluate_shown):
        assert evaluate(scorer, lists).to_frame().equals(evaluate(scorer, test).to_frame())
    assert evaluate_loss(scorer, lists) == evaluate_loss(scorer, test)


def test_scores_are_asked_for_in_parts(monkeypatch):
    _, test, scorer = example()
    whole = evaluate_shown(scorer, test).to_frame()
    monkeypatch.setattr("torchrank.training.shown_lists._PAIRS", 17)
    scorer.most = 0
    assert evaluate_shown(scorer, test).to_frame().equals(whole)
    assert scorer.most == 17


def test_published_and_standard_numbers_cannot_be_taken_for_each_other(tmp_path):
    train, test, scorer = example()
    results = evaluate_published(scorer, test), evaluate_shown(scorer, test), evaluate_catalogue(scorer, train, test)
    assert [type(result) for result in results] == [PublishedEvaluation, StandardEvaluation, StandardEvaluation]
    columns = []
    for number, result in enumerate(results):
        result.write_parquet(tmp_path / f"{number}.parquet")
        frame = pl.read_parquet(tmp_path / f"{number}.parquet")
        assert frame.equals(result.to_frame())
        assert len(frame) == len(result.users)
        columns += frame.columns[1:]
    assert len(columns) == len(set(columns))
    assert {"published ndcg@10", "shown ndcg@10", "catalogue ndcg@10", "shown auc"} < set(columns)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.parquet", "1.parquet", "2.parquet"]


@pytest.mark.parametrize("device", DEVICES)
def test_every_device_measures_the_same(device):
    train, test, scorer = example()
    there = Table(scorer.table.detach().clone()).to(device)
    for evaluate in (evaluate_published, evaluate_shown):
        assert evaluate(there, test).to_frame().equals(evaluate(scorer, test).to_frame())
    # equal scores may come in another order elsewhere, so these are all different
    scorer, there = (FastTable(torch.linspace(0, 1, scorer.table.numel()).view_as(scorer.table)) for _ in range(2))
    one, other = (evaluate_catalogue(s, train, test).to_frame() for s in (scorer, there.to(device)))
    assert one.equals(other)


def test_users_without_a_preferred_test_item_count_as_asked():
    rows = {"user": [1, 1, 2, 2], "item": [1, 2, 1, 2], "feedback": [1, 0, 0, 0], "time": range(4)}
    log = InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1)
    scorer = Table(torch.tensor([[2.0, 1.0], [2.0, 1.0]]))
    assert evaluate_shown(scorer, log).mean["ndcg@5"] == 0.5
    assert evaluate_shown(scorer, log, empty="one").mean["ndcg@5"] == 1
    assert evaluate_shown(scorer, log, empty="skip").mean["ndcg@5"] == 1
    assert evaluate_shown(scorer, log, empty="skip").to_frame()["shown ndcg@5"].to_list() == [1, None]


def test_what_cannot_be_measured_is_said():
    rows = {"user": [1, 1, 2], "item": [1, 2, 1], "feedback": [0, 0, 1], "time": range(3)}
    log = InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1)
    scorer = Table(torch.zeros(2, 2))
    with pytest.raises(DataError, match="leaves all out"):
        evaluate_published(scorer, log)
    with pytest.raises(DataError, match="no pair"):
        evaluate_loss(scorer, log)
    with pytest.raises(DataError, match="no rows"):
        evaluate_shown(scorer, log.where(np.zeros(3, bool)))
    with pytest.raises(DataError, match="id spaces"):
        evaluate_catalogue(scorer, log, example()[1])
    with pytest.raises(DataError, match="NaN"):
        evaluate_shown(Table(torch.full((2, 2), float("nan"))), log)


@needs_real_data
def test_item_rate_and_popularity_on_the_published_split():
    file = REAL_DATA / "movielens-1m" / "interactions.parquet"
    log = InteractionLog.from_parquet(file, feedback="positive", time="order", positive_at=1)
    train, test = log.split_per_user(train=0.8)
    known = Catalogue.from_log(train)
    positives, shown = torch.from_numpy(known.positives), torch.from_numpy(known.shown)
    rate = ItemRate.from_counts(positives, shown, num_users=log.num_users)
    popular = MostPop.from_counts(positives, num_users=log.num_users)
    lists = ShownLists.from_log(test)
    result = evaluate_published(rate, lists).mean
    expected = {"map@5": 0.848, "map@10": 0.821, "ndcg@5": 0.802, "ndcg@10": 0.884}
    assert {name: pytest.approx(value, abs=6e-4) for name, value in expected.items()} == result
    for scorer, ndcg, ap in ((rate, 0.800, 0.707), (popular, 0.763, 0.656)):
        mean = evaluate_shown(scorer, lists).mean
        assert (mean["ndcg@10"], mean["map@10"]) == (pytest.approx(ndcg, abs=6e-4), pytest.approx(ap, abs=6e-4))
    mean = evaluate_catalogue(popular, train, test).mean
    assert mean == {"ndcg@10": pytest.approx(0.092, abs=6e-4), "recall@10": pytest.approx(0.047, abs=6e-4)}
