"""Lazy names (PEP 562): a package pays for a module when one of its names is first used."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make a package's ``__getattr__`` and ``__dir__`` from a table of public name to module.

    Args:
        package: the package's ``__name__``.
        names: public name to the module that defines it.

    Returns:
        the two functions.
    """

    def getattr_(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(names[name]), name)

    def dir_() -> list[str]:
        return sorted(names)

    return getattr_, dir_
