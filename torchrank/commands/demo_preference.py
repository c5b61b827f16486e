"""The demo's second school: what users prefer among what they were shown, against the truth the log was drawn from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from torchrank.data import Catalogue, InteractionLog, make_interactions
from torchrank.models import ItemRate, MostPop
from torchrank.plots.files import save_figure
from torchrank.plots.learning import plot_learning_curves
from torchrank.training import BPRModule, MFModule, SAROSModule, ShownLists, evaluate_shown
from torchrank.training.interaction_fitting import fit_interactions
from torchrank.types import InteractionScorer

EPOCHS = 6
_STEPS = 1


def show_preference(out: Path, seed: int, console: Console) -> None:
    """Train SAROS, BPR and MF on a log of a million interactions, beside MostPop and ItemRate.

    Args:
        out: folder for ``preference_learning.png``.
        seed: of the log and of training.
        console: where the table goes.
    """
    log, truth = make_interactions(seed=seed)
    train, test = log.split_per_user(train=0.8)
    lists = ShownLists.from_log(test)

    def measure(scorer: InteractionScorer) -> tuple[float, float]:
        mean = evaluate_shown(scorer, lists).mean
        return float(mean["ndcg@10"]), float(mean["auc"])

    table = Table(
        "method", "NDCG@10", "AUC", "seconds", title=f"{len(test):,} shown items to order, {len(train):,} to learn from"
    )
    curves = {}
    for name, make in _modules(seed).items():
        fit_interactions(make(), train.where(np.arange(len(train)) < 2000), epochs=1)  # compiles the loops
        module = make()
        values: list[float] = []

        def watch(spent: float, done: int, module: torch.nn.Module = module, values: list[float] = values) -> bool:
            values.append(measure(module.scorer)[0])  # type: ignore[arg-type]
            return False

        seconds = fit_interactions(module, train, epochs=EPOCHS, steps_per_epoch=_STEPS, watch=watch)
        curves[name] = np.array(values)
        ndcg, auc = measure(module.scorer)
        table.add_row(name, f"{ndcg:.4f}", f"{auc:.4f}", f"{seconds:.2f}")
    table.add_section()
    for name, scorer in _counted(train).items():
        ndcg, auc = measure(scorer)
        table.add_row(name, f"{ndcg:.4f}", f"{auc:.4f}", "")
    table.add_section()
    best = measure(truth)
    table.add_row("best attainable (the true preferences)", f"{best[0]:.4f}", f"{best[1]:.4f}", "")
    console.print(table)
    save_figure(plot_learning_curves(curves, best=best[0], measure="NDCG@10"), out / "preference_learning.png")


def _modules(seed: int) -> dict[str, Callable[[], SAROSModule | BPRModule | MFModule]]:
    # One SAROS step is a block, one BPR step a pair: the fewer steps are larger.
    blocks: Any = {"dim": 16, "init": "normal", "item_bias": True, "eta": 0.2, "mu": 0.005, "seed": seed}
    return {
        "SAROS, blocks from a shuffled order": lambda: SAROSModule(order="shuffled", **blocks),
        "SAROS, blocks in time order": lambda: SAROSModule(**blocks),
        "BPR on shown pairs": lambda: BPRModule(dim=16, init="normal", item_bias=True, eta=0.05, mu=0.01, seed=seed),
        "MF": lambda: MFModule(dim=16, eta=0.05, mu=0.01, seed=seed),
    }


def _counted(train: InteractionLog) -> dict[str, InteractionScorer]:
    catalogue = Catalogue.from_log(train)
    positives, shown = torch.from_numpy(catalogue.positives), torch.from_numpy(catalogue.shown)
    return {
        "ItemRate (share of positive feedback)": ItemRate.from_counts(positives, shown, num_users=train.num_users),
        "MostPop (popularity)": MostPop.from_counts(positives, num_users=train.num_users),
    }
