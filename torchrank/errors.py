"""The errors torchrank raises: one small hierarchy, every member also a ``ValueError``.

A message says what was given, where, and what to do about it. It is raised once, at the boundary
where the user's value enters.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class TorchRankError(ValueError):
    """Base of all errors torchrank raises on purpose; raised itself for an option with a bad value."""


class ShapeError(TorchRankError):
    """Tensors whose shapes do not fit each other."""


class DataError(TorchRankError):
    """Data that cannot be read or that no ranker can be trained on."""


class ConvergenceError(TorchRankError):
    """An optimisation that did not reach what was asked of it."""


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
