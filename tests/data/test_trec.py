"""Run files say the ranking, also to trec_eval."""

import math

import pytest
import pytrec_eval
import torch

from torchrank.data import ListLoader, collect_scores, make_queries, write_run
from torchrank.data.files import whole_file
from torchrank.errors import DataError, ShapeError
from torchrank.metrics import average_precision


def scored(dataset, dtype=torch.float32):
    weights = torch.randn(dataset.num_features, generator=torch.Generator().manual_seed(0))
    scores = [((b.features @ weights).to(dtype), b.mask, b.lists) for b in ListLoader(dataset, shuffle=True)]
    return scores, (dataset.features @ weights).to(dtype)


def test_scores_of_batches_come_back_in_order():
    dataset = make_queries(50).dataset
    batches, want = scored(dataset)
    torch.testing.assert_close(collect_scores(dataset, batches), want)
    with pytest.raises(DataError, match="lists were not scored"):
        collect_scores(dataset, batches[:-1])
    with pytest.raises(DataError, match="50 of 50 lists were not scored"):
        collect_scores(dataset, [])
    with pytest.raises(DataError, match="does not fit the dataset's lengths"):
        collect_scores(dataset, [(s, ~m, q) for s, m, q in batches])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_run_file_measures_as_the_scores_do(tmp_path, dtype):
    dataset = make_queries(50).dataset
    _, scores = scored(dataset, dtype)
    write_run(tmp_path / "deep" / "run.txt", dataset, scores)
    rows = [line.split() for line in (tmp_path / "deep" / "run.txt").read_text().splitlines()]
    assert len(rows) == len(scores)
    run, judged = {}, {}
    for query, zero, document, rank, score, tag in rows:
        assert (zero, tag) == ("Q0", "torchrank")
        assert int(rank) == len(run.setdefault(query, {})) + 1
        run[query][document] = float(score)
    by_id = dict(zip(dataset.document_ids.tolist(), scores.tolist(), strict=True))
    for document, score in (pair for documents in run.values() for pair in documents.items()):
        assert torch.tensor(score, dtype=torch.float64).to(dtype).item() == by_id[document]
    for query in dataset:
        judged[str(query.query_id)] = {d: int(r > 0) for d, r in zip(query.document_ids, query.relevance, strict=True)}
    measured = pytrec_eval.RelevanceEvaluator(judged, {"map"}).evaluate(run)
    for place, query in enumerate(dataset):
        here = scores[dataset.offsets[place] : dataset.offsets[place + 1]]
        assert measured[str(query.query_id)]["map"] == pytest.approx(
            average_precision(here, query.relevance).item(), abs=1e-6
        )


@pytest.mark.parametrize(
    ("scores", "tag", "error", "message"),
    [
        (torch.zeros(2), "t", ShapeError, "shape"),
        (torch.tensor([0.0, math.nan, 1.0]), "t", DataError, "score of document 1 is not finite"),
        (torch.zeros(3), "two words", DataError, "must be one word"),
    ],
)
def test_what_cannot_be_written_leaves_no_file(tmp_path, scores, tag, error, message):
    dataset = make_queries(1, documents=(3, 3)).dataset
    with pytest.raises(error, match=message):
        write_run(tmp_path / "run.txt", dataset, scores, tag=tag)
    assert list(tmp_path.iterdir()) == []


def test_a_file_half_written_is_not_left_and_the_old_one_stays(tmp_path):
    (tmp_path / "x").write_text("old")

    def fail():
        with whole_file(tmp_path / "x") as place:
            place.write_text("half")
            raise RuntimeError("full disk")

    with pytest.raises(RuntimeError, match="full disk"):
        fail()
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("x", "old")]
