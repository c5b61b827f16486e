"""Prepare a log larger than memory for training: partitions of users on disk, made in steps that survive a stop."""

import json
import math
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from torchrank.data.files import whole_file
from torchrank.data.log_sources import Source, open_sources
from torchrank.data.parallel import run_here, run_on_ray
from torchrank.data.prepare_steps import (
    ITEMS,
    UNFINISHED,
    Plan,
    deal_piece,
    entry,
    is_dealt,
    number_items,
    read_dealt,
    read_sorted,
    sort_partition,
)
from torchrank.data.prepared import FORMAT, MANIFEST, PreparedLog
from torchrank.errors import DataError, TorchRankError, as_option, check_number, check_option

#: what Python and the libraries take before any row is read
_BASE = 320 << 20
#: the least bound that leaves room for rows
_LEAST = 512 << 20
#: partitions of a log that would fit one, so that there is something to shuffle and to share among processes
_FEWEST = 8
#: the most rows dealt at once
_BATCH_ROWS = 1_000_000
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}

Progress = Callable[[str, int, int], None]


def prepare_log(
    logs: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    positive_at: float,
    user: str = "user",
    item: str = "item",
    feedback: str = "feedback",
    time: str = "time",
    duplicates: str = "keep",
    memory: int | str = "2GiB",
    partitions: int | None = None,
    ray: bool = False,
    progress: Progress | None = None,
) -> PreparedLog:
    """Sort a log of any size by user and time on disk, and write what training streams.

    What comes out is what :class:`~torchrank.data.InteractionLog` makes of the same files, up to the numbering of
    users. A run that was stopped goes on where it stood when it is called again with the same log and options, at a
    piece of four million rows of Parquet or a whole CSV file; nothing is read as prepared before all of it is. Called
    once more, it returns what is there.

    Args:
        logs: Parquet files or folders, hive partitions included, or CSV files with a header line (``.tsv`` with tabs;
            gzipped or not), which follow each other in this order.
        out: the folder to write to; needs about the size of the log twice over while it works.
        positive_at: an item is preferred where its feedback is at least this.
        user: column of user ids, of any type.
        item: column of item ids, likewise.
        feedback: column of numbers.
        time: column of numbers, dates or moments.
        duplicates: ``"keep"``, ``"last"`` or ``"error"`` for a user's further rows of one item.
        memory: bound on the process, as bytes or as in ``"2GiB"``; at least ``"512MiB"``. The ids of all items are held
            besides.
        partitions: how many to deal users to; by default as many as the bound asks for, and at least 8.
        ray: do the steps on Ray, for which ``torchrank[ray]`` is needed: on the cluster Ray finds, else on one of its
            own on this machine. ``memory`` then bounds each worker; the log and ``out`` must be where all read them.
        progress: called with a step's name, and how many of its parts are done and there.

    Returns:
        the prepared log.

    Raises:
        DataError: a file does not read or cannot be a log, ``out`` cannot be written or holds another prepared log, or
            one partition does not fit the bound.
        TorchRankError: an option has a bad value, or Ray is missing.

    Example:
        >>> import tempfile
        >>> rows = {"user": [7, 7, 9], "item": ["p", "q", "p"], "feedback": [1, 0, 1], "time": [5, 2, 3]}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pl.DataFrame(rows).write_csv(f"{folder}/log.csv")
        ...     prepared = prepare_log(f"{folder}/log.csv", f"{folder}/prepared", positive_at=1, partitions=1)
        ...     log = prepared.partition(0)
        >>> log.user_ids[log.users].tolist(), log.item_ids[log.items].tolist()
        ([7, 7, 9], ['q', 'p', 'p'])
    """
    check_option("duplicates", duplicates, ["keep", "last", "error"])
    check_number("positive_at", positive_at)
    bound = _bytes(memory)
    if partitions is not None and not 1 <= partitions <= 2**16:
        raise TorchRankError(f"partitions={partitions!r}; give a number from 1 to 65536")
    paths = [Path(path).resolve() for path in ([logs] if isinstance(logs, str | Path) else logs)]
    columns = {"user": user, "item": item, "feedback": feedback, "time": time}
    source = open_sources(paths, columns)
    options = {"columns": columns, "positive_at": float(positive_at), "duplicates": duplicates}
    folder = Path(out).resolve()
    try:
        done = _finished(folder, {**options, "files": source.files}, partitions)
        if done is not None:
            return done
        plan = _plan(folder, source, options, partitions, bound)
        _run(plan, source, bound, run_on_ray if ray else run_here, progress or (lambda name, done, there: None))
    except OSError as error:
        raise DataError(
            f"{folder} cannot be written: {error}; what is finished is kept, and the same call goes on from there"
        ) from None
    return PreparedLog(folder)


def _bytes(memory: int | str) -> int:
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", str(memory).lower())
    if found is None or found[2] not in _UNITS or float(found[1]) * _UNITS[found[2]] < _LEAST:
        raise TorchRankError(f'memory={memory!r}; give bytes, or a size such as "2GiB", of at least 512MiB')
    return int(float(found[1]) * _UNITS[found[2]])


def _finished(folder: Path, made_from: dict[str, Any], partitions: int | None) -> PreparedLog | None:
    """Return the prepared log that is there; None where there is none."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file; give a folder")
    if not (folder / MANIFEST).exists():
        return None
    done = PreparedLog(folder)
    manifest = json.loads((folder / MANIFEST).read_text())
    if manifest["made_from"] != made_from or partitions not in (None, manifest["dealt_to"]):
        raise DataError(f"{folder} holds a log prepared from other files or with other options; remove it first")
    shutil.rmtree(folder / UNFINISHED, ignore_errors=True)  # of a run that was killed when all but this was done
    return done


def _row_memory(row_bytes: float) -> float:
    """What sorting one row takes at its worst: it is there as read, as numbered and as sorted."""
    return 2.5 * row_bytes + 90


def _plan(folder: Path, source: Source, options: dict[str, Any], partitions: int | None, bound: int) -> Plan:
    """Take up the plan of a run that was stopped, or make one and begin."""
    asked = {**options, "files": source.files, "asked": partitions, "polars": pl.__version__, "format": FORMAT}
    fitting = (bound - _BASE) / _row_memory(source.row_bytes)
    plan = Plan(
        out=folder,
        pieces=source.pieces,
        schema=source.schema,
        separator=source.separator,
        partitions=partitions or min(max(_FEWEST, math.ceil(source.rows / (0.6 * fitting))), 2**16),
        batch_rows=int(min(max(fitting / 8, 10_000), _BATCH_ROWS)),
        **options,
    )
    stored = plan.work / "plan.json"
    if stored.exists():
        known = json.loads(stored.read_text())
        if known["asked"] == asked:
            _clear_temporary(plan)
            return Plan.from_state(folder, known["plan"])
        _clear(plan)
    plan.work.mkdir(parents=True, exist_ok=True)
    _clear_temporary(plan)
    with whole_file(stored) as place:
        place.write_text(json.dumps({"asked": asked, "plan": plan.state()}))
    return plan


def _clear(plan: Plan) -> None:
    """Remove what a run of another plan has left."""
    shutil.rmtree(plan.work)
    for path in [plan.out / ITEMS, *plan.out.glob("rows-[0-9]*.arrow"), *plan.out.glob("users-[0-9]*.arrow")]:
        path.unlink(missing_ok=True)


def _clear_temporary(plan: Plan) -> None:
    """Remove the half-written files of a run that was killed."""
    for folder in (plan.out, plan.work):
        for path in folder.glob(".unfinished-*"):
            shutil.rmtree(path, ignore_errors=True)


def _run(plan: Plan, source: Source, bound: int, run: Any, progress: Progress) -> None:
    def steps(name: str, function: Callable[[int], None], parts: Sequence[int], done: int) -> None:
        there = done + len(parts)
        progress(name, done, there)
        for _ in run(function, parts):
            done += 1
            progress(name, done, there)
            pa.default_memory_pool().release_unused()

    pieces = range(len(plan.pieces))
    left = [number for number in pieces if not is_dealt(plan, number)]
    steps("deal", _Deal(plan), left, len(pieces) - len(left))
    dealt = read_dealt(plan)
    rows = dealt.rows.sum(0)
    names = np.flatnonzero(rows).tolist()
    if not names:
        raise DataError(f"{source.files[0][0]} has no rows; a log needs at least one interaction")
    _refuse_too_large(int(rows.max()), source.row_bytes, bound, plan.partitions)
    num_items = number_items(plan, dealt)
    missing = [name for name in range(len(names)) if read_sorted(plan, name) is None]
    steps("sort", _Sort(plan, names, dealt), missing, len(names) - len(missing))
    parts = [read_sorted(plan, name) for name in range(len(names))]
    manifest = {
        "format": FORMAT,
        "positive_at": plan.positive_at,
        "num_items": num_items,
        "times": parts[0]["times"],  # type: ignore[index] # all are written
        "items": entry(plan.out / ITEMS),
        "partitions": parts,
        "dealt_to": plan.partitions,
        "made_from": {
            "columns": plan.columns,
            "positive_at": plan.positive_at,
            "duplicates": plan.duplicates,
            "files": source.files,
        },
    }
    with whole_file(plan.out / MANIFEST) as place:
        place.write_text(json.dumps(manifest, indent=1) + "\n")
    shutil.rmtree(plan.work)


def _refuse_too_large(rows: int, row_bytes: float, bound: int, partitions: int) -> None:
    fitting = (bound - _BASE) / _row_memory(row_bytes)
    if rows > fitting:
        needed = math.ceil((_BASE + rows * _row_memory(row_bytes)) / 2**20)
        raise DataError(
            f"the largest of {partitions} partitions has {rows} rows, which takes about {needed} MiB; give"
            f" {as_option('partitions', min(math.ceil(1.5 * partitions * rows / fitting), 2**16))}, or"
            f" {as_option('memory', f'{needed}MiB')} where few users have most rows"
        )


class _Deal:
    """:func:`deal_piece` of one plan, as a value that another process can be sent."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def __call__(self, number: int) -> None:
        deal_piece(self.plan, number)


class _Sort:
    """:func:`sort_partition` of one plan, likewise."""

    def __init__(self, plan: Plan, names: list[int], dealt: Any) -> None:
        self.plan, self.names, self.dealt = plan, names, dealt

    def __call__(self, name: int) -> None:
        sort_partition(self.plan, self.names[name], name, self.dealt)
