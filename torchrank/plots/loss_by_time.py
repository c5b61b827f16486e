"""Loss against seconds of training: figure 4 of the SAROS paper."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from torchrank.errors import DataError

#: colours that colour-blind readers tell apart (Okabe & Ito), markers and dashes besides
_LOOKS = (("#0072B2", "o", "-"), ("#D55E00", "s", "--"), ("#009E73", "^", "-."), ("#CC79A7", "D", ":"))


def plot_loss_by_time(
    curves: Mapping[str, tuple[NDArray[np.floating], NDArray[np.floating]]], *, ylabel: str = "training loss"
) -> Figure:
    """Draw the loss of methods against the seconds they have trained.

    Args:
        curves: name to seconds above 0 and losses, each ``(T,)``.
        ylabel: what the loss is.

    Returns:
        the figure; time is on a logarithmic axis.

    Raises:
        DataError: nothing to draw.

    Source: arXiv 1902.08495, figure 4.

    Example:
        >>> figure = plot_loss_by_time({"SAROS": (np.array([0.1, 1.0]), np.array([0.7, 0.6]))})
        >>> figure.axes[0].get_xlabel()
        'seconds of training'
    """
    if not any(len(seconds) for seconds, _ in curves.values()):
        raise DataError("there is no loss to draw")
    figure = Figure(figsize=(6.5, 4), layout="constrained")
    axes = figure.add_subplot()
    for number, (name, (seconds, losses)) in enumerate(curves.items()):
        colour, marker, line = _LOOKS[number % len(_LOOKS)]
        axes.plot(seconds, losses, color=colour, marker=marker, linestyle=line, markersize=4, label=name)
    axes.set_xscale("log")
    axes.set_xlabel("seconds of training")
    axes.set_ylabel(ylabel)
    axes.grid(which="both", alpha=0.3)
    axes.legend()
    return figure
