"""Prepare a log in a process of its own, which a test may watch, limit or kill.

    python -m tests.data.prepare_run LOG OUT MEMORY PARTITIONS [FILE_LIMIT]

Prints a line when the first rows are read and, in the end, the peak of resident memory in MiB.
"""

import resource
import sys
from pathlib import Path

from torchrank.data import prepare_log


def main():
    """Run."""
    log, out, memory, partitions, *limit = sys.argv[1:]
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit[0]), int(limit[0])))
    print("begins", flush=True)
    prepared = prepare_log(log, out, positive_at=3, memory=memory, partitions=int(partitions) or None)
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
    print(prepared.num_partitions, peak)


if __name__ == "__main__":
    main()
