"""What a config may hold, checked where Lightning and jsonargparse do not; and errors of theirs in one line."""

import inspect
import math
from collections.abc import Callable
from pkgutil import resolve_name
from types import FrameType
from typing import Any, get_args, get_origin, get_type_hints

import pytorch_lightning as pl
from jsonargparse import Namespace
from lightning_fabric.utilities.exceptions import MisconfigurationException

from torchrank.errors import TorchRankError, check_number

#: the least that numbers of the trainer can be, where Lightning does not look
_LEAST = {
    "accumulate_grad_batches": 1,
    "check_val_every_n_epoch": 1,
    "gradient_clip_val": 0,
    "log_every_n_steps": 0,
    "min_epochs": 0,
    "min_steps": 0,
}
#: packages whose errors are about what a config gave them
_THEIRS = ("lightning_fabric", "pytorch_lightning", "torch", "torchmetrics")


def check_trainer(options: Any) -> None:
    """Refuse options of the trainer that Lightning would take and trip over, or take for nothing.

    Args:
        options: the parsed ones.

    Raises:
        TorchRankError: they are none, a null where none can stand, or a number out of its range.

    Example:
        >>> check_trainer(Namespace(accumulate_grad_batches=0))
        Traceback (most recent call last):
        torchrank.errors.TorchRankError: trainer.accumulate_grad_batches=0 must be a finite number of at least 1
    """
    if not isinstance(options, Namespace):
        raise TorchRankError(f"trainer is {options!r}; give its options by name, such as max_epochs")
    check_options("trainer", pl.Trainer, options)
    for name, least in _LEAST.items():
        value = options.get(name)
        if value is not None:
            check_number(f"trainer.{name}", value, least=least)


def check_options(where: str, owner: Any, options: Any) -> None:
    """Refuse what jsonargparse lets pass: a null where none can stand, NaN, and what is no function where one should.

    Args:
        where: the options' place in the config.
        owner: the class or function that takes them; None where the names are free.
        options: by name, with classes below as ``class_path`` and ``init_args``.

    Raises:
        TorchRankError: it names the first such option, and what to give.

    Example:
        >>> from torchrank.training import ListwiseModule
        >>> check_options("model", ListwiseModule, {"l2": None})
        Traceback (most recent call last):
        torchrank.errors.TorchRankError: model.l2 is null; give a float, or leave it out for 0.0
    """
    known = {} if owner is None else inspect.signature(owner).parameters
    hints = _hints(owner)
    for name, value in (options if isinstance(options, dict) else vars(options)).items():
        place = f"{where}.{name}".lstrip(".")
        default = known[name].default if name in known else None
        if value is None and name in hints and default is not None and not _takes_none(hints[name]):
            kind = getattr(hints[name], "__name__", str(hints[name]))
            otherwise = "" if default is inspect.Parameter.empty else f", or leave it out for {default!r}"
            raise TorchRankError(f"{place} is null; give a {kind}{otherwise}")
        if isinstance(value, float) and math.isnan(value) and owner is not None and is_theirs(owner.__module__):
            raise TorchRankError(f"{place} is nan; give a number")
        if isinstance(value, int | float | list) and _is_function(hints.get(name)):
            raise TorchRankError(f"{place}={value!r}; give a class_path and its init_args")
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Namespace | dict) and "class_path" in each:
                check_options(place, resolve_name(each["class_path"]), each.get("init_args") or {})
            elif isinstance(each, dict):
                check_options(place, None, each)


def _hints(owner: Any) -> dict[str, Any]:
    try:
        return get_type_hints(owner.__init__ if inspect.isclass(owner) else owner) if owner is not None else {}
    except (NameError, TypeError, AttributeError):  # names that only a type checker sees
        return {}


def _takes_none(hint: Any) -> bool:
    return hint in (Any, None, type(None)) or type(None) in get_args(hint)


def _is_function(hint: Any) -> bool:
    return Callable in (get_origin(hint), *map(get_origin, get_args(hint)))


def spell(made: type, options: dict[str, Any]) -> str:
    """Write a class with the options that differ from its defaults.

    Args:
        made: the class.
        options: by name, as they were given.

    Returns:
        the class's name and options, as Python writes a call.

    Example:
        >>> import torch
        >>> spell(torch.optim.SGD, {"lr": -1.0, "momentum": 0})
        'SGD(lr=-1.0)'
    """
    known = inspect.signature(made).parameters
    given = {name: value for name, value in options.items() if name not in known or known[name].default != value}
    return f"{made.__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"


def is_theirs(module: str) -> bool:
    """Whether a module is Lightning's or torch's."""
    return module.split(".")[0] in _THEIRS


def module_of(frame: FrameType) -> str:
    """Return the name of the module whose code a frame runs."""
    return str(frame.f_globals.get("__name__"))


def one_line(error: Exception) -> str:
    """Return an error's text, with its type where that tells what the text does not."""
    text = " ".join(str(error).split())
    return text if isinstance(error, ValueError | MisconfigurationException) else f"{type(error).__name__}: {text}"
