import io

import numpy as np
import pytest

from torchrank.errors import DataError
from torchrank.plots import plot_block_counts, plot_block_sizes
from torchrank.plots.files import save_figure


def test_box_plots_show_the_extremes_the_median_and_the_mean_of_users_with_blocks():
    figure = plot_block_counts({"run": np.array([0, 1, 10, 10, 1000]), "none": np.zeros(3, int)})
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["run"]
    points = [y for line in axes.lines for y in np.ravel(line.get_ydata())]
    assert (min(points), max(points)) == (0, 3)
    assert any(np.ravel(line.get_ydata()).tolist() == [pytest.approx((0 + 1 + 1 + 3) / 4)] for line in axes.lines)


def test_sizes_are_counted():
    line = plot_block_sizes({"run": np.array([1, 1, 2, 5]), "none": np.array([], int)}).axes[0].lines
    assert len(line) == 1
    assert np.transpose(line[0].get_data()).tolist() == [[1, 2], [2, 1], [5, 1]]


def test_more_series_than_colours():
    many = {f"log {k}": np.array([1, 2, 3]) for k in range(8)}
    for figure in (plot_block_counts(many), plot_block_sizes(many)):
        figure.savefig(io.BytesIO(), format="png")


def test_nothing_to_draw_is_said():
    with pytest.raises(DataError, match="nothing to draw"):
        plot_block_counts({"run": np.zeros(2, int)})
    with pytest.raises(DataError, match="no block"):
        plot_block_sizes({"run": np.array([], int)})


def test_a_figure_is_written_whole_or_not_at_all(tmp_path):
    figure = plot_block_sizes({"run": np.array([1])})
    save_figure(figure, tmp_path / "figure.svg")
    assert "<svg" in (tmp_path / "figure.svg").read_text()
    with pytest.raises(ValueError, match="Format 'abc' is not supported"):
        save_figure(figure, tmp_path / "figure.abc")
    assert [path.name for path in tmp_path.iterdir()] == ["figure.svg"]
