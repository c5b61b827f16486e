"""fit, test and predict of chains from the command line."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
import yaml

from torchrank import cli, load
from torchrank.data import make_sequences, read_sequences
from torchrank.training import label_sequences

FAST = [f"--trainer.{word}" for word in ("accelerator=cpu", "enable_progress_bar=false", "enable_model_summary=false")]
CONFIG = {
    "trainer": {
        "max_epochs": 2,
        "logger": False,
        "callbacks": [
            {
                "class_path": "pytorch_lightning.callbacks.ModelCheckpoint",
                "init_args": {"dirpath": "ckpt", "save_last": True, "filename": "model"},
            }
        ],
    },
    "model": {
        "class_path": "torchrank.training.ChainModule",
        "init_args": {
            "model": {
                "class_path": "torchrank.models.LinearChain",
                "init_args": {"num_features": 8, "num_labels": 6, "start": True},
            },
            "loss": {"class_path": "torchrank.losses.CRFLoss"},
            "optimizer": {"class_path": "torch.optim.Adagrad", "init_args": {"lr": 0.1}},
        },
    },
    "data": {
        "class_path": "torchrank.training.SequenceDataModule",
        "init_args": {
            "train": "words.npz",
            "test": "words.npz",
            "predict": "words.npz",
            "folds": {"train": [0, 1], "test": [2], "predict": [2]},
        },
    },
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = make_sequences(90, noise=0.3).dataset
    arrays = {"features": data.features.numpy(), "label": data.labels.numpy(), "offset": data.offsets.numpy()}
    np.savez("words.npz", **arrays, fold=np.arange(90) % 3)
    Path("config.yaml").write_text(yaml.safe_dump(CONFIG))
    return tmp_path


def test_fit_then_test_and_predict_from_the_checkpoint_alone(folder, capsys):
    cli.main(["fit", "--config", "config.yaml", *FAST])
    data = ["--data", "SequenceDataModule", "--data.test", "words.npz", "--data.predict", "words.npz"]
    folds = ["--data.folds", "{test: [2], predict: [2]}", "--data.num_labels", "6"]
    cli.main(["test", "--ckpt_path", "ckpt/last.ckpt", *data, *folds, *FAST])
    shown = capsys.readouterr().out
    assert "test_accuracy" in shown
    assert "test_whole" in shown
    cli.main(["predict", "--ckpt_path", "ckpt/last.ckpt", *data, *folds, "--out", "out", *FAST])
    assert "wrote out/labels.parquet" in capsys.readouterr().out
    assert [path.name for path in (folder / "out").iterdir()] == ["labels.parquet"]
    table = pl.read_parquet("out/labels.parquet")
    part = read_sequences("words.npz").in_folds([2])
    assert table["label"].to_list() == label_sequences(load("ckpt/last.ckpt"), part).tolist()
    owner = torch.repeat_interleave(torch.arange(len(part)), part.lengths)
    assert table["sequence"].to_list() == owner.tolist()
    assert table["position"].to_list() == (torch.arange(len(owner)) - part.offsets[owner]).tolist()


def test_another_number_of_features_is_refused_before_anything_is_written(folder):
    words = ["--model.init_args.model.init_args.num_features", "9"]
    with pytest.raises(SystemExit, match="model was made for 9 features, the train part has 8"):
        cli.main(["fit", "--config", "config.yaml", *words, *FAST])
    assert not (folder / "ckpt").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data.init_args.train", "nowhere.npz"], "there is no file nowhere.npz"),
        (["--data.init_args.folds", "{train: [7]}"], r"train: there are folds \[0, 1, 2\], asked for \[7\]"),
        (["--data.init_args.folds", "{tarin: [0]}"], "folds='tarin' is not one of"),
        (["--model.init_args.average_from", "1.5"], "average_from=1.5 must lie in"),
    ],
)
def test_bad_words_are_refused(folder, words, message):
    with pytest.raises(SystemExit, match=message):
        cli.main(["fit", "--config", "config.yaml", *words, *FAST])
    assert not (folder / "ckpt").exists()


def test_what_labels_no_sequences_is_refused(folder):
    model = {
        "class_path": "torchrank.training.ListwiseModule",
        "init_args": {
            "scorer": {"class_path": "torchrank.models.LinearScorer", "init_args": {"num_features": 8}},
            "loss": {"class_path": "torchrank.losses.SLAMLoss"},
        },
    }
    data = {"class_path": "torchrank.training.synthetic_queries", "init_args": {"num_features": 8, "num_queries": 10}}
    settings = {**CONFIG, "model": model, "data": data}
    Path("lists.yaml").write_text(yaml.safe_dump(settings))
    cli.main(["fit", "--config", "lists.yaml", "--trainer.max_epochs", "1", *FAST])
    sequences = ["--data", "torchrank.training.synthetic_sequences"]
    with pytest.raises(SystemExit, match="SequenceDataModule holds labelled sequences, which ListwiseModule cannot"):
        cli.main(["predict", "--ckpt_path", "ckpt/last.ckpt", *sequences, *FAST])
    assert not (folder / "predictions").exists()
    Path("lists.yaml").write_text(yaml.safe_dump({**CONFIG, "data": data}))
    with pytest.raises(SystemExit, match="QueryDataModule holds lists of documents, which ChainModule cannot use"):
        cli.main(["fit", "--config", "lists.yaml", *FAST])
