"""Figures of linear chains: accuracies by fold, and what follows what."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from torchrank.errors import DataError
from torchrank.plots.files import ink

#: colours that colour-blind readers tell apart (Okabe & Ito), hatches besides
_COLOURS = ("#999999", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
_HATCHES = ("", "//", "\\\\", "..", "xx", "--")


def plot_fold_accuracy(accuracies: Mapping[str, Mapping[str, Sequence[float]]], *, lowest: float = 0.0) -> Figure:
    """Draw the mean accuracy over folds of each method in each setting, with every fold as a dot.

    Args:
        accuracies: setting to method to one accuracy a fold; the same methods in every setting.
        lowest: where the axis of accuracies begins.

    Returns:
        the figure.

    Raises:
        DataError: nothing to draw.

    Example:
        >>> figure = plot_fold_accuracy({"small": {"unary": [0.72, 0.73], "chain": [0.80, 0.81]}})
        >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        ['unary', 'chain']
    """
    methods = list(next(iter(accuracies.values()), {}))
    if not methods:
        raise DataError("there are no accuracies to draw")
    figure = Figure(figsize=(2 + 2.2 * len(accuracies), 4), layout="constrained")
    axes = figure.add_subplot()
    width = 0.8 / len(methods)
    for number, method in enumerate(methods):
        at = np.arange(len(accuracies)) + width * (number - (len(methods) - 1) / 2)
        folds = [np.asarray(setting[method], dtype=float) for setting in accuracies.values()]
        means = [float(each.mean()) for each in folds]
        colour, hatch = _COLOURS[number % len(_COLOURS)], _HATCHES[number % len(_HATCHES)]
        bars = axes.bar(at, means, width, label=method, color=colour, hatch=hatch, edgecolor="white")
        axes.bar_label(bars, [f"{mean:.3f}" for mean in means], padding=6, fontsize=8)
        for place, each in zip(at, folds, strict=True):
            axes.plot(np.full(len(each), place), each, ".", color=ink(), markersize=4)
    axes.set_xticks(range(len(accuracies)), list(accuracies))
    axes.set_ylim(lowest, 1)
    axes.set_ylabel("share of positions labelled right")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=8)
    return figure


def plot_transitions(transitions: NDArray[np.floating], names: Sequence[str]) -> Figure:
    """Draw transition scores as a map, the label before to the right and the label after downwards.

    Args:
        transitions: ``(q, q)`` indexed [to, from].
        names: q names of the labels.

    Returns:
        the figure; blue is likely and red is not.

    Raises:
        DataError: another number of names than labels.

    Example:
        >>> plot_transitions(np.eye(2), ["q", "u"]).axes[0].get_xlabel()
        'label before'
    """
    if transitions.shape != (len(names), len(names)):
        raise DataError(f"transitions have shape {transitions.shape}, there are {len(names)} names")
    figure = Figure(figsize=(2 + 0.2 * len(names), 1.5 + 0.2 * len(names)), layout="constrained")
    axes = figure.add_subplot()
    most = float(np.abs(transitions).max()) or 1.0
    drawn = axes.imshow(transitions, cmap="RdBu", vmin=-most, vmax=most)
    axes.set_xticks(range(len(names)), list(names))
    axes.set_yticks(range(len(names)), list(names))
    axes.set_xlabel("label before")
    axes.set_ylabel("label after")
    figure.colorbar(drawn, label="score")
    return figure
