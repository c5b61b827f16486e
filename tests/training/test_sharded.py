"""Tables whose rows are dealt to two processes train, answer and are saved as whole ones are."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.training import sharded_run as run
from torchrank.errors import TorchRankError
from torchrank.training import SAROSModule, load
from torchrank.training.log_scorer import make_scorer
from torchrank.training.sharding import shard_tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("sharded")
    command = [sys.executable, "-m", "tests.training.sharded_run", str(place), *run.CASES]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return place


@pytest.fixture(scope="module")
def wholes(tmp_path_factory):
    return {name: run.fit(name, tmp_path_factory.mktemp("whole")) for name in run.CASES}


def found(folder, kind, name):
    return [torch.load(folder / kind / f"{name}-{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.mark.slow
@pytest.mark.parametrize("name", run.CASES)
@pytest.mark.parametrize("kind", ["folder", "file", "resumed"])
def test_training_equals_that_of_whole_tables(folder, wholes, name, kind):
    trainer, module = wholes[name]
    ranks = found(folder, kind, name)
    for rank in ranks:
        for key, table in module.scorer.named_parameters():
            torch.testing.assert_close(rank["tables"][key], table.detach(), rtol=1e-5, atol=1e-5)
        for key, value in trainer.callback_metrics.items():
            assert rank["metrics"][key] == pytest.approx(float(value), abs=1e-5), key
    rows = [[rank["held"][key][0] for rank in ranks] for key in ("user_vectors", "item_vectors", "item_offsets")]
    assert rows == [[21, 20], [31, 30], [31, 30]]
    for rank in ranks:
        assert set(rank["states"]) == (set(rank["held"].values()) if name in ("momentum", "adam") else set())


@pytest.mark.slow
@pytest.mark.parametrize("name", run.CASES)
def test_every_process_recommends_what_the_whole_tables_do(folder, wholes, name):
    trainer, module = wholes[name]
    expected, scores, rows = run.answers(module, trainer.datamodule.train_log)
    for rank in found(folder, "file", name):
        ours, our_scores, our_rows = rank["answers"]
        torch.testing.assert_close(our_scores, scores, rtol=1e-4, atol=1e-5)
        assert our_rows == rows
        for (items, best, mask), (others, other_best, other_mask) in zip(ours, expected, strict=True):
            assert torch.equal(mask, other_mask)
            assert torch.equal(items, others)
            torch.testing.assert_close(best, other_best, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", run.CASES)
def test_one_file_loads_without_the_processes(folder, name):
    saved = max((folder / "file").glob(f"{name}-step=*.ckpt"), key=lambda path: int(path.stem.split("=")[1]))
    tables = found(folder, "file", name)[0]["tables"]
    for key, table in load(saved).scorer.named_parameters():
        assert torch.equal(table, tables[key])


@pytest.mark.slow
def test_a_process_without_a_row_takes_part(folder):
    ranks = [torch.load(folder / f"few-{rank}.pt", weights_only=True) for rank in range(2)]
    assert [rank["held"] for rank in ranks] == [1, 0]
    for rank in ranks:
        assert rank["rows"].tolist() == [[1, 2, 3]] * 2
        assert rank["gradient"].tolist() == [[1, 5, 1]]


class Mesh:
    def __init__(self, processes):
        self.processes = processes

    def __getitem__(self, name):
        return self

    def size(self):
        return self.processes


@pytest.mark.parametrize(
    ("options", "processes", "words"),
    [
        ({"engine": "batched"}, 2, "data_parallel_size=1"),
        ({"engine": "batched", "feedback": "all"}, 1, "FeedbackFactorization"),
        ({}, 1, "batched"),
    ],
)
def test_what_does_not_go_with_it_says_so(options, processes, words):
    module = SAROSModule(**options)
    made = {key: getattr(module, key) for key in ("dim", "init", "item_bias", "feedback", "seed")}
    module.scorer, module._device_mesh = make_scorer(run.LOG, **made), Mesh(processes)
    with pytest.raises(TorchRankError, match=words):
        shard_tables(module)
