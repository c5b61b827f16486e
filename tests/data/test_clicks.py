"""Simulated clicks follow their model, and click lists give the weighted sums they promise."""

import pytest
import torch

from torchrank.data import ClickLog, QueryDataset, attraction, click_lists, make_queries, simulate_clicks
from torchrank.errors import DataError, ShapeError, TorchRankError
from torchrank.losses import PairwiseHingeLoss, PairwiseLogisticLoss, SLAMLoss, SoftmaxLoss, softmax_loss
from torchrank.ops import ragged_to_padded, rank_propensities

DATA = make_queries(7, num_features=4, documents=(2, 9), seed=3).dataset


def brute_force_order(scores, offsets):
    """Each query's documents by falling score, ties in input order."""
    found = []
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        found.append(sorted(range(begin, end), key=lambda i: -float(scores[i])))
    return found


def test_sessions_show_each_query_in_the_loggers_order():
    scores = DATA.features[:, 0].round(decimals=0)  # with ties
    log = simulate_clicks(DATA, scores, sessions=30, seed=1)
    orders = brute_force_order(scores, DATA.offsets)
    starts = (log.positions == 1).nonzero().flatten().tolist()
    assert len(starts) == 30
    for begin, end in zip(starts, [*starts[1:], len(log.positions)], strict=True):
        shown = log.documents[begin:end].tolist()
        assert shown in orders
        assert log.positions[begin:end].tolist() == list(range(1, len(shown) + 1))


def test_a_cutoff_shows_the_top_alone():
    log = simulate_clicks(DATA, DATA.features[:, 0], sessions=50, cutoff=2, seed=1)
    whole = simulate_clicks(DATA, DATA.features[:, 0], sessions=50, seed=1)
    top = whole.positions <= 2
    assert torch.equal(log.documents, whole.documents[top])
    assert int(log.positions.max()) == 2


@pytest.mark.parametrize("eta", [0.0, 1.5])
def test_clicks_come_as_often_as_the_model_says(eta):
    scores = DATA.features[:, 1]
    log = simulate_clicks(DATA, scores, sessions=30_000, eta=eta, noise=0.2, seed=2)
    chance = (
        rank_propensities(int(DATA.lengths.max()), eta)[log.positions - 1]
        * attraction(DATA.relevance, noise=0.2)[log.documents]
    )
    for position in range(1, int(DATA.lengths.max()) + 1):
        here = log.positions == position
        expected, got = float(chance[here].sum()), int(log.clicked[here].sum())
        assert abs(got - expected) < 5 * expected**0.5


def test_temperature_draws_rankings_from_plackett_luce():
    data = QueryDataset(torch.zeros(3, 1), torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0, 3]))
    scores = torch.tensor([0.5, 0.0, -0.5])
    log = simulate_clicks(data, scores, sessions=20_000, temperature=0.5, seed=4)
    first = torch.bincount(log.documents[log.positions == 1], minlength=3) / 20_000
    torch.testing.assert_close(first, (scores / 0.5).softmax(0), atol=0.015, rtol=0)


def test_a_seed_gives_one_log():
    one, two, other = (simulate_clicks(DATA, DATA.features[:, 0], sessions=40, seed=seed) for seed in (5, 5, 6))
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    assert not torch.equal(one.clicked, other.clicked[: len(one.clicked)])


def random_log(rows=300, seed=0):
    random = torch.Generator().manual_seed(seed)
    return ClickLog(
        torch.randint(len(DATA.features), (rows,), generator=random),
        torch.randint(1, 6, (rows,), generator=random),
        torch.rand(rows, generator=random) < 0.3,
    )


@pytest.mark.parametrize("clip", [0.0, 0.4])
@pytest.mark.parametrize(
    "loss", [SoftmaxLoss(target="relevance"), PairwiseLogisticLoss(), PairwiseHingeLoss(), SLAMLoss()], ids=repr
)
def test_click_lists_sum_the_weighted_losses_of_clicks(loss, clip):
    log, propensities = random_log(), rank_propensities(5)
    made = click_lists(DATA, log, propensities=propensities, clip=clip)
    padded = [ragged_to_padded(x, made.offsets) for x in (made.features[:, 0], made.relevance)]
    value = loss(padded[0][0], padded[1][0], padded[0][1], made.list_weights)
    total = weights = 0.0
    owner = torch.repeat_interleave(torch.arange(len(DATA)), DATA.lengths)
    for document, position, clicked in zip(*(x.tolist() for x in log), strict=True):
        if not clicked:
            continue
        begin, end = DATA.offsets[owner[document]], DATA.offsets[owner[document] + 1]
        relevance = torch.zeros(end - begin)
        relevance[document - begin] = 1
        weight = 1 / max(float(propensities[position - 1]), clip)
        total += weight * float(loss(DATA.features[None, begin:end, 0], relevance[None]))
        weights += weight
    assert float(value) == pytest.approx(total / weights, rel=1e-4)


def test_query_lists_give_the_softmax_loss_of_click_lists():
    log, propensities = random_log(), rank_propensities(5)
    values = []
    for lists in ("query", "click"):
        made = click_lists(DATA, log, propensities=propensities, lists=lists)
        scores, mask = ragged_to_padded(made.features[:, 0], made.offsets)
        relevance, _ = ragged_to_padded(made.relevance, made.offsets)
        each = softmax_loss(scores, relevance, mask, target="relevance")
        values.append(float((each * made.list_weights).sum() / made.list_weights.sum()))
    assert values[0] == pytest.approx(values[1], rel=1e-5)


def test_without_propensities_every_click_counts_once():
    log = random_log()
    made = click_lists(DATA, log, lists="query")
    clicks = torch.bincount(log.documents[log.clicked], minlength=len(DATA.features)).float()
    wanted, _ = ragged_to_padded(clicks, DATA.offsets)
    got, _ = ragged_to_padded(made.relevance, made.offsets)
    assert torch.equal(got, wanted[wanted.sum(1) > 0])
    ones = click_lists(DATA, log, propensities=torch.ones(5), lists="query")
    assert torch.equal(ones.relevance, made.relevance)
    assert torch.equal(ones.list_weights, made.list_weights)


def test_what_cannot_be_is_refused():
    log, scores = random_log(), DATA.features[:, 0]
    for bad, error, message in (
        (lambda: simulate_clicks(DATA, scores[1:], sessions=3), ShapeError, "finite numbers"),
        (lambda: simulate_clicks(DATA, scores / 0, sessions=3), ShapeError, "finite numbers"),
        (lambda: simulate_clicks(DATA, scores, sessions=0), TorchRankError, "sessions=0"),
        (lambda: simulate_clicks(DATA, scores, sessions=3, cutoff=0), TorchRankError, "cutoff=0"),
        (lambda: simulate_clicks(DATA, scores, sessions=3, eta=-1.0), TorchRankError, "eta=-1"),
        (lambda: simulate_clicks(DATA, scores, sessions=3, noise=2.0), TorchRankError, "noise=2"),
        (lambda: simulate_clicks(DATA, scores, sessions=3, temperature=-1.0), TorchRankError, "temperature=-1"),
        (lambda: attraction(torch.zeros(3)), DataError, "all grades are 0"),
        (lambda: click_lists(DATA, log._replace(documents=log.documents + 99)), DataError, "no document"),
        (lambda: click_lists(DATA, log._replace(positions=log.positions - 1)), DataError, "position 0"),
        (lambda: click_lists(DATA, log, propensities=torch.ones(3)), DataError, "position 5"),
        (lambda: click_lists(DATA, log, clip=2.0, propensities=torch.ones(5)), TorchRankError, "clip=2"),
        (lambda: click_lists(DATA, log._replace(clicked=~log.clicked & log.clicked)), DataError, "no click"),
        (lambda: click_lists(DATA, log._replace(clicked=log.clicked[1:])), ShapeError, "give"),
        (lambda: click_lists(DATA, log, lists="queries"), TorchRankError, "did you mean 'query'"),
    ):
        with pytest.raises(error, match=message):
            bad()
