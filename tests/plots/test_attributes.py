import numpy as np
import pytest

from torchrank.errors import DataError
from torchrank.plots import plot_order, plot_projections, plot_rank_intervals, plot_scores

POINTS = np.random.default_rng(0).random((30, 3))
SCORES = POINTS.mean(1)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_every_pair_has_a_panel(tmp_path, d):
    points = np.random.default_rng(0).random((30, d))
    figure = plot_projections(points, SCORES, np.eye(d), list("abcde")[:d], directions=[1] * d)
    assert sum(axes.get_visible() and bool(axes.lines) for axes in figure.axes) == d * (d - 1) / 2
    figure.savefig(tmp_path / "figure.png")


def test_missing_values_and_many_objects_draw(tmp_path):
    points = np.random.default_rng(0).random((3000, 5)) * 20_000
    points[::7, 2] = np.nan
    figure = plot_scores(points, np.linspace(0, 1, 3000), list("abcde"))
    assert len(figure.axes) == 5
    figure.savefig(tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size < 1_000_000


def test_long_tables_show_both_ends(tmp_path):
    ranks = np.arange(1, 101)
    figure = plot_rank_intervals([f"o{k}" for k in ranks], ranks, np.stack([ranks, ranks], 1), level=0.95)
    ends = [[text.get_text() for text in axes.get_yticklabels()] for axes in figure.axes]
    assert ends == [[f"o{k}" for k in range(1, 21)], [f"o{k}" for k in range(81, 101)]]
    figure.savefig(tmp_path / "figure.png")


def test_what_does_not_fit():
    with pytest.raises(DataError):
        plot_projections(POINTS[:, :1], SCORES, np.eye(1), ["a"])
    with pytest.raises(DataError):
        plot_projections(POINTS, SCORES, np.eye(2), ["a", "b", "c"])
    with pytest.raises(DataError):
        plot_scores(POINTS, SCORES[:-1], ["a", "b", "c"])
    with pytest.raises(DataError):
        plot_rank_intervals([], np.empty(0), np.empty((0, 2)), level=0.9)
    with pytest.raises(DataError):
        plot_order(["a"], np.array([1]), np.array([1, 2]), ("first", "second"))
