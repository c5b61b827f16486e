"""What ``torchrank reproduce slam`` found: rows of means and deviations, as a table and as Markdown."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from rich.table import Column, Table
from torch import Tensor

from torchrank.commands.results import markdown_table
from torchrank.commands.slam_folds import PARTS, Fold, Measures, measure
from torchrank.commands.slam_methods import PUBLISHED
from torchrank.commands.slam_rankers import Fit, Ranker
from torchrank.data import QueryDataset, normalize_queries

#: fits of one method: (candidate, fold, seed)
Fits = Mapping[tuple[int, int, int], Fit]


class Row(NamedTuple):
    """One line of the report.

    Attributes:
        name: of the method or candidate.
        mean: test measures, means over folds and seeds.
        deviation: of the mean over folds, between seeds; None for one run.
        val_map: validation MAP of what was chosen, mean over folds and seeds.
        by_fold: test MAP of each fold, mean over seeds.
        seconds: time for all folds and candidates, mean over seeds.
        remark: what was chosen, or how the minimisation ended.
    """

    name: str
    mean: Measures
    deviation: float | None
    val_map: float
    by_fold: list[float]
    seconds: float
    remark: str


class Report(NamedTuple):
    """All rows."""

    methods: list[Row]
    members: list[Row]
    convergence: list[Row]
    seeds: int


def summarize(name: str, candidates: Sequence[Ranker], fits: Fits, folds: Sequence[Fold]) -> Row:
    """Choose a candidate for every fold and seed by validation MAP, and average the chosen ones' test measures."""
    seeds = sorted({seed for _, _, seed in fits})
    chosen, tests, vals = Counter[str](), [], []
    for seed in seeds:
        for number, fold in enumerate(folds):
            val_maps = [measure(fold.val, fits[c, number, seed].val).map for c in range(len(candidates))]
            best = max(range(len(candidates)), key=val_maps.__getitem__)
            chosen[candidates[best].name] += 1
            vals.append(val_maps[best])
            tests.append(measure(fold.test, fits[best, number, seed].test))
    remark = ", ".join(f"{name} {count}×" for name, count in chosen.most_common()) if len(candidates) > 1 else ""
    ends = [fit.remark for fit in fits.values() if fit.remark]
    if ends:
        risk, norm = (statistics.fmean(end[key] for end in ends) for key in ("risk", "norm"))
        remark = f"risk {risk:.4f} (1 at w = 0), ‖w‖ = {norm:.4f}"
    by_seed = [_mean(tests[i : i + len(folds)]).map for i in range(0, len(tests), len(folds))]
    return Row(
        name,
        _mean(tests),
        statistics.stdev(by_seed) if len(by_seed) > 1 else None,
        statistics.fmean(vals),
        [statistics.fmean(row.map for row in tests[number :: len(folds)]) for number in range(len(folds))],
        sum(fit.seconds for fit in fits.values()) / len(seeds),
        remark,
    )


def blend(candidates: Sequence[Ranker], fits: Fits, folds: Sequence[Fold]) -> Row:
    """Average, in every fold, the standardised scores of the half of the fits with the best validation MAP."""
    tests, vals, chosen = [], [], Counter[str]()
    for number, fold in enumerate(folds):
        here = {key: fit for key, fit in fits.items() if key[1] == number}
        order = sorted(here, key=lambda key: -measure(fold.val, here[key].val).map)
        best = order[: (len(order) + 1) // 2]
        chosen.update(candidates[key[0]].name for key in best)
        vals.append(measure(fold.val, _sum_of_scores([here[key].val for key in best], fold.val)))
        tests.append(measure(fold.test, _sum_of_scores([here[key].test for key in best], fold.test)))
    return Row(
        "blend of the best half",
        _mean(tests),
        None,
        _mean(vals).map,
        [row.map for row in tests],
        sum(fit.seconds for fit in fits.values()),
        ", ".join(f"{name} {count}×" for name, count in chosen.most_common()),
    )


def _sum_of_scores(scores: Sequence[NDArray[np.float32]], part: QueryDataset) -> NDArray[np.float32]:
    """Add scores after bringing those of every list to mean 0 and standard deviation 1."""
    columns: Tensor = normalize_queries(torch.from_numpy(np.stack(scores, 1)), part.offsets, method="zscore")
    return columns.sum(1).numpy()


def _mean(rows: Sequence[Measures]) -> Measures:
    return Measures(*(statistics.fmean(column) for column in zip(*rows, strict=True)))


def results(report: Report) -> dict[str, object]:
    """What results.json holds."""
    rows = {
        row.name: {
            "map": row.mean.map,
            "mean_ndcg": row.mean.mean_ndcg,
            "ndcg@10": row.mean.ndcg_at_10,
            "seconds": row.seconds,
        }
        for row in report.methods
    }
    return {"folds": PARTS, "methods": rows}


def table(report: Report) -> Table:
    """Lay the report out for the screen."""
    screen = Table(
        Column("ranker", overflow="fold"),
        "MAP",
        "mean NDCG",
        "NDCG@10",
        "validation MAP",
        "seconds",
        title="MQ2008, five folds",
    )
    for rows in (report.methods, report.members, report.convergence):
        for row in rows:
            screen.add_row(*_cells(row)[:6])
        screen.add_section()
    for name, (precision, gain) in PUBLISHED.items():
        screen.add_row(name, f"{precision:.4f}", f"{gain:.4f}", "", "", "")
    return screen


def _cells(row: Row) -> list[str]:
    spread = "" if row.deviation is None else f" ± {row.deviation:.4f}"
    means = [f"{row.mean.map:.4f}{spread}", f"{row.mean.mean_ndcg:.4f}", f"{row.mean.ndcg_at_10:.4f}"]
    return [row.name, *means, f"{row.val_map:.4f}", f"{row.seconds:.1f}", row.remark]


def markdown(report: Report) -> str:
    """Write the report as Markdown."""
    published = [[name, f"{p:.4f}", f"{g:.4f}", "", "", "", "published"] for name, (p, g) in PUBLISHED.items()]
    head = ["", "MAP", "mean NDCG", "NDCG@10", "validation MAP", "seconds", "chosen"]
    folds = ["", *(f"fold {number}" for number in range(1, PARTS + 1))]
    rows = [*report.methods, *report.members]
    runs = "one run" if report.seeds == 1 else f"{report.seeds} runs from different random numbers (± between them)"
    return "\n".join(
        [
            "# MQ2008, five folds",
            "",
            f"Test measures, means over the five folds and {runs}. Candidate, epoch and blend are chosen on",
            "the validation part of each fold alone. MAP and mean NDCG follow LETOR's evaluation script: a query with",
            "nothing relevant counts 0, NDCG discounts 1, 1, 1/log2 3, …, and mean NDCG is the mean over all cut-offs;",
            "NDCG@10 discounts 1/log2(1 + rank). Seconds are of one run: all folds and candidates, one thread.",
            "",
            "## Methods",
            "",
            *markdown_table(head, [*map(_cells, report.methods), *published]),
            "",
            "## The best scorer",
            "",
            "Every member sees LETOR's features and, beside each, the share of the query's other documents that are",
            "below it. The blend averages the standardised scores of the half of all members (every seed a member)",
            "with the best validation MAP.",
            "",
            *markdown_table(head, list(map(_cells, report.members))),
            "",
            "## From stopping early to the end",
            "",
            "The linear SLAM-NDCG scorer (margin 1) from stopping early to minimising the regularised risk to the end.",
            "The end says which risk was reached (at w = 0 it is 1) and how long w is there.",
            "",
            *markdown_table([*head[:6], "end"], list(map(_cells, report.convergence))),
            "",
            "## Test MAP by fold",
            "",
            *markdown_table(folds, [[row.name, *(f"{value:.4f}" for value in row.by_fold)] for row in rows]),
            "",
        ]
    )
