"""The position-based click model: known propensities are found again, and weights undo them."""

import pytest
import torch

from torchrank.data import click_lists, make_queries, simulate_clicks
from torchrank.errors import ConvergenceError, DataError, ShapeError, TorchRankError
from torchrank.ops import fit_position_bias, inverse_propensities, rank_propensities


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0, 2.0])
def test_known_propensities_are_found_again(eta):
    dataset = make_queries(50, num_features=5, documents=(8, 12)).dataset
    log = simulate_clicks(dataset, dataset.features[:, 0], sessions=40_000, eta=eta, temperature=1.0, cutoff=8, seed=1)
    found = fit_position_bias(log.documents, log.positions, log.clicked)
    truth = rank_propensities(8, eta)
    assert float((found.propensities - truth).abs().max()) < 0.03
    assert found.propensities[0] == 1


def test_each_step_of_the_estimator_raises_the_likelihood():
    dataset = make_queries(20, num_features=3, documents=(6, 6)).dataset
    log = simulate_clicks(dataset, dataset.features[:, 0], sessions=2000, temperature=1.0, seed=2)
    likelihoods = [
        fit_position_bias(log.documents, log.positions, log.clicked, tolerance=tolerance).log_likelihood
        for tolerance in (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)
    ]
    assert likelihoods == sorted(likelihoods)
    assert likelihoods[-1] > likelihoods[0]


def test_the_fit_is_the_maximum_of_the_likelihood():
    """Against a general optimiser of the Bernoulli likelihood."""
    random = torch.Generator().manual_seed(0)
    items, positions = torch.randint(4, (3000,), generator=random), torch.randint(1, 4, (3000,), generator=random)
    chance = torch.tensor([0.9, 0.5, 0.3, 0.7])[items] * torch.tensor([0.9, 0.6, 0.2])[positions - 1]
    clicked = torch.rand(3000, generator=random) < chance
    found = fit_position_bias(items, positions, clicked, tolerance=1e-10)
    cells = torch.stack([items, positions - 1, clicked.long()]).unique(dim=1, return_counts=True)
    (item, position, click), count = cells
    logits = torch.zeros(7, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([logits], max_iter=200, tolerance_grad=1e-8, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        p = logits.sigmoid()
        seen = p[:3][position] * p[3:][item]
        loss = -(count * torch.where(click == 1, seen.log(), torch.log1p(-seen))).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    theta = logits.detach().sigmoid()[:3]
    torch.testing.assert_close(found.propensities, theta / theta[0], rtol=1e-3, atol=1e-4)
    assert abs(found.log_likelihood + float(closure().detach())) < 1e-3


def test_order_and_gaps_in_item_numbers_change_nothing():
    random = torch.Generator().manual_seed(3)
    items, positions = torch.randint(5, (800,), generator=random), torch.randint(1, 4, (800,), generator=random)
    clicked = torch.rand(800, generator=random) < 0.5 / positions
    found = fit_position_bias(items, positions, clicked)
    order = torch.randperm(800, generator=random)
    other = fit_position_bias(3 * items[order] + 1, positions[order], clicked[order])
    torch.testing.assert_close(other.propensities, found.propensities)
    torch.testing.assert_close(other.attraction[1::3], found.attraction)
    assert not other.attraction[::3].any()


def test_logs_that_say_nothing_are_refused():
    items, positions = torch.tensor([0, 1, 1, 0]), torch.tensor([1, 2, 2, 1])
    clicked = torch.tensor([True, True, False, False])
    with pytest.raises(DataError, match="no item with clicks joins position 2 to position 1"):
        fit_position_bias(items, positions, clicked)
    with pytest.raises(DataError, match="no click"):
        fit_position_bias(items, positions, torch.zeros(4, dtype=torch.bool))
    with pytest.raises(DataError, match="nothing was shown at position 2 of 3"):
        fit_position_bias(items, torch.tensor([1, 3, 3, 1]), clicked)
    with pytest.raises(DataError, match="position 0"):
        fit_position_bias(items, positions - 1, clicked)
    with pytest.raises(DataError, match="item -1"):
        fit_position_bias(items - 1, positions, clicked)
    with pytest.raises(ShapeError, match="float32; give int64"):
        fit_position_bias(items, positions.float(), clicked)
    with pytest.raises(ShapeError, match="clicked"):
        fit_position_bias(items, positions, clicked.long())


def test_too_few_steps_are_said():
    random = torch.Generator().manual_seed(0)
    items, positions = torch.randint(4, (300,), generator=random), torch.randint(1, 4, (300,), generator=random)
    with pytest.raises(ConvergenceError, match="after 1 steps"):
        fit_position_bias(items, positions, torch.rand(300, generator=random) < 0.4, iterations=1, tolerance=0.0)


def test_a_position_without_a_click_is_not_examined():
    items, positions = torch.tensor([0, 0, 0, 0]), torch.tensor([1, 2, 1, 2])
    found = fit_position_bias(items, positions, torch.tensor([True, False, True, False]))
    assert float(found.propensities[1]) < 1e-4


def test_weights_undo_propensities_and_are_clipped():
    propensities = rank_propensities(5, 2.0)
    positions = torch.tensor([[1, 5], [2, 3]])
    torch.testing.assert_close(
        inverse_propensities(positions, propensities) * propensities[positions - 1],
        torch.ones(2, 2, dtype=torch.float64),
    )
    assert float(inverse_propensities(positions, propensities, clip=0.1).max()) == 10
    assert bool((inverse_propensities(positions, propensities, clip=1.0) == 1).all())
    for bad, error, message in (
        (lambda: inverse_propensities(positions, propensities[:4]), DataError, "position 5"),
        (lambda: inverse_propensities(positions, 0 * propensities), DataError, "propensity of position 1 is 0"),
        (lambda: inverse_propensities(positions, propensities, clip=1.5), TorchRankError, "clip=1.5"),
        (lambda: inverse_propensities(positions, propensities[None]), ShapeError, r"\(K,\)"),
        (lambda: rank_propensities(0), TorchRankError, "count=0"),
        (lambda: rank_propensities(3, -1.0), TorchRankError, "eta=-1"),
    ):
        with pytest.raises(error, match=message):
            bad()


def test_weighted_clicks_are_without_bias():
    """The mean over many logs of Σ clicks / θ is what clicks would be were every place examined."""
    dataset = make_queries(1, num_features=3, documents=(6, 6), seed=4).dataset
    sessions = 50_000
    log = simulate_clicks(dataset, dataset.features[:, 0], sessions=sessions, eta=1.0, temperature=0.5, seed=5)
    free = simulate_clicks(dataset, dataset.features[:, 0], sessions=sessions, eta=0.0, seed=6)
    made = click_lists(dataset, log, propensities=rank_propensities(6), lists="query")
    plain = click_lists(dataset, free, lists="query")
    torch.testing.assert_close(made.relevance / sessions, plain.relevance / sessions, atol=0.02, rtol=0)
