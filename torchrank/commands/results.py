"""What the commands that measure share: where results go, how they are written, and how long there is to wait."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from torchrank.data.files import whole_file
from torchrank.errors import DataError, TorchRankError


def target_folder(path: str, name: str = "out") -> Path:
    """Refuse, before any work is done, a folder to write to that is a file.

    Args:
        path: the folder; it need not be there.
        name: the option's name.

    Returns:
        the folder.

    Raises:
        TorchRankError: it is a file.
    """
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise TorchRankError(f"{name}={path!r} is a file; give a folder")
    return folder


def find_file(folder: str, name: str, under: str, what: str) -> Path:
    """Find a data set's file in a folder, or in the folder of its own under that.

    Args:
        folder: the option ``data``.
        name: the file's.
        under: the data set's folder.
        what: it is, for the message.

    Returns:
        the file.

    Raises:
        DataError: it is in neither.
    """
    tried = [Path(folder) / name, Path(folder) / under / name]
    for path in tried:
        if path.is_file():
            return path
    raise DataError(f"there is no {tried[0]} and no {tried[1]}; give the folder of {what} as --data")


def write_text(path: Path, text: str) -> None:
    """Write a text whole, or not at all."""
    with whole_file(path) as place:
        place.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    """Write plain values whole, or not at all."""
    write_text(path, json.dumps(content, indent=2) + "\n")


def write_results(folder: Path, results: Any, text: str, *, name: str = "results") -> None:
    """Write ``results.json`` for programs and ``results.md`` for people."""
    write_json(folder / f"{name}.json", results)
    write_text(folder / f"{name}.md", text)


def markdown_table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> list[str]:
    """Lay out the lines of a Markdown table, all columns but the first ``left`` to the right.

    Example:
        >>> markdown_table(["", "MAP"], [["SLAM", "0.48"]])
        ['|  | MAP |', '| --- | ---: |', '| SLAM | 0.48 |']
    """
    rule = [*["---"] * left, *["---:"] * (len(headers) - left)]
    return ["| " + " | ".join(cells) + " |" for cells in (headers, rule, *rows)]


def progress_bar(*, remaining: bool = False) -> Progress:
    """Make a bar on the error stream with each task's description, how many are done, and the time it has taken."""
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    return Progress(*columns, *([TimeRemainingColumn()] if remaining else []), console=Console(stderr=True))
