"""What learning in several processes does to quality: SAROS by the published protocol, one process against several.

    python scripts/benchmarks/processes.py --log interactions.parquet --feedback positive --time order --positive-at 1

Trains on the first 80 % of each user's interactions and measures on the rest, for each number of processes, way of
putting them together, and engine; synthetic without ``--log``. Seconds are of the whole run, processes' start included.
"""

import argparse
import tempfile
import time
from functools import partial

import pytorch_lightning as pl
import torch
from common import print_table, write_results
from pytorch_lightning.callbacks import ModelCheckpoint
from torch.optim.lr_scheduler import LinearLR

from torchrank.data import make_interactions, read_log
from torchrank.training import InteractionDataModule, SAROSModule, evaluate_published, load

BEST = {"dim": 64, "init": "normal", "item_bias": True, "feedback": "all", "rule": "run", "order": "shuffled"}
SETTINGS = {
    "published, d=4": (12, partial(SAROSModule, dim=4, rule="positive", eta=0.01, mu=0.01)),
    "feedback, d=64": (
        18,
        partial(
            SAROSModule,
            **BEST,
            eta=0.06,
            mu=0.02,
            lr_scheduler=partial(LinearLR, start_factor=1.0, end_factor=0.05, total_iters=17),
        ),
    ),
}


def trained(module, data, processes, epochs):
    """Train and return the scorer, from the checkpoint that the first process wrote, and the seconds it took."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        trainer = pl.Trainer(
            max_epochs=epochs,
            accelerator="cpu",
            devices=processes,
            strategy="ddp_spawn" if processes > 1 else "auto",
            callbacks=[ModelCheckpoint(folder, filename="last")],
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=folder,
        )
        trainer.fit(module, datamodule=data)
        return load(f"{folder}/last.ckpt").scorer, time.perf_counter() - began


def main():
    """Print the table and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--log", help="a log to read; synthetic by default")
    parser.add_argument("--feedback", default="feedback")
    parser.add_argument("--time", default="time")
    parser.add_argument("--positive-at", type=float, default=1.0)
    parser.add_argument("--processes", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--settings", nargs="*", default=list(SETTINGS))
    parser.add_argument("--engine", nargs="*", default=["mean", "sum", "batched"])
    parser.add_argument("--out", help="write the rows to this JSON file")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.log:
        log = read_log(args.log, feedback=args.feedback, time=args.time, positive_at=args.positive_at)
    else:
        log, _ = make_interactions(num_users=2000, num_items=1500, num_interactions=200_000)
    rows = []
    for name in args.settings:
        epochs, make = SETTINGS[name]
        for processes in args.processes:
            for how in args.engine if processes > 1 else ["one", *(["batched"] if "batched" in args.engine else [])]:
                options = {"engine": "batched"} if how == "batched" else {}
                options |= {"combine": how} if how in ("mean", "sum") else {}
                data = InteractionDataModule(log, train=0.8, validation=0)
                scorer, seconds = trained(make(**options), data, processes, epochs)
                measured = evaluate_published(scorer, data.test_log).mean
                rows.append({"setting": name, "processes": processes, "put together by": how, **measured, "s": seconds})
    print_table("published protocol", rows)
    if args.out:
        write_results(args.out, rows, packages=["pytorch_lightning"])


if __name__ == "__main__":
    main()
