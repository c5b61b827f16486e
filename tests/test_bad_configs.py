"""Every option that the configs can reach, given wrong values and wrong names: one line that names it, or a meaning."""

import contextlib
import copy
import inspect
import io
import math
from pathlib import Path
from pkgutil import resolve_name

import pytest
import pytorch_lightning as pl
import yaml

from torchrank import cli
from torchrank.training.lightning_cli import TorchRankCLI

pytestmark = pytest.mark.filterwarnings("ignore")  # of Lightning and torch, on what they take all the same
CONFIGS = sorted((Path(__file__).resolve().parent.parent / "configs").glob("*.yaml"))
SMALL = {
    "synthetic_queries": {"num_queries": 10, "documents": [3, 5]},
    "synthetic_sequences": {"num_sequences": 10},
    "synthetic_interactions": {"num_users": 30, "num_items": 40, "num_interactions": 500, "steps_per_epoch": 2},
    "synthetic_objects": {"num_objects": 60, "batch_size": 16},
}
QUICK = {
    "accelerator": "cpu",
    "max_epochs": 1,
    "max_steps": 4,
    "limit_train_batches": 2,
    "limit_val_batches": 1,
    "log_every_n_steps": 1,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}
WRONG = ["nonsense", -1, math.nan, [], None]
#: values that mean something, or that Lightning and torch take and go on from
MEANT = {
    "nonsense": {  # names and places
        *("save_dir", "name", "version", "prefix", "sub_dir", "filename", "dirpath", "default_root_dir"),
        "model_registry",
    },
    -1: {
        *("patience", "min_delta", "stopping_threshold", "divergence_threshold"),  # of EarlyStopping
        "exponent",
        "version",
        "save_top_k",
        "max_epochs",
        "max_steps",
        "flush_logs_every_n_steps",
        "last_epoch",
        "T_max",
        "eta_min",
        "num_sanity_val_steps",
    },
    "[]": {"logger", "callbacks", "plugins"},
}


def small(path):
    config = yaml.safe_load(path.read_text())
    config["trainer"] |= QUICK
    config["data"].setdefault("init_args", {}).update(SMALL[config["data"]["class_path"].rpartition(".")[2]])
    return config


def options(node, keys=()):
    """The owner, name and place of every option of the classes in a config, given there or not."""
    if isinstance(node, list):
        for place, value in enumerate(node):
            yield from options(value, (*keys, place))
    elif isinstance(node, dict) and "class_path" in node:
        given, owner = node.get("init_args", {}), node["class_path"].rpartition(".")[2]
        taken = inspect.signature(resolve_name(node["class_path"])).parameters.values()
        known = [p.name for p in taken if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        for name in dict.fromkeys([*given, *known]):
            yield owner, name, (*keys, "init_args", name)
        yield from options(given, (*keys, "init_args"))
    elif isinstance(node, dict):
        for name, value in node.items():
            yield from options(value, (*keys, name))


def changed(config, keys, value):
    config = copy.deepcopy(config)
    node = config
    for key in keys[:-1]:
        node = node.setdefault(key, {}) if isinstance(node, dict) else node[key]
    node[keys[-1]] = value
    return config


def fields():
    """A config, and the place of each option in it, every option of every class once."""
    seen = set()
    for path in CONFIGS:
        config = small(path)
        of_trainer = [("Trainer", name, ("trainer", name)) for name in inspect.signature(pl.Trainer).parameters]
        of_root = [("", name, (name,)) for name in ("seed_everything", "trainer", "model", "data", "ckpt_path")]
        places = [place for place in (*options(config), *of_trainer, *of_root) if place[:2] not in seen]
        seen |= {place[:2] for place in places}
        yield path.stem, config, places


@pytest.fixture
def said(tmp_path, monkeypatch):
    """What fit says of a config: the lines of its error, or nothing where it runs. The parser is made once."""
    monkeypatch.chdir(tmp_path)
    make, made = TorchRankCLI.setup_parser, {}

    def make_once(self, *given):
        if not made:
            make(self, *given)
            names = ("parser", "_subcommand_method_arguments", "_subcommand_parsers")
            made.update({name: self.__dict__[name] for name in names})
        self.__dict__.update(made)

    monkeypatch.setattr(TorchRankCLI, "setup_parser", make_once)

    def run(config):
        Path("config.yaml").write_text(yaml.safe_dump(config))
        err = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
            try:
                cli.main(["fit", "--config", "config.yaml"])
            except SystemExit as ended:
                return err.getvalue() if ended.code == 2 else str(ended.code)
        return ""

    return run


def fits(option, value, message):
    """Whether what came back fits: one line that names the option, or nothing where the value means something."""
    lines = message.strip().splitlines()
    told = bool(lines) and len(lines) <= 2 and option.removesuffix("s") in lines[0]
    if value is None:
        return len(lines) <= 2
    meant = MEANT.get(value if isinstance(value, str | int) else str(value), ())
    return not lines if option in meant else told


FIELDS = {name: (config, places) for name, config, places in fields()}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["curve", "gru4rec", "perceptron"])  # one a school; each takes a minute
def test_a_wrong_value_is_told_by_its_option_or_means_something(name, said):
    config, places = FIELDS[name]
    assert said(config) == ""
    wrong = [
        f"{owner}.{option} = {value!r}: {message}"
        for owner, option, keys in places
        for value in WRONG
        if not fits(option, value, message := said(changed(config, keys, value)))
    ]
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("name", FIELDS)
def test_a_misspelt_name_or_class_is_told(name, said):
    config, places = FIELDS[name]
    for _, option, keys in places:
        node = config
        for key in keys[:-1]:
            node = node.get(key, {}) if isinstance(node, dict) else node[key]
        if not isinstance(node, dict) or option not in node:
            continue
        misspelt = changed(config, (*keys[:-1], option + option[-1]), node[option])
        parent = misspelt
        for key in keys[:-1]:
            parent = parent[key]
        del parent[option]
        lines = said(misspelt).strip().splitlines()
        assert f"{option + option[-1]}" in lines[0], (keys, lines)
        place = f"trainer.{option}" if keys[0] == "trainer" and len(keys) == 2 else option
        assert f"did you mean {place}" in lines[0], (keys, lines)
        assert len(lines) <= 2, lines
