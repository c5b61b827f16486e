"""The errors torchrank raises: one small hierarchy, every member also a ``ValueError``.

A message says what was given, where, and what to do about it. It is raised once, at the boundary
where the user's value enters.
"""

import math
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from numbers import Real
from typing import Any

#: how torch says that it cannot have so much memory
_NO_ROOM = ("allocate memory", "out of memory", "overflow")
_OF_COMMAND: ContextVar[Collection[str]] = ContextVar("options of the command that runs", default=())


class TorchRankError(ValueError):
    """Base of all errors torchrank raises on purpose; raised itself for an option with a bad value."""


class ShapeError(TorchRankError):
    """Tensors whose shapes do not fit each other."""


class DataError(TorchRankError):
    """Data that cannot be read or that no ranker can be trained on."""


class ConvergenceError(TorchRankError):
    """An optimisation that did not reach what was asked of it."""


@contextmanager
def options_of_command(names: Collection[str]) -> Iterator[None]:
    """Have :func:`as_option` spell these options the way of the command line.

    Args:
        names: the options of the command that runs, with underscores.
    """
    token = _OF_COMMAND.set(names)
    try:
        yield
    finally:
        _OF_COMMAND.reset(token)


def as_option(name: str, value: object = None) -> str:
    """Spell an option that a message recommends, as whoever reads the message would write it.

    Args:
        name: the option's, the same in Python and on the command line.
        value: what to give; None where that is the reader's to know.

    Returns:
        ``--name value`` where a command with such an option runs, otherwise ``name=value`` as in Python.

    Example:
        >>> as_option("missing", "observed"), as_option("positive_at")
        ("missing='observed'", 'positive_at=…')
        >>> with options_of_command(["missing", "positive_at"]):
        ...     as_option("missing", "observed"), as_option("positive_at"), as_option("eta", 0.1)
        ('--missing observed', '--positive-at …', 'eta=0.1')
    """
    if name in _OF_COMMAND.get():
        flag = f"--{name.replace('_', '-')}"
        return flag if value is True else f"{flag} {'…' if value is None else value}"
    return f"{name}={'…' if value is None else repr(value)}"


def check_option(name: str, value: object, allowed: Iterable[str]) -> None:
    """Refuse ``value`` unless it is one of ``allowed``; the message names the nearest.

    Args:
        name: the option's name as the caller wrote it.
        value: what the caller gave.
        allowed: the values that exist.

    Raises:
        TorchRankError: ``value`` is not allowed.

    Example:
        >>> check_option("measure", "ncdg", ["ndcg", "map"])
        Traceback (most recent call last):
        torchrank.errors.TorchRankError: measure='ncdg' is not one of 'ndcg', 'map'; did you mean 'ndcg'?
    """
    names = list(allowed)
    if value in names:
        return
    near = get_close_matches(str(value), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise TorchRankError(f"{name}={value!r} is not one of {', '.join(map(repr, names))}{hint}")


def check_number(name: str, value: float, *, least: float | None = None, above: float | None = None) -> None:
    """Refuse ``value`` unless it is a finite number within bounds.

    Args:
        name: the option's name as the caller wrote it.
        value: what the caller gave.
        least: the smallest value allowed.
        above: a value below all those allowed.

    Raises:
        TorchRankError: ``value`` is no number, not finite, or out of bounds.

    Example:
        >>> check_number("margin", -1, least=0)
        Traceback (most recent call last):
        torchrank.errors.TorchRankError: margin=-1 must be a finite number of at least 0
    """
    given: Any = value
    number = not isinstance(given, bool) and isinstance(given, Real) and -math.inf < value < math.inf
    if number and (least is None or value >= least) and (above is None or value > above):
        return
    bound = "" if least is None else f" of at least {least:g}"
    bound += "" if above is None else f" above {above:g}"
    raise TorchRankError(f"{name}={value!r} must be a finite number{bound}")


def check_share(name: str, value: float, *, zero: bool = False) -> None:
    """Refuse ``value`` unless it is a share of something: a number between 0 and 1.

    Args:
        name: the option's name as the caller wrote it.
        value: what the caller gave.
        zero: whether it may be 0.

    Raises:
        TorchRankError: it is not.

    Example:
        >>> check_share("train", 80)
        Traceback (most recent call last):
        torchrank.errors.TorchRankError: train=80; give a share between 0 and 1
    """
    given: Any = value
    if not (isinstance(given, Real) and (0 < value < 1 or (zero and value == 0))):
        raise TorchRankError(f"{name}={value!r}; give a share {'from 0 to below' if zero else 'between 0 and'} 1")


def check_count(name: str, value: object, *, least: int = 1) -> None:
    """Refuse ``value`` unless it is a whole number, of any integer type, of at least ``least``.

    Args:
        name: the option's name as the caller wrote it.
        value: what the caller gave.
        least: the smallest value allowed.

    Raises:
        TorchRankError: it is not.

    Example:
        >>> check_count("dim", 1.5)
        Traceback (most recent call last):
        torchrank.errors.TorchRankError: dim=1.5 is a float; give an int of at least 1
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TorchRankError(f"{name}={_short(value)} is a {type(value).__name__}; give an int of at least {least}")
    if value.__index__() < least:
        raise TorchRankError(f"{name}={value!r} must be at least {least}")


def check_seed(seed: object) -> None:
    """Refuse a seed that numpy or torch would refuse later.

    Args:
        seed: what the caller gave.

    Raises:
        TorchRankError: it is no whole number from 0 to 2⁶³ − 1.

    Example:
        >>> check_seed(-1)
        Traceback (most recent call last):
        torchrank.errors.TorchRankError: seed=-1 must be at least 0
    """
    check_count("seed", seed, least=0)
    if int(seed) >= 2**63:  # type: ignore[call-overload] # a whole number, as was checked
        raise TorchRankError(f"seed={seed!r} must be below 2**63")


def check_type(
    name: str, value: object, wanted: type | tuple[type, ...], fix: str, *, error: type[TorchRankError] = TorchRankError
) -> None:
    """Refuse ``value`` unless it is of a type: one clear error in place of whatever it would cause later.

    Args:
        name: the argument's name as the caller wrote it.
        value: what the caller gave.
        wanted: one class or several.
        fix: what to give instead, after "give".
        error: what to raise.

    Raises:
        TorchRankError: it is not.

    Example:
        >>> check_type("log", None, str, "an InteractionLog")
        Traceback (most recent call last):
        torchrank.errors.TorchRankError: log is a NoneType, None; give an InteractionLog
    """
    if not isinstance(value, wanted):
        raise error(f"{name} is a {type(value).__name__}, {_short(value)}; give {fix}")


@contextmanager
def room_for(**sizes: int) -> Iterator[None]:
    """Turn what torch says of tensors larger than the memory into an error that names the sizes asked for.

    Args:
        sizes: by the names the caller knows them by.

    Raises:
        TorchRankError: there is no room.

    Example:
        >>> import torch
        >>> with room_for(rows=2**62):
        ...     torch.zeros(2**62)
        Traceback (most recent call last):
        torchrank.errors.TorchRankError: rows=4611686018427387904: there is no memory for that; ask for less
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, MemoryError) or any(word in str(error).lower() for word in _NO_ROOM):
            asked = ", ".join(f"{name}={size}" for name, size in sizes.items())
            raise TorchRankError(f"{asked}: there is no memory for that; ask for less") from error
        raise


def _short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:59]}…"
