"""Σ RML of a plainly written perceptron under its bounds, on separable and other streams."""

import math

import pytest
import torch

from tests import oracles
from torchrank.losses import slam_loss
from torchrank.theory import perceptron_loss_bound, perceptron_regret_bound

RULES = [("slam", "margin"), ("slam", "mistakes"), ("pair", "mistakes")]


def stream(seed, rounds, separation, measure):
    """Lists of 2 to 12 documents of norm at most 1 that a unit vector separates by ``separation`` (or not: 0)."""
    generator = torch.Generator().manual_seed(seed)
    best = torch.nn.functional.normalize(torch.randn(5, generator=generator, dtype=torch.float64), dim=0)
    levels = 2 if measure == "map" else 4
    for _ in range(rounds):
        length = int(torch.randint(2, 13, (), generator=generator))
        relevance = torch.randint(0, levels, (length,), generator=generator).double()
        features = torch.nn.functional.normalize(torch.randn(length, 5, generator=generator, dtype=torch.float64))
        features *= 0.3
        if separation:
            features += (relevance * separation - features @ best)[:, None] * best
        assert features.norm(dim=-1).max() <= 1
        yield features, relevance


def rml(scores, relevance, measure):
    loss = oracles.ndcg_loss if measure == "ndcg" else oracles.ap_loss
    return loss(scores.tolist(), relevance.tolist())


def step(features, relevance, weights, measure, update, active, margin, loss):
    """The direction −z of the update, as the formulas read, and Σ v over what it touches."""
    scores, pairs = features @ weights, oracles.ordered_pairs(relevance.tolist())
    if update == "pair":
        i, j = max(pairs, key=lambda p: float(scores[p[1]] - scores[p[0]]))
        return loss * (features[i] - features[j]), loss
    v = oracles.slam_weights(relevance.tolist(), measure)
    direction, touched = torch.zeros_like(weights), 0.0
    for i in range(len(relevance)):
        below = [j for a, j in pairs if a == i]
        if not below:
            continue
        rival = max(below, key=lambda j: float(scores[j]))
        if (scores[rival] >= scores[i]) if active == "mistakes" else (margin + scores[rival] - scores[i] > 0):
            direction += v[i] * (features[i] - features[rival])
            touched += v[i]
    return direction, touched


def run(lists, measure, update, active, margin=1.0, eta=1.0):
    """Cumulative RML, and what each round's step was."""
    weights, total, trace = torch.zeros(5, dtype=torch.float64), 0.0, []
    for features, relevance in lists:
        loss = rml(features @ weights, relevance, measure)
        if loss > 0:
            direction, touched = step(features, relevance, weights, measure, update, active, margin, loss)
            trace.append((features, relevance, weights, direction, touched, loss))
            weights = weights + eta * direction
            total += loss
    return total, trace


@pytest.mark.parametrize(("update", "active"), RULES)
@pytest.mark.parametrize("measure", ["ndcg", "map"])
@pytest.mark.parametrize("eta", [0.25, 1.0])
def test_separable_streams_stay_below_the_bound(update, active, measure, eta):
    for seed in range(4):
        separation = 0.2
        total, trace = run(stream(seed, 250, separation, measure), measure, update, active, 1.0, eta)
        bound = perceptron_loss_bound(1.0, separation, update=update, active=active, eta=eta)
        assert 0 < total <= bound
        # the inequalities of the proof, round by round
        for features, _, weights, direction, touched, loss in trace:
            assert loss <= touched + 1e-9 <= 1 + 2e-9
            assert direction.norm() <= 2 * features.norm(dim=-1).max() * touched + 1e-9
            slack = touched if (update, active) == ("slam", "margin") else 0.0
            assert -direction @ weights >= -slack - 1e-9


def test_mistakes_rank_alike_for_every_rate():
    runs = [run(stream(3, 150, 0.2, "ndcg"), "ndcg", "slam", "mistakes", 1.0, eta)[0] for eta in (1 / 64, 1.0, 64.0)]
    assert runs[0] == runs[1] == runs[2]


@pytest.mark.parametrize("measure", ["ndcg", "map"])
@pytest.mark.parametrize("eta", [0.1, 1.0])
def test_any_stream_stays_below_the_regret_bound(measure, eta):
    lists = list(stream(1, 200, 0.0, measure))
    total, trace = run(lists, measure, "slam", "margin", 1.0, eta)

    def cumulative(u):
        return sum(float(slam_loss(x @ u, r, measure=measure)) for x, r, *_ in trace)

    own = sum(float(slam_loss(x @ w, r, measure=measure)) for x, r, w, *_ in trace)
    squares = sum(float(direction @ direction) for *_, direction, _, _ in trace)
    generator = torch.Generator().manual_seed(0)
    for scale in (0.0, 0.3, 3.0):
        u = scale * torch.randn(5, generator=generator, dtype=torch.float64)
        bound = perceptron_regret_bound(cumulative(u), float(u.norm()), squares, eta=eta)
        assert total <= own <= bound


def test_the_bounds_as_arithmetic():
    assert perceptron_loss_bound(2.0, 0.5, margin=3.0, eta=0.5) == (4 * 4 + 2 * 3 / 0.5) / 0.25
    assert perceptron_loss_bound(2.0, 0.5, active="mistakes", eta=0.5) == 4 * 4 / 0.25
    assert perceptron_loss_bound(2.0, 0.5, update="pair") == 4 * 4 / 0.25
    assert perceptron_regret_bound(3.0, 2.0, 5.0, eta=0.5, margin=2.0) == (3 + 4 / (2 * 0.5) + 0.25 * 5) / 2
    assert perceptron_regret_bound(3.0, 2.0, 9.0, update="pair", eta=0.5) == 3 + 2 * 3


def test_refuses_bad_numbers():
    for call in (
        lambda: perceptron_loss_bound(0.0, 1.0),
        lambda: perceptron_loss_bound(1.0, -1.0),
        lambda: perceptron_loss_bound(1.0, 1.0, eta=math.inf),
        lambda: perceptron_loss_bound(1.0, 1.0, active="mistake"),
        lambda: perceptron_loss_bound(1.0, 1.0, update="pairs"),
        lambda: perceptron_regret_bound(1.0, -1.0, 1.0),
        lambda: perceptron_regret_bound(1.0, 1.0, 1.0, eta=0.0),
    ):
        with pytest.raises(ValueError, match=r"must be|did you mean"):
            call()
