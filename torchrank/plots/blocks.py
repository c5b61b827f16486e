"""How many blocks users have and how large blocks are: figures 2 and 3 of the SAROS paper."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from torchrank.errors import DataError
from torchrank.plots.files import ink

#: colours that colour-blind readers tell apart (Okabe & Ito), markers and dashes besides
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_LINES = ("-", "--", "-.", ":", "-", "--")


def plot_block_counts(counts: Mapping[str, NDArray[np.integer]]) -> Figure:
    """Draw box plots of the logarithm of users' block counts.

    Whiskers run from the smallest to the largest count, the band is the median and the diamond the mean.

    Args:
        counts: name (a rule, a collection) to each user's number of blocks; users without blocks are left out.

    Returns:
        the figure.

    Raises:
        DataError: nothing to draw.

    Source: arXiv 1902.08495, figure 2.

    Example:
        >>> plot_block_counts({"run": np.array([1, 3, 12]), "single": np.array([0, 2, 2])}).axes[0].get_ylabel()
        'blocks of a user (log10)'
    """
    logs = {name: np.log10(each[each > 0]) for name, each in counts.items() if (each > 0).any()}
    if not logs:
        raise DataError("no user has a block, so there is nothing to draw")
    figure = Figure(figsize=(1.5 + 1.1 * len(logs), 4), layout="constrained")
    axes = figure.add_subplot()
    drawn = axes.boxplot(
        list(logs.values()),
        whis=(0, 100),
        showmeans=True,
        patch_artist=True,
        medianprops={"color": ink(), "linewidth": 1.5},
        meanprops={"marker": "D", "markerfacecolor": "white", "markeredgecolor": ink()},
    )
    for box, colour in zip(drawn["boxes"], _cycle(_COLOURS, len(logs)), strict=True):
        box.set(facecolor=colour, alpha=0.6)
    axes.set_xticks(range(1, len(logs) + 1), list(logs))
    axes.set_ylabel("blocks of a user (log10)")
    axes.grid(axis="y", alpha=0.3)
    return figure


def plot_block_sizes(sizes: Mapping[str, NDArray[np.integer]]) -> Figure:
    """Draw how many blocks hold how many items that were shown but not preferred.

    Args:
        sizes: name (a rule, a collection) to each block's number of such items.

    Returns:
        the figure; both axes are logarithmic.

    Raises:
        DataError: nothing to draw.

    Source: arXiv 1902.08495, figure 3.

    Example:
        >>> plot_block_sizes({"run": np.array([1, 1, 2, 5])}).axes[0].get_xlabel()
        'items of a block not preferred'
    """
    some = {name: each for name, each in sizes.items() if len(each)}
    if not some:
        raise DataError("there is no block to draw")
    figure = Figure(figsize=(5.5, 4), layout="constrained")
    axes = figure.add_subplot()
    looks = zip(*(_cycle(look, len(some)) for look in (_COLOURS, _MARKERS, _LINES)), strict=True)
    for (name, each), (colour, marker, line) in zip(some.items(), looks, strict=True):
        size, number = np.unique(each, return_counts=True)
        axes.loglog(size, number, color=colour, marker=marker, linestyle=line, markersize=4, label=name)
    axes.set_xlabel("items of a block not preferred")
    axes.set_ylabel("blocks")
    axes.grid(which="both", alpha=0.3)
    axes.legend()
    return figure


def _cycle(values: tuple[str, ...], count: int) -> list[str]:
    return [values[k % len(values)] for k in range(count)]
