"""What the benchmark scripts share: interleaved timing, peak memory of a fresh process, tables, results as JSON."""

import importlib.metadata
import importlib.util
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table


class Timing(NamedTuple):
    """Seconds one call took: the best and the median of the repeats."""

    best: float
    median: float


def interleave(
    calls: Mapping[str, Callable[[], object]],
    *,
    repeats: int = 10,
    warm_up: int = 1,
    least: float = 0.0,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Time calls in turn, round after round, so that a busy neighbour slows all of them alike.

    A turn lasts at least ``least`` seconds: shorter calls are repeated in it and their mean is taken, so that none pays
    alone for what the one before has left in the caches. On one thread ``time.process_time`` as the clock leaves out
    what a neighbour takes altogether.
    """
    turns = {}
    for name, call in calls.items():
        for _ in range(warm_up):
            call()
        start = clock()
        call()
        turns[name] = max(1, math.ceil(least / max(clock() - start, 1e-9)))
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = clock()
            for _ in range(turns[name]):
                call()
            seconds[name].append((clock() - start) / turns[name])
    return {name: Timing(min(taken), statistics.median(taken)) for name, taken in seconds.items()}


def peak_memory(code: str) -> dict[str, float]:
    """Run Python code in a fresh process; MiB resident before its line ``# measure``, and at its peak (Linux)."""
    read = "int(open('/proc/self/status').read().split('{}:')[1].split()[0]) / 1024"
    setup, measured = code.split("# measure\n")
    program = f"{setup}\nbefore = {read.format('VmRSS')}\n{measured}\nprint(before, {read.format('VmHWM')})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    before, peak = map(float, done.stdout.split()[-2:])
    return {"before_mib": before, "peak_mib": peak, "used_mib": peak - before}


def machine(*packages: str) -> dict[str, Any]:
    """Describe the machine, and the versions of Python, torch and ``packages``."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    found = {}
    for name in ("torchrank", "torch", "numpy", *packages):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return {"cpu": cpu, "cores": os.cpu_count(), "python": platform.python_version(), "versions": found}


def write_results(path: str | Path, rows: Iterable[Mapping[str, Any]], *, packages: Iterable[str] = ()) -> None:
    """Write rows and the machine they were measured on as JSON, in one step."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps({"machine": machine(*packages), "rows": [dict(row) for row in rows]}, indent=2) + "\n")
    part.replace(path)


def installed(module: str, package: str | None = None) -> bool:
    """Say whether a peer is there; print what is left out where it is not."""
    if importlib.util.find_spec(module) is not None:
        return True
    print(f"{package or module} is not installed and left out: pip install '.[baselines]'", file=sys.stderr)
    return False


def print_table(title: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Print rows of the same keys as a table; numbers with three significant digits, at its full width."""
    rows = list(rows)
    table = Table(title=title)
    for name in rows[0]:
        table.add_column(str(name), justify="right")
    for row in rows:
        table.add_row(*(_text(value) for value in row.values()))
    console = Console()
    console.print(table, width=None if console.is_terminal else 160)


def _text(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
