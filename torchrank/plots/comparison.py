"""Rankers side by side by two measures."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from torchrank.errors import DataError
from torchrank.plots.files import ink

#: colours and markers that colour-blind readers tell apart (Okabe & Ito)
_COLOURS = ("#0072B2", "#D55E00", "#009E73")
_MARKERS = ("o", "s", "^")
_LINES = ("--", ":", "-.")


def plot_measures(
    measures: Mapping[str, Sequence[float]],
    *,
    names: Sequence[str],
    lines: Mapping[str, Sequence[float]] | None = None,
) -> Figure:
    """Draw one panel a measure, one dot a ranker, the best at the top by the first measure.

    Args:
        measures: ranker to its values, one a measure.
        names: of the measures.
        lines: name to values drawn as lines across, such as published ones.

    Returns:
        the figure.

    Raises:
        DataError: nothing to draw.

    Example:
        >>> figure = plot_measures({"a": (0.4, 0.5), "b": (0.5, 0.4)}, names=("MAP", "NDCG"))
        >>> [axes.get_xlabel() for axes in figure.axes], figure.axes[0].get_yticklabels()[-1].get_text()
        (['MAP', 'NDCG'], 'b')
    """
    if not measures:
        raise DataError("there is no ranker to draw")
    order = sorted(measures, key=lambda name: measures[name][0])
    figure = Figure(figsize=(3 + 3 * len(names), 1.5 + 0.35 * len(order)), layout="constrained")
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for number, (axes, measure) in enumerate(zip(panels, names, strict=True)):
        values = [measures[name][number] for name in order]
        axes.plot(values, range(len(order)), _MARKERS[number % 3], color=_COLOURS[number % 3], markersize=7)
        for place, (name, across) in enumerate((lines or {}).items()):
            axes.axvline(across[number], color=ink(), linewidth=1, linestyle=_LINES[place % 3], label=name)
        axes.set_xlabel(measure)
        axes.set_yticks(range(len(order)), order)
        axes.grid(axis="x", alpha=0.3)
    if lines:
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)
    return figure


def plot_over(places: Sequence[float], curves: Mapping[str, Sequence[float]], *, x: str, y: str) -> Figure:
    """Draw one line a ranker over a setting that several values were tried of.

    Args:
        places: the values tried.
        curves: ranker to its measure at each.
        x: what the setting is.
        y: what the measure is.

    Returns:
        the figure.

    Raises:
        DataError: nothing to draw.

    Example:
        >>> figure = plot_over([0.5, 1.0], {"naive": [0.4, 0.3], "ips": [0.4, 0.4]}, x="η", y="NDCG")
        >>> [line.get_label() for line in figure.axes[0].get_lines()]
        ['naive', 'ips']
    """
    if not curves or not len(places):
        raise DataError("there is no ranker to draw")
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    styles = [(colour, marker, line) for line in _LINES for colour, marker in zip(_COLOURS, _MARKERS, strict=True)]
    for (name, values), (colour, marker, line) in zip(curves.items(), styles, strict=False):
        axes.plot(places, values, color=colour, marker=marker, linestyle=line, label=name)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_xticks(list(places))
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", fontsize=8)
    return figure
