import pytest

from torchrank.errors import DataError
from torchrank.plots import plot_by_share


def test_a_panel_a_measure_and_a_line_a_method():
    cells = ([0.9, 0.8, 0.7], [0.01, 0.02, 0.03])
    measures = {"NDCG@10": {"SAROS": cells, "BPR": cells}, "AUC": {"SAROS": cells, "BPR": cells}}
    figure = plot_by_share([0, 0.1, 0.2], measures, lines={"AUC": 0.95})
    first, second = figure.axes
    assert [axes.get_ylabel() for axes in figure.axes] == ["NDCG@10", "AUC"]
    assert first.containers[0].lines[0].get_xydata().tolist() == [[0, 0.9], [0.1, 0.8], [0.2, 0.7]]
    assert len(first.containers) == 2
    assert [line.get_ydata()[0] for line in second.lines if len(line.get_xdata()) == 2][-1] == 0.95
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["SAROS", "BPR"]


def test_nothing_to_draw():
    with pytest.raises(DataError, match="no measure"):
        plot_by_share([], {})
