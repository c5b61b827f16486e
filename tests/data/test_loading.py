"""Batches hold every list once, little padding, and go on where they stood."""

from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.real_data import REAL_DATA, needs_real_data
from torchrank.data import (
    ListBatchSampler,
    ListLoader,
    QueryDataset,
    collate_lists,
    concat_queries,
    make_queries,
    read_letor,
)
from torchrank.errors import DataError, TorchRankError

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA"))]
LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=40)
OPTIONS = st.fixed_dictionaries(
    {"batch_size": st.integers(1, 9), "shuffle": st.booleans(), "max_padding": st.sampled_from([0.0, 0.2, 0.5, 1.0])}
)


def batches(sampler):
    return [lists.tolist() for lists in sampler]


def dataset(lengths, device="cpu"):
    generator = torch.Generator().manual_seed(0)
    total = sum(lengths)
    features = torch.randn(total, 3, generator=generator).to(device)
    relevance = torch.randint(1, 4, (total,), generator=generator).to(device)
    offsets = torch.tensor([0, *np.cumsum(lengths)], device=device)
    weights = torch.arange(len(lengths), device=device) + 1.0
    return QueryDataset(features, relevance, offsets, list_weights=weights)


@given(LENGTHS, OPTIONS)
def test_every_list_comes_once_an_epoch_and_padding_is_bounded(lengths, options):
    sampler = ListBatchSampler(torch.tensor(lengths), **options)
    for _ in range(3):
        epoch = batches(sampler)
        assert len(epoch) == len(sampler)
        assert sorted(chain(*epoch)) == list(range(len(lengths)))
        assert all(1 <= len(batch) <= options["batch_size"] for batch in epoch)
        wide = sum(len(batch) * max(lengths[q] for q in batch) for batch in epoch)
        assert wide * (1 - options["max_padding"]) <= sum(lengths) + 1e-9


@given(LENGTHS, st.integers(1, 8))
def test_lists_in_the_order_of_the_dataset(lengths, batch_size):
    sampler = ListBatchSampler(torch.tensor(lengths), batch_size=batch_size, max_padding=1.0)
    assert list(chain(*batches(sampler))) == list(range(len(lengths)))


@given(LENGTHS, st.integers(1, 8))
def test_unshuffled_the_longest_come_first(lengths, batch_size):
    epoch = batches(ListBatchSampler(torch.tensor(lengths), batch_size=batch_size, max_padding=0.0))
    widest = [max(lengths[q] for q in batch) for batch in epoch]
    assert widest == sorted(widest, reverse=True)


@given(LENGTHS, OPTIONS, st.integers(2, 5))
def test_ranks_share_the_lists_and_count_alike(lengths, options, world_size):
    samplers = [
        ListBatchSampler(torch.tensor(lengths), **options, rank=r, world_size=world_size) for r in range(world_size)
    ]
    for _ in range(2):
        epochs = [batches(sampler) for sampler in samplers]
        assert len({len(epoch) for epoch in epochs}) == 1
        assert sorted(q for epoch in epochs for batch in epoch for q in batch) == list(range(len(lengths)))
        for together in zip(*epochs, strict=True):
            sizes = [len(batch) for batch in together]
            assert max(sizes) <= options["batch_size"]
            assert max(sizes) - min(sizes) <= 1
            if len(lengths) >= world_size and options["batch_size"] > 1:
                assert min(sizes) >= 1


def test_epochs_differ_and_the_seed_decides_them():
    def epochs(seed):
        sampler = ListBatchSampler(torch.arange(1, 200), batch_size=4, shuffle=True, seed=seed)
        return [batches(sampler) for _ in range(3)]

    one, same, other = epochs(1), epochs(1), epochs(2)
    assert one == same
    assert one[0] != one[1] != one[2] != one[0]
    assert one[0] != other[0]


def test_a_list_meets_new_neighbours_every_epoch():
    sampler = ListBatchSampler(torch.arange(1, 501), batch_size=10, shuffle=True)
    met = set()
    for _ in range(20):
        met |= next(set(batch) for batch in batches(sampler) if 400 in batch)
    assert len(met) > 50


@given(LENGTHS, OPTIONS, st.data())
def test_resuming_goes_on_with_the_next_batch(lengths, options, draw):
    sampler = ListBatchSampler(torch.tensor(lengths), **options, seed=3)
    whole = [batches(sampler) for _ in range(3)]
    epoch = draw.draw(st.integers(0, 1))
    position = draw.draw(st.integers(0, len(sampler)))
    before = ListBatchSampler(torch.tensor(lengths), **options, seed=3)
    for _ in range(epoch):
        batches(before)
    running = iter(before)
    seen = [next(running).tolist() for _ in range(position)]
    assert seen == whole[epoch][:position]
    after = ListBatchSampler(torch.tensor(lengths), **options, seed=3)
    after.load_state_dict(before.state_dict())
    if position or epoch:
        if position < len(sampler):
            assert batches(after) == whole[epoch][position:]
        assert batches(after) == whole[epoch + 1]


def test_an_iteration_left_early_starts_a_new_epoch():
    whole = ListBatchSampler(torch.arange(1, 50), batch_size=4, shuffle=True)
    epochs = [batches(whole), batches(whole)]
    sampler = ListBatchSampler(torch.arange(1, 50), batch_size=4, shuffle=True)
    assert next(iter(sampler)).tolist() == epochs[0][0]
    assert batches(sampler) == epochs[1]


def test_an_iterator_that_is_never_used_costs_no_epoch():
    whole = batches(ListBatchSampler(torch.arange(1, 50), shuffle=True))
    sampler = ListBatchSampler(torch.arange(1, 50), shuffle=True)
    iter(sampler)
    assert batches(sampler) == whole


def test_set_epoch_names_an_epoch_and_keeps_the_place_in_the_present_one():
    make = lambda: ListBatchSampler(torch.arange(1, 50), batch_size=4, shuffle=True)  # noqa: E731
    sampler = make()
    epochs = [batches(sampler) for _ in range(4)]
    sampler.set_epoch(2)
    assert batches(sampler) == epochs[2]
    running = make()
    sampler.set_epoch(1)
    iterator = iter(sampler)
    next(iterator)
    running.load_state_dict(sampler.state_dict())
    running.set_epoch(1)
    assert batches(running) == epochs[1][1:]


def test_a_state_of_another_loader_is_refused():
    state = ListLoader(make_queries(20).dataset, batch_size=4, seed=1).state_dict()
    with pytest.raises(DataError, match=r"batch_size was 4, is 8; seed was 1, is 0"):
        ListLoader(make_queries(20).dataset, batch_size=8).load_state_dict(state)
    with pytest.raises(DataError, match="lists was 20, is 21"):
        ListLoader(make_queries(21).dataset, batch_size=4, seed=1).load_state_dict(state)


@pytest.mark.parametrize("device", DEVICES)
def test_batches_hold_the_lists_they_say(device):
    data = dataset([3, 1, 4, 1, 5], device)
    for batch in ListLoader(data, batch_size=2, shuffle=True, max_padding=1.0):
        assert batch.features.device.type == batch.mask.device.type == batch.lists.device.type == device
        assert batch.features.shape == (*batch.mask.shape, 3)
        for row, q in enumerate(batch.lists.tolist()):
            length = int(data.lengths[q])
            assert batch.mask[row].tolist() == [place < length for place in range(batch.mask.shape[1])]
            assert torch.equal(batch.features[row, :length], data[q].features)
            assert torch.equal(batch.relevance[row, :length], data[q].relevance)
            assert batch.list_weights[row] == data.list_weights[q]
        assert (batch.features[~batch.mask] == 0).all()
        assert (batch.relevance[~batch.mask] == 0).all()
        assert batch.mask.any(0).all()


def test_a_batch_of_no_lists_has_a_width():
    batch = collate_lists(dataset([3]), torch.tensor([], dtype=torch.int64))
    assert batch.features.shape == (0, 1, 3)
    loaders = [ListLoader(dataset([3]), rank=r, world_size=2) for r in range(2)]
    assert [[tuple(b.mask.shape) for b in loader] for loader in loaders] == [[(1, 3)], [(0, 1)]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size=0"),
        ({"max_padding": 1.5}, "max_padding=1.5"),
        ({"rank": 2, "world_size": 2}, "rank=2 must lie from 0 to world_size − 1 = 1"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(TorchRankError, match=message):
        ListLoader(dataset([3]), **options)


@needs_real_data
def test_padding_on_mq2008_stays_under_a_fifth():
    parts = [read_letor(REAL_DATA / "mq2008" / f"S{i}.txt.gz") for i in range(1, 6)]
    for fold in range(5):
        train = concat_queries([parts[(fold + i) % 5] for i in range(3)])
        for data in (train, parts[fold]):
            loader = ListLoader(data, batch_size=32, shuffle=True)
            masks = [batch.mask for batch in loader]
            assert sum(int((~m).sum()) for m in masks) < 0.2 * sum(m.numel() for m in masks)
        assert len(ListLoader(train, batch_size=32)) <= 1.2 * len(train) / 32 + 1
