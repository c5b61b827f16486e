"""The demo's first school: rankers of documents against the best attainable, the perceptron against its bound."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from torchrank.data import QueryDataset, make_queries
from torchrank.losses import (
    ApproxNDCGLoss,
    LambdaLoss,
    ListMLELoss,
    PairwiseHingeLoss,
    PairwiseLogisticLoss,
    PointwiseSquaredLoss,
    SLAMLoss,
    SoftmaxLoss,
)
from torchrank.metrics import average_precision, ndcg
from torchrank.models import LinearScorer
from torchrank.ops import ragged_to_padded
from torchrank.plots.files import save_figure
from torchrank.plots.learning import plot_cumulative_loss, plot_learning_curves
from torchrank.theory import perceptron_loss_bound
from torchrank.training import fit_lists, perceptron_pass
from torchrank.training.perceptron_online import RULES

LOSSES: dict[str, nn.Module] = {
    "SLAM, NDCG weights": SLAMLoss(measure="ndcg"),
    "SLAM, MAP weights": SLAMLoss(measure="map"),
    "LambdaLoss": LambdaLoss(),
    "ApproxNDCG": ApproxNDCGLoss(),
    "softmax (ListNet)": SoftmaxLoss(),
    "ListMLE": ListMLELoss(),
    "pairwise logistic (RankNet)": PairwiseLogisticLoss(),
    "pairwise hinge (RankSVM)": PairwiseHingeLoss(),
    "pointwise squared": PointwiseSquaredLoss(),
}
FEATURES = 20
NOISE = 0.5
EPOCHS = 10
STREAM: dict[str, Any] = {"num_features": 50, "documents": (5, 20), "levels": 5, "margin": 0.1}


def show_relevance(out: Path, seed: int, console: Console) -> None:
    """Compare losses on lists with a known best ranker; run the perceptron on a separable stream.

    Args:
        out: folder for ``relevance_learning.png`` and ``relevance_perceptron.png``.
        seed: of the lists and of training.
        console: where the table goes.
    """
    made = make_queries(900, num_features=FEATURES, documents=(5, 40), levels=4, noise=NOISE, seed=seed)
    train, val, test = (made.dataset.select(torch.arange(a, b)) for a, b in ((0, 200), (200, 400), (400, 900)))
    weights = made.weights.to(test.features)
    table = Table(
        "loss (a linear scorer each)",
        "NDCG@10",
        "MAP",
        "seconds",
        title="500 test queries; 200 to train on, 200 to choose the epoch by",
    )
    curves = {}
    for name, loss in LOSSES.items():
        torch.manual_seed(seed)
        begin = time.perf_counter()
        fit = fit_lists(train, LinearScorer(FEATURES), loss, val=val, monitor="ndcg@10", epochs=EPOCHS, seed=seed)
        seconds = time.perf_counter() - begin
        curves[name] = np.array([row["ndcg@10"] for row in fit.history])
        with torch.no_grad():
            value, precision = _measure(fit.module.scorer(test.features), test)
        table.add_row(name, f"{value:.4f}", f"{precision:.4f}", f"{seconds:.2f}")
    table.add_section()
    value, precision = _measure(test.features @ weights, test)
    table.add_row("best attainable (the true weights)", f"{value:.4f}", f"{precision:.4f}", "")
    console.print(table)
    best, _ = _measure(val.features @ weights, val)
    figure = plot_learning_curves(curves, best=best, measure="NDCG@10 of the validation part")
    save_figure(figure, out / "relevance_learning.png")

    stream = make_queries(300, **STREAM, seed=seed)
    lists, order = stream.dataset, torch.arange(300).repeat(4)
    runs, bounds = {}, {}
    for name, rule in RULES.items():
        done = perceptron_pass(lists.features.double(), lists.relevance, lists.offsets, rounds=order, **rule)
        runs[name] = done.measure_loss.cumsum(0).numpy()
        bounds[name] = perceptron_loss_bound(stream.radius, STREAM["margin"], **rule)
    lines = ", ".join(f"{name} {runs[name][-1]:.2f} ≤ {bounds[name]:.0f}" for name in runs)
    console.print(f"perceptron, Σ (1 − NDCG) over {len(order)} rounds and its bound: {lines}", highlight=False)
    save_figure(plot_cumulative_loss(runs, bounds), out / "relevance_perceptron.png")


def _measure(scores: torch.Tensor, lists: QueryDataset) -> tuple[float, float]:
    """NDCG@10 and MAP of one score a document."""
    padded, mask = ragged_to_padded(scores, lists.offsets)
    relevance, _ = ragged_to_padded(lists.relevance, lists.offsets)
    return (
        float(ndcg(padded, relevance, mask, k=10).mean()),
        float(average_precision(padded, relevance, mask).mean()),
    )
