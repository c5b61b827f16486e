"""SLAM-NDCG against the structured hinge over full rankings on MQ2008: quality and seconds.

    python scripts/benchmarks/structured_ndcg.py --data FOLDER --out results/structured_ndcg.json

A linear scorer from weights 0, Adam, 32 lists a step, λ = 1e-3; the learning rate and the epoch are chosen by the
validation part's MAP, for every loss from the same grid. Means over the five folds of LETOR; a query with nothing
relevant counts 0. "step ms" is the loss forward and backward on one batch of 32 lists, the losses timed in turn.
"""

import argparse
import time
from copy import deepcopy
from pathlib import Path

import torch
from common import interleave, print_table, write_results

from torchrank.data import ListLoader, concat_queries, read_letor
from torchrank.losses import SLAMLoss, StructuredNDCGLoss
from torchrank.metrics import average_precision, mean_ndcg, ndcg
from torchrank.models import LinearScorer

LOSSES = {
    "SLAM-NDCG": SLAMLoss(),
    "structured, ties first": StructuredNDCGLoss(),
    "structured, ties by scores": StructuredNDCGLoss(ties="scores"),
    "structured / L, ties first": StructuredNDCGLoss(normalize="length"),
    "structured / L, ties by scores": StructuredNDCGLoss(normalize="length", ties="scores"),
}
GRID = [(1e-2, 1e-3), (1e-3, 1e-3)]


@torch.no_grad()
def measure(scorer, data, measures):
    found = {name: [] for name in measures}
    for batch in ListLoader(data, batch_size=256):
        scores = scorer(batch.features, batch.mask)
        for name, function in measures.items():
            found[name].append(function(scores, batch.relevance, batch.mask))
    return {name: torch.cat(each).mean().item() for name, each in found.items()}


MAP = {"map": average_precision}
ALL = {**MAP, "mean_ndcg": mean_ndcg, "ndcg@10": lambda s, r, m: ndcg(s, r, m, k=10)}


def train(loss, train_data, val_data, step, l2, epochs):
    """The scorer of the best validation epoch, its MAP there, and the seconds of all epochs' steps."""
    scorer = LinearScorer(train_data.num_features)
    optimizer = torch.optim.Adam(scorer.parameters(), lr=step)
    loader = ListLoader(train_data, batch_size=32, shuffle=True)
    best, kept, seconds = -1.0, None, 0.0
    for _ in range(epochs):
        began = time.perf_counter()
        for batch in loader:
            optimizer.zero_grad()
            value = loss(scorer(batch.features, batch.mask), batch.relevance, batch.mask)
            (value + l2 * scorer.weight.square().sum()).backward()
            optimizer.step()
        seconds += time.perf_counter() - began
        found = measure(scorer, val_data, MAP)["map"]
        if found > best:
            best, kept = found, deepcopy(scorer)
    return best, kept, seconds


def steps(data):
    batch = next(iter(ListLoader(data, batch_size=32, shuffle=True)))

    def call(loss):
        scores = torch.zeros_like(batch.relevance).normal_(generator=torch.Generator().manual_seed(0))
        loss(scores.requires_grad_(), batch.relevance, batch.mask).backward()

    return interleave({name: lambda loss=loss: call(loss) for name, loss in LOSSES.items()})


def main():
    """Print the table and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--data", required=True, help="the folder with S1.txt.gz … S5.txt.gz of MQ2008")
    parser.add_argument("--out", help="write the rows to this JSON file")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--folds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    parts = [read_letor(Path(args.data) / f"S{number}.txt.gz") for number in range(1, 6)]
    timing = steps(concat_queries(parts))
    rows = []
    for name, loss in LOSSES.items():
        results, seconds = [], 0.0
        for fold in range(args.folds):
            train_data = concat_queries([parts[(fold + i) % 5] for i in range(3)])
            val_data, test_data = parts[(fold + 3) % 5], parts[(fold + 4) % 5]
            runs = [train(loss, train_data, val_data, step, l2, args.epochs) for step, l2 in GRID]
            seconds += sum(run[2] for run in runs) / len(runs)
            results.append(measure(max(runs, key=lambda run: run[0])[1], test_data, ALL))
        row = {"loss": name, **{key: sum(r[key] for r in results) / len(results) for key in ALL}}
        rows.append({**row, "seconds a fold": seconds / args.folds, "step ms": 1000 * timing[name].best})
    print_table(f"MQ2008, linear scorer, {args.folds} folds", rows)
    if args.out:
        write_results(args.out, rows, packages=["scipy"])


if __name__ == "__main__":
    main()
