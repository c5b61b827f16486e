"""Objects of several attributes and the curve that ranks them: figures 7 and 8 of the paper, and scores."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from numpy.typing import NDArray

from torchrank.errors import DataError
from torchrank.plots.files import ink

_CURVE = "#D55E00"
_POINTS = "cividis"
#: objects from which their dots become an image inside a vector figure
_MANY = 2000

Array = NDArray[np.floating]


def plot_projections(
    points: Array, scores: Array, curve: Array, names: Sequence[str], *, directions: Sequence[int] | None = None
) -> Figure:
    """Draw the objects and the curve in every pair of attributes.

    Args:
        points: ``(n, d)`` in the user's units; NaN is left out.
        scores: ``(n,)``, the objects' colours.
        curve: ``(m, d)``, points along the curve from the worst end to the best.
        names: of the ``d`` attributes.
        directions: +1 and −1 an attribute, shown at the axes.

    Returns:
        the figure: a triangle of panels; the curve's best end is a star, the worst a square.

    Raises:
        DataError: fewer than two attributes, or arrays that do not fit.

    Source:
        Li, Mei & Hu (arXiv 1402.4542), figures 7 and 8.

    Example:
        >>> points = np.random.default_rng(0).random((9, 3))
        >>> figure = plot_projections(points, points[:, 0], np.eye(3), ["a", "b", "c"])
        >>> len([axes for axes in figure.axes if axes.lines])
        3
    """
    d = _check(points, scores, names)
    if d < 2 or curve.ndim != 2 or curve.shape[1] != d:
        raise DataError(f"there are {d} attributes and a curve of shape {curve.shape}; give two or more and (m, d)")
    labels = _labels(names, directions)
    size = max(1.9, min(3.0, 14 / (d - 1)))
    figure = Figure(figsize=(size * (d - 1) + 1.6, size * (d - 1) + 0.5), layout="constrained")
    grid = figure.subplots(d - 1, d - 1, squeeze=False)
    drawn: PathCollection | None = None
    for i in range(1, d):
        for j in range(d - 1):
            axes = grid[i - 1, j]
            if j >= i:
                axes.set_visible(False)
                continue
            drawn = _objects(axes, points[:, j], points[:, i], scores)
            axes.plot(curve[:, j], curve[:, i], color=_CURVE, linewidth=2.2, label="ranking curve")
            axes.plot(*curve[-1, [j, i]], "*", color=_CURVE, markeredgecolor="white", markersize=14, label="best end")
            axes.plot(*curve[0, [j, i]], "s", color=_CURVE, markeredgecolor="white", markersize=8, label="worst end")
            axes.tick_params(labelsize=8, labelleft=j == 0, labelbottom=i == d - 1)
            if j == 0:
                axes.set_ylabel(labels[i], fontsize=9)
            if i == d - 1:
                axes.set_xlabel(labels[j], fontsize=9)
    assert drawn is not None  # noqa: S101 - there are two attributes or more
    figure.colorbar(drawn, ax=grid, label="score", shrink=0.8, aspect=30)
    handles, texts = grid[0, 0].get_legend_handles_labels()
    if d > 2:
        figure.legend(handles, texts, loc="upper right", frameon=False, fontsize=9)
    else:
        figure.legend(handles, texts, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def plot_scores(
    points: Array,
    scores: Array,
    names: Sequence[str],
    *,
    curve: Array | None = None,
    curve_scores: Array | None = None,
    directions: Sequence[int] | None = None,
) -> Figure:
    """Draw the score against each attribute.

    Args:
        points: ``(n, d)`` in the user's units; NaN is left out.
        scores: ``(n,)``.
        names: of the ``d`` attributes.
        curve: ``(m, d)``, points along the curve.
        curve_scores: ``(m,)``, their scores.
        directions: +1 and −1 an attribute, shown at the axes.

    Returns:
        the figure, one panel an attribute.

    Raises:
        DataError: arrays that do not fit.

    Example:
        >>> points = np.random.default_rng(0).random((9, 3))
        >>> len(plot_scores(points, points.mean(1), ["a", "b", "c"]).axes)
        3
    """
    d = _check(points, scores, names)
    labels = _labels(names, directions)
    width = min(d, 4)
    height = -(-d // width)
    figure = Figure(figsize=(2.9 * width + 0.5, 2.8 * height + 0.2), layout="constrained")
    grid = figure.subplots(height, width, squeeze=False, sharey=True)
    for j, axes in enumerate(grid.flat):
        if j >= d:
            axes.remove()
            continue
        _objects(axes, points[:, j], scores, scores)
        if curve is not None and curve_scores is not None:
            axes.plot(curve[:, j], curve_scores, color=_CURVE, linewidth=2.2, label="ranking curve")
        axes.set_xlabel(labels[j], fontsize=9)
        axes.tick_params(labelsize=8)
        if j % width == 0:
            axes.set_ylabel("score")
    if curve is not None:
        grid[0, 0].legend(frameon=False, fontsize=8)
    return figure


def plot_rank_intervals(
    names: Sequence[str], ranks: Array, intervals: Array, *, level: float, ends: int = 20
) -> Figure:
    """Draw ranks with their intervals, one line an object.

    Args:
        names: ``n`` objects, best first.
        ranks: ``(n,)``.
        intervals: ``(n, 2)``, lowest and highest rank.
        level: share of the resamples between them.
        ends: number of objects that a panel holds; of more than twice that only the best and the worst are drawn.

    Returns:
        the figure, the best objects left and the worst right.

    Raises:
        DataError: arrays that do not fit, or no object.

    Example:
        >>> figure = plot_rank_intervals(["a", "b"], np.array([1, 2]), np.array([[1, 2], [1, 2]]), level=0.95)
        >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
        ['a', 'b']
    """
    n = len(names)
    if n == 0 or ranks.shape != (n,) or intervals.shape != (n, 2):
        raise DataError(f"{n} objects, ranks {ranks.shape} and intervals {intervals.shape} do not fit")
    parts = [slice(0, n)] if n <= ends else [slice(0, ends), slice(max(ends, n - ends), n)]
    figure = Figure(figsize=(1.5 + 4.5 * len(parts), 1 + 0.24 * min(n, ends)), layout="constrained")
    for axes, part in zip(figure.subplots(1, len(parts), squeeze=False)[0], parts, strict=True):
        rows = np.arange(len(ranks[part]))
        axes.hlines(rows, intervals[part, 0], intervals[part, 1], color="#56B4E9", linewidth=6)
        axes.plot(ranks[part], rows, "o", color=ink(), markersize=4)
        axes.set_yticks(rows, [_short(name) for name in names[part]], fontsize=8)
        axes.set_ylim(min(n, ends) - 0.4, -0.6)
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.grid(axis="x", alpha=0.3)
    figure.supxlabel(f"rank, and where {level:.0%} of the resamples put it", fontsize=9)
    return figure


def plot_order(names: Sequence[str], first: Array, second: Array, titles: tuple[str, str]) -> Figure:
    """Draw two orders of the same objects side by side, one line an object.

    Args:
        names: ``n`` objects.
        first: ``(n,)`` ranks, 1 is best; only their order is drawn, the ranks are written.
        second: ``(n,)``.
        titles: of the two.

    Returns:
        the figure; lines that cross are pairs in different order.

    Raises:
        DataError: arrays that do not fit.

    Example:
        >>> figure = plot_order(["a", "b"], np.array([1, 2]), np.array([9, 3]), ("published", "found"))
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['a 1', '9 a', 'b 2', '3 b']
    """
    if first.shape != (len(names),) or second.shape != (len(names),):
        raise DataError(f"{len(names)} objects and ranks of shapes {first.shape} and {second.shape} do not fit")
    figure = Figure(figsize=(6.5, 0.8 + 0.32 * len(names)), layout="constrained")
    axes = figure.add_subplot()
    left, right = first.argsort(kind="stable").argsort(), second.argsort(kind="stable").argsort()
    for name, a, b, rank_a, rank_b in zip(names, left, right, first, second, strict=True):
        moved = a != b
        axes.plot([0, 1], [a, b], "-o", color=_CURVE if moved else "#0072B2", markersize=5, linewidth=2)
        axes.text(-0.04, a, f"{_short(name)} {rank_a:g}", ha="right", va="center", fontsize=9)
        axes.text(1.04, b, f"{rank_b:g} {_short(name)}", ha="left", va="center", fontsize=9)
    axes.set_xticks([0, 1], titles)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_yticks([])
    axes.set_xlim(-0.9, 1.9)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.spines[:].set_visible(False)
    return figure


def _short(name: str) -> str:
    return name if len(name) <= 28 else f"{name[:27]}…"


def _objects(axes: Axes, x: Array, y: Array, scores: Array) -> PathCollection:
    many = len(x) > _MANY
    axes.grid(alpha=0.25)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    if np.nanmax(np.abs(x)) >= 10_000:
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    return axes.scatter(
        x,
        y,
        c=scores,
        cmap=_POINTS,
        s=4 if many else 16,
        alpha=0.5 if many else 0.85,
        linewidths=0 if many else 0.3,
        edgecolors="white",
        rasterized=many,
        zorder=2,
    )


def _labels(names: Sequence[str], directions: Sequence[int] | None) -> list[str]:
    if directions is None:
        return list(names)
    return [
        f"{name.replace('_', ' ')} ({'↑' if way > 0 else '↓'})" for name, way in zip(names, directions, strict=True)
    ]


def _check(points: Array, scores: Array, names: Sequence[str]) -> int:
    if points.ndim != 2 or scores.shape != points.shape[:1] or len(names) != points.shape[1]:
        raise DataError(
            f"points have shape {points.shape}, scores {scores.shape}, and there are {len(names)} names; give (n, d),"
            " (n,) and d"
        )
    return int(points.shape[1])
