"""Start the command in a process group of its own, kill it, and see that nothing of it is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def start(folder, *words):
    """Start ``torchrank`` with some words in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torchrank", *map(str, words)]
    with Path(folder, "output.txt").open("ab") as output:
        return subprocess.Popen(
            command, cwd=folder, env=environment, start_new_session=True, stdout=output, stderr=output
        )


def run(folder, *words):
    """Run it to the end; return the seconds it took."""
    began, process = time.monotonic(), start(folder, *words)
    assert process.wait(600) == 0, Path(folder, "output.txt").read_text()[-3000:]
    return time.monotonic() - began


def members(group):
    """Processes of a group that are not yet gone, without those that only wait to be counted."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = place.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(its_group) == group and state not in "ZX":
            found.append(int(place.parent.name))
    return sorted(found)


def kill(process, *, which=0):
    """Kill one process of a command's group, the command itself first, and wait until all have ended by themselves."""
    alive = members(process.pid)
    if alive:
        os.kill(alive[which % len(alive)], signal.SIGKILL)
    process.wait(60)
    limit = time.monotonic() + 60
    while left := members(process.pid):
        assert time.monotonic() < limit, f"{len(left)} processes went on without the one that was killed"
        time.sleep(0.1)
