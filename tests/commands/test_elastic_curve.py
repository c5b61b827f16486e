"""The polyline's own geometry, and ElPiGraph where its package is installed."""

from importlib.util import find_spec

import pytest
import torch

from torchrank.commands import elastic_curve as module
from torchrank.commands.elastic_curve import Polyline

LINE = Polyline(torch.tensor([[0.0, 0.0], [3.0, 0.0], [3.0, 1.0]], dtype=torch.float64))


def test_places_and_points_agree():
    s = torch.linspace(0, 1, 41, dtype=torch.float64)
    place, squared = LINE.place(LINE.curve(s))
    torch.testing.assert_close(place, s)
    torch.testing.assert_close(squared, torch.zeros_like(s))


def test_the_nearest_point_is_the_nearest():
    points = torch.rand(50, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 5 - 1
    dense = LINE.curve(torch.linspace(0, 1, 20001, dtype=torch.float64))
    torch.testing.assert_close(LINE.place(points)[1], torch.cdist(points, dense).amin(1) ** 2, atol=1e-3, rtol=0)


def test_edges_in_any_order_make_a_path():
    assert module._path(torch.tensor([[2, 0], [3, 1], [1, 2]]).numpy()) == [0, 2, 1, 3]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("elpigraph") is None, reason="ElPiGraph's package is not installed")
@pytest.mark.filterwarnings("ignore")
def test_elpigraph_follows_a_line_to_its_better_end():
    along = torch.rand(200, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    points = torch.cat([along, 1 - along], 1)
    line = module.elastic_curve(points, torch.tensor([-1.0, 1.0], dtype=torch.float64), nodes=4)
    assert line.nodes.shape == (4, 2)
    assert line.nodes[0, 0] > line.nodes[-1, 0]
    place = line.place(points)[0]
    assert (place[along[:, 0].argsort()].diff() <= 1e-9).all()
