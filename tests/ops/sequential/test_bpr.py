"""The compiled BPR, batch BPR and MF loops against autograd."""

import copy

import numba
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.preference_cases import ITEMS, USERS, arrays, assert_same_weights, factorization, feedback, log_arrays
from torchrank.models import Factorization
from torchrank.ops.sequential.bpr import REJECT, SHOWN, UNSEEN, bpr_feedback_visits, bpr_visits, draw_pair
from torchrank.ops.sequential.compiled import random_state
from torchrank.ops.sequential.full import full_gradient
from torchrank.ops.sequential.mf import mf_rows


@numba.njit
def draw_pairs(users, pairs, starts, middles, items, seen_starts, seen, num_items, draws, state):
    out = np.empty((pairs.sum(), 4), np.int64)
    at = 0
    for visit in range(len(users)):
        for _ in range(pairs[visit]):
            drawn = draw_pair(users[visit], starts, middles, items, seen_starts, seen, num_items, draws, state)
            out[at, 0], out[at, 1], out[at, 2], out[at, 3] = users[visit], drawn[0], drawn[1], drawn[2]
            at += 1
    return out


def parts(seed=0):
    """A log with the preferred first inside each user, where these end, and the sorted seen items."""
    users, items, preferred, offsets = log_arrays(seed, repeats=False, rows=60)
    by_kind = np.lexsort((~preferred, users))
    middles = offsets[:-1] + np.bincount(users[preferred], minlength=USERS)
    seen = items[np.lexsort((items, users))]
    return (users, items, preferred), (offsets, middles, items[by_kind], offsets, seen)


def eligible(offsets, middles, draws):
    both = (middles > offsets[:-1]) & (middles < offsets[1:])
    return np.flatnonzero(middles > offsets[:-1] if draws == UNSEEN else both).astype(np.int32)


@pytest.mark.parametrize("kind", ["factorization", "feedback"])
@pytest.mark.parametrize("draws", [SHOWN, REJECT, UNSEEN])
@pytest.mark.parametrize("item_bias", [True, False])
def test_one_step_a_pair(kind, draws, item_bias):
    log, lists = parts()
    model = feedback(*log, item_bias=item_bias) if kind == "feedback" else factorization(item_bias=item_bias)
    users = eligible(*lists[:2], draws)
    pairs = np.arange(len(users)) % 3 + 1
    drawn = draw_pairs(users, pairs, *lists, ITEMS, draws, random_state(7))
    moved = copy.deepcopy(model)
    rows, vectors, offsets = arrays(moved)
    options = users, pairs, *lists, draws, 0.1, 0.05, 0.02, random_state(7)
    if kind == "feedback":
        found = bpr_feedback_visits(
            rows, moved.feedback_starts.numpy(), moved.feedbacks.numpy(), vectors, offsets, *options
        )
    else:
        found = bpr_visits(rows, vectors, offsets, *options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = 0.0
    for user, liked, other, _ in torch.from_numpy(drawn):
        pair = torch.stack([liked, other])
        scores = model(user.expand(2), pair)
        loss = F.softplus(scores[1] - scores[0])
        by_user, by_item = model.squared_norms(user.expand(2), pair)
        penalty = 0.05 * (by_user[0] + by_item.sum())
        if item_bias:
            penalty = penalty + 0.02 * model.item_offsets[pair].square().sum()
        optimizer.zero_grad()
        (loss + penalty).backward()
        optimizer.step()
        total += float(loss.detach())
    assert_same_weights(moved, model)
    assert found == (pytest.approx(total, rel=1e-5), len(drawn), drawn[:, 3].sum())


@pytest.mark.parametrize("draws", [SHOWN, REJECT, UNSEEN])
def test_every_pair_is_as_likely(draws):
    (users, items, preferred), lists = parts()
    kinds = np.bincount(users[preferred], minlength=USERS), np.bincount(users[~preferred], minlength=USERS)
    user = int(np.argmax(np.minimum(*kinds)))
    own = users == user
    liked = set(items[own & preferred].tolist())
    other = set(items[own & ~preferred].tolist()) if draws != UNSEEN else set(range(ITEMS)) - set(items[own].tolist())
    assert len(liked) > 1 < len(other)
    n = 60_000
    drawn = draw_pairs(np.array([user]), np.array([n]), *lists, ITEMS, draws, random_state(1, 2))
    pairs, counts = np.unique(drawn[:, 1:3], axis=0, return_counts=True)
    assert {tuple(p) for p in pairs.tolist()} == {(i, j) for i in liked for j in other}
    expected = n / len(pairs)
    assert ((counts - expected) ** 2 / expected).sum() < len(pairs) + 5 * (2 * len(pairs)) ** 0.5  # chi squared
    if draws == REJECT:
        accepted = 2 * len(liked) * len(other) / own.sum() ** 2
        assert drawn[:, 3].mean() == pytest.approx(1 / accepted - 1, rel=0.05)
    else:
        assert not drawn[:, 3].any()


def test_draws_are_a_function_of_the_state():
    _, lists = parts()
    users = eligible(*lists[:2], UNSEEN)
    once, again, other = (
        draw_pairs(users, np.full(len(users), 9), *lists, ITEMS, UNSEEN, random_state(*words)).tolist()
        for words in ((1, 2), (1, 2), (1, 3))
    )
    assert once == again != other


def exact(model, lists, mu):
    offsets, middles, items = (torch.from_numpy(x).long() for x in lists[:3])
    losses, penalties = [], []
    for user in eligible(*lists[:2], SHOWN).tolist():
        liked, other = items[offsets[user] : middles[user]], items[middles[user] : offsets[user + 1]]
        one = torch.tensor(user)
        scores = [model(one.expand(len(x)), x) for x in (liked, other)]
        losses.append(F.softplus(scores[1][None, :] - scores[0][:, None]).mean())
        norms = [model.squared_norms(one.expand(len(x)), x) for x in (liked, other)]
        penalties.append(mu * (norms[0][0][0] + norms[0][1].mean() + norms[1][1].mean()))
    return torch.stack(losses).mean(), torch.stack(penalties).mean()


@pytest.mark.parametrize("item_bias", [True, False])
@pytest.mark.parametrize("spread", [1.0, 300.0])
def test_full_gradient_is_that_of_the_mean_over_users(item_bias, spread):
    _, lists = parts()
    model = factorization(item_bias=item_bias)
    if item_bias:
        with torch.no_grad():
            model.item_offsets.mul_(spread)
    tables = arrays(model)
    gradients = tuple(np.full_like(x, np.nan) for x in tables)
    value = full_gradient(*tables, *lists[:3], 0.05, gradients)
    loss, penalty = exact(model, lists, 0.05)
    (loss + penalty).backward()
    assert value == pytest.approx(float(loss.detach()), rel=1e-5)
    for parameter, gradient in zip((model.user_vectors, model.item_vectors), gradients, strict=False):
        np.testing.assert_allclose(gradient, parameter.grad.numpy(), rtol=1e-5, atol=1e-6)
    if item_bias:
        np.testing.assert_allclose(gradients[2][:, None], model.item_offsets.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_full_gradient_of_a_log_without_pairs_is_zero():
    _, lists = parts()
    model = Factorization(USERS, ITEMS, 2)
    gradients = tuple(np.ones_like(x) for x in arrays(model))
    assert full_gradient(*arrays(model), lists[0], lists[0][1:], lists[2], 0.1, gradients) == 0
    assert not any(g.any() for g in gradients)


@pytest.mark.parametrize("item_bias", [True, False])
def test_mf_takes_one_step_an_interaction(item_bias):
    users, items, preferred, _ = log_arrays(2)
    model = factorization(item_bias=item_bias)
    moved = copy.deepcopy(model)
    rows = np.random.default_rng(0).permutation(len(users))
    loss = mf_rows(*arrays(moved), rows, users, items, preferred, 0.02, 0.1)
    optimizer, total = torch.optim.SGD(model.parameters(), lr=0.02), 0.0
    for row in rows:
        user, item = torch.tensor([users[row]]).long(), torch.tensor([items[row]]).long()
        error = (float(preferred[row]) - model(user, item)).square().sum()
        optimizer.zero_grad()
        (error + 0.1 * sum(x.sum() for x in model.squared_norms(user, item))).backward()
        optimizer.step()
        total += float(error.detach())
    assert_same_weights(moved, model)
    assert loss == pytest.approx(total, rel=1e-5)
