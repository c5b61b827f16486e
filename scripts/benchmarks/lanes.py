"""What the lanes of the batched engine cost in quality: SAROS with the published settings, by the published protocol.

    python scripts/benchmarks/lanes.py --log interactions.parquet --feedback positive --time order --positive-at 1

Every user moves at most one block a wave, so many lanes see item vectors that are a wave old; one lane is the published
algorithm. The means over the seeds stand beside the sequential engine's.
"""

import argparse

import torch
from common import print_table, write_results

from torchrank.data import InteractionLog
from torchrank.training import SAROSModule, evaluate_loss, evaluate_published, fit_interactions

PUBLISHED = {"dim": 4, "eta": 0.01, "mu": 0.01, "init": "uniform", "rule": "positive"}
MEASURES = ("map@5", "map@10", "ndcg@5", "ndcg@10")
ENGINES = {"sequential": {"engine": "sequential"}} | {
    f"batched, {lanes} lanes": {"engine": "batched", "lanes": lanes} for lanes in (64, 512, 4096)
}


def run(options, train, test, *, epochs, seed):
    module = SAROSModule(**PUBLISHED, **options, seed=seed)
    seconds = fit_interactions(module, train, epochs=epochs)
    published = evaluate_published(module.scorer, test).mean
    return {**{name: published[name] for name in MEASURES}, "test loss": evaluate_loss(module.scorer, test)}, seconds


def main():
    """Print the table and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--log", required=True, help="Parquet or CSV")
    for name in ("user", "item", "feedback", "time"):
        parser.add_argument(f"--{name}", default=name, help=f"its column of {name}s")
    parser.add_argument("--positive-at", type=float, required=True)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", help="write the rows to this JSON file")
    args = parser.parse_args()
    torch.set_num_threads(1)
    read = InteractionLog.from_csv if args.log.endswith(".csv") else InteractionLog.from_parquet
    columns = {name: getattr(args, name) for name in ("user", "item", "feedback", "time")}
    train, test = read(args.log, **columns, positive_at=args.positive_at).split_per_user(train=0.8)
    rows = []
    for name, options in ENGINES.items():
        runs = [run(options, train, test, epochs=args.epochs, seed=seed) for seed in range(args.seeds)]
        row = {key: round(sum(found[key] for found, _ in runs) / len(runs), 4) for key in runs[0][0]}
        away = max(abs(row[key] - rows[0][key]) for key in MEASURES) if rows else 0.0
        rows.append(
            {"engine": name, **row, "furthest away": f"{away:.4f}", "seconds": sum(s for _, s in runs) / len(runs)}
        )
    for row in rows:  # four digits, which the table's three would hide
        row.update({key: f"{row[key]:.4f}" for key in (*MEASURES, "test loss")})
    print_table(f"SAROS, published settings, {args.epochs} epochs, mean of {args.seeds} seeds", rows)
    if args.out:
        write_results(args.out, rows)


if __name__ == "__main__":
    main()
