"""``torchrank tune``: what is found and written, going on after an interruption, and errors that name the fix."""

import csv
from pathlib import Path

import pytest
import yaml

from torchrank import cli
from torchrank.commands import tune as module
from torchrank.commands.tune_space import Choices, Range, read_space
from torchrank.errors import DataError, TorchRankError

CONFIG = {
    "seed_everything": 0,
    "trainer": {
        "accelerator": "cpu",
        "devices": 1,
        "max_epochs": 2,
        "logger": [{"class_path": "pytorch_lightning.loggers.CSVLogger", "init_args": {"save_dir": "runs"}}],
        "callbacks": [
            {
                "class_path": "pytorch_lightning.callbacks.ModelCheckpoint",
                "init_args": {"monitor": "val_loss", "dirpath": "ckpt"},
            },
            {"class_path": "pytorch_lightning.callbacks.EarlyStopping", "init_args": {"monitor": "val_loss"}},
        ],
    },
    "model": {
        "class_path": "torchrank.training.SAROSModule",
        "init_args": {"dim": 4, "init": "normal", "eta": 0.1, "mu": 0.01},
    },
    "data": {
        "class_path": "torchrank.training.synthetic_interactions",
        "init_args": {"num_users": 40, "num_items": 60, "num_interactions": 800, "steps_per_epoch": 2},
    },
}
SPACE = {"model.eta": {"low": "1e-3", "high": 1.0, "log": True}, "model.init_args.rule": ["run", "positive"]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tune(*words, config=CONFIG, space=SPACE, trials=3, out="out"):
    Path("config.yaml").write_text(yaml.safe_dump(config))
    Path("space.yaml").write_text(yaml.safe_dump(space))
    cli.main(
        ["tune", "--config", "config.yaml", "--space", "space.yaml", "--trials", str(trials), "--out", out, *words]
    )


def rows(out="out"):
    with Path(out, "trials.csv").open() as file:
        return list(csv.DictReader(file))


def test_the_best_trial_becomes_a_config_that_fit_runs(folder, capsys):
    tune(trials=4)
    found = rows()
    assert [row["trial"] for row in found] == ["1", "2", "3", "4"]
    assert (found[0]["model.init_args.eta"], found[0]["model.init_args.rule"]) == ("0.1", '"run"')  # the config's own
    assert all(0.001 <= float(row["model.init_args.eta"]) <= 1 for row in found)
    best = min(found, key=lambda row: float(row["val_loss"]))
    written = yaml.safe_load(Path("out/best.yaml").read_text())
    assert written["model"]["init_args"]["eta"] == float(best["model.init_args.eta"])
    assert f'"{written["model"]["init_args"]["rule"]}"' == best["model.init_args.rule"]
    assert written["trainer"] == CONFIG["trainer"]
    assert Path("out/best.yaml").read_text().startswith(f"# trial {best['trial']} of 4: val_loss")
    assert sorted(p.name for p in folder.iterdir()) == ["config.yaml", "out", "space.yaml"]  # no checkpoint, no log
    assert "best of 4 trials" in capsys.readouterr().out
    quiet = [f"--trainer.{word}" for word in ("enable_progress_bar=false", "log_every_n_steps=1")]
    cli.main(["fit", "--config", "out/best.yaml", *quiet])
    assert list(folder.glob("ckpt/*.ckpt"))


@pytest.mark.slow
def test_a_killed_search_goes_on_and_finds_the_same(folder, monkeypatch):
    tune(trials=4, out="whole")
    calls = []
    honest = module.run_trial

    def killed(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return honest(*arguments)

    monkeypatch.setattr(module, "run_trial", killed)
    with pytest.raises(SystemExit, match="interrupted"):
        tune(trials=4)
    assert len(rows()) == 2
    tune(trials=4)
    assert len(calls) == 5
    keys = ["trial", "val_loss", "model.init_args.eta", "model.init_args.rule"]
    assert [[row[key] for key in keys] for row in rows()] == [[row[key] for key in keys] for row in rows("whole")]
    tune(trials=4)  # there is nothing left to do
    tune(trials=2)
    assert len(calls) == 5
    tune(trials=5)
    assert len(calls) == 6
    assert len(rows()) == 5


def test_a_trial_that_fails_is_told_and_the_search_goes_on(folder, monkeypatch):
    honest = module.run_trial

    def diverges(config, *arguments):
        if config["model"]["init_args"]["rule"] == "positive":
            raise module.TrialFailed("the loss is NaN")
        return honest(config, *arguments)

    monkeypatch.setattr(module, "run_trial", diverges)
    tune(trials=6)
    failed = [row for row in rows() if row["error"]]
    assert failed
    assert all(row["model.init_args.rule"] == '"positive"' for row in failed)
    assert all(row["val_loss"] == "" for row in failed)
    assert yaml.safe_load(Path("out/best.yaml").read_text())["model"]["init_args"]["rule"] == "run"
    with pytest.raises(SystemExit, match=r"all 2 trials failed, the first with: the loss is NaN"):
        tune(trials=2, space={"model.rule": ["positive"]}, out="none")


def test_a_model_of_lists_by_a_measure_that_is_to_be_large(folder):
    config = {
        "seed_everything": 0,
        "trainer": {"accelerator": "cpu", "max_epochs": 1},
        "model": {
            "class_path": "torchrank.training.ListwiseModule",
            "init_args": {
                "scorer": {"class_path": "torchrank.models.LinearScorer", "init_args": {"num_features": 4}},
                "loss": {"class_path": "torchrank.losses.SLAMLoss", "init_args": {"measure": "ndcg"}},
                "metrics": {"ndcg": {"class_path": "torchrank.metrics.NDCG"}},
                "optimizer": {"class_path": "torch.optim.Adam", "init_args": {"lr": 0.05}},
            },
        },
        "data": {
            "class_path": "torchrank.training.synthetic_queries",
            "init_args": {"num_queries": 60, "num_features": 4},
        },
    }
    space = {"model.optimizer.lr": {"low": 0.0001, "high": 1, "log": True}, "trainer.max_epochs": {"low": 1, "high": 3}}
    tune("--monitor", "val_ndcg", "--mode", "max", config=config, space=space)
    best = max(rows(), key=lambda row: float(row["val_ndcg"]))
    written = yaml.safe_load(Path("out/best.yaml").read_text())
    assert written["model"]["init_args"]["optimizer"]["init_args"]["lr"] == pytest.approx(
        float(best["model.init_args.optimizer.init_args.lr"])
    )
    assert isinstance(written["trainer"]["max_epochs"], int)


@pytest.mark.parametrize(
    ("changes", "words", "told"),
    [
        ({"space": {"model.etta": [1.0]}}, [], r"no key 'model\.etta'; did you mean 'model\.eta'"),
        ({}, ["--monitor", "val_los"], r"'val_los' is not logged.*val_loss.*did you mean 'val_loss'"),
        ({}, ["--monitor", "val_ndcg@10"], "mode=min or mode=max"),
        ({}, ["--mode", "least"], "mode='least'"),
        ({"trials": 0}, [], "trials=0"),
        ({"space": {}}, [], "names no key"),
        ({"space": {"model.eta": {"low": 1}}}, [], r"model\.eta needs both low and high"),
        ({"config": {**CONFIG, "trainer": {"max_epochs": 1}}}, [], "monitors nothing; say --monitor"),
    ],
)
def test_what_cannot_be_searched_is_told(folder, changes, words, told):
    words = [*words, "--mode", "min"] if words == ["--monitor", "val_los"] else words
    with pytest.raises(SystemExit, match=told):
        tune(*words, **changes)


def test_a_value_that_the_config_does_not_take_is_refused_before_training(folder, monkeypatch, capsys):
    monkeypatch.setattr(module, "run_trial", None)
    with pytest.raises(SystemExit):
        tune(space={"model.dim": [4, "large"]})
    assert "dim" in capsys.readouterr().err
    assert not Path("out").exists()


def test_data_without_validation_names_what_is_logged(folder):
    data = {**CONFIG["data"], "init_args": {**CONFIG["data"]["init_args"], "validation": 0.0}}
    trainer = {**CONFIG["trainer"], "callbacks": []}
    with pytest.raises(SystemExit, match=r"'val_loss' is not logged in validation; logged are train_loss"):
        tune("--monitor", "val_loss", config={**CONFIG, "data": data, "trainer": trainer})


def test_another_search_is_not_mixed_in(folder):
    tune(trials=1)
    with pytest.raises(SystemExit, match="another config, space, monitor or seed"):
        tune(trials=1, space={"model.eta": [0.2]})
    with pytest.raises(SystemExit, match="another config, space, monitor or seed"):
        tune("--seed", "1", trials=1)
    Path("taken").write_text("")
    with pytest.raises(SystemExit, match="is a file"):
        tune(out="taken")


def test_without_optuna_the_extra_is_named(folder, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(SystemExit, match=r"pip install 'torchrank\[tune\]'"):
        tune()


def test_a_space_is_read_plainly(tmp_path):
    path = tmp_path / "space.yaml"
    path.write_text("a: {low: 1, high: 8, step: 2}\nb: {low: 1e-3, high: 2, log: true}\nc: [x, null, [1, 2]]\n")
    assert read_space(path) == {
        "a": Range(1, 8, step=2),
        "b": Range(0.001, 2, log=True),
        "c": Choices(("x", None, [1, 2])),
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 3", "give {low"),
        ("a: {low: 2, high: 1}", "must be below"),
        ("a: {low: 0, high: 1, log: true}", "low above 0"),
        ("a: {low: 0, hihg: 1}", "did you mean 'high'"),
        ("a: {low: x, high: 1}", "not a number"),
        ("a: {choices: []}", "at least one value"),
        ("a: {low: 0, high: 1, step: 0}", "step=0"),
        ("- 1", "no keys and values"),
        ("a: [", "line"),
    ],
)
def test_a_bad_space_names_key_and_fix(tmp_path, text, told):
    path = tmp_path / "space.yaml"
    path.write_text(text)
    with pytest.raises(TorchRankError, match=told):
        read_space(path)
    with pytest.raises(DataError, match="there is no"):
        read_space(tmp_path / "absent.yaml")
