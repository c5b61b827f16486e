"""How rankers learn: a measure by epoch, and the online learner's cumulative loss under its bound."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from torchrank.errors import DataError
from torchrank.plots.files import ink

#: colours that colour-blind readers tell apart (Okabe & Ito); dashes tell the rest
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999")
_LINES = ("-", "--", ":", "-.")


def plot_learning_curves(
    curves: Mapping[str, NDArray[np.floating]], *, best: float | None = None, measure: str = "NDCG@10"
) -> Figure:
    """Draw a measure of ranking by epoch, one line a method.

    Args:
        curves: name to ``(epochs,)`` values.
        best: the best attainable value, drawn as a line across.
        measure: its name, for the axis.

    Returns:
        the figure.

    Raises:
        DataError: nothing to draw.

    Example:
        >>> figure = plot_learning_curves({"SLAM": np.array([0.5, 0.6])}, best=0.7)
        >>> figure.axes[0].get_ylabel()
        'NDCG@10'
    """
    if not any(len(each) for each in curves.values()):
        raise DataError("there is no curve to draw")
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for number, (name, values) in enumerate(curves.items()):
        colour, line = _COLOURS[number % len(_COLOURS)], _LINES[number // len(_COLOURS) % len(_LINES)]
        epochs = np.arange(1, len(values) + 1)
        axes.plot(epochs, values, marker="o", markersize=3, label=name, color=colour, linestyle=line)
    if best is not None:
        axes.axhline(best, color=ink(), linewidth=1, linestyle="--", label="best attainable")
    axes.set_xlabel("epoch")
    axes.set_ylabel(measure)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def plot_cumulative_loss(
    losses: Mapping[str, NDArray[np.floating]], bounds: Mapping[str, float | NDArray[np.floating]]
) -> Figure:
    """Draw the cumulative loss of online learners by round, each under its bound.

    Args:
        losses: name to ``(T,)`` cumulative loss.
        bounds: name to its bound, a number or one a round; names without one have none drawn.

    Returns:
        the figure, on a logarithmic axis where the bounds lie far above the losses.

    Raises:
        DataError: nothing to draw.

    Example:
        >>> figure = plot_cumulative_loss({"slam": np.array([0.5, 0.9])}, {"slam": 4.0})
        >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        ['slam', 'bound of slam']
    """
    if not any(len(each) for each in losses.values()):
        raise DataError("there is no loss to draw")
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    largest = 0.0
    for number, (name, values) in enumerate(losses.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        rounds = np.arange(1, len(values) + 1)
        axes.plot(rounds, values, color=colour, label=name)
        largest = max(largest, float(np.max(values)))
        if name in bounds:
            limit = np.broadcast_to(bounds[name], values.shape)
            dashes = _LINES[1 + number % 3]
            axes.plot(rounds, limit, color=colour, linestyle=dashes, linewidth=1, label=f"bound of {name}")
    if any(np.max(bounds[name]) > 5 * largest for name in bounds):
        axes.set_yscale("log")
    axes.set_xlabel("round (one list each)")
    axes.set_ylabel("cumulative loss")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
