"""Checkpoints hold plain data, rebuild without data or command line, and run nothing that is not trusted."""

import ast
import os
import pickle
import subprocess
import sys
from functools import partial

import pytest
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from torch import nn

import torchrank
from tests.training import parts
from tests.training.test_listwise import queries
from tests.training.trainers import quiet
from torchrank.errors import DataError, TorchRankError
from torchrank.losses import SLAMLoss
from torchrank.metrics import NDCG, Recall
from torchrank.models import AttentionScorer, LinearScorer, MLPScorer
from torchrank.training import ListwiseModule, PerceptronModule
from torchrank.training.checkpoint import SPEC_KEY
from torchrank.training.spec import build, describe


def trained(model, folder):
    save = ModelCheckpoint(folder, filename="model")
    quiet(enable_checkpointing=True, callbacks=[save], max_steps=3).fit(model, queries())
    return folder / "model.ckpt"


def weights_of(folder, spec, state=None):
    path = folder / "made.ckpt"
    torch.save({SPEC_KEY: spec, "state_dict": state or {}}, path)
    return path


MODELS = {
    "linear": lambda: ListwiseModule(
        LinearScorer(5, bias=True),
        SLAMLoss(measure="map", margin=2.0),
        metrics={"ndcg": NDCG(k=3, gain="linear"), "recall": Recall(k=2)},
        optimizer=partial(torch.optim.SGD, lr=0.1, momentum=0.9),
        lr_scheduler=partial(torch.optim.lr_scheduler.StepLR, step_size=2),
        l2=0.5,
        max_norm=3.0,
    ),
    "mlp": lambda: ListwiseModule(MLPScorer(5, hidden=(4, 3)), SLAMLoss()),
    "attention": lambda: ListwiseModule(AttentionScorer(5), SLAMLoss()),
    "perceptron": lambda: PerceptronModule(5, measure="map", update="pair", eta=0.5, comparator=[1.0, 0, 0, 0, 2]),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_checkpoint_rebuilds_its_module(name, tmp_path):
    model = MODELS[name]()
    path = trained(model, tmp_path)
    saved = torch.load(path, weights_only=True)
    assert "hyper_parameters" not in saved
    back = torchrank.load(path)
    assert type(back) is type(model)
    assert not back.training
    assert describe(back) == describe(model)
    x = torch.randn(2, 4, 5)
    torch.testing.assert_close(back(x), model.eval()(x))


def test_the_users_own_classes_load_when_trusted(tmp_path):
    model = ListwiseModule(parts.OwnScorer(5, scale=3.0), parts.OwnLoss(), metrics={"lists": parts.CountLists()})
    path = trained(model, tmp_path)
    with pytest.raises(TorchRankError, match=r"trust=\['tests'\]"):
        torchrank.load(path)
    back = torchrank.load(path, trust=["tests"])
    torch.testing.assert_close(back(torch.ones(1, 2, 5)), model(torch.ones(1, 2, 5)))
    assert back.scorer.scale == 3.0


def test_torchs_own_layers_and_containers_are_described(tmp_path):
    net = nn.Sequential(nn.Linear(5, 4, bias=False), nn.LayerNorm(4), nn.ReLU(), nn.Linear(4, 1), nn.Flatten(-2))
    back = build(describe(net))
    back.load_state_dict(net.state_dict())
    torch.testing.assert_close(back(torch.ones(1, 2, 5)), net(torch.ones(1, 2, 5)))
    both = nn.ModuleDict({"a": nn.ModuleList([nn.Dropout(0.25)])})
    assert build(describe(both))["a"][0].p == 0.25


class Touch:
    """Unpickling it writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def test_a_pickle_that_runs_commands_is_refused_and_runs_nothing(tmp_path):
    path, trap = tmp_path / "hostile.ckpt", tmp_path / "touched"
    torch.save({SPEC_KEY: {}, "state_dict": {}, "x": Touch(trap)}, path)
    with pytest.raises(DataError, match="not a checkpoint that loads safely"):
        torchrank.load(path)
    path.write_bytes(pickle.dumps(Touch(trap)))
    with pytest.raises(DataError, match="not a checkpoint that loads safely"):
        torchrank.load(path)
    assert not trap.exists()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("os.system", "outside torchrank and torch.nn"),
        ("subprocess.Popen", "outside torchrank and torch.nn"),
        ("torchrankings.Evil", "outside torchrank and torch.nn"),
        ("torch.hub.load", "outside torchrank and torch.nn"),
        ("torchrank.cli.sys.exit", "there is no"),  # what a trusted module imports is not trusted with it
        ("torchrank.training.checkpoint.torch.load", "there is no"),
        ("torchrank.training.checkpoint.load", "not an nn.Module"),
        ("torchrank.models.NoSuchScorer", "there is no"),
        ("torchrank", "there is no"),
        (["os"], "outside torchrank"),
    ],
)
def test_a_class_that_is_no_module_of_a_trusted_package_is_refused(path, said, tmp_path):
    with pytest.raises(TorchRankError, match=said):
        torchrank.load(weights_of(tmp_path, {"class_path": path, "init_args": {"command": "true"}}))
    with pytest.raises(TorchRankError, match=said):
        build({"class_path": path, "init_args": {}})


def test_arguments_and_weights_that_do_not_fit_are_refused(tmp_path):
    spec = describe(LinearScorer(3))
    with pytest.raises(TorchRankError, match="does not take the arguments"):
        torchrank.load(weights_of(tmp_path, {**spec, "init_args": {"features": 3}}))
    with pytest.raises(DataError, match="other shapes"):
        torchrank.load(weights_of(tmp_path, spec, {"weight": torch.zeros(4)}))
    with pytest.raises(DataError, match="describes no module"):
        torchrank.load(weights_of(tmp_path, [1, 2]))


def test_files_that_are_no_torchrank_checkpoint_are_refused(tmp_path):
    with pytest.raises(DataError, match="there is no checkpoint"):
        torchrank.load(tmp_path / "none.ckpt")
    torch.save({"state_dict": {}}, tmp_path / "other.ckpt")
    with pytest.raises(DataError, match="not written by a torchrank module"):
        torchrank.load(tmp_path / "other.ckpt")
    (tmp_path / "text.ckpt").write_text("hello")
    with pytest.raises(DataError, match="not a checkpoint"):
        torchrank.load(tmp_path / "text.ckpt")


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (parts.Forgetful(3), "self.size = size"),
        (lambda p: p, "local; define it"),
        (partial(torch.optim.SGD, [], 0.1), "by name"),
    ],
    ids=["argument", "lambda", "positional"],
)
def test_what_cannot_be_described_is_refused_with_advice(thing, said):
    with pytest.raises(TorchRankError, match=said):
        describe(thing)


def test_a_checkpoint_loads_in_an_empty_folder_without_data_or_command_line(tmp_path):
    model = MODELS["mlp"]()
    (tmp_path / "trained").mkdir()
    path = trained(model, tmp_path / "trained")
    empty = tmp_path / "empty"
    empty.mkdir()
    code = (
        f"import sys, torch, torchrank; module = torchrank.load({str(path)!r});"
        "print([m for m in ('torchrank.cli', 'torchrank.commands', 'jsonargparse') if m in sys.modules]);"
        "print(module(torch.arange(30.0).view(2, 3, 5)).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=empty, timeout=120)
    assert done.returncode == 0, done.stderr
    loaded, scores = done.stdout.splitlines()[-2:]
    assert loaded == "[]"
    wanted = model.eval()(torch.arange(30.0).view(2, 3, 5))
    torch.testing.assert_close(torch.tensor(ast.literal_eval(scores)), wanted)
    assert list(empty.iterdir()) == []
