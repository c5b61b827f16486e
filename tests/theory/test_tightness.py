"""v^MAP and every other vector of weights, by brute force over scores."""

import itertools

import pytest
import torch

from tests import oracles
from torchrank.losses import slam_loss, slam_weights
from torchrank.theory import bounds_average_precision, tight_map_weights


def least_slack(weights, length):
    """The least of φ − (1 − AP) over scores on a grid that holds the worst case: ties, and gaps of a margin."""
    relevant = weights.shape[-1]
    relevance = torch.zeros(length, dtype=torch.float64)
    relevance[:relevant] = 1
    v = torch.zeros(length, dtype=torch.float64)
    v[:relevant] = weights
    grid = torch.tensor(list(itertools.product([-1.0, 0.0, 1.0], repeat=length)), dtype=torch.float64)
    phi = slam_loss(grid, relevance.expand_as(grid), weights=v.expand_as(grid), measure="map")
    losses = [oracles.ap_loss(s, relevance.tolist()) for s in grid.tolist()]
    return (phi - torch.tensor(losses, dtype=torch.float64)).min().item()


@pytest.mark.parametrize(("relevant", "length"), [(1, 2), (1, 4), (2, 3), (2, 4), (3, 4), (2, 5), (3, 5), (3, 6)])
def test_a_vector_bounds_iff_its_partial_sums_do(relevant, length):
    generator = torch.Generator().manual_seed(length)
    tight = tight_map_weights(relevant, length)
    candidates = [tight, tight.flip(0), tight.mean().expand(relevant), tight * 0.999]
    for _ in range(12):
        spread = torch.rand(relevant, generator=generator, dtype=torch.float64)
        candidates.append(tight + 0.3 * (spread - 0.35))
        candidates.append(spread / spread.sum() * tight.sum())
    verdicts = []
    for weights in candidates:
        weights = weights.clamp(min=0)
        verdict = bool(bounds_average_precision(weights, length))
        slack = least_slack(weights, length)
        assert verdict == (slack >= -1e-9)
        verdicts.append(verdict)
    assert verdicts[:4] == [True, True, True, False]
    assert len(set(verdicts[4:])) == 2  # the draw holds both kinds


@pytest.mark.parametrize(("relevant", "length"), [(1, 3), (2, 4), (3, 7)])
def test_v_map_is_minimal_has_the_least_sum_and_does_not_dominate(relevant, length):
    tight = tight_map_weights(relevant, length)
    for i in range(relevant):
        assert not bounds_average_precision(tight - 1e-6 * torch.eye(relevant).double()[i], length)
    if relevant > 1:
        swapped = tight.flip(0)
        assert bounds_average_precision(swapped, length)
        assert (swapped < tight).any()  # so v^MAP is not below every bounding vector
    generator = torch.Generator().manual_seed(0)
    others = torch.rand(4000, relevant, generator=generator, dtype=torch.float64)
    bounding = others[bounds_average_precision(others, length)]
    assert len(bounding) > 0
    assert (bounding.sum(-1) >= tight.sum() - 1e-12).all()


def test_these_are_the_weights_the_loss_takes():
    for relevant, length in ((1, 3), (2, 5), (4, 6)):
        relevance = (torch.arange(length) < relevant).double()
        got = slam_weights(relevance, measure="map", ties="first")[:relevant]
        torch.testing.assert_close(got, tight_map_weights(relevant, length))
    assert tight_map_weights(0, 3).shape == (0,)
    assert tight_map_weights(3, 3).tolist() == [0.0] * 3


def test_refuses_more_relevant_than_there_are():
    with pytest.raises(ValueError, match="relevant=4"):
        bounds_average_precision(torch.ones(4), 3)
