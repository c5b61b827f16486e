"""Synthetic objects follow their curve, and tables hand out every row once."""

import numpy as np
import pytest
import torch

from torchrank.data import RowLoader, make_objects
from torchrank.errors import TorchRankError
from torchrank.ops import project


def test_places_are_the_right_ranking():
    made = make_objects(500, directions=[1, -1], noise=0.0)
    found, squared = project(made.points, made.control_points)
    torch.testing.assert_close(found, made.places, atol=1e-7, rtol=0)
    assert squared.max() < 1e-20
    assert made.control_points[:, [0, 3]].tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_the_seed_decides():
    assert torch.equal(make_objects(50, seed=1).points, make_objects(50, seed=1).points)
    assert not torch.equal(make_objects(50, seed=1).points, make_objects(50, seed=2).points)


def test_noise_is_what_it_says():
    quiet, loud = (make_objects(20_000, noise=n, seed=3) for n in (0.0, 0.1))
    assert (loud.points - quiet.points).std().item() == pytest.approx(0.1, rel=0.02)


@pytest.mark.parametrize("bad", [{"num_objects": 0}, {"directions": [0]}, {"directions": []}, {"noise": -1.0}])
def test_bad_options(bad):
    with pytest.raises(TorchRankError, match=next(iter(bad))):
        make_objects(**{"num_objects": 10, **bad})


@pytest.mark.parametrize("kind", ["tensor", "array"])
def test_rows_come_once_each_and_shuffled_anew(kind):
    points = torch.arange(22.0, dtype=torch.float64).reshape(11, 2)
    rows = torch.tensor([1, 3, 5, 7, 9, 10])
    loader = RowLoader(points if kind == "tensor" else points.numpy(), rows, batch_size=4, shuffle=True, seed=1)
    epochs = [list(loader) for _ in range(3)]
    for epoch in epochs:
        assert len(epoch) == len(loader) == 2
        assert torch.cat([b.rows for b in epoch]).sort().values.tolist() == rows.tolist()
        for batch in epoch:
            torch.testing.assert_close(batch.points, points[batch.rows])
    assert len({tuple(torch.cat([b.rows for b in epoch]).tolist()) for epoch in epochs}) > 1


def test_an_array_mapped_from_a_file(tmp_path):
    np.save(tmp_path / "table.npy", np.arange(20, dtype=np.float32).reshape(10, 2))
    batches = list(RowLoader(np.load(tmp_path / "table.npy", mmap_mode="r"), batch_size=5))
    assert batches[1].points.tolist() == [[10.0, 11.0], [12.0, 13.0], [14.0, 15.0], [16.0, 17.0], [18.0, 19.0]]
