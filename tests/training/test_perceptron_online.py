"""The perceptron's promises on streams: its losses stay below the bounds, end after the last mistake, and ignore η."""

import pytest
import torch

from torchrank.data import make_queries
from torchrank.errors import DataError, ShapeError, TorchRankError
from torchrank.losses import slam_loss
from torchrank.theory import perceptron_loss_bound, perceptron_regret_bound
from torchrank.training import perceptron_curves, perceptron_online, perceptron_pass

RULES = list(perceptron_online.RULES.values())


def stream(made):
    data = made.dataset
    return data.features.double(), data.relevance, data.offsets


def separable(seed):
    return make_queries(40, num_features=5, documents=(3, 12), margin=0.3, seed=seed)


@pytest.mark.parametrize("measure", ["ndcg", "map"])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_cumulative_loss_stays_below_its_bound_and_ends(rule, measure):
    for seed in range(10):
        made = separable(seed)
        bound = perceptron_loss_bound(made.radius, made.margin, **rule)
        total, done = 0.0, perceptron_pass(*stream(made), measure=measure, **rule)
        while done.measure_loss.any():
            assert (done.measure_loss <= done.touched + 1e-12).all()
            total += float(done.touched.sum())
            assert total <= bound
            done = perceptron_pass(*stream(made), measure=measure, start=done.weights, **rule)
        # A whole pass without a mistake: the curve is flat from here on, however long the stream goes on.
        again = perceptron_pass(*stream(made), measure=measure, start=done.weights, **rule)
        assert total > 0
        assert (again.measure_loss == 0).all()
        assert torch.equal(again.weights, done.weights)


@pytest.mark.parametrize("eta", [1 / 64, 64.0])
@pytest.mark.parametrize("margin", [1.0, 4.0])
def test_the_bound_of_the_margin_rule_holds_for_every_step_size_and_margin(eta, margin):
    for seed in range(5):
        made = separable(seed)
        done = perceptron_pass(*stream(made), eta=eta, margin=margin, rounds=torch.arange(40).repeat(5))
        assert done.touched.sum() <= perceptron_loss_bound(made.radius, made.margin, eta=eta, margin=margin)


@pytest.mark.parametrize("measure", ["ndcg", "map"])
@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("margin", [0.5, 1.0])
def test_the_regret_bound_holds_on_noise_for_any_comparator(rule, measure, margin):
    for seed in range(10):
        made = make_queries(30, num_features=5, noise=1.0, seed=seed)
        for scale in (0.0, 1.0):
            u = scale * made.weights.double()
            done = perceptron_pass(*stream(made), measure=measure, margin=margin, comparator=u, **rule)
            bound = perceptron_regret_bound(
                done.comparator_loss.cumsum(0), float(u.norm()), done.squared_step.cumsum(0), margin=margin, **rule
            )
            assert (done.measure_loss.cumsum(0) <= bound + 1e-9).all()


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_every_line_of_the_proofs(rule):
    """‖z‖ ≤ 2RV, z·w* ≤ −γV, and Δ·RML ≤ f(w) in each round; z is read off the step."""
    made = separable(3)
    x, relevance, offsets = stream(made)
    best, weights = made.weights.double(), torch.zeros(5, dtype=torch.float64)
    for q in range(40):
        done = perceptron_pass(x, relevance, offsets, rounds=torch.tensor([q]), start=weights, **rule)
        z, v = weights - done.weights, done.touched[0]
        torch.testing.assert_close(done.squared_step[0], z @ z)
        assert z.norm() <= 2 * made.radius * v + 1e-12
        assert z @ best <= -made.margin * v + 1e-6  # w* is stored in single precision
        assert z @ weights >= (-v if rule == RULES[0] else 0) - 1e-12
        assert done.measure_loss[0] <= min(float(v), float(done.surrogate[0])) + 1e-12
        weights = done.weights


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rule", RULES[1:], ids=str)
def test_rankings_do_not_depend_on_the_step_size(rule, dtype):
    made = make_queries(60, num_features=8, noise=0.5, seed=4)
    runs = [
        perceptron_pass(made.dataset.features.to(dtype), *stream(made)[1:], eta=eta, **rule) for eta in (1, 1 / 64, 64)
    ]
    for eta, run in zip((1 / 64, 64), runs[1:], strict=True):
        assert torch.equal(run.weights, eta * runs[0].weights)
        assert torch.equal(run.measure_loss, runs[0].measure_loss)


def test_the_published_rule_depends_on_the_step_size():
    made = make_queries(60, num_features=8, noise=0.5, seed=4)
    one, other = (perceptron_pass(*stream(made), eta=eta).measure_loss for eta in (1 / 64, 64))
    assert not torch.equal(one, other)


@pytest.mark.parametrize("measure", ["ndcg", "map"])
def test_the_step_is_the_gradient_of_the_slam_loss(measure):
    made = make_queries(30, num_features=6, seed=1)
    x, relevance, offsets = stream(made)
    w = torch.ones(6, dtype=torch.float64)  # no scores tie: the sub-gradient is one
    for q in range(30):
        here = slice(int(offsets[q]), int(offsets[q + 1]))
        leaf = w.clone().requires_grad_()
        loss = slam_loss(x[here] @ leaf, relevance[here].double(), measure=measure)
        loss.backward()
        done = perceptron_pass(x, relevance, offsets, measure=measure, eta=0.5, rounds=torch.tensor([q]), start=w)
        if done.measure_loss[0] > 0:
            torch.testing.assert_close(done.weights, w - 0.5 * leaf.grad)
            torch.testing.assert_close(done.surrogate[0], loss.detach())
        else:
            assert torch.equal(done.weights, w)
        w = done.weights


def test_a_perfect_start_learns_nothing_and_one_document_lists_cost_nothing():
    made = separable(0)
    done = perceptron_pass(*stream(made), start=made.weights)
    assert (done.measure_loss == 0).all()
    assert torch.equal(done.weights, made.weights.double())
    alone = perceptron_pass(torch.ones(2, 3), torch.tensor([1.0, 0.0]), torch.tensor([0, 1, 2]))
    assert alone.measure_loss.tolist() == [0.0, 0.0]


def test_nothing_that_was_given_is_changed():
    made = separable(0)
    x, relevance, offsets = stream(made)
    start = torch.ones(5, dtype=torch.float64)
    copies = [t.clone() for t in (x, relevance, offsets, start)]
    perceptron_pass(x, relevance, offsets, start=start)
    assert all(torch.equal(a, b) for a, b in zip(copies, (x, relevance, offsets, start), strict=True))


@pytest.mark.parametrize("measure", ["ndcg", "map"])
def test_the_three_curves_side_by_side_stay_below_their_bounds(measure):
    data = make_queries(60, num_features=5, noise=0.5, seed=7)
    order = torch.randperm(60, generator=torch.Generator().manual_seed(0)).repeat(2)
    curves = perceptron_curves(data.dataset, comparator=4 * data.weights, measure=measure, rounds=order)
    assert list(curves) == list(perceptron_online.RULES)
    for name, curve in curves.items():
        u, rule = 4 * data.weights.double(), perceptron_online.RULES[name]
        run = perceptron_pass(*stream(data), measure=measure, rounds=order, comparator=u, **rule)
        torch.testing.assert_close(curve.loss, run.measure_loss.cumsum(0))
        assert (curve.loss <= curve.bound).all()
        last = perceptron_regret_bound(run.comparator_loss.sum(), float(u.norm()), run.squared_step.sum(), **rule)
        torch.testing.assert_close(curve.bound[-1], last)
    with pytest.raises(ShapeError, match="comparator"):
        perceptron_curves(data.dataset, comparator=torch.ones(4))


def test_bad_input_is_refused():
    x, r, o = torch.ones(4, 2), torch.tensor([1.0, 0, 1, 0]), torch.tensor([0, 2, 4])
    with pytest.raises(DataError, match="NaN"):
        perceptron_pass(x.masked_fill(torch.eye(4, 2, dtype=torch.bool), float("nan")), r, o)
    with pytest.raises(ShapeError, match="relevance"):
        perceptron_pass(x, r[:3], o)
    with pytest.raises(ShapeError, match="offsets"):
        perceptron_pass(x, r, torch.tensor([0, 5]))
    with pytest.raises(TorchRankError, match="did you mean 'margin'"):
        perceptron_pass(x, r, o, active="margn")
    with pytest.raises(DataError, match="at least 0"):
        perceptron_pass(x, -r, o)
