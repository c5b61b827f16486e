import pytest

from torchrank.errors import DataError
from torchrank.losses import ListMLELoss, SLAMLoss
from torchrank.plots import plot_generalization
from torchrank.theory import generalization_bound


def test_draws_both_bounds_of_each_loss(tmp_path):
    curves = {
        name: generalization_bound(loss, [2, 10, 100], num_lists=50, radius=1.0, weight_norm=1.0)
        for name, loss in (("SLAM", SLAMLoss()), ("ListMLE", ListMLELoss()))
    }
    figure = plot_generalization(curves)
    lines = figure.axes[0].get_lines()
    assert len(lines) == 4
    assert list(lines[0].get_ydata()) == curves["SLAM"].one_norm
    assert list(lines[3].get_ydata()) == curves["ListMLE"].two_norm
    figure.savefig(tmp_path / "curves.png")


def test_refuses_nothing():
    with pytest.raises(DataError, match="no bounds"):
        plot_generalization({})
