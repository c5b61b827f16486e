"""Killed at any moment, a command that is run again ends right, and nothing half-written is ever read.

Three kills each; ``TORCHRANK_KILLS=100 pytest -m slow tests/test_interruption.py`` kills a hundred times.
"""

import os
import random
import resource
import time

import polars as pl
import pytest
import torch
import yaml
from pytorch_lightning import Trainer
from pytorch_lightning.callbacks import ModelCheckpoint

from tests.killing import kill, run, start
from torchrank import cli
from torchrank.data import make_interactions
from torchrank.errors import DataError
from torchrank.training import BPRModule, InteractionDataModule, SAROSModule, WholeCheckpointIO, load
from torchrank.training.checkpoint import read_checkpoint

KILLS = int(os.environ.get("TORCHRANK_KILLS", "3"))


def config(folder):
    """A run of a few seconds that saves after every step."""
    save = {"dirpath": str(folder / "saved"), "filename": "latest", "every_n_train_steps": 1}
    save["enable_version_counter"] = False
    trainer = {"accelerator": "cpu", "max_epochs": 12, "logger": False, "enable_progress_bar": False}
    trainer["callbacks"] = [{"class_path": "pytorch_lightning.callbacks.ModelCheckpoint", "init_args": save}]
    model = {"dim": 8, "init": "normal", "order": "shuffled", "user_order": "shuffled", "eta": 0.05}
    data = {"num_users": 300, "num_items": 400, "num_interactions": 12_000}
    (folder / "config.yaml").write_text(
        yaml.safe_dump(
            {
                "seed_everything": 0,
                "trainer": trainer,
                "model": {"class_path": "torchrank.training.SAROSModule", "init_args": model},
                "data": {"class_path": "torchrank.training.synthetic_interactions", "init_args": data},
            }
        )
    )
    return folder / "saved" / "latest.ckpt"


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_fit(tmp_path, processes):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    words = ["fit", "--config", "config.yaml"]
    if processes > 1:
        words += ["--trainer.devices", processes, "--trainer.strategy", "ddp"]
    for folder in (whole, killed):
        folder.mkdir()
    expected, saved = config(whole), config(killed)
    seconds = run(whole, *words)
    generator, begun = random.Random(processes), 0

    def again():
        return [*words, "--ckpt_path", saved] if saved.exists() else words

    for _ in range(KILLS):
        process = start(killed, *again())
        if generator.random() < 0.7:  # past the imports, into the training
            before, limit = saved.stat().st_mtime_ns if saved.exists() else 0, time.monotonic() + 300
            while process.poll() is None and time.monotonic() < limit:
                if saved.exists() and saved.stat().st_mtime_ns != before:
                    break
                time.sleep(0.01)
            time.sleep(0.1 * generator.random())
        else:
            time.sleep(seconds * generator.random())
        kill(process, which=generator.randrange(processes))
        if saved.exists():
            begun += "state_dict" in read_checkpoint(saved)
    run(killed, *again())
    assert begun
    one, other = load(expected), load(saved)
    for (name, weight), found in zip(one.state_dict().items(), other.state_dict().values(), strict=True):
        assert torch.equal(weight, found), name
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


@pytest.mark.slow
def test_recommend(tmp_path):
    log, _ = make_interactions(num_users=4000, num_items=1500, num_interactions=40_000)
    module = SAROSModule(dim=4, init="normal")
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    trainer = Trainer(max_epochs=1, enable_checkpointing=False, **quiet)
    trainer.fit(module, datamodule=InteractionDataModule(log, train=1, validation=0))
    trainer.save_checkpoint(tmp_path / "model.ckpt")
    words = ["recommend", "--ckpt", "model.ckpt", "--k", "50", "--out"]
    seconds = run(tmp_path, *words, "whole.parquet")
    expected, out, generator = pl.read_parquet(tmp_path / "whole.parquet"), tmp_path / "out.parquet", random.Random(0)
    for _ in range(KILLS):
        process = start(tmp_path, *words, out.name)
        limit = time.monotonic() + 60
        while process.poll() is None and not list(tmp_path.glob("out.parquet.part")) and time.monotonic() < limit:
            time.sleep(0.005)
        time.sleep(0.1 * seconds * generator.random() ** 2)
        kill(process)
        if out.exists():
            assert pl.read_parquet(out).equals(expected)
    run(tmp_path, *words, out.name)
    assert pl.read_parquet(out).equals(expected)
    assert not list(tmp_path.glob("*.part"))


@pytest.fixture
def full_disk():
    """Writing more than a page of any file fails, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_said_to_be_one(tmp_path, request):
    log, _ = make_interactions(num_users=200, num_items=300, num_interactions=8000)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    save = ModelCheckpoint(tmp_path / "saved", filename="latest", every_n_train_steps=5)
    trainer = Trainer(max_epochs=1, callbacks=[save], plugins=[WholeCheckpointIO()], **quiet)
    trainer.fit(BPRModule(dim=4), datamodule=InteractionDataModule(log))
    ckpt = next((tmp_path / "saved").glob("*.ckpt"))
    before = ckpt.read_bytes()
    request.getfixturevalue("full_disk")
    with pytest.raises(DataError, match=rf"{ckpt.name} cannot be written, with [\d,]+ bytes left on its disk"):
        trainer.strategy.save_checkpoint(trainer._checkpoint_connector.dump_checkpoint(), ckpt)
    assert ckpt.read_bytes() == before
    with pytest.raises(SystemExit, match=r"recs\.parquet cannot be written"):
        cli.main(["recommend", "--ckpt", str(ckpt), "--k", "50", "--out", str(tmp_path / "recs.parquet")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["saved"]
    assert [path.name for path in ckpt.parent.iterdir()] == [ckpt.name]


def test_what_cannot_be_read_is_named(tmp_path):
    half = tmp_path / "half.ckpt"
    WholeCheckpointIO().save_checkpoint({"state_dict": {"w": torch.zeros(1000)}}, half)
    half.write_bytes(half.read_bytes()[:1500])
    with pytest.raises(SystemExit, match=r"half\.ckpt is not a checkpoint that loads safely"):
        cli.main(["recommend", "--out", str(tmp_path / "x.parquet"), "--ckpt", str(half)])
    with pytest.raises(SystemExit, match=r"half\.ckpt is not a checkpoint that loads safely"):
        cli.main(["fit", "--config", "configs/saros_ml1m.yaml", "--ckpt_path", str(half)])
    assert [path.name for path in tmp_path.iterdir()] == ["half.ckpt"]
