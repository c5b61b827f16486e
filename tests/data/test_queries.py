"""Queries in memory: selection, concatenation, normalisation, counts, and what is refused."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from torchrank.data import QueryDataset, concat_queries, normalize_queries
from torchrank.errors import DataError, ShapeError, TorchRankError


def made(lengths, seed=0, features=3):
    generator = torch.Generator().manual_seed(seed)
    total = sum(lengths)
    return QueryDataset(
        torch.randn(total, features, generator=generator),
        torch.randint(0, 3, (total,), generator=generator),
        torch.tensor([0, *np.cumsum(lengths)]),
        torch.arange(len(lengths)) * 10,
        [f"d{i}" for i in range(total)],
        torch.arange(len(lengths)) + 1.0,
    )


LENGTHS = st.lists(st.integers(1, 6), min_size=1, max_size=6)


def test_one_query():
    data = made([2, 3])
    query = data[1]
    assert query.query_id == 10
    assert query.document_ids.tolist() == ["d2", "d3", "d4"]
    assert torch.equal(query.features, data.features[2:])
    assert data[-1].query_id == 10
    assert [len(q.relevance) for q in data] == [2, 3]
    for bad in (2, -3):
        with pytest.raises(IndexError):
            data[bad]


@given(LENGTHS, st.data())
def test_select_gives_the_queries_asked_for(lengths, draw):
    data = made(lengths)
    chosen = draw.draw(st.lists(st.integers(0, len(lengths) - 1), min_size=1, max_size=8))
    got = data.select(chosen)
    assert len(got) == len(chosen)
    for place, query in enumerate(chosen):
        assert got[place].query_id == data[query].query_id
        assert torch.equal(got[place].features, data[query].features)
        assert torch.equal(got[place].relevance, data[query].relevance)
        assert got[place].document_ids.tolist() == data[query].document_ids.tolist()
        assert got.list_weights[place] == data.list_weights[query]


def test_select_by_booleans():
    assert made([1, 2, 3]).select(torch.tensor([True, False, True])).query_ids.tolist() == [0, 20]


@pytest.mark.parametrize("bad", [[], [3], [-1], [0.5], torch.tensor([False, False, False]), torch.tensor([True])])
def test_select_refuses(bad):
    with pytest.raises(DataError, match="quer"):
        made([1, 2, 3]).select(bad)


@given(st.lists(LENGTHS, min_size=1, max_size=3))
def test_concatenation_undoes_selection(parts):
    data = [made(lengths, seed) for seed, lengths in enumerate(parts)]
    whole = concat_queries(data)
    at = 0
    for part in data:
        again = whole.select(range(at, at + len(part)))
        assert torch.equal(again.features, part.features)
        assert torch.equal(again.relevance, part.relevance)
        assert torch.equal(again.offsets, part.offsets)
        assert again.document_ids.tolist() == part.document_ids.tolist()
        at += len(part)


def test_concatenation_refuses():
    with pytest.raises(DataError, match="no dataset"):
        concat_queries([])
    with pytest.raises(DataError, match=r"\[3, 4\] features"):
        concat_queries([made([2]), made([2], features=4)])


@given(LENGTHS, st.integers(1, 5))
def test_ranks_against_scipy(lengths, values):
    data = made(lengths)
    data.features[:] = (data.features * values).round()  # ties
    ranks = data.normalized("rank")
    for query in range(len(data)):
        x = data[query].features.numpy()
        others = max(len(x) - 1, 1)
        want = np.where(np.ptp(x, axis=0) > 0, (rankdata(x, axis=0) - 1) / others, 0)
        np.testing.assert_allclose(ranks[query].features, want, atol=1e-6)


def test_methods_stand_side_by_side():
    data = made([2, 3])
    both = data.normalized("minmax", "rank")
    assert torch.equal(
        both.features, torch.cat([data.normalized("minmax").features, data.normalized("rank").features], 1)
    )
    with pytest.raises(TorchRankError, match="at least one"):
        data.normalized()


@given(LENGTHS)
def test_minmax_and_zscore_against_numpy(lengths):
    data = made(lengths, features=4)
    data.features[:, 3] = 0.1  # nothing to tell documents apart by
    low, standard = data.normalized("minmax"), data.normalized("zscore")
    for query in range(len(data)):
        x = data[query].features.double().numpy()
        span = np.ptp(x, axis=0)
        want = np.where(span > 0, (x - x.min(0)) / np.where(span > 0, span, 1), 0)
        np.testing.assert_allclose(low[query].features, want, atol=1e-5)
        want = np.where(span > 0, (x - x.mean(0)) / np.where(span > 0, x.std(0), 1), 0)
        np.testing.assert_allclose(standard[query].features, want, atol=1e-4)
    assert low.features[:, 3].eq(0).all()
    assert standard.features[:, 3].eq(0).all()


def test_normalising_changes_nothing_in_place_and_knows_its_methods():
    data = made([3])
    before = data.features.clone()
    normalize_queries(data.features, data.offsets, method="zscore")
    assert torch.equal(data.features, before)
    with pytest.raises(TorchRankError, match="did you mean 'minmax'"):
        data.normalized("minimax")


def test_description_counts():
    data = QueryDataset(torch.zeros(6, 2), torch.tensor([0.0, 0, 1, 1, 2, 0]), torch.tensor([0, 2, 4, 6]))
    assert data.describe() == {
        "queries": 3,
        "documents": 6,
        "features": 2,
        "shortest": 2,
        "mean": 6 / 3,
        "longest": 2,
        "labels": {0.0: 3, 1.0: 2, 2.0: 1},
        "without_relevant": 1,
        "without_pairs": 2,
    }


X, R, AT = torch.zeros(3, 2), torch.zeros(3), torch.tensor([0, 1, 3])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: QueryDataset(torch.zeros(3), R, AT), ShapeError, "features must be"),
        (lambda: QueryDataset(torch.zeros(3, 2, dtype=torch.int64), R, AT), ShapeError, "floating point"),
        (lambda: QueryDataset(X, torch.zeros(2), AT), ShapeError, r"relevance must be \(3,\), got \(2,\)"),
        (lambda: QueryDataset(X, R, torch.tensor([0, 2])), ShapeError, "offsets must run from 0 to the 3 documents"),
        (lambda: QueryDataset(X, R, torch.tensor([0, 3, 3])), DataError, "query 1 has 0 documents"),
        (lambda: QueryDataset(X, R, torch.tensor([0, 4, 3])), DataError, "query 1 has -1 documents"),
        (lambda: QueryDataset(X, R, AT, torch.arange(3)), ShapeError, "query_ids must be"),
        (lambda: QueryDataset(X, R, AT, None, ["a"]), ShapeError, "document_ids must be"),
        (lambda: QueryDataset(X + math.nan, R, AT), DataError, "feature 0 of document 0 is nan"),
        (lambda: QueryDataset(X, R - 1, AT), DataError, "relevance of document 0 is -1.0"),
        (lambda: QueryDataset(X, R * math.nan, AT), DataError, "relevance of document 0 is nan"),
        (lambda: QueryDataset(X, R, AT, None, None, torch.tensor([1.0, -1.0])), DataError, "list_weights"),
    ],
)
def test_parts_that_do_not_fit_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    "given",
    [
        {"features": np.zeros((3, 2))},
        {"relevance": [1.0, 0.0, 1.0]},
        {"offsets": [0, 1, 3]},
        {"offsets": torch.tensor([0.0, 1.0, 3.0])},
        {"offsets": torch.tensor(3)},
        {"offsets": torch.tensor([], dtype=torch.int64)},
        {"query_ids": [1, 2]},
        {"query_ids": torch.tensor([1.5, 2.5])},
        {"list_weights": [1.0, 1.0]},
        {"relevance": torch.zeros(3, device="meta")},
    ],
    ids=str,
)
def test_parts_of_another_type_are_refused(given):
    parts = {"features": torch.zeros(3, 2), "relevance": torch.zeros(3), "offsets": torch.tensor([0, 1, 3])}
    with pytest.raises(ShapeError, match=next(iter(given))):
        QueryDataset(**{**parts, **given})


@pytest.mark.parametrize("queries", ["first", None, slice(0, 1)], ids=str)
def test_what_chooses_no_queries(queries):
    data = QueryDataset(torch.zeros(3, 2), torch.zeros(3), torch.tensor([0, 1, 3]))
    with pytest.raises(DataError, match="chooses no queries"):
        data.select(queries)
