"""Prepare and train on logs from a million to a hundred million rows: seconds, rows a second and peak memory.

    python scripts/benchmarks/scale.py --out results/scale.json

For each size a log is drawn to Parquet in pieces (a fiftieth as many users as rows, a five-hundredth as many items, in
the order of time, so that the rows of a user lie far apart), prepared within ``--memory``, and trained on for one
epoch. Every stage runs in a process of its own, whose peak resident memory and processor time are read when it ends
(Linux). The second table says what one pass over the partitions takes beside training: to read the columns that
training uses when the system has not the files in memory (seconds by the clock) and when it has, to cut the blocks of
the default rule, and to read the same blocks back from a file (seconds of the processor).
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import print_table, write_results

#: rows drawn at once, and of a row group
CHUNK = 1_000_000
DIM = 16


def draw_log(path, rows, seed=0):
    """Write a log whose feedback depends on vectors of users and items; some users and items are far more active."""
    generator = np.random.default_rng(seed)
    users, items = rows // 50, rows // 500
    user_names, item_names = generator.permutation(users), generator.permutation(items)
    likes = generator.normal(size=(users, 4)).astype(np.float32)
    has = generator.normal(size=(items, 4)).astype(np.float32)
    bias = generator.normal(size=items).astype(np.float32)
    writer = None
    for chunk in range(0, rows, CHUNK):
        size = min(CHUNK, rows - chunk)
        user = (users * generator.random(size) ** 1.5).astype(np.int64)
        item = (items * generator.random(size) ** 2).astype(np.int64)
        odds = np.einsum("nd,nd->n", likes[user], has[item]) + bias[item]
        table = pa.table(
            {
                "user": user_names[user],
                "item": item_names[item],
                "feedback": (generator.random(size) < 1 / (1 + np.exp(-odds))).astype(np.int8),
                "time": 1_600_000_000 + (chunk + np.arange(size)) // 10,
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


class Watch:
    """Seconds by the clock and of the processor, from here on."""

    def __init__(self):
        self.since = time.perf_counter(), time.process_time()

    def read(self):
        """Both, so far."""
        return {"seconds": time.perf_counter() - self.since[0], "processor": time.process_time() - self.since[1]}


def prepare(folder, memory):
    """Prepare the log of a folder."""
    from torchrank.data import prepare_log

    watch = Watch()
    prepared = prepare_log(folder / "log.parquet", folder / "prepared", positive_at=1, memory=memory)
    return {**watch.read(), "partitions": prepared.num_partitions}


def train(folder, engine, where="memory"):
    """Train one epoch on a prepared log, whose files the system has in memory or has to read from disk.

    Compiled loops are warmed up on a small log before.
    """
    import torch

    from torchrank.data import PreparedLog, make_interactions
    from torchrank.training import SAROSModule, fit_interactions

    torch.set_num_threads(1)
    options = {"dim": DIM, "init": "normal", "eta": 0.05, "mu": 0.005, "engine": engine}
    fit_interactions(
        SAROSModule(**options), make_interactions(num_users=50, num_items=50, num_interactions=500)[0], epochs=1
    )
    prepared = PreparedLog(folder / "prepared")
    module = SAROSModule(**options)
    for path in prepared.folder.glob("rows-*.arrow"):
        forget(path) if where == "disk" else fetch(path)
    watch = Watch()
    fit_interactions(module, prepared, epochs=1)
    found = watch.read()
    loss = float(module.trainer.callback_metrics["train_loss"])
    return {**found, "train_loss": loss, "blocks": int(prepared.counts("blocks_run").sum())}


def forget(path):
    """Have the system drop what it holds of a file."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def fetch(path):
    """Have the system hold a file."""
    with path.open("rb") as file:
        while file.read(1 << 20):
            pass


def passes(folder):
    """Time passes over the partitions of a prepared log: reading, cutting blocks, and reading stored blocks."""
    from torchrank.data import PreparedLog, build_blocks

    prepared = PreparedLog(folder / "prepared")
    build_blocks(prepared.partition(0))  # compiled
    found = dict.fromkeys(["read, not in memory", "read, in memory", "cut blocks", "read stored blocks"], 0.0)
    for number in range(prepared.num_partitions):
        stored = folder / "blocks.npy"
        forget(prepared.folder / f"rows-{number:05}.arrow")
        for name, clock in (("read, not in memory", "seconds"), ("read, in memory", "processor")):
            watch = Watch()
            log = prepared.partition(number)
            int(log.items.sum()), int(log.preferred.sum())  # every page is touched
            found[name] += watch.read()[clock]
        watch = Watch()
        blocks = build_blocks(log)
        found["cut blocks"] += watch.read()["processor"]
        names = ("preferred_start", "preferred_stop", "other_start", "other_stop")
        np.save(stored, np.stack([getattr(blocks, name) for name in names]))
        watch = Watch()
        np.load(stored, mmap_mode="r").sum(1)
        found["read stored blocks"] += watch.read()["processor"]
    stored.unlink()
    return found


def stage(words):
    """Run one stage in a process of its own; what it returned, and its peak memory."""
    done = subprocess.run([sys.executable, __file__, "--stage", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def run_stage(words):
    """Be that process."""
    name, folder, *rest = words
    found = {"draw": lambda: draw_log(Path(folder) / "log.parquet", int(rest[0])) or {}}
    found |= {"prepare": lambda: prepare(Path(folder), rest[0]), "train": lambda: train(Path(folder), *rest)}
    found |= {"passes": lambda: passes(Path(folder))}
    watch = Watch()
    result = {**watch.read(), **found[name]()}
    status = Path("/proc/self/status").read_text()
    result["peak_mib"] = int(status.split("VmHWM:")[1].split()[0]) / 1024
    print(json.dumps(result))


def main():
    """Print the table and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--sizes", default="1000000,10000000,100000000", help="rows, separated by commas")
    parser.add_argument("--memory", default="2GiB", help="bound given to prepare")
    parser.add_argument("--folder", help="where the logs are drawn to, some 10 GB; temporary by default")
    parser.add_argument("--out", help="write the rows to this JSON file")
    parser.add_argument("--stage", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.stage:
        run_stage(args.stage)
        return
    rows, pass_rows = [], []
    for size in map(int, args.sizes.split(",")):
        folder = Path(tempfile.mkdtemp(prefix="scale-", dir=args.folder))
        try:
            print(f"drawing {size:,} rows", file=sys.stderr)
            stage(["draw", str(folder), str(size)])
            log_mib = (folder / "log.parquet").stat().st_size / 2**20
            stages = [["prepare", args.memory], *(["train", "sequential", where] for where in ("memory", "disk"))]
            for words in [*stages, ["train", "batched"]]:
                print(f"{' '.join(words)} of {size:,} rows", file=sys.stderr)
                found = stage([words[0], str(folder), *words[1:]])
                rows.append(
                    {
                        "rows": size,
                        "stage": "prepare" if words[0] == "prepare" else " from ".join(words[1:]),
                        "seconds": found["seconds"],
                        "processor": found["processor"],
                        "M rows/s": size / found["seconds"] / 1e6,
                        "(processor)": size / found["processor"] / 1e6,
                        "peak MiB": round(found["peak_mib"]),
                        "parts": found.get("partitions", ""),
                        "blocks": found.get("blocks", ""),
                        "loss": found.get("train_loss", ""),
                    }
                )
                print(rows[-1], f"log of {log_mib:.0f} MiB", file=sys.stderr)
            found = stage(["passes", str(folder)])
            pass_rows.append({"rows": size, **{name: found[name] for name in found if " " in name}})
        finally:
            shutil.rmtree(folder)
    print_table(f"one epoch, dim {DIM}, {os.cpu_count()} cores", rows)
    print_table("seconds of a pass over all partitions", pass_rows)
    if args.out:
        write_results(args.out, rows + pass_rows, packages=["polars", "pyarrow", "numba"])


if __name__ == "__main__":
    main()
