"""The compiled SAROS loops against one autograd step a block."""

import copy

import numpy as np
import pytest
import torch

from tests.preference_cases import (
    DIM,
    ITEMS,
    RULES,
    USERS,
    arrays,
    assert_same_weights,
    blocks_of,
    factorization,
    feedback,
    log_arrays,
    slow_saros,
)
from torchrank.ops.sequential.feedback import saros_feedback_users
from torchrank.ops.sequential.momentum import saros_momentum_users
from torchrank.ops.sequential.saros import saros_users

ORDER = np.array([3, 0, 8, 5, 1, 7, 2, 4, 6], np.int32)  # user 8 was shown nothing
NO_SUMS = tuple(np.zeros((0, width)) for width in (DIM, DIM, 1))
NO_COUNTS = np.zeros(0, np.int64), np.zeros(0, np.int64)
ETA, MU = 0.1, 0.05


def run_factorization(
    model, order, block_starts, slices, items, *, eta=ETA, mu=MU, sums=NO_SUMS, counts=NO_COUNTS, starts=0
):
    model = copy.deepcopy(model)
    found = saros_users(*arrays(model), order, block_starts, slices, items, eta, mu, sums, counts, starts)
    return model, *found


def run_feedback(
    model, order, block_starts, slices, items, *, eta=ETA, mu=MU, sums=NO_SUMS, counts=NO_COUNTS, starts=0
):
    model = copy.deepcopy(model)
    rows, vectors, offsets = arrays(model)
    users = model.feedback_starts.numpy(), model.feedbacks.numpy()
    found = saros_feedback_users(
        rows, *users, vectors, offsets, order, block_starts, slices, items, ETA, mu, sums, counts, starts
    )
    return model, *found


def case(kind, rule="run", *, item_bias=True, repeats=False, seed=0):
    users, items, preferred, offsets = log_arrays(seed, repeats=repeats)
    if kind == "feedback":
        return (
            run_feedback,
            feedback(users, items, preferred, item_bias=item_bias),
            items,
            *blocks_of(preferred, offsets, rule),
        )
    return run_factorization, factorization(item_bias=item_bias), items, *blocks_of(preferred, offsets, rule)


@pytest.mark.parametrize("kind", ["factorization", "feedback"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("item_bias", [True, False])
def test_steps_are_the_published_ones(kind, rule, item_bias):
    run, model, items, starts, slices = case(kind, rule, item_bias=item_bias)
    moved, loss, pairs, users = run(model, ORDER, starts, slices, items)
    expected, total, seen = slow_saros(model, ORDER, starts, slices, items, eta=ETA, mu=MU)
    assert_same_weights(moved, expected)
    assert loss == pytest.approx(total, rel=1e-5)
    assert pairs == ((slices[1] - slices[0]) * (slices[3] - slices[2])).sum()
    assert users == len(seen) < USERS


@pytest.mark.parametrize("rule", RULES)
def test_a_block_that_holds_an_item_twice_takes_its_whole_gradient_first(rule):
    run, model, items, starts, slices = case("factorization", rule, repeats=True)
    moved, *_ = run(model, ORDER, starts, slices, items, mu=0.0)
    assert_same_weights(moved, slow_saros(model, ORDER, starts, slices, items, eta=ETA, mu=0.0)[0])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("item_bias", [True, False])
@pytest.mark.parametrize("repeats", [True, False])
def test_momentum_moves_every_parameter_at_every_block(rule, item_bias, repeats):
    _, model, items, starts, slices = case("factorization", rule, item_bias=item_bias, repeats=repeats)
    mu = 0.0 if repeats else MU
    moved = copy.deepcopy(model)
    tables = arrays(moved)
    velocities = (
        np.zeros((USERS, DIM), np.float32),
        np.zeros((ITEMS, DIM), np.float32),
        np.zeros((ITEMS, 1), np.float32),
    )
    total = 0.0
    for part in (ORDER[:4], ORDER[4:]):  # velocities carry over
        total += saros_momentum_users(*tables, velocities, part, starts, slices, items, ETA, mu, 0.8)[0]
    expected, loss, _ = slow_saros(model, ORDER, starts, slices, items, eta=ETA, mu=mu, momentum=0.8)
    assert_same_weights(moved, expected, 2e-5)
    assert total == pytest.approx(loss, rel=1e-5)


@pytest.mark.parametrize("kind", ["factorization", "feedback"])
def test_averaging_is_the_mean_of_the_weights_at_each_users_start(kind):
    run, model, items, starts, slices = case(kind)
    rows = len(arrays(model)[0])
    sums = np.zeros((rows, DIM)), np.zeros((ITEMS, DIM)), np.zeros((ITEMS, 1))
    counts = np.zeros(rows, np.int64), np.zeros(ITEMS, np.int64)
    moved, _, _, users = run(model, ORDER[:5], starts, slices, items, sums=sums, counts=counts)
    moved, _, _, users = run(moved, ORDER[5:], starts, slices, items, sums=sums, counts=counts, starts=users)
    first, second, third = arrays(moved)
    for table, total, counted in (
        (first, sums[0], counts[0]),
        (second, sums[1], counts[1]),
        (third[:, None], sums[2], counts[1]),
    ):
        total += (users - counted)[:, None] * table  # a row that rests since it was last counted
    _, _, seen = slow_saros(model, ORDER, starts, slices, items, eta=ETA, mu=MU)
    assert users == len(seen)
    names = ["user_vectors" if kind == "factorization" else "feedback_vectors", "item_vectors", "item_offsets"]
    for name, total in zip(names, sums, strict=True):
        mean = torch.stack([weights[name] for weights in seen]).double().mean(0)
        np.testing.assert_allclose(total / users, mean.numpy(), rtol=1e-5, atol=1e-5)
    assert_same_weights(moved, run(model, ORDER, starts, slices, items)[0], 1e-7)


@pytest.mark.parametrize("kind", ["factorization", "feedback"])
def test_ranges_of_users_add_up_to_an_epoch(kind):
    run, model, items, starts, slices = case(kind, "positive")
    whole, loss, pairs, _ = run(model, ORDER, starts, slices, items)
    parts, losses = model, []
    for part in np.split(ORDER, [1, 4, 4]):
        parts, *found = run(parts, part, starts, slices, items)
        losses.append(found[:2])
    assert_same_weights(parts, whole, 0)
    assert np.sum(losses, 0).tolist() == pytest.approx([loss, pairs])


@pytest.mark.parametrize("kind", ["factorization", "feedback"])
def test_huge_scores_stay_finite(kind):
    run, model, items, starts, slices = case(kind)
    with torch.no_grad():
        model.item_offsets.copy_(torch.linspace(-1e4, 1e4, ITEMS)[:, None])
    moved, loss, *_ = run(model, ORDER, starts, slices, items, mu=0.0)
    expected, total, _ = slow_saros(model, ORDER, starts, slices, items, eta=ETA, mu=0.0)
    assert_same_weights(moved, expected)
    assert loss == pytest.approx(total, rel=1e-5)
