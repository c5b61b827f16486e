"""SAROS on a log on disk: the steps of the log in memory, in the same order; shuffled, resumed and refused."""

from functools import partial

import numpy as np
import polars as pl
import pytest
import torch

import torchrank
from tests.preference_cases import assert_same_weights, slow_saros
from tests.training.trainers import fit_log as fit
from tests.training.trainers import quiet, saved_steps, saving
from torchrank.data import Catalogue, PreparedLog, build_blocks, make_interactions, prepare_log
from torchrank.data.pairs import PairLists
from torchrank.errors import DataError
from torchrank.losses import BPRLoss
from torchrank.ops.sequential.bpr import draw_visits
from torchrank.ops.sequential.compiled import random_state
from torchrank.training import (
    BPRModule,
    InteractionDataModule,
    MFModule,
    SAROSModule,
    SoftmaxModule,
    fit_interactions,
    interaction_data,
)
from torchrank.training.log_scorer import make_scorer
from torchrank.training.processes import Processes
from torchrank.training.saros_plan import BlockOptions, plan_partition
from torchrank.training.sequential_steps import bpr_step, mf_step

MODEL = {"dim": 4, "init": "normal", "item_bias": True, "seed": 2}
STEPS = {"eta": 0.05, "mu": 0.02}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    log, _ = make_interactions(num_users=60, num_items=50, num_interactions=1400, seed=3)
    columns = {
        "user": log.user_ids[log.users],
        "item": log.item_ids[log.items],
        "feedback": log.preferred,
        "time": log.times,
    }
    pl.DataFrame(columns).sample(fraction=1, shuffle=True, seed=0).write_parquet(folder / "log.parquet")
    return prepare_log(folder / "log.parquet", folder / "prepared", positive_at=1, partitions=5)


SAME = {
    "sequential": {},
    "momentum": {"momentum": 0.6},
    "averaging": {"averaging": True},
    "feedback": {"feedback": "all", "averaging": True},
    "thresholds": {"minimum": 2, "maximum": "mean", "rule": "positive"},
    "truncated": {"minimum": "min", "maximum": "mean", "overflow": "truncate"},
    "one lane": {"engine": "batched", "lanes": 1},
    "one lane, momentum": {"engine": "batched", "lanes": 1, "momentum": 0.6},
}


@pytest.mark.parametrize("name", SAME)
def test_partitions_in_order_train_as_the_log_in_memory(prepared, name):
    def module():
        return SAROSModule(**SAME[name], **MODEL, **STEPS)

    whole = fit(module(), prepared.to_log(), max_epochs=2)
    tolerance = 1e-5 if name == "momentum" else 0  # whoever rests is moved at the end of a step, which rounds
    assert_same_weights(fit(module(), prepared, max_epochs=2), whole, tolerance)
    assert_same_weights(fit(module(), prepared, max_epochs=2, steps=23), whole, tolerance)  # several steps a partition


def test_lanes_are_dealt_within_a_partition(prepared):
    module = fit(SAROSModule(engine="batched", lanes=4, **MODEL, **STEPS), prepared)
    train, _ = prepared.to_log().split_per_user(train=0.8)
    expected = SAROSModule(make_scorer(train, feedback=None, **MODEL), engine="batched", lanes=4, **STEPS)
    for number in range(prepared.num_partitions):  # one partition's users after the other's
        log = prepared.to_log()
        first, last = prepared.user_starts[number : number + 2]
        fit(expected, log.where((log.users >= first) & (log.users < last)))
    assert_same_weights(module, expected, 1e-6)


def test_shuffled_users_are_partitions_in_random_order_and_users_in_random_order(prepared):
    train, _ = prepared.to_log().split_per_user(train=0.8)
    blocks = build_blocks(train)
    starts = np.append(0, np.cumsum(blocks.counts))
    slices = blocks.preferred_start, blocks.preferred_stop, blocks.other_start, blocks.other_stop
    orders = []
    for epoch in range(2):
        for number in np.random.default_rng([MODEL["seed"], epoch, 2]).permutation(prepared.num_partitions):
            first, last = prepared.user_starts[number : number + 2]
            random = np.random.default_rng([MODEL["seed"], epoch, 1, number])
            orders.append(first + random.permutation(np.arange(last - first, dtype=np.int32)))
    order = np.concatenate(orders)
    assert sorted(order.tolist()) == sorted([*range(train.num_users)] * 2)
    assert order[: train.num_users].tolist() != order[train.num_users :].tolist()
    expected = slow_saros(make_scorer(train, feedback=None, **MODEL), order, starts, slices, blocks.items, **STEPS)[0]
    module = fit(SAROSModule(user_order="shuffled", **MODEL, **STEPS), prepared, max_epochs=2)
    assert_same_weights(module.scorer, expected)


def test_shuffled_rows_change_with_the_epoch_and_keep_the_users_items(prepared):
    def module():
        return SAROSModule(order="shuffled", maximum="mean", **MODEL, **STEPS)

    one, again = (fit(module(), prepared, max_epochs=2) for _ in range(2))
    assert_same_weights(one, again, 0)
    first = fit(module(), prepared)
    assert not torch.equal(first.scorer.item_vectors, one.scorer.item_vectors)


def turns(prepared, train, epoch):
    """Partitions in the order of an epoch: the number of each, its first user, and where its rows begin and end."""
    log = train.to_log()
    for number in np.random.default_rng([MODEL["seed"], epoch, 2]).permutation(prepared.num_partitions):
        first, last = prepared.user_starts[number : number + 2]
        yield int(number), int(first), slice(log.offsets[first], log.offsets[last])


def test_matrix_factorisation_takes_rows_in_random_order_partition_by_partition(prepared):
    train, _ = prepared.split_per_user(train=0.8)
    options = {**MODEL, "item_bias": False}
    expected, log = make_scorer(train, feedback=None, **options), train.to_log()
    for epoch in range(2):
        for number, _, rows in turns(prepared, train, epoch):
            order = np.random.default_rng([MODEL["seed"], epoch, number]).permutation(rows.stop - rows.start)
            mf_step(expected, log, rows.start + order, torch.optim.SGD(expected.parameters(), lr=0.05), mu=0.02)
    module = MFModule(dim=4, init="normal", seed=2, **STEPS)
    assert_same_weights(fit(module, prepared, max_epochs=2, steps=13).scorer, expected, 0)


def visited(prepared, train, epoch, *, pairs, users):
    """Of every partition in turn whom pairs are drawn for and how many, users counted through the log."""
    lists = PairLists.from_log(train.to_log())
    eligible = lists.with_unseen()[0] if pairs == "unobserved" else lists.with_both_kinds()
    sizes = (lists.middles if pairs == "unobserved" else lists.starts[1:]) - lists.starts[:-1]
    for number, first, _ in turns(prepared, train, epoch):
        random = np.random.default_rng([MODEL["seed"], epoch, 0, number])
        own = eligible[(eligible >= first) & (eligible < prepared.user_starts[number + 1])]
        if users == "each":
            order = random.permutation(own)
            yield lists, order, sizes[order]
            continue
        every = np.repeat(own, sizes[own]) if pairs == "unobserved" else own
        drawn = every[random.integers(len(every), size=sizes[own].sum())]
        yield lists, drawn, np.ones(len(drawn), np.int64)


@pytest.mark.parametrize("users", ["each", "random"])
@pytest.mark.parametrize("pairs", ["shown", "rejection", "unobserved"])
@pytest.mark.parametrize("feedback", [None, "all"])
def test_pairs_are_drawn_partition_by_partition(prepared, pairs, users, feedback):
    train, _ = prepared.split_per_user(train=0.8)
    expected = make_scorer(train, feedback=feedback, **MODEL)
    optimizer = torch.optim.SGD(expected.parameters(), lr=0.05)
    draws = ["shown", "rejection", "unobserved"].index(pairs)
    for epoch in range(2):
        state = random_state(MODEL["seed"], epoch, 1)
        for lists, order, counts in visited(prepared, train, epoch, pairs=pairs, users=users):
            bpr_step(expected, lists, order, counts, optimizer, draws, 0.02, 0.0, state)
    module = BPRModule(pairs=pairs, users=users, feedback=feedback, **MODEL, **STEPS)
    assert_same_weights(fit(module, prepared, max_epochs=2, steps=5).scorer, expected, 0)


def test_batches_of_pairs_are_drawn_partition_by_partition(prepared):
    train, _ = prepared.split_per_user(train=0.8)
    expected = make_scorer(train, feedback=None, **MODEL)
    optimizer, state = torch.optim.SGD(expected.parameters(), lr=0.05), random_state(MODEL["seed"], 0, 1)
    for lists, order, counts in visited(prepared, train, 0, pairs="unobserved", users="each"):
        places = lists.starts, lists.middles, lists.items, lists.seen_starts, lists.seen
        *drawn, _ = draw_visits(order, counts, *places, lists.num_items, 2, state)
        for owners, liked, other in zip(*(torch.from_numpy(each).split(32) for each in drawn), strict=True):
            optimizer.zero_grad()
            by_user, by_liked = expected.squared_norms(owners, liked)
            norms = by_user.sum() + by_liked.sum() + expected.squared_norms(owners, other)[1].sum()
            pair_losses = BPRLoss(reduction="sum")(expected(owners, liked), expected(owners, other))
            (pair_losses + 0.02 * norms).backward()
            optimizer.step()
    options = {"engine": "batched", "batch_size": 32, "pairs": "unobserved", "users": "each"}
    assert_same_weights(fit(BPRModule(**options, **MODEL, **STEPS), prepared).scorer, expected)


RESUMED = {
    "sequential": partial(SAROSModule, order="shuffled", user_order="shuffled", **MODEL, **STEPS),
    "averaging": partial(SAROSModule, averaging=True, user_order="shuffled", **MODEL, **STEPS),
    "batched": partial(SAROSModule, engine="batched", lanes=5, user_order="shuffled", **MODEL, **STEPS),
    "pairs": partial(BPRModule, **MODEL, **STEPS),
    "pairs of each user": partial(BPRModule, users="each", pairs="unobserved", **MODEL, **STEPS),
    "batches of pairs": partial(BPRModule, engine="batched", batch_size=32, **MODEL, **STEPS),
    "squared errors": partial(MFModule, dim=4, init="normal", **STEPS),
}


@pytest.mark.parametrize("name", RESUMED)
def test_a_checkpoint_inside_an_epoch_resumes_exactly(prepared, name, tmp_path):
    module = RESUMED[name]

    whole = fit(module(), prepared, **saving(tmp_path, max_epochs=2, steps=10))
    steps = saved_steps(tmp_path)
    assert len(steps) == 20
    for stop in (3, 8, 10, 15):  # inside a partition, between two, at the end of an epoch
        resumed = fit(module(), prepared, ckpt_path=steps[stop - 1], **saving(tmp_path, max_epochs=2, steps=10))
        assert_same_weights(resumed, whole, 0)
    loaded = torchrank.load(steps[-1])
    assert_same_weights(loaded.scorer, whole.scorer, 0)


def test_measures_are_those_of_the_log_in_memory(prepared, monkeypatch):
    module = fit(SAROSModule(**MODEL, **STEPS), prepared, validation=0.2)
    found = []
    for log, rows in ((prepared.to_log(), 1), (prepared, 1_000_000), (prepared, 60)):
        monkeypatch.setattr(interaction_data, "_ROWS", rows)
        data = InteractionDataModule(log, validation=0.2)
        trainer = quiet()
        found.append(trainer.validate(module, data, verbose=False)[0] | trainer.test(module, data, verbose=False)[0])
    assert len(list(data.test_dataloader())) > 2
    assert found[0].keys() == found[1].keys() == found[2].keys()
    assert len(found[0]) == 12
    for other in found[1:]:
        assert list(other.values()) == pytest.approx(list(found[0].values()), rel=1e-5)


@pytest.mark.parametrize("size", [2, 3, 7])
def test_of_several_processes_each_opens_its_own_partitions(prepared, size, monkeypatch):
    opened, open_partition = [], PreparedLog.partition
    monkeypatch.setattr(PreparedLog, "partition", lambda log, n: opened.append(n) or open_partition(log, n))
    monkeypatch.setattr(interaction_data, "_ROWS", 100)
    options = BlockOptions("run", "time", "shuffled", None, None, "discard", 5)
    train, test = prepared.split_per_user(train=0.8)
    expected = {2: {0: [0, 2, 4], 1: [1, 3, 4]}, 3: {0: [0, 3, 4], 1: [1, 3, 4], 2: [2, 3, 4]}}
    trained, tested, batches = [], [], set()
    for rank in range(size):
        processes = Processes(rank, size)
        numbers, own = expected.get(size, {}).get(rank, [0, 1, 2, 3, 4]), processes.own(prepared)
        opened.clear()
        plans = [plan_partition(train, options, 2, place, processes) for place in range(len(numbers))]
        assert sorted(opened) == numbers
        users = np.concatenate([plan.users + plan.first_user for plan in plans])
        trained += users[own[users]].tolist()
        opened.clear()
        parts = list(interaction_data.BatchesFromDisk(test, processes))
        assert opened == numbers
        tested += [user for part in parts for user in part.users.tolist()]
        batches.add(len(parts))
    assert sorted(trained) == list(range(prepared.num_users))
    assert sorted(tested) == np.unique(test.to_log().users).tolist()
    assert len(batches) == 1


def test_the_catalogue_of_a_log_on_disk(prepared):
    part, _ = prepared.split_per_user(train=0.6)
    found, expected = Catalogue.from_log(part), Catalogue.from_log(part.to_log())
    for name in ("user_ids", "item_ids", "offsets", "items", "positives", "shown"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()


def test_a_folder_is_recognised_by_its_name(prepared):
    data = InteractionDataModule(str(prepared.folder))
    assert isinstance(data.train_log, PreparedLog)
    assert len(data.train_log) + len(data.val_log) + len(data.test_log) == len(prepared)
    with pytest.raises(DataError, match="positive_at=4, but the log was prepared"):
        InteractionDataModule(str(prepared.folder), positive_at=4)


def test_what_cannot_be_trained_from_disk_is_refused(prepared, tmp_path):
    for module in (BPRModule(pairs="all"), SoftmaxModule()):
        with pytest.raises(DataError, match="to_log"):
            fit(module, prepared)
    with pytest.raises(DataError, match="none within the limits"):
        fit(SAROSModule(minimum=1000), prepared)
    with pytest.raises(DataError, match="none within the limits"):
        fit(SAROSModule(maximum=0, overflow="truncate"), prepared)
    pl.DataFrame({"user": [1, 2], "item": [1, 2], "feedback": [1, 1], "time": [1, 2]}).write_csv(tmp_path / "log.csv")
    liked = prepare_log(tmp_path / "log.csv", tmp_path / "p", positive_at=1)
    with pytest.raises(DataError, match="no block"):
        fit_interactions(SAROSModule(), liked, epochs=1)
    with pytest.raises(DataError, match="no user of the training log has preferred and other"):
        fit_interactions(BPRModule(), liked, epochs=1)
