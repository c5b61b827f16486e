"""Logs made after a row of the published table 1, and bots in them."""

import datetime as dt

import numpy as np
import polars as pl
import pytest
import torch

from torchrank.data import (
    InteractionLog,
    LogStatistics,
    add_bots,
    build_blocks,
    log_statistics,
    make_interactions,
    published_statistics,
)
from torchrank.data.published_tables import published_rows
from torchrank.data.synthetic_counts import allot
from torchrank.errors import DataError, TorchRankError

# name, shares of users and items: the last column keeps a quarter of the items above the means
SIZES = [
    ("ML-1M", 0.1, 1.0),
    ("ML-1M", 0.2, 0.5),
    ("Outbrain", 0.05, 0.05),
    ("Pandor", 0.02, 0.1),
    ("Netflix", 0.02, 1.0),
    ("Kasandr", 0.01, 0.01),
]


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize(("name", "users", "items"), SIZES)
def test_a_log_has_the_statistics_of_its_row(name, users, items, seed):
    row = published_statistics(name).scaled(users=users, items=items)
    log, _ = make_interactions(statistics=row, seed=seed)
    found = log_statistics(log)
    printed = {r["measure"]: float(r["value"]) for r in published_rows() if (r["table"], r["dataset"]) == ("1", name)}
    assert (found["users"], found["items"]) == (row.users, row.items)
    for measure in ("mean_preferred", "mean_other"):
        assert found[measure] == pytest.approx(printed[measure], rel=0.02)
    assert 1 - found["sparsity"] == pytest.approx(1 - row.sparsity, rel=0.02)
    assert found["users_with_preferred"] == found["users_with_other"] == row.users
    pairs = log.users.astype(np.int64) * log.num_items + log.items
    assert len(np.unique(pairs)) == len(log)


def test_the_printed_columns_agree_where_the_page_says_so():
    for name in ("ML-1M", "Outbrain", "Pandor", "Kasandr"):
        printed = {
            r["measure"]: float(r["value"]) for r in published_rows() if r["dataset"] == name and r["table"] < "3"
        }
        row = published_statistics(name)
        assert int(1e4 * row.sparsity) == pytest.approx(1e4 * printed["sparsity"], abs=1)  # cut off or rounded
        assert row.interactions == pytest.approx(printed["train"] + printed["test"], rel=0.001)
    assert published_statistics("Netflix").sparsity == pytest.approx(0.9869, abs=1e-4)  # printed: .9914


@pytest.mark.parametrize(
    ("name", "users", "items"), [("Pandor", 0.1, 1.0), ("Netflix", 0.03, 1.0), ("Kasandr", 0.02, 0.02)]
)
def test_block_counts_have_a_heavy_tail(name, users, items):
    log, _ = make_interactions(statistics=published_statistics(name).scaled(users=users, items=items), seed=3)
    counts = build_blocks(log).counts
    assert np.median(counts[counts > 0]) <= 2
    assert counts.max() > 25 * counts.mean()


def test_the_truth_orders_better_than_any_noise_of_it():
    row = LogStatistics(users=400, items=300, mean_preferred=12, mean_other=20)
    log, truth = make_interactions(statistics=row, sharpness=2.0, seed=2)
    users, items = torch.from_numpy(log.users).long(), torch.from_numpy(log.items).long()
    odds = truth(users, items)
    noise = torch.randn(odds.shape, generator=torch.Generator().manual_seed(0))
    shares = []
    for score in (odds, odds + noise, 3 * noise):  # share of preferred rows among each user's best half
        order = np.lexsort((-score.numpy(), log.users))
        place = np.arange(len(log)) - np.repeat(log.offsets[:-1], np.diff(log.offsets))
        first = place < np.repeat(np.diff(log.offsets) // 2, np.diff(log.offsets))
        shares.append(log.preferred[order][first].mean())
    assert shares[0] > shares[1] + 0.02 > shares[2] + 0.1
    chance = make_interactions(statistics=row, sharpness=0.01, seed=2)
    assert chance[0].preferred.sum() == log.preferred.sum()


def test_the_seed_decides_and_bots_change_no_genuine_row():
    row = LogStatistics(users=90, items=60, mean_preferred=4, mean_other=6)
    log, truth = make_interactions(statistics=row, seed=1)
    same, attacked = (make_interactions(statistics=row, seed=1, bots=b, targets=3, bot_activity=4) for b in (0, 0.1))
    assert same[0].items.tolist() == log.items.tolist()
    assert same[1].targets.tolist() == []
    for name in ("users", "items", "preferred", "times"):
        assert getattr(attacked[0], name)[: len(log)].tolist() == getattr(log, name).tolist()
    assert attacked[1].bots.tolist() == [False] * 90 + [True] * 10
    assert torch.equal(attacked[1].user_factors[:90], truth.user_factors)
    assert not attacked[1].user_factors[90:].any()
    other, _ = make_interactions(statistics=row, seed=2)
    assert other.items.tolist() != log.items.tolist()


@pytest.mark.parametrize("ids", [[7, 7, 9, 9, 9], ["ann", "ann", "bo", "bo", "bo"]])
def test_bots_click_targets_and_nothing_else(ids):
    start = dt.datetime(2020, 1, 1)
    frame = pl.DataFrame(
        {
            "user": ids,
            "item": ["p", "q", "p", "r", "s"],
            "feedback": [5, 1, 4, 2, 3],
            "time": [start + dt.timedelta(days=k) for k in range(5)],
        }
    )
    log = InteractionLog.from_frame(frame, positive_at=4)
    attack = add_bots(log, share=0.5, targets=1, activity=8, seed=4)
    assert attack.bots.tolist() == [False, False, True, True]
    bots = attack.log.where(attack.bots[attack.log.users])
    assert len(bots) == 2 * 20
    assert set(bots.items[bots.preferred]) == set(attack.targets)
    assert not set(bots.items[~bots.preferred]) & set(attack.targets)
    assert set(bots.feedback[bots.preferred]) == {5}
    assert set(bots.feedback[~bots.preferred]) == {1}
    for rule in ("run", "single", "eager", "positive"):
        assert build_blocks(attack.log, rule=rule).counts[2:].tolist() == [10, 10]
    assert len(np.unique(attack.log.user_ids)) == 4
    assert set(attack.log.times[5:]) <= set(log.times)
    for user in (2, 3):
        rows = attack.log.times[attack.log.offsets[user] : attack.log.offsets[user + 1]]
        assert (np.diff(rows) >= np.timedelta64(0)).all()


def test_shares_and_targets():
    log, _ = make_interactions(num_users=95, num_items=60, num_interactions=900)
    none = add_bots(log, share=0, targets=4)
    assert none.log is log
    some, more = (add_bots(log, share=share, targets=4) for share in (0.05, 0.5))
    assert (some.bots.sum(), more.bots.sum()) == (5, 95)
    assert some.targets.tolist() == more.targets.tolist() == none.targets.tolist()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"share": 1.0}, "share=1.0"),
        ({"share": float("nan")}, "share=nan"),
        ({"share": 0.1, "targets": 0}, "targets=0"),
        ({"share": 0.1, "targets": 60}, "targets=60"),
        ({"share": 0.1, "activity": 0}, "activity=0"),
    ],
)
def test_bad_bots(options, told):
    log, _ = make_interactions(num_users=95, num_items=60, num_interactions=900)
    with pytest.raises(TorchRankError, match=told):
        add_bots(log, **options)


def test_bots_need_ids_that_have_a_next_one():
    frame = pl.DataFrame({"user": [1.5, 2.5], "item": [1, 2], "feedback": [1, 0], "time": [1, 2]})
    log = InteractionLog.from_frame(frame, positive_at=1)
    with pytest.raises(DataError, match="integers or strings"):
        add_bots(log, share=0.5, targets=1)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"mean_preferred": 0.5}, "mean_preferred=0.5"),
        ({"mean_other": 26}, "a quarter of the 100 items"),
        ({"users": 3}, "too few to show 100 items"),
        ({"tail": 0}, "tail=0"),
    ],
)
def test_impossible_statistics(options, told):
    with pytest.raises(TorchRankError, match=told):
        LogStatistics(**{"users": 200, "items": 100, "mean_preferred": 3, "mean_other": 5, **options})


def test_an_unknown_row_gets_the_nearest():
    with pytest.raises(TorchRankError, match="did you mean 'Netflix'"):
        published_statistics("netflix")


def test_shares_add_up():
    generator = np.random.default_rng(0)
    for total, most in ((50, 5), (37, 10), (10, 1), (5000, 500)):
        weights = generator.pareto(0.7, 10) + 1e-9
        counts = allot(total, weights, most=most)
        assert counts.sum() == total
        assert counts.min() >= 1
        assert counts.max() <= most
        assert (np.diff(counts[np.argsort(weights)]) >= -1).all()
