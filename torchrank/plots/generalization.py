"""The two generalisation bounds as curves over list length."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from torchrank.errors import DataError

#: colours that colour-blind readers tell apart (Okabe & Ito); the dashes tell the two bounds apart
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def plot_generalization(
    curves: Mapping[str, tuple[Sequence[int], Sequence[float], Sequence[float]]],
) -> Figure:
    """Draw, for each loss, the bound from the 1-norm (solid) and the one from the 2-norm (dashed).

    Args:
        curves: name of a loss to what :func:`torchrank.theory.generalization_bound` returns for it: lengths, the bound
            from L̃_1 and the bound from L̃_2.

    Returns:
        the figure; both axes are logarithmic.

    Raises:
        DataError: nothing to draw.

    Example:
        >>> figure = plot_generalization({"SLAM": ([10, 100], [0.2, 0.2], [0.45, 1.41])})
        >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        ['SLAM, from the 1-norm', 'SLAM, from the 2-norm']
    """
    if not curves:
        raise DataError("there are no bounds to draw")
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    for number, (name, (lengths, one_norm, two_norm)) in enumerate(curves.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        axes.loglog(lengths, one_norm, color=colour, linestyle="-", label=f"{name}, from the 1-norm")
        axes.loglog(lengths, two_norm, color=colour, linestyle="--", label=f"{name}, from the 2-norm")
    axes.set_xlabel("documents of a list")
    axes.set_ylabel("bound on the excess loss")
    axes.grid(which="both", alpha=0.3)
    axes.legend(fontsize=8)
    return figure
