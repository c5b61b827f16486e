"""Trust in a ranking: bootstrap ranks, attributes left out, Shapley contributions."""

import itertools

import numpy as np
import pytest
import torch

from torchrank import fit_curve
from torchrank.errors import TorchRankError
from torchrank.training import contributions, leave_one_out, rank_intervals


@pytest.fixture
def points():
    generator = np.random.default_rng(1)
    along = generator.random(60)
    return torch.from_numpy(np.stack([along, along**2, 1 - along], 1) + 0.05 * generator.normal(size=(60, 3)))


@pytest.fixture
def curve(points):
    return fit_curve(points, [1, 1, -1])


def test_contributions_are_shapley_values(curve, points):
    few = points[:5]
    added = contributions(curve, points)[:5]
    median = points.median(0).values
    want = torch.zeros_like(few)
    for order in itertools.permutations(range(3)):
        now = median.expand_as(few).clone()
        for j in order:
            before = curve(now).detach()
            now[:, j] = few[:, j]
            want[:, j] += (curve(now).detach() - before) / 6
    torch.testing.assert_close(added, want)
    torch.testing.assert_close(added.sum(1), curve(few).detach() - curve(median[None]).detach())


def test_contributions_of_many_attributes_add_up_and_are_near(curve, points, monkeypatch):
    exact = contributions(curve, points)
    monkeypatch.setattr("torchrank.training.curve_analysis._MOST_ATTRIBUTES", 2)
    sampled = contributions(curve, points)
    torch.testing.assert_close(sampled.sum(1), exact.sum(1))
    torch.testing.assert_close(sampled, exact, atol=0.02, rtol=0)
    assert torch.equal(sampled, contributions(curve, points))


def test_intervals_hold_most_ranks_and_repeat_by_seed(curve, points):
    intervals = rank_intervals(curve, points, rounds=20, seed=3)
    assert torch.equal(intervals, rank_intervals(curve, points, rounds=20, seed=3))
    ranks = torch.from_numpy(1 + np.argsort(np.argsort(-curve(points).detach().numpy())))
    inside = (intervals[:, 0] <= ranks) & (ranks <= intervals[:, 1])
    assert inside.float().mean() > 0.9
    assert (intervals[:, 0] <= intervals[:, 1]).all()
    with pytest.raises(TorchRankError):
        rank_intervals(curve, points, rounds=0)


def test_leaving_out_noise_changes_less_than_leaving_out_an_attribute(points):
    noise = torch.from_numpy(np.random.default_rng(2).random((60, 1)))
    wide = torch.cat([points, noise], 1)
    rows = leave_one_out(fit_curve(wide, [1, 1, -1, 1]), wide)
    assert [row.attribute for row in rows] == [0, 1, 2, 3]
    assert rows[3].explained_variance == max(row.explained_variance for row in rows)
    assert all(-1 <= row.spearman <= 1 and 0 <= row.largest_move < 60 for row in rows)
    assert leave_one_out(fit_curve(points[:, :1], [1]), points[:, :1]) == []
