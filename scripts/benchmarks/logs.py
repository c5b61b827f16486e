"""Read, sort, split and cut a large log into blocks, against the same written in pandas, polars and numpy.

    python scripts/benchmarks/logs.py --out results/logs.json

One thread everywhere. All sides read the same Parquet file, sort it by user and time, take the first 80 % of each user
and find the "run" blocks of that part; they are timed in turn in one process and must agree on the number of blocks.
Peak memory is that of a fresh process that imports the library, warms it up on a tiny file and runs once.

A second table times what training does again and again, on a synthetic log of a million rows: blocks, blocks rebuilt
from a random order, and each evaluation.
"""

import argparse
import os
import tempfile
from functools import partial
from pathlib import Path

for variable in (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "ARROW_NUM_THREADS",
):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402 - threads are fixed before any library starts them
import pandas as pd  # noqa: E402
import polars as pl  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
import torch  # noqa: E402
from common import interleave, peak_memory, print_table, write_results  # noqa: E402

from torchrank.data import InteractionLog, build_blocks, make_interactions  # noqa: E402
from torchrank.models import Factorization  # noqa: E402
from torchrank.training import (  # noqa: E402
    ShownLists,
    evaluate_catalogue,
    evaluate_loss,
    evaluate_published,
    evaluate_shown,
)

torch.set_num_threads(1)
pa.set_cpu_count(1)
pa.set_io_thread_count(1)
MEMORY = """
import pyarrow as pa
pa.set_cpu_count(1)
from torchrank.data import InteractionLog, build_blocks
def run(path):
    log = InteractionLog.from_parquet(path, positive_at=1)
    train, test = log.split_per_user(train=0.8)
    return build_blocks(train, rule="run")
run({tiny!r})
# measure
run({path!r})
"""


def torchrank_blocks(path):
    """The library."""
    train, _ = InteractionLog.from_parquet(path, positive_at=1).split_per_user(train=0.8)
    return len(build_blocks(train, rule="run"))


def numpy_blocks(path):
    """Arrow reads, numpy does the rest."""
    table = pq.read_table(path)
    user, item, liked, time = (table[name].to_numpy() for name in ("user", "item", "feedback", "time"))
    if not ((user[1:] > user[:-1]) | ((user[1:] == user[:-1]) & (time[1:] >= time[:-1]))).all():
        order = np.lexsort((time, user))
        user, item, liked = user[order], item[order], liked[order]
    start = np.flatnonzero(np.diff(user, prepend=user[0] - 1))
    size = np.diff(start, append=len(user))
    keep = np.arange(len(user)) - np.repeat(start, size) < np.repeat((0.8 * size).astype(np.int64), size)
    user, liked = user[keep], liked[keep] > 0
    return int((liked[1:] & ~liked[:-1] & (user[1:] == user[:-1])).sum())


def polars_blocks(path):
    """Expressions over users."""
    log = pl.read_parquet(path).sort("user", "time", maintain_order=True)
    place, size = pl.int_range(pl.len()).over("user"), pl.len().over("user")
    train = log.filter(place < (0.8 * size).floor())
    liked = pl.col("feedback") > 0
    block = liked & ~liked.shift(1) & (pl.col("user") == pl.col("user").shift(1))
    return int(train.select(block.sum()).item())


def pandas_blocks(path):
    """Group by user."""
    log = pd.read_parquet(path).sort_values(["user", "time"], kind="stable")
    users = log.groupby("user", sort=False)["user"]
    train = log[users.cumcount() < (0.8 * users.transform("size")).astype("int64")]
    liked = train["feedback"] > 0
    return int((liked & ~liked.shift(1, fill_value=True) & (train["user"] == train["user"].shift(1))).sum())


def write_logs(folder, rows, seed=0):
    """Write one log twice, as it lies by user and time and shuffled; users and items are as uneven as real ones."""
    generator = np.random.default_rng(seed)
    users, items = max(rows // 100, 2), max(rows // 500, 2)
    activity, popularity = generator.lognormal(sigma=1, size=users), generator.lognormal(sigma=1.5, size=items)
    user = generator.choice(users, rows, p=activity / activity.sum()).astype(np.int32) + 1
    item = generator.choice(items, rows, p=popularity / popularity.sum()).astype(np.int32) + 1
    liked = (generator.random(rows) < 0.5).astype(np.int8)
    time = generator.integers(10**9, 10**9 + 10 * rows, rows)
    table = pa.table({"user": user, "item": item, "feedback": liked, "time": time})
    pq.write_table(table, folder / "shuffled.parquet")
    pq.write_table(table.take(pa.array(np.lexsort((time, user)))), folder / "in order.parquet")


def again_and_again(repeats):
    """Seconds of the calls that training and validation repeat."""
    log, _ = make_interactions()
    train, test = log.split_per_user(train=0.8)
    lists, generator = ShownLists.from_log(test), np.random.default_rng(0)
    torch.manual_seed(0)
    scorer = Factorization(log.num_users, log.num_items, 32)
    calls = {f"blocks, {rule}": partial(build_blocks, train, rule=rule) for rule in ("run", "positive")}
    calls["blocks, run, random order"] = partial(build_blocks, train, rule="run", shuffle=generator)
    calls["evaluate_published"] = partial(evaluate_published, scorer, lists)
    calls["evaluate_shown"] = partial(evaluate_shown, scorer, lists)
    calls["evaluate_loss"] = partial(evaluate_loss, scorer, lists)
    calls["evaluate_catalogue"] = partial(evaluate_catalogue, scorer, train, test)
    timing = interleave(calls, repeats=repeats)
    return [{"call": name, "seconds": took.best, "median": took.median} for name, took in timing.items()]


def main():
    """Print the tables and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--out", help="write the rows to this JSON file")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--quick", action="store_true", help="a million rows")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    if args.quick:
        args.rows, args.repeats = min(args.rows, 10**6), 1
    sides = {"torchrank": torchrank_blocks, "numpy": numpy_blocks, "polars": polars_blocks, "pandas": pandas_blocks}
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "tiny").mkdir()
        write_logs(folder / "tiny", 1000)
        write_logs(folder, args.rows)
        for order in ("in order", "shuffled"):
            path = str(folder / f"{order}.parquet")
            counts = {name: side(path) for name, side in sides.items()}
            assert len(set(counts.values())) == 1, counts
            calls = {name: partial(side, path) for name, side in sides.items()}
            timing = interleave(calls, repeats=args.repeats, warm_up=0)
            tiny = str(folder / "tiny" / f"{order}.parquet")
            memory = peak_memory(MEMORY.format(path=path, tiny=tiny))
            for name in sides:
                best = timing[name].best
                results.append(
                    {
                        "log": order,
                        "by": name,
                        "blocks": counts[name],
                        "seconds": best,
                        "million rows/s": args.rows / best / 1e6,
                        "peak MiB": round(memory["peak_mib"]) if name == "torchrank" else "",
                    }
                )
    print_table(f"{args.rows:,} rows: read + sort + split + blocks, one thread", results)
    calls = again_and_again(args.repeats)
    print_table(f"{10**6:,} rows: calls that training repeats, one thread", calls)
    results += calls
    if args.out:
        write_results(args.out, results, packages=["polars", "pandas", "pyarrow", "numba"])


if __name__ == "__main__":
    main()
