"""Every public name exists, is documented, and says by example what it does."""

import inspect
from importlib import import_module

import pytest

PACKAGES = ["", ".losses", ".metrics", ".models", ".ops", ".data", ".training", ".theory", ".plots"]
NAMES = sorted(
    (f"torchrank{p}", name)
    for p in PACKAGES
    for name in import_module(f"torchrank{p}").__all__
    if not name.startswith("__")
)


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_public_name_is_documented(package, name):
    thing = getattr(import_module(package), name)
    text = inspect.getdoc(thing)
    assert text, f"{package}.{name} has no docstring"
    assert ">>>" in text, f"{package}.{name} shows no example"
    if inspect.isfunction(thing):
        missing = [p for p in inspect.signature(thing).parameters if f"{p}:" not in text and f"{p}, " not in text]
        assert not missing, f"{package}.{name} does not describe {missing}"


def test_all_is_sorted():
    for p in PACKAGES:
        names = [n for n in import_module(f"torchrank{p}").__all__ if not n.startswith("__")]
        assert names == sorted(names), p
