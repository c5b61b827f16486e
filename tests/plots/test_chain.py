import io

import numpy as np
import pytest

from torchrank.errors import DataError
from torchrank.plots import plot_fold_accuracy, plot_transitions


def test_bars_are_the_means_and_dots_the_folds():
    figure = plot_fold_accuracy({"small": {"a": [0.5, 0.7], "b": [0.9]}, "large": {"a": [0.8], "b": [1.0]}}, lowest=0.4)
    axes = figure.axes[0]
    heights = [round(bar.get_height(), 6) for bars in axes.containers for bar in bars]
    assert heights == [(0.5 + 0.7) / 2, 0.8, 0.9, 1.0]
    assert sorted(y for line in axes.lines for y in line.get_ydata()) == [0.5, 0.7, 0.8, 0.9, 1.0]
    assert axes.get_ylim() == (0.4, 1.0)
    figure.savefig(io.BytesIO(), format="png")


def test_many_methods_are_told_apart():
    figure = plot_fold_accuracy({"all": {str(k): [0.5] for k in range(8)}})
    figure.savefig(io.BytesIO(), format="png")


def test_transitions_are_drawn_on_a_symmetric_scale():
    figure = plot_transitions(np.array([[0.0, -3.0], [1.0, 2.0]]), ["q", "u"])
    image = figure.axes[0].images[0]
    assert image.get_clim() == (-3, 3)
    assert image.get_array()[0, 1] == -3
    plot_transitions(np.zeros((2, 2)), "qu").savefig(io.BytesIO(), format="png")


def test_nothing_to_draw_is_said():
    for empty in ({}, {"small": {}}):
        with pytest.raises(DataError, match="no accuracies"):
            plot_fold_accuracy(empty)
    with pytest.raises(DataError, match="3 names"):
        plot_transitions(np.eye(2), "abc")
