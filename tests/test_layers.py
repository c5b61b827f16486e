"""Imports point down only, and a light import stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "torchrank"
LAYER = {
    "errors": 0,
    "types": 0,
    "_lazy": 0,
    "parser": 1,
    "ops": 1,
    "losses": 2,
    "metrics": 2,
    "models": 2,
    "data": 2,
    "theory": 2,
}
LAYER |= {"parser": 1, "plots": 2, "training": 3, "commands": 4, "cli": 5, "__main__": 6, "__init__": 7}
FILES = sorted(PACKAGE.rglob("*.py"))


def part(path: Path) -> str:
    relative = path.relative_to(PACKAGE).parts
    return relative[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Names of modules that a file imports anywhere, functions included."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down(path):
    here = part(path)
    for name in imported(path):
        if name.split(".")[0] != "torchrank" or name == "torchrank":
            continue
        there = name.split(".")[1]
        if there not in LAYER:
            continue
        assert there == here or LAYER[there] < LAYER[here], f"{path.name} ({here}) imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_only_training_and_the_command_line_import_lightning(path):
    uses = any(name.split(".")[0] in {"pytorch_lightning", "lightning"} for name in imported(path))
    assert not uses or part(path) in {"training", "cli"}


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("torchrank", ["torch"]),
        ("torchrank.losses", ["pytorch_lightning", "polars", "matplotlib", "torchmetrics", "numba", "sklearn"]),
        ("torchrank.metrics", ["pytorch_lightning", "polars", "matplotlib", "torchmetrics"]),
        ("torchrank.data.blocks", ["torch", "pytorch_lightning", "polars", "matplotlib", "sklearn"]),
        ("torchrank.models", ["pytorch_lightning", "polars", "matplotlib"]),
        ("torchrank.training", ["pytorch_lightning", "matplotlib"]),
        ("torchrank.cli", ["torch", "matplotlib"]),
    ],
)
def test_a_light_import_stays_light(module, heavy):
    code = f"import sys, {module}; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
