"""Measures against the share of bots in the log."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from torchrank.errors import DataError

#: colours that colour-blind readers tell apart (Okabe & Ito), markers and dashes besides
_LOOKS = (
    ("#0072B2", "o", "-"),
    ("#D55E00", "s", "--"),
    ("#009E73", "^", "-."),
    ("#CC79A7", "D", ":"),
    ("#E69F00", "v", "-"),
)


def plot_by_share(
    shares: Sequence[float],
    measures: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
    *,
    lines: Mapping[str, float] | None = None,
) -> Figure:
    """Draw measures of several methods against the share of bots, a panel a measure.

    Args:
        shares: bots' shares of all users, ``(T,)``.
        measures: measure to method to means and deviations, each ``(T,)``; deviations are drawn as bars.
        lines: measure to a value drawn across its panel, such as the best attainable.

    Returns:
        the figure.

    Raises:
        DataError: nothing to draw.

    Example:
        >>> figure = plot_by_share([0, 0.1], {"NDCG@10": {"SAROS": ([0.9, 0.8], [0.01, 0.01])}}, lines={"NDCG@10": 1.0})
        >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
        ('share of bots among users', 'NDCG@10')
    """
    if not len(shares) or not any(measures.values()):
        raise DataError("there is no measure to draw")
    figure = Figure(figsize=(1 + 4.2 * len(measures), 4.2), layout="constrained")
    panels = figure.subplots(1, len(measures), squeeze=False)[0]
    for axes, (measure, methods) in zip(panels, measures.items(), strict=True):
        for number, (name, (means, deviations)) in enumerate(methods.items()):
            colour, marker, line = _LOOKS[number % len(_LOOKS)]
            look = {"color": colour, "marker": marker, "linestyle": line, "markersize": 5, "capsize": 3}
            axes.errorbar(shares, means, yerr=deviations, label=name, **look)
        if measure in (lines or {}):
            axes.axhline(lines[measure], color="black", linewidth=1, linestyle=":")  # type: ignore[index] # asked above
        axes.set_xlabel("share of bots among users")
        axes.set_ylabel(measure)
        axes.grid(alpha=0.3)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    return figure
