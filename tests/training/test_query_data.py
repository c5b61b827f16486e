"""The DataModule feeds every stage, checks its parts, and a killed run ends as an unbroken one."""

import json
import signal
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest
import pytorch_lightning as pl
import torch

from tests.training import ddp_run, resume_run
from torchrank.data import QueryDataset, make_queries
from torchrank.data.batch_sampler import ListBatchSampler
from torchrank.errors import DataError, TorchRankError
from torchrank.losses import SLAMLoss
from torchrank.models import LinearScorer
from torchrank.training import ListwiseModule, QueryDataModule

TEXT = "2 qid:1 1:4 2:1\n0 qid:1 1:2 2:1\n1 qid:2 1:1 2:0\n"
WIDER = "1 qid:3 3:1\n0 qid:3 1:1\n"


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def test_parts_from_files_and_from_memory(write):
    one, two = write("one.txt", TEXT), write("two.txt", TEXT.replace("qid:1", "qid:5").replace("qid:2", "qid:6"))
    bare = write("bare.txt", "qid:9 1:3 2:2 #docid = X\n")
    memory = QueryDataset(torch.ones(2, 2), torch.tensor([1.0, 0.0]), torch.tensor([0, 2]))
    data = QueryDataModule(train=[one, two], val=two, test=memory, predict=bare)
    for stage in ("fit", "test", "predict"):
        data.setup(stage)
    assert data.dataset("train").query_ids.tolist() == [1, 2, 5, 6]
    assert sorted(q for batch in data.train_dataloader() for q in batch.lists.tolist()) == [0, 1, 2, 3]
    assert data.dataset("val").query_ids.tolist() == [5, 6]
    assert data.dataset("test") is memory
    assert data.dataset("predict").document_ids.tolist() == ["X"]
    assert [batch.relevance.tolist() for batch in data.predict_dataloader()] == [[[0.0]]]
    for loader in (data.val_dataloader(), data.test_dataloader()):
        assert not loader.batch_sampler.shuffle


def test_training_is_shuffled_unless_it_shall_be_streamed():
    queries = make_queries(40).dataset

    def order(**options):
        data = QueryDataModule(train=queries, **options)
        data.setup("fit")
        return [batch.lists.tolist() for batch in data.train_dataloader()]

    assert order(batch_size=1, shuffle=False, max_padding=1.0) == [[q] for q in range(40)]
    assert order(seed=1) != order(seed=2)
    assert order(seed=1) == order(seed=1)


def test_no_validation_part_means_no_validation():
    data = QueryDataModule(train=make_queries(4).dataset)
    data.setup("fit")
    assert data.val_dataloader() == []


def test_normalisation(write):
    data = QueryDataModule(train=write("x", TEXT), normalize="minmax")
    data.setup("fit")
    assert data.dataset("train").features.tolist() == [[1, 0], [0, 0], [0, 0]]
    both = QueryDataModule(train=write("x", TEXT), normalize=["minmax", "rank"])
    both.setup("fit")
    assert both.dataset("train").features.tolist() == [[1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    with pytest.raises(TorchRankError, match="did you mean 'minmax'"):
        QueryDataModule(normalize="minimax")


def test_side_files(write):
    rows, more = write("rows", "1 1:1\n0 1:2\n2 1:3\n"), write("more", "1 1:1\n0 1:2\n")
    sizes, one = write("rows.query", "1\n2\n"), write("more.query", "2\n")
    data = QueryDataModule(train=rows, val=[rows, more], groups={"train": sizes, "val": [sizes, one]})
    data.setup("fit")
    assert data.dataset("train").lengths.tolist() == [1, 2]
    assert data.dataset("val").lengths.tolist() == [1, 2, 2]
    wrong = QueryDataModule(train=[rows, more], groups={"train": sizes})
    with pytest.raises(DataError, match="train has 2 files, but groups names 1 side files"):
        wrong.setup("fit")
    with pytest.raises(TorchRankError, match=r"groups='vla' is not one of .*'val'"):
        QueryDataModule(groups={"vla": sizes})


def test_mismatched_feature_counts_are_refused(write):
    narrow, wide = write("narrow.txt", TEXT), write("wide.txt", WIDER)
    data = QueryDataModule(train=narrow, val=narrow, test=wide)
    data.setup("fit")
    with pytest.raises(
        DataError, match=r"train \(.*narrow\.txt\) has 2, .*test \(.*wide\.txt\) has 3; .*num_features=3"
    ):
        data.setup("test")
    both = QueryDataModule(train=narrow, test=wide, num_features=3)
    for stage in ("fit", "test"):
        both.setup(stage)
    assert both.dataset("train").num_features == both.dataset("test").num_features == 3
    strict = QueryDataModule(test=wide, num_features=2)
    with pytest.raises(DataError, match=r"wide\.txt, line 1: feature 3 is beyond the 2 expected"):
        strict.setup("test")
    memory = QueryDataModule(test=make_queries(3, num_features=4).dataset, num_features=2)
    with pytest.raises(DataError, match="test has 4 features, but num_features=2"):
        memory.setup("test")


def test_a_part_that_is_not_there_is_named():
    data = QueryDataModule(train=make_queries(3).dataset)
    data.setup("test")
    with pytest.raises(DataError, match=r"there is no test part; give QueryDataModule\(test=…\)"):
        data.test_dataloader()


def run(module, *words):
    command = [sys.executable, "-m", module, *map(str, words)]
    return subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, timeout=300)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    return folder, *resume_run.train(folder)


elsewhere = pytest.mark.filterwarnings(
    "ignore:The dirpath has changed"
)  # a resumed run must not add to the first's files


@elsewhere
def test_resuming_from_every_step_ends_with_the_same_weights(unbroken, tmp_path):
    folder, weights, seen = unbroken
    steps = sorted(int(path.stem.removeprefix("step=")) for path in folder.iterdir())
    assert len(steps) == len(seen) > 3 * resume_run.EPOCHS
    assert len({str(lists) for _, _, lists in seen}) > 0.8 * len(seen)  # epochs differ
    epoch = len(steps) // resume_run.EPOCHS
    for step in steps[epoch - 2 : 2 * epoch + 1]:  # around and inside the second epoch
        again, rest = resume_run.train(tmp_path / str(step), checkpoint=folder / f"step={step}.ckpt")
        assert rest == seen[step:]
        assert torch.equal(again, weights)


@elsewhere
def test_resuming_when_steps_limit_the_run(unbroken, tmp_path):
    folder, weights, seen = unbroken
    for step in (2, len(seen) // resume_run.EPOCHS, 8):
        again, rest = resume_run.train(
            tmp_path / str(step), checkpoint=folder / f"step={step}.ckpt", max_steps=len(seen), max_epochs=-1
        )
        assert rest == seen[step:]
        assert torch.equal(again, weights)


@pytest.mark.slow
@elsewhere
def test_a_killed_run_resumes_and_ends_with_the_same_weights(unbroken, tmp_path):
    _, weights, seen = unbroken
    died = len(seen) - 2
    done = run("tests.training.resume_run", tmp_path, died)
    assert done.returncode == -signal.SIGKILL, done.stderr
    step = died - died % 4
    again, rest = resume_run.train(tmp_path / "again", checkpoint=tmp_path / f"step={step}.ckpt", every=4)
    assert rest == seen[step:]
    assert torch.equal(again, weights)


@pytest.mark.slow
def test_two_processes_share_every_epoch_without_waiting_for_each_other(tmp_path):
    queries = 5  # of single-list batches: in the last step one process has none
    done = run("tests.training.ddp_run", tmp_path, queries, 1)
    assert done.returncode == 0, done.stderr.decode()
    ranks = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    for part in ("train", "val"):
        for epoch in range(2):
            seen = [rank[part][epoch] for rank in ranks]
            assert sorted(chain(*seen)) == list(range(queries))
    assert ranks[0]["weight"] == ranks[1]["weight"] != [0.0] * 20
    module = ListwiseModule(LinearScorer(20), SLAMLoss())
    with torch.no_grad():
        module.scorer.weight.copy_(torch.tensor(ranks[0]["weight"]))
    data = QueryDataModule(val=make_queries(queries).dataset)
    trainer = pl.Trainer(logger=False, enable_progress_bar=False, accelerator="cpu", enable_checkpointing=False)
    alone = trainer.validate(module, data, verbose=False)[0]
    assert ranks[0]["measured"]["train_loss"] == ranks[1]["measured"]["train_loss"]
    for name in ("val_map", "val_ndcg@10"):
        assert ranks[0]["measured"][name] == ranks[1]["measured"][name] == pytest.approx(alone[name])
    # a run of two processes goes on as one at the end of an epoch, not inside one
    folder = tmp_path / "one"
    folder.mkdir()
    with pytest.warns(UserWarning, match="dirpath has changed"):
        ddp_run.fit(folder, queries, 1, checkpoint=tmp_path / "epoch=0.ckpt")
    seen = json.loads((folder / "0.json").read_text())
    assert sorted(seen["train"][1]) == list(range(queries))
    assert seen["train"][0] == []


def test_the_place_in_an_epoch_holds_for_as_many_processes():
    lengths = torch.full((10,), 3)
    two, one = (ListBatchSampler(lengths, batch_size=2, world_size=size) for size in (2, 1))
    batches = iter(two)
    next(batches)
    with pytest.raises(DataError, match="world_size was 2, is 1"):
        one.load_state_dict(two.state_dict())
    list(batches)
    one.load_state_dict(two.state_dict())
    assert one.state_dict()["epoch"] == 1
    assert sum(map(len, one)) == 10
