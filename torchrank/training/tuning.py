"""One trial of a search: train a config with some of its values replaced, and read what it logs."""

import copy
import math
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytorch_lightning as pl
import yaml
from lightning_fabric.utilities.exceptions import MisconfigurationException

from torchrank.errors import DataError, TorchRankError
from torchrank.training.lightning_cli import TorchRankCLI, check_yaml, settle_process
from torchrank.training.quiet_trainer import silence

#: callbacks that need files or loggers, which trials have none of
_LEFT_OUT = ("ModelCheckpoint", "LearningRateMonitor", "DeviceStatsMonitor", "ProgressBar", "RichProgressBar")


class TrialFailed(Exception):  # noqa: N818 - a failed trial is an outcome
    """Training went wrong with these values; another trial may not."""


def read_config(path: str | Path) -> dict[str, Any]:
    """Read a config of ``torchrank fit``.

    Args:
        path: a YAML file.

    Returns:
        its content.

    Raises:
        DataError: it is not there, not YAML, or not a mapping.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"there is no {path}")
    check_yaml(["--config", str(path)])
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise DataError(f"{path} holds no keys and values; give a config as torchrank fit takes it")
    return content


def known_keys(config: Mapping[str, Any]) -> dict[str, Any]:
    """Parse a config and list every key it can have, defaults included.

    Args:
        config: the content of a config.

    Returns:
        key, such as ``"model.init_args.eta"``, to value. The parser ends the process for what it cannot parse.
    """
    parsed = _run(_ParseOnly, config).config["fit"].as_dict()
    keys: dict[str, Any] = {}

    def walk(prefix: str, value: Any) -> None:
        if prefix:
            keys[prefix] = value
        if isinstance(value, dict):
            for name, inner in value.items():
                walk(f"{prefix}.{name}" if prefix else str(name), inner)

    walk("", parsed)
    return keys


def find_key(given: str, known: Mapping[str, Any]) -> str:
    """Find a key as the parser spells it: ``init_args`` may be left out, as on the command line.

    Args:
        given: such as ``"model.eta"``.
        known: of :func:`known_keys`.

    Returns:
        such as ``"model.init_args.eta"``.

    Raises:
        TorchRankError: there is no such key; the message names the nearest.

    Example:
        >>> find_key("model.eta", {"model": {}, "model.init_args.eta": 0.1})
        'model.init_args.eta'
    """
    short = {key.replace(".init_args", ""): key for key in known}
    if given in known:
        return given
    if given in short:
        return short[given]
    near = get_close_matches(given, [*known, *short], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise TorchRankError(f"the config has no key {given!r}{hint}")


def with_values(config: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config with some values replaced.

    Args:
        config: the content of a config.
        values: key with dots to value.

    Returns:
        a new config; what is not in it yet is added.

    Example:
        >>> with_values({"model": "a.B", "trainer": {"max_epochs": 3}}, {"model.init_args.eta": 0.1})
        {'model': {'class_path': 'a.B', 'init_args': {'eta': 0.1}}, 'trainer': {'max_epochs': 3}}
    """
    changed = copy.deepcopy(dict(config))
    for key, value in values.items():
        *path, last = key.split(".")
        place = changed
        for name in path:
            inner = place.get(name)
            if isinstance(inner, str):  # a class path alone
                inner = {"class_path": inner}
            place[name] = inner = inner if isinstance(inner, dict) else {}
            place = inner
        place[last] = copy.deepcopy(value)
    return changed


def monitored(config: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return what a config's own callbacks monitor and whether the least or the most is best, or None.

    Args:
        config: the content of a config.

    Returns:
        such as ``("val_loss", "min")``: of early stopping, else of the checkpoints.

    Example:
        >>> stopping = {"class_path": "EarlyStopping", "init_args": {"monitor": "val_loss"}}
        >>> monitored({"trainer": {"callbacks": [stopping]}})
        ('val_loss', 'min')
    """
    found = {}
    for callback in _callbacks(config):
        options = callback.get("init_args") or {}
        if options.get("monitor"):
            found[_name(callback)] = (str(options["monitor"]), str(options.get("mode", "min")))
    for name in ("EarlyStopping", "ModelCheckpoint", *found):
        if name in found:
            return found[name]
    return None


def run_trial(config: Mapping[str, Any], monitor: str, mode: str) -> float:
    """Train a config without files, logs or output.

    Args:
        config: the content of a config.
        monitor: what is logged that counts.
        mode: ``"min"`` or ``"max"``.

    Returns:
        the best value that was logged at the end of a validation.

    Raises:
        TorchRankError: nothing of the monitor's name is logged, or training cannot begin.
        TrialFailed: training ended with an error, or the value was never a finite number.
    """
    recorder = _Recorder(monitor)
    try:
        _run(_TrialCLI, _bare(config), recorder)
    except (ValueError, RuntimeError, ArithmeticError, MisconfigurationException, OSError) as error:
        if not recorder.begun:
            raise error if isinstance(error, TorchRankError) else TorchRankError(str(error)) from error
        raise TrialFailed(str(error).splitlines()[0] if str(error) else type(error).__name__) from error
    if monitor not in recorder.logged:
        names = sorted(recorder.logged)
        near = get_close_matches(monitor, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        told = ", ".join(names) or "none: the data has no validation part"
        raise TorchRankError(f"monitor={monitor!r} is not logged in validation; logged are {told}{hint}")
    finite = [value for value in recorder.values if math.isfinite(value)]
    if not finite:
        raise TrialFailed(f"{monitor} was never a finite number")
    return min(finite) if mode == "min" else max(finite)


class _Recorder(pl.Callback):
    """What validation logs."""

    def __init__(self, monitor: str) -> None:
        self.monitor = monitor
        self.begun = False
        self.logged: set[str] = set()
        self.values: list[float] = []

    def on_train_batch_start(self, *_: Any) -> None:
        self.begun = True

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.logged |= set(trainer.callback_metrics)
        if self.monitor in trainer.callback_metrics:
            self.values.append(float(trainer.callback_metrics[self.monitor]))


class _TrialCLI(TorchRankCLI):
    """``torchrank fit`` with a recorder, saying nothing in the end."""

    def __init__(self, words: list[str], recorder: _Recorder) -> None:
        self.recorder = recorder
        super().__init__(words)

    def instantiate_trainer(self, **kwargs: Any) -> pl.Trainer:
        trainer = super().instantiate_trainer(**kwargs)
        trainer.callbacks.append(self.recorder)  # type: ignore[attr-defined] # Lightning's own list
        return trainer

    def after_fit(self) -> None:
        return


class _ParseOnly(TorchRankCLI):
    """``torchrank fit`` up to the parsed config."""

    def instantiate_classes(self) -> None:
        return

    def _run_subcommand(self, subcommand: str) -> None:
        return


def _run(cli: Any, config: Mapping[str, Any], *arguments: Any) -> Any:
    settle_process()
    with TemporaryDirectory(prefix="torchrank-") as folder, silence():
        path = Path(folder) / "config.yaml"
        path.write_text(yaml.safe_dump(dict(config), sort_keys=False), encoding="utf-8")
        return cli(["fit", "--config", str(path)], *arguments)


def _bare(config: Mapping[str, Any]) -> dict[str, Any]:
    """Take out of a config whatever writes or prints."""
    quiet: dict[str, Any] = {
        "trainer.logger": False,
        "trainer.enable_checkpointing": False,
        "trainer.enable_progress_bar": False,
        "trainer.enable_model_summary": False,
        "trainer.num_sanity_val_steps": 0,
    }
    if _callbacks(config):
        quiet["trainer.callbacks"] = [each for each in _callbacks(config) if _name(each) not in _LEFT_OUT]
    return with_values(config, quiet)


def _callbacks(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    trainer = config.get("trainer") or {}
    given = (trainer.get("callbacks") if isinstance(trainer, dict) else None) or []
    several = given if isinstance(given, list) else [given]
    return [each if isinstance(each, dict) else {"class_path": str(each)} for each in several]


def _name(callback: Mapping[str, Any]) -> str:
    return str(callback.get("class_path", "")).rpartition(".")[2]
