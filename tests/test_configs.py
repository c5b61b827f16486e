"""Every config runs as it is, for a few steps."""

from pathlib import Path

import pytest

from torchrank import cli
from torchrank.training.checkpoint import read_checkpoint

CONFIGS = sorted((Path(__file__).resolve().parent.parent / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_a_config_trains(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    few = ["--trainer.max_epochs", "3", "--trainer.limit_train_batches", "3", "--trainer.limit_val_batches", "2"]
    quiet = ["--trainer.enable_progress_bar=false", "--trainer.accelerator=cpu", "--trainer.log_every_n_steps=1"]
    cli.main(["fit", "--config", str(path), *few, *quiet])
    assert "wrote runs/" in capsys.readouterr().out
    (last,) = tmp_path.rglob("last.ckpt")
    assert read_checkpoint(last)["epoch"] == 2  # and not the best one's
    assert list(tmp_path.rglob("metrics.csv"))
