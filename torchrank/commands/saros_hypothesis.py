"""Does the order in time matter? SAROS on blocks cut in time order and from a shuffled order, by every rule."""

import statistics
from collections.abc import Mapping
from typing import Any

from rich.progress import Progress

from torchrank.commands.method_choice import Trained, choose
from torchrank.commands.results import markdown_table
from torchrank.commands.saros_methods import OWN_VECTORS
from torchrank.commands.saros_runs import Parts, run_method, warm_up
from torchrank.ops.blocks import RULES
from torchrank.training.saros import SAROSModule

LIMITS: dict[str, Mapping[str, Any]] = {
    "none": {},
    "discard": {"minimum": "min", "maximum": "mean"},
    "truncate": {"minimum": "min", "maximum": "mean", "overflow": "truncate"},
}
ORDERS = ("time", "shuffled")


def _method(rule: str, limit: str, order: str) -> Trained:
    """Return the same model, settings to choose among and epochs for every cell."""
    options = {**OWN_VECTORS, "dim": 32, "rule": rule, "order": order, **LIMITS[limit]}
    settings = tuple({"eta": eta, "mu": mu, "epochs": 30} for eta in (0.03, 0.1) for mu in (0.02, 0.04))
    return Trained(f"{rule}, {limit}, {order}", SAROSModule, options, settings)


def run_hypothesis(parts: Parts, *, seeds: int, progress: Progress) -> list[dict[str, Any]]:
    """Train every rule with every treatment of long users, in time order and shuffled.

    Args:
        parts: of the log.
        seeds: trainings of each.
        progress: a bar is added to it.

    Returns:
        one row a rule and treatment: for each order the means over seeds, and the deviations between them, of the
        published measures and the test loss; and of their differences, shuffled less time, seed by seed.
    """
    warm_up(["saros_factorization"])
    cells = [(rule, limit) for rule in RULES for limit in LIMITS]
    bar = progress.add_task("testing the hypothesis", total=len(cells) * len(ORDERS) * (seeds + 1))
    rows = []
    for rule, limit in cells:
        found: dict[str, list[dict[str, float]]] = {}
        chosen = {}
        for order in ORDERS:
            method = _method(rule, limit, order)
            choice = choose(method, parts.fit, parts.val, seed=0)
            chosen[order] = {**choice.setting}
            progress.advance(bar)
            for seed in range(seeds):
                run = run_method(method, parts, choice, seed=seed, catalogue=False)
                found.setdefault(order, []).append({**run.measured["published"], "test_loss": run.test_loss or 0.0})
                progress.advance(bar)
        change = [
            {name: after[name] - before[name] for name in after}
            for before, after in zip(found["time"], found["shuffled"], strict=True)
        ]
        rows.append({"rule": rule, "limits": limit, "chosen": chosen})
        rows[-1] |= {name: _summary(each) for name, each in (*found.items(), ("difference", change))}
    return rows


def _summary(runs: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    values = {name: [run[name] for run in runs] for name in runs[0]}
    return {
        "mean": {name: statistics.fmean(each) for name, each in values.items()},
        "std": {name: statistics.stdev(each) if len(each) > 1 else 0.0 for name, each in values.items()},
    }


def hypothesis_markdown(rows: list[dict[str, Any]]) -> str:
    """Write the table.

    Args:
        rows: of :func:`run_hypothesis`.

    Returns:
        Markdown.
    """
    names = {"map@10": "MAP@10", "ndcg@10": "NDCG@10", "test_loss": "test loss"}
    head = ["rule", "users over B", *(f"{text}, {order}" for text in names.values() for order in ("time", "shuffled"))]
    head += [f"{text}, shuffled − time" for text in names.values()]
    lines = []
    for row in rows:
        cells = [f"`{row['rule']}`", {"none": "no limit"}.get(row["limits"], row["limits"])]
        cells += [f"{row[order]['mean'][name]:.4f}" for name in names for order in ORDERS]
        cells += [f"{row['difference']['mean'][k]:+.4f} ± {row['difference']['std'][k]:.4f}" for k in names]
        lines.append(cells)
    return "\n".join(markdown_table(head, lines, left=2)) + "\n"
