"""Synthetic queries have the ranker and the margin that they say."""

import pytest
import torch

from torchrank.data import make_queries
from torchrank.errors import TorchRankError


def ordered_gaps(made):
    """For every ordered pair of a list, by how much w* separates it."""
    for query in made.dataset:
        scores = query.features.double() @ made.weights.double()
        more = query.relevance[:, None] > query.relevance
        yield (scores[:, None] - scores)[more]


@pytest.mark.parametrize(("levels", "margin"), [(2, 0.01), (2, 1.5), (3, 0.1), (5, 0.3)])
def test_the_margin_is_kept_and_nearly_met(levels, margin):
    made = make_queries(200, levels=levels, margin=margin, seed=3)
    gaps = torch.cat(list(ordered_gaps(made)))
    assert gaps.min() >= margin
    assert gaps.min() < 1.5 * margin + 0.05
    assert 0.9 < made.radius <= 1
    assert made.margin == margin
    torch.testing.assert_close(made.weights.norm(), torch.tensor(1.0))
    assert set(made.dataset.relevance.tolist()) == set(range(levels))


def test_without_noise_the_best_ranker_orders_every_pair():
    assert all((gap > 0).all() for gap in ordered_gaps(make_queries(50, noise=0.0)))


def test_with_noise_no_direction_does_better():
    made = make_queries(400, noise=1.0, num_features=5, seed=1)
    generator = torch.Generator().manual_seed(0)

    def wrong(weights):
        return sum((gap <= 0).sum().item() for gap in ordered_gaps(made._replace(weights=weights)))

    least = wrong(made.weights)
    assert least > 0
    for _ in range(10):
        other = made.weights + 0.5 * torch.randn(5, generator=generator)
        assert wrong(other) > least
    assert made.margin is None


def test_lengths_grades_and_noise_are_as_asked():
    made = make_queries(2000, documents=(5, 9), levels=4, noise=2.0)
    assert sorted(set(made.dataset.lengths.tolist())) == [5, 6, 7, 8, 9]
    shares = made.dataset.relevance.long().bincount() / len(made.dataset.relevance)
    torch.testing.assert_close(shares, torch.tensor([0.5, 0.25, 0.125, 0.125]), atol=0.02, rtol=0)


def test_the_seed_decides_everything():
    one, same, other = make_queries(5, seed=1), make_queries(5, seed=1), make_queries(5, seed=2)
    assert torch.equal(one.dataset.features, same.dataset.features)
    assert torch.equal(one.weights, same.weights)
    assert not torch.equal(one.weights, other.weights)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_queries": 0}, "num_queries=0"),
        ({"documents": (0, 3)}, r"documents\[0\]=0"),
        ({"documents": (5, 3)}, r"documents\[1\]=3 must be at least 5"),
        ({"levels": 1}, "levels=1"),
        ({"noise": -1.0}, "noise=-1.0"),
        ({"margin": 0.0}, "margin=0.0"),
        ({"margin": 1.0, "levels": 3}, "margin=1.0 must lie above 0 and below 0.95"),
        ({"margin": 0.1, "num_features": 1}, "num_features=1 must be at least 2"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(TorchRankError, match=message):
        make_queries(**options)
