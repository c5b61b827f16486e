"""``torchrank reproduce slam``: five folds, results in the promised form, choices by validation alone."""

import json
import statistics
import time
from importlib.util import find_spec

import numpy as np
import pytest

from tests.killing import kill, members, start
from torchrank import cli
from torchrank.commands.slam_folds import fold_of, measure, read_parts
from torchrank.commands.slam_rankers import Fit
from torchrank.commands.slam_report import blend, summarize
from torchrank.data import make_queries

METHODS = {
    "slam_ndcg_linear",
    "slam_map_linear",
    "perceptron",
    "listnet_linear",
    "ranknet_linear",
    "slam_ndcg_attention",
}
FIGURES = ("methods.png", "convergence.png", "perceptron.png")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Five parts of synthetic queries as LETOR text."""
    place = tmp_path_factory.mktemp("letor")
    made = make_queries(60, num_features=4, documents=(4, 12), noise=0.5, seed=1).dataset
    for part in range(5):
        lines = []
        for query in list(made)[12 * part : 12 * part + 12]:
            for features, relevance in zip(query.features.tolist(), query.relevance.tolist(), strict=True):
                text = " ".join(f"{i}:{value:.5f}" for i, value in enumerate(features, 1))
                lines.append(f"{relevance:g} qid:{query.query_id} {text}\n")
        (place / f"S{part + 1}.txt").write_text("".join(lines))
    return place


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_every_method_is_measured_and_drawn(folder, tmp_path, capsys, workers):
    words = ["--data", str(folder), "--out", str(tmp_path), "--seeds", "1", "--epochs", "3", "--workers", workers]
    cli.main(["reproduce", "slam", *words])
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["folds"] == 5
    expected = METHODS | ({"lightgbm_lambdarank"} if find_spec("lightgbm") else set())
    assert set(results["methods"]) == expected
    for row in results["methods"].values():
        assert set(row) == {"map", "mean_ndcg", "ndcg@10", "seconds"}
        assert 0 < row["map"] <= 1
        assert 0 < row["mean_ndcg"] <= 1
        assert row["seconds"] > 0
    assert results["methods"]["slam_ndcg_linear"]["map"] > 0.7  # the lists have a linear ranker
    text = (tmp_path / "results.md").read_text()
    for part in ("AdaRank-NDCG (LETOR) | 0.4824 | 0.4950", "blend of the best half", "to the end, λ = 0.001", "fold 5"):
        assert part in text
    for name in FIGURES:
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert len(list(tmp_path.iterdir())) == 2 + len(FIGURES)
    assert "slam_ndcg_linear" in capsys.readouterr().out


def test_folds_are_the_published_unions(folder):
    parts = read_parts(folder)
    ids = [set(part.query_ids.tolist()) for part in parts]
    for number, (train, val, test) in enumerate(
        [((1, 2, 3), 4, 5), ((2, 3, 4), 5, 1), ((3, 4, 5), 1, 2), ((4, 5, 1), 2, 3), ((5, 1, 2), 3, 4)]
    ):
        fold = fold_of(parts, number)
        assert set(fold.train.query_ids.tolist()) == set.union(*(ids[part - 1] for part in train))
        assert set(fold.val.query_ids.tolist()) == ids[val - 1]
        assert set(fold.test.query_ids.tolist()) == ids[test - 1]


class Named:
    seeded = True

    def __init__(self, name):
        self.name = name


def test_validation_alone_chooses(folder):
    """Whatever the test scores are, the candidate with the better validation scores is taken."""
    folds = [fold_of(read_parts(folder), number) for number in range(5)]

    def scores(part, good):
        return part.relevance.numpy() if good else -part.relevance.numpy()

    candidates = [Named("good on test"), Named("good on validation")]
    fits = {
        (c, number, seed): Fit(scores(fold.val, c == 1), scores(fold.test, c == 0), 1, [], 1.0, {})
        for number, fold in enumerate(folds)
        for c in range(2)
        for seed in range(2)
    }
    worst = statistics.fmean(measure(fold.test, -fold.test.relevance.numpy()).map for fold in folds)
    row = summarize("method", candidates, fits, folds)
    assert row.mean.map == pytest.approx(worst)
    assert row.val_map == pytest.approx(statistics.fmean(measure(f.val, f.val.relevance.numpy()).map for f in folds))
    assert row.deviation == 0
    assert row.seconds == 10 * 2 / 2
    assert row.remark == "good on validation 10×"
    blended = blend(candidates, fits, folds)
    assert blended.mean.map == pytest.approx(worst)
    assert blended.remark == "good on validation 10×"


def test_measures_are_letors(folder):
    """A query with nothing relevant counts 0, and the first two ranks have the same discount."""
    part = read_parts(folder)[0].select([0])
    perfect = measure(part, part.relevance.numpy())
    assert perfect == (1.0, pytest.approx(1.0), 1.0)
    nothing = part.select([0])
    nothing.relevance.zero_()
    assert measure(nothing, np.zeros(len(nothing.relevance), np.float32)) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--data": "nowhere"}, "there is no S1.txt or S1.txt.gz in nowhere; give the folder of MQ2008"),
        ({"--seeds": "0"}, "seeds=0"),
        ({"--out": "S1.txt"}, "is a file; give a folder"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(folder, monkeypatch, change, message):
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in folder.iterdir())
    options = {"--data": ".", "--out": "out", **change}
    with pytest.raises(SystemExit) as stop:
        cli.main(["reproduce", "slam", *(word for pair in options.items() for word in pair)])
    assert message in str(stop.value)
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.slow
def test_workers_end_when_the_command_is_killed(folder, tmp_path):
    process = start(tmp_path, "reproduce", "slam", "--data", folder, "--out", tmp_path, "--workers", 2, "--epochs", 500)
    limit = time.monotonic() + 60
    while len(members(process.pid)) < 4 and time.monotonic() < limit:  # the command, its two workers, and a tracker
        time.sleep(0.1)
    assert len(members(process.pid)) >= 4
    time.sleep(2)
    kill(process)
