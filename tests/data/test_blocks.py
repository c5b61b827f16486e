"""Blocks against an oracle written from the table of rules, and the properties each rule must hold."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchrank.data import InteractionLog, build_blocks
from torchrank.errors import TorchRankError

RULES = ["run", "single", "eager", "positive"]


def log_of(*sequences):
    """A log of users whose k-th item is k, preferred where the sequence says ``+``."""
    rows = [(user, item, float(sign == "+"), item) for user, s in enumerate(sequences) for item, sign in enumerate(s)]
    frame = pl.DataFrame(rows, schema=["user", "item", "feedback", "time"], orient="row")
    return InteractionLog.from_frame(frame, positive_at=1)


def blocks_by_hand(sequence, rule):
    """One user's blocks, step by step as each rule is told."""
    blocks, preferred, other = [], [], []
    if rule == "eager":
        for place, sign in enumerate(sequence):
            (preferred if sign == "+" else other).append(place)
            if preferred and other:
                blocks.append((preferred, other))
                preferred, other = [], []
        return blocks
    for place, sign in enumerate(sequence):
        if sign == "-":
            if place and sequence[place - 1] == "+":  # a new run of other items begins
                other = []
            other = [*other, place]
        elif other:
            follows = sequence[place - 1] == "+"
            if rule == "positive" or not follows:
                blocks.append(([place], other))
            elif rule == "run":
                blocks[-1][0].append(place)
    return blocks


def named(log, blocks):
    """Blocks as (user, preferred places, other places)."""
    return [(user, log.item_ids[p].tolist(), log.item_ids[o].tolist()) for user, p, o in blocks]


sequences = st.lists(st.text("+-", min_size=1, max_size=14), min_size=1, max_size=5)


@given(sequences, st.sampled_from(RULES))
def test_blocks_are_those_of_the_table(texts, rule):
    log = log_of(*texts)
    expected = [(user, p, o) for user, text in enumerate(texts) for p, o in blocks_by_hand(text, rule)]
    assert named(log, build_blocks(log, rule=rule)) == expected


@given(sequences, st.sampled_from(RULES), st.integers(0, 3))
def test_blocks_hold_what_every_rule_promises(texts, rule, seed):
    log = log_of(*texts)
    blocks = build_blocks(log, rule=rule, shuffle=np.random.default_rng(seed) if seed else None)
    liked = {(u, i): bool(p) for u, i, p in zip(log.users, log.items, log.preferred, strict=True)}
    used = []
    for user, preferred, other in blocks:
        assert len(preferred) > 0
        assert len(other) > 0
        assert all(liked[user, i] for i in preferred)
        assert not any(liked[user, i] for i in other)
        used += [(user, i) for i in (*preferred, *other)]
    if rule != "positive":
        assert len(used) == len(set(used))
    if rule in ("run", "positive", "single"):
        assert (blocks.other_stop <= blocks.preferred_start).all()
    if rule == "positive":
        assert ((blocks.preferred_stop - blocks.preferred_start) == 1).all()
    assert blocks.counts.tolist() == np.bincount(blocks.users, minlength=log.num_users).tolist()
    assert blocks.counts.sum() == len(blocks)
    assert (np.diff(blocks.users) >= 0).all()


@given(sequences, st.integers(0, 4), st.none() | st.floats(0, 6), st.sampled_from(["discard", "truncate"]))
def test_select_keeps_what_the_counts_allow(texts, minimum, maximum, overflow):
    log = log_of(*texts)
    blocks = build_blocks(log, rule="positive")
    left = blocks.select(minimum=minimum, maximum=maximum, overflow=overflow)
    expected = []
    for user, count in enumerate(blocks.counts):
        own = [b for b in named(log, blocks) if b[0] == user]
        if count < minimum:
            own = []
        elif maximum is not None and count > maximum:
            own = [] if overflow == "discard" else own[: int(maximum)]
        expected += own
    assert named(log, left) == expected
    assert left.counts.tolist() == np.bincount(left.users, minlength=log.num_users).tolist()


def test_select_by_default_takes_the_smallest_and_the_mean_count():
    blocks = build_blocks(log_of("-+", "-+-+-+", "+++", "-+-+"), rule="run")
    assert blocks.select().counts.tolist() == [1, 0, 0, 2]
    assert blocks.select(minimum=None, maximum=None).counts.tolist() == blocks.counts.tolist()


def test_select_of_no_blocks_is_no_blocks():
    assert len(build_blocks(log_of("+++", "---"), rule="run").select()) == 0


@pytest.mark.parametrize(
    "options", [{"minimum": "mean"}, {"maximum": -1}, {"maximum": float("nan")}, {"overflow": "drop"}]
)
def test_select_refuses_what_is_no_threshold(options):
    with pytest.raises(TorchRankError, match=next(iter(options))):
        build_blocks(log_of("-+"), rule="run").select(**options)


def test_an_unknown_rule_is_refused_with_the_nearest():
    with pytest.raises(TorchRankError, match="did you mean 'run'"):
        build_blocks(log_of("-+"), rule="runs")


def test_shuffling_keeps_each_users_rows_and_follows_the_seed():
    log = log_of("-+-+-+--++" * 10, "+-+")
    one, same, another = (build_blocks(log, rule="run", shuffle=np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one.items.tolist() == same.items.tolist()
    assert one.items.tolist() != another.items.tolist()
    for user in range(2):
        own = slice(log.offsets[user], log.offsets[user + 1])
        assert sorted(one.items[own]) == sorted(log.items[own])


def test_every_order_is_equally_likely():
    log = log_of("+-+")
    generator = np.random.default_rng(0)
    orders = [tuple(build_blocks(log, rule="run", shuffle=generator).items.tolist()) for _ in range(6000)]
    counts = np.unique(orders, axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert abs(counts - 1000).max() < 5 * np.sqrt(1000)
