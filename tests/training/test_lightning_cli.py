"""fit, validate, test and predict from the command line: what they write, and what they refuse without writing."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import torch
import yaml

import torchrank
from torchrank import cli
from torchrank.data import make_queries

ROOT = Path(__file__).resolve().parents[2]
FAST = [f"--trainer.{word}" for word in ("accelerator=cpu", "enable_progress_bar=false", "enable_model_summary=false")]
SYNTHETIC = ["--data", "torchrank.training.synthetic_queries", "--data.num_features", "4"]


def config(**changes):
    """A config of a run of two epochs without logs."""
    base = {
        "trainer": {"max_epochs": 2, "logger": False, "callbacks": [checkpoints()]},
        "model": {
            "class_path": "torchrank.training.ListwiseModule",
            "init_args": {
                "scorer": {"class_path": "torchrank.models.LinearScorer", "init_args": {"num_features": 4}},
                "loss": {"class_path": "torchrank.losses.SLAMLoss", "init_args": {"measure": "ndcg"}},
                "metrics": {"map": {"class_path": "torchrank.metrics.MeanAveragePrecision"}},
                "optimizer": {"class_path": "torch.optim.Adam", "init_args": {"lr": 0.05}},
            },
        },
        "data": {
            "class_path": "torchrank.training.synthetic_queries",
            "init_args": {"num_queries": 100, "num_features": 4, "batch_size": 8},
        },
    }
    return {**base, **changes}


def checkpoints(**options):
    return {
        "class_path": "pytorch_lightning.callbacks.ModelCheckpoint",
        "init_args": {"dirpath": "ckpt", "filename": "model", "save_last": True, **options},
    }


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT))
    return tmp_path


def run(command, settings, *words):
    Path("config.yaml").write_text(settings if isinstance(settings, str) else yaml.safe_dump(settings))
    cli.main([command, "--config", "config.yaml", *FAST, *words])


def written(folder):
    return sorted(p.name for p in folder.iterdir() if p.name not in {"config.yaml", "train.txt", "test.txt"})


def refused(capsys, *words, code=2):
    """Run, and return the one line of the error."""
    with pytest.raises(SystemExit) as ended:
        run(*words)
    if code == 2:
        assert ended.value.code == 2
        return capsys.readouterr().err.strip().splitlines()[0]
    assert str(ended.value.code).startswith("torchrank: ")
    assert "\n" not in ended.value.code
    return ended.value.code


def random_letor(path, num_features):
    data = make_queries(6, num_features=num_features, documents=(3, 5)).dataset
    lines = []
    for q in range(len(data)):
        for x, grade in zip(data[q].features.tolist(), data[q].relevance.tolist(), strict=True):
            lines.append(f"{grade:.0f} qid:{q} " + " ".join(f"{i}:{value}" for i, value in enumerate(x, 1)))
    path.write_text("\n".join(lines) + "\n")
    return str(path)


# --- what they do


def test_fit_then_test_validate_and_predict(folder, capsys):
    run("fit", config())
    assert written(folder) == ["ckpt"]
    assert sorted(p.name for p in (folder / "ckpt").iterdir()) == ["last.ckpt", "model.ckpt"]
    assert "wrote" in capsys.readouterr().out
    for command, name in (("test", "test_map"), ("validate", "val_map")):
        run(command, config(), "--ckpt_path", "ckpt/last.ckpt")
        assert name in capsys.readouterr().out
    # the checkpoint alone says what the model is
    cli.main(["test", "--ckpt_path", "ckpt/last.ckpt", *SYNTHETIC, *FAST])
    assert "test_map" in capsys.readouterr().out
    assert written(folder) == ["ckpt"]


def test_a_checkpoint_of_another_model(folder, capsys):
    run("fit", config())
    other = config()
    other["model"]["init_args"]["scorer"] = {
        "class_path": "torchrank.models.MLPScorer",
        "init_args": {"num_features": 4},
    }
    said = refused(capsys, "test", other, "--ckpt_path", "ckpt/last.ckpt", code=1)
    assert "ckpt/last.ckpt holds the weights of another model than the config's" in said


@pytest.mark.parametrize("labelled", [True, False])
def test_predict_writes_a_run_and_parquet_with_the_files_document_ids(folder, labelled):
    run("fit", config())
    lines = ["1:0.5 2:1 3:0 4:0 #docid = GX1 inc = 1", "1:0.1 4:0.2 #docid = GX2 inc = 2", "2:0.4 #docid = GX3 inc = 1"]
    label = "1 " if labelled else ""
    rows = [f"{label}qid:{q} {line}\n" for q, line in zip((7, 7, 9), lines, strict=True)]
    (folder / "test.txt").write_text("".join(rows))
    data = ["--data", "QueryDataModule", "--data.predict", "test.txt", "--data.num_features", "4"]
    cli.main(["predict", "--ckpt_path", "ckpt/last.ckpt", *data, "--out", "out", "--tag", "mine", *FAST])
    assert sorted(p.name for p in (folder / "out").iterdir()) == ["run.txt", "scores.parquet"]
    table = pl.read_parquet(folder / "out" / "scores.parquet")
    assert table["document_id"].to_list() == ["GX1", "GX2", "GX3"]
    assert table["query_id"].to_list() == [7, 7, 9]
    w = torchrank.load("ckpt/last.ckpt").scorer.weight.detach()
    x = torch.tensor([[0.5, 1, 0, 0], [0.1, 0, 0, 0.2], [0, 0.4, 0, 0]])
    torch.testing.assert_close(torch.tensor(table["score"].to_list()), x @ w)
    rows = [line.split() for line in (folder / "out" / "run.txt").read_text().splitlines()]
    first = ["GX1", "GX2"] if (x @ w)[0] >= (x @ w)[1] else ["GX2", "GX1"]
    assert [(q, d, rank, tag) for q, _, d, rank, _, tag in rows] == [
        ("7", first[0], "1", "mine"),
        ("7", first[1], "2", "mine"),
        ("9", "GX3", "1", "mine"),
    ]


def test_own_scorer_and_loss_are_found_beside_the_config_and_load_when_trusted(folder):
    (folder / "mine.py").write_text((ROOT / "tests/training/parts.py").read_text())
    settings = config()
    arguments = settings["model"]["init_args"]
    arguments["scorer"] = {"class_path": "mine.OwnScorer", "init_args": {"num_features": 4}}
    arguments["loss"] = {"class_path": "mine.OwnLoss"}
    arguments["metrics"] = {"lists": {"class_path": "mine.CountLists"}}
    run("fit", settings)
    words = ["--ckpt_path", "ckpt/last.ckpt", *SYNTHETIC]
    with pytest.raises(SystemExit, match="outside torchrank"):
        cli.main(["test", *words, *FAST])
    cli.main(["test", *words, *FAST, "--trust", "mine"])


def test_the_same_seed_gives_the_same_weights(folder):
    weights = []
    for name in ("a", "b"):
        run("fit", config(), "--trainer.callbacks.dirpath", name)
        weights.append(torchrank.load(f"{name}/last.ckpt").scorer.weight)
    assert torch.equal(*weights)


def test_csv_and_tensorboard_logs_and_the_config_are_written(folder):
    settings = config()
    settings["trainer"]["log_every_n_steps"] = 5
    settings["trainer"]["logger"] = [
        {"class_path": f"pytorch_lightning.loggers.{name}", "init_args": {"save_dir": place, "name": "a"}}
        for name, place in (("CSVLogger", "runs"), ("TensorBoardLogger", "runs/tb"))
    ]
    run("fit", settings)
    there = {str(p.relative_to(folder / "runs")) for p in (folder / "runs").rglob("*") if p.is_file()}
    assert {"a/version_0/config.yaml", "a/version_0/metrics.csv"} <= there
    assert any(name.startswith("tb/a/version_0/events.out") for name in there)
    log = pl.read_csv(folder / "runs/a/version_0/metrics.csv")
    assert log["val_map"].drop_nulls().len() == 2
    run("fit", (folder / "runs/a/version_0/config.yaml").read_text())  # the saved config runs as it is


# --- what they refuse

MISSPELT = [
    ("trainer:", "trainr:", "fit has no option 'trainr.callbacks"  , "did you mean trainer?"),
    ("max_epochs", "max_epoch", "fit has no option 'trainer.max_epoch'", "did you mean trainer.max_epochs?"),
    ("num_features: 4", "num_feature: 4", "has no option 'num_feature'", "did you mean num_features?"),
    ("measure:", "mesure:", "model.loss: SLAMLoss has no option 'mesure'", "did you mean measure?"),
    ("    loss:", "    los:", "ListwiseModule has no option 'los", "did you mean loss?"),
    ("lr:", "lrr:", "model.optimizer: Option 'lrr' is not accepted", "did you mean lr?"),
    ("num_queries", "num_query", "data: synthetic_queries has no option 'num_query'", "did you mean num_queries?"),
    ("num_queries", "train", "synthetic_queries has no option 'train'", "has: --data QueryDataModule goes first"),
    ("models.LinearScorer", "models.LinearScorr", "model.scorer: ", "did you mean torchrank.models.LinearScorer?"),
    ("torchrank.models", "torchrank.model", "model.scorer: ", "did you mean torchrank.models?"),
    ("torch.optim.Adam", "torch.optim.Adm", "model.optimizer: ", "did you mean torch.optim.Adam?"),
    ("training.ListwiseModule", "training.ListwiseModul", "model: ", "did you mean torchrank.training.ListwiseModule?"),
    ("torchrank.models.LinearScorer", "LinearScorr", "model.scorer: ", "did you mean torchrank.models.LinearScorer?"),
    ("dirpath", "dirpth", "ModelCheckpoint has no option 'dirpth'", "did you mean dirpath?"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "said", "hint"), MISSPELT, ids=[m[1].strip() for m in MISSPELT])
def test_a_misspelt_key_or_class_of_a_config_names_the_nearest(right, wrong, said, hint, folder, capsys):
    text = yaml.safe_dump(config())
    assert right in text
    line = refused(capsys, "fit", text.replace(right, wrong, 1))
    assert said in line
    assert hint in line
    assert written(folder) == []


def test_a_misspelt_class_among_the_options_is_told_by_its_nearest_alone(folder, capsys):
    line = refused(capsys, "fit", config(), "--model.loss", "torchrank.losses.SoftmaxLos")
    assert line == (
        "torchrank fit: model.loss: module 'torchrank.losses' has no attribute 'SoftmaxLos';"
        " did you mean torchrank.losses.SoftmaxLoss?"
    )
    line = refused(capsys, "fit", config(), "--model.loss", "torchrank.losses.Unheard")
    assert line == "torchrank fit: model.loss: module 'torchrank.losses' has no attribute 'Unheard'"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--trainer.max_epoch", "3"], "did you mean --trainer.max_epochs?"),
        (["--trainer.max_epoch=3"], "did you mean --trainer.max_epochs?"),
        (["--trainr.max_epochs", "3"], "did you mean --trainer?"),
        (["--model.scorer.num_feature", "3"], "did you mean num_features?"),
        (["--data.batch_siz", "3"], "did you mean batch_size?"),
        (["--model.l", "3"], "did you mean l2?"),
        (["--ckpt_pth", "x"], "did you mean --ckpt_path?"),
    ],
    ids=lambda w: w[0] if isinstance(w, list) else "",
)
def test_a_misspelt_or_shortened_option_names_the_nearest(words, hint, folder, capsys):
    assert hint in refused(capsys, "fit", config(), *words)
    assert written(folder) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--trainer.max_epochs", "many"], "trainer.max_epochs: expected int, got many"),
        (["--model.scorer.num_features", "four"], "model.scorer.num_features: expected int, got four"),
        (["--data.batch_size", "1.5"], "data.batch_size: expected int, got 1.5"),
        (["--config", "none.yaml"], "File does not exist"),
    ],
    ids=lambda w: w[0] if isinstance(w, list) else "",
)
def test_a_value_of_the_wrong_type_is_refused(words, said, folder, capsys):
    assert said in refused(capsys, "fit", config(), *words)
    assert written(folder) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model.loss.measure", "ncdg"], "measure='ncdg' is not one of 'ndcg', 'map'; did you mean 'ndcg'?"),
        (["--model.l2", "-1"], "l2=-1.0 must be"),
        (["--data.batch_size", "0"], "batch_size=0 must be at least 1"),
        (["--data.num_features", "7"], "the scorer was made for 4 features, the train part has 7"),
        (["--ckpt_path", "none.ckpt"], "there is no checkpoint none.ckpt"),
        (["--trainer.accelerator", "gpuu"], "gpuu"),
    ],
    ids=lambda w: w[0] if isinstance(w, list) else "",
)
def test_what_the_library_refuses_is_one_line_and_nothing_is_written(words, said, folder, capsys):
    assert said in refused(capsys, "fit", config(), *words, code=1)
    assert written(folder) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 qid:1 1:0.5\nx qid:1 1:0.1\n", "line 2"),
        ("1 qid:1 1:0.5\n0 qid:1 1:nan\n", "line 2"),
        ("1 qid:1 1:0.5\n0 qid:2 1:1\n0 qid:1 1:1\n", "line 3"),
        ("-1 qid:1 1:0.5\n", "line 1"),
        ("", "train.txt"),
    ],
    ids=["label", "nan", "interleaved", "negative", "empty"],
)
def test_a_bad_letor_file_is_named_with_its_line_and_nothing_is_written(text, said, folder, capsys):
    (folder / "train.txt").write_text(text)
    data = {"class_path": "torchrank.training.QueryDataModule", "init_args": {"train": "train.txt"}}
    message = refused(capsys, "fit", config(data=data), code=1)
    assert "train.txt" in message
    assert said in message
    assert written(folder) == []


def test_files_of_other_feature_counts_are_refused(folder, capsys):
    parts = {"train": random_letor(folder / "train.txt", 4), "val": random_letor(folder / "test.txt", 5)}
    data = {"class_path": "torchrank.training.QueryDataModule", "init_args": parts}
    message = refused(capsys, "fit", config(data=data), code=1)
    assert "train (" in message
    assert "unequal numbers of features" in message
    assert written(folder) == []


def test_a_config_that_is_no_yaml_is_refused_with_its_line(folder, capsys):
    text = yaml.safe_dump(config()).replace("  max_epochs", " max_epochs")
    message = refused(capsys, "fit", text, code=1)
    assert "config.yaml, line " in message
    assert written(folder) == []


def test_without_a_model_or_a_checkpoint_there_is_nothing_to_predict_with(folder):
    with pytest.raises(SystemExit, match="predict needs --ckpt_path, or a --config with a model"):
        cli.main(["predict", "--data", "torchrank.training.synthetic_queries", *FAST])
    with pytest.raises(SystemExit) as ended:
        cli.main(["fit", *FAST])
    assert ended.value.code == 2


class Touch:
    """Unpickling it writes a file."""

    def __reduce__(self):
        return os.system, ("touch touched",)


def test_a_hostile_checkpoint_is_refused_by_every_command(folder):
    Path("bad.ckpt").write_bytes(pickle.dumps(Touch(), 2))
    torch.save({"x": Touch()}, "worse.ckpt")
    for name in ("bad.ckpt", "worse.ckpt"):
        for command in ("test", "predict"):
            with pytest.raises(SystemExit, match="not a checkpoint that loads safely"):
                cli.main([command, "--ckpt_path", name, *SYNTHETIC, *FAST])
        with pytest.raises(SystemExit, match="not a checkpoint that loads safely"):
            run("fit", config(), "--ckpt_path", name)
    assert written(folder) == ["bad.ckpt", "worse.ckpt"]


# --- killed


@pytest.mark.slow
@pytest.mark.parametrize("scorer", ["LinearScorer", "AttentionScorer"])
def test_a_run_killed_in_mid_epoch_resumes_and_ends_with_the_same_weights(scorer, folder):
    settings = config()
    settings["trainer"]["callbacks"] = [checkpoints(every_n_train_steps=4, filename="{step}", save_top_k=-1)]
    settings["model"]["init_args"]["scorer"]["class_path"] = f"torchrank.models.{scorer}"
    run("fit", settings, "--trainer.callbacks.dirpath", "whole")
    die = ["--trainer.callbacks+=tests.training.parts.DieAt", "--trainer.callbacks.step", "10"]
    killed = subprocess.run(
        [sys.executable, "-m", "torchrank", "fit", "--config", "config.yaml", *FAST, *die],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == -9, killed.stderr
    assert not list((folder / "ckpt").glob("step=1*.ckpt"))
    run("fit", settings, "--ckpt_path", "ckpt/step=8.ckpt")
    whole, resumed = (torch.load(f"{name}/last.ckpt", weights_only=True) for name in ("whole", "ckpt"))
    assert whole["global_step"] == resumed["global_step"] > 10
    for name, value in whole["state_dict"].items():
        assert torch.equal(value, resumed["state_dict"][name]), name
