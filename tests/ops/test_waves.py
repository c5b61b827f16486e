"""Waves: what they hold, and the batched steps against the sequential ones."""

import copy
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.preference_cases import (
    ITEMS,
    RULES,
    USERS,
    assert_same_weights,
    blocks_of,
    factorization,
    feedback,
    log_arrays,
    slow_saros,
)
from torchrank.errors import TorchRankError
from torchrank.losses import BPRLoss
from torchrank.models import Factorization
from torchrank.ops.wave_steps import factorization_step, take_wave, wave_loss
from torchrank.ops.waves import build_waves

ORDER = np.array([3, 0, 8, 5, 1, 7, 2, 4, 6], np.int32)
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA"))]


def blocks_in(waves, number):
    """The blocks of a wave: user to the items it prefers, the others, and the weights that go with them."""
    wave = take_wave(waves, number)
    found = {}
    for entry in range(len(wave.users)):
        liked = wave.user_weights[entry] > 0
        block = found.setdefault(int(wave.users[entry]), ([], []))
        block[0 if liked else 1].append(int(wave.items[entry]))
    for entry in range(len(wave.users)):
        liked, other = found[int(wave.users[entry])]
        size = len(liked) if wave.user_weights[entry] > 0 else len(other)
        assert wave.item_weights[entry] == pytest.approx(1 / size)
    pairs = {}
    for i, j, weight in zip(wave.preferred.tolist(), wave.others.tolist(), wave.pair_weights.tolist(), strict=True):
        assert wave.users[i] == wave.users[j]
        liked, other = found[int(wave.users[i])]
        assert weight == pytest.approx(1 / (len(liked) * len(other)))
        pairs.setdefault(int(wave.users[i]), []).append((int(wave.items[i]), int(wave.items[j])))
    for user, (liked, other) in found.items():
        assert sorted(pairs[user]) == sorted(itertools.product(liked, other))
    return found


@given(seed=st.integers(0, 10_000), lanes=st.integers(1, 12), rule=st.sampled_from(RULES), rows=st.integers(0, 80))
def test_waves_hold_every_block_once_in_order(seed, lanes, rule, rows):
    _, items, preferred, offsets = log_arrays(seed, rows=rows)
    starts, slices = blocks_of(preferred, offsets, rule)
    order = np.random.default_rng(seed).permutation(USERS)
    waves = build_waves(order, starts, slices, items, lanes=lanes)
    counts = np.diff(starts)
    assert max(counts.max(initial=0), -(-counts.sum() // lanes)) <= len(waves) <= counts.sum()
    place = dict.fromkeys(range(USERS), 0)
    last, began = {}, []
    for number in range(len(waves)):
        found = blocks_in(waves, number)
        assert 0 < len(found) <= lanes
        began.append(sum(place[user] == 0 for user in found))
        for user, (liked, other) in found.items():
            block = starts[user] + place[user]
            assert liked == items[slices[0][block] : slices[1][block]].tolist()
            assert other == items[slices[2][block] : slices[3][block]].tolist()
            assert place[user] == 0 or last[user] == number - 1  # a user never waits
            place[user], last[user] = place[user] + 1, number
    assert [place[user] for user in range(USERS)] == counts.tolist()
    assert began == waves.starting


def test_long_users_enter_first_where_the_end_would_be_thin():
    counts = [1] * 6 + [6]  # two lanes: the long user last would take 9 waves
    preferred = np.tile([False, True], sum(counts))
    offsets = np.append(0, np.cumsum(counts)) * 2
    starts, slices = blocks_of(preferred, offsets, "run")
    items = np.arange(2 * sum(counts), dtype=np.int32)
    assert len(build_waves(np.arange(7), starts, slices, items, lanes=2)) == 6
    one = build_waves(np.arange(7), starts, slices, items, lanes=1)
    assert one.users[::2].tolist() == [*range(6), *[6] * 6]  # one lane keeps the order
    with pytest.raises(TorchRankError, match="lanes=0"):
        build_waves(np.arange(7), starts, slices, items, lanes=0)


def autograd_epoch(model, waves, *, eta, mu, momentum=0.0):
    optimizer = torch.optim.SGD(model.parameters(), lr=eta, momentum=momentum)
    total = 0.0
    for number in range(len(waves)):
        loss, objective = wave_loss(model, BPRLoss(reduction="sum"), take_wave(waves, number), mu=mu)
        optimizer.zero_grad(set_to_none=False)
        objective.backward()
        optimizer.step()
        total += float(loss)
    return total


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", ["factorization", "feedback"])
@pytest.mark.parametrize("momentum", [0.0, 0.7])
def test_one_lane_takes_the_sequential_steps(rule, kind, momentum):
    users, items, preferred, offsets = log_arrays(1)
    model = feedback(users, items, preferred) if kind == "feedback" else factorization()
    starts, slices = blocks_of(preferred, offsets, rule)
    waves = build_waves(ORDER, starts, slices, items, lanes=1)
    expected, _, _ = slow_saros(model, ORDER, starts, slices, items, eta=0.05, mu=0.02, momentum=momentum)
    moved = copy.deepcopy(model)
    autograd_epoch(moved, waves, eta=0.05, mu=0.02, momentum=momentum)
    assert_same_weights(moved, expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("lanes", [1, 3, 50])
@pytest.mark.parametrize("item_bias", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_the_written_out_step_is_autograds(device, lanes, item_bias, sparse):
    _, items, preferred, offsets = log_arrays(3)
    starts, slices = blocks_of(preferred, offsets, "positive")
    waves = build_waves(ORDER, starts, slices, items, lanes=lanes).to(device)
    torch.manual_seed(0)
    model = Factorization(USERS, ITEMS, 4, item_bias=item_bias, sparse=sparse).to(device)
    moved = copy.deepcopy(model)
    loss = autograd_epoch(model, waves, eta=0.1, mu=0.03)
    total = 0.0
    tables = moved.user_vectors.data, moved.item_vectors.data, None if not item_bias else moved.item_offsets.data
    for number in range(len(waves)):
        total += float(factorization_step(*tables, take_wave(waves, number), eta=0.1, mu=0.03))
    assert_same_weights(moved, model)
    assert total == pytest.approx(loss, rel=1e-5)
