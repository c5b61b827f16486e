"""The figures of ``torchrank reproduce slam``."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from torchrank.commands.slam_folds import Fold
from torchrank.commands.slam_methods import PUBLISHED
from torchrank.commands.slam_report import Report
from torchrank.losses import SLAMLoss
from torchrank.models import LinearScorer
from torchrank.plots.comparison import plot_measures
from torchrank.plots.files import save_figure
from torchrank.plots.learning import plot_cumulative_loss, plot_learning_curves
from torchrank.theory import perceptron_regret_bound
from torchrank.training import fit_lists, perceptron_pass

UPDATES = {
    "slam, margin (published)": ("slam", "margin"),
    "slam, mistakes": ("slam", "mistakes"),
    "pair": ("pair", "margin"),
}


def draw(report: Report, curves: Mapping[str, Sequence[Sequence[float]]], folds: Sequence[Fold], out: Path) -> None:
    """Draw methods.png, convergence.png and perceptron.png.

    Args:
        report: all rows.
        curves: validation MAP by epoch, one curve a fold, of the rankers whose convergence is drawn.
        folds: the five folds.
        out: the folder.
    """
    rows = [*report.methods, report.members[-1]]
    measures = {row.name: (row.mean.map, row.mean.mean_ndcg) for row in rows}
    save_figure(plot_measures(measures, names=("MAP", "mean NDCG"), lines=PUBLISHED), out / "methods.png")
    means = {name: np.mean(each, axis=0) for name, each in curves.items()}
    save_figure(plot_learning_curves(means, measure="validation MAP, mean of five folds"), out / "convergence.png")
    save_figure(plot_cumulative_loss(*_streams(folds[0])), out / "perceptron.png")


def _streams(fold: Fold) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Run the three updates over a fold's training lists, with the regret bound for an early-stopped batch solution."""
    lists = fold.train
    batch = fit_lists(lists, LinearScorer(lists.num_features), SLAMLoss(), val=fold.val, epochs=10, average=0.98)
    comparator = batch.module.scorer.weight.detach().double()
    runs, bounds = {}, {}
    for name, (update, active) in UPDATES.items():
        done = perceptron_pass(
            lists.features.double(),
            lists.relevance.double(),
            lists.offsets,
            update=update,
            active=active,
            comparator=comparator,
        )
        runs[name] = done.measure_loss.cumsum(0).numpy()
        bounds[name] = perceptron_regret_bound(
            done.comparator_loss.cumsum(0),
            math.hypot(*comparator.tolist()),
            done.squared_step.cumsum(0),
            update=update,
            active=active,
        ).numpy()
    return runs, bounds
