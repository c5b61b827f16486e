import datetime as dt
import io

import numpy as np
import polars as pl
import pytest
import torch

from torchrank.data import Catalogue, InteractionLog
from torchrank.data.catalogue import ids_from_plain, ids_to_plain
from torchrank.errors import DataError


def small_log(users, items):
    rows = {"user": users, "item": items, "feedback": [1.0, 0.0] * (len(users) // 2), "time": range(len(users))}
    return InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1)


def test_seen_gives_each_users_items():
    log = small_log([1, 2, 1, 3, 2, 1], [5, 5, 6, 7, 8, 9])
    rows, items = Catalogue.from_log(log).seen(np.array([2, 0, 1, 0]))
    pairs = [(row, int(log.item_ids[item])) for row, item in zip(rows, items, strict=True)]
    assert pairs == [(0, 7), (1, 5), (1, 6), (1, 9), (2, 5), (2, 8), (3, 5), (3, 6), (3, 9)]


@pytest.mark.parametrize(
    "ids",
    [
        [3, 1, 2, 9],
        [2**40, 1, 2, 2**62],
        ["b", "a", "ü", ""],
        [1.5, -2.0, 0.25, 3.0],
        [dt.date(2020, 1, day) for day in (3, 1, 2, 9)],
        [True, False, True, False],
    ],
)
def test_a_catalogue_survives_a_safe_checkpoint(ids):
    catalogue = Catalogue.from_log(small_log(ids, ids[::-1]))
    file = io.BytesIO()
    torch.save(catalogue.state(), file)
    file.seek(0)
    again = Catalogue.from_state(torch.load(file, weights_only=True))
    assert again.user_ids.tolist() == catalogue.user_ids.tolist()
    assert again.user_ids.dtype == catalogue.user_ids.dtype
    assert again.item_ids.tolist() == catalogue.item_ids.tolist()
    for name in ("offsets", "items", "positives", "shown"):
        np.testing.assert_array_equal(getattr(again, name), getattr(catalogue, name))
        assert getattr(again, name).dtype == getattr(catalogue, name).dtype


def test_unsigned_ids_beyond_int64_survive():
    ids = np.array([2**64 - 1, 7], np.uint64)
    assert ids_from_plain(ids_to_plain(ids)).tolist() == [2**64 - 1, 7]


def test_ids_that_no_checkpoint_can_hold_are_named():
    with pytest.raises(DataError, match=r"b'x'"):
        ids_to_plain(np.array([b"x"], object))


def test_ids_are_found_both_ways():
    log = small_log(["b", "a", "b", "c"], [10, 20, 30, 40])
    assert log.user_index(["c", "zebra", "b"]).tolist() == [2, -1, 0]
    assert log.item_index(pl.Series([40, 5])).tolist() == [3, -1]
    assert log.item_index(np.array([], np.int64)).tolist() == []


def test_ids_of_another_type_are_refused():
    log = small_log(["b", "a"], [10, 20])
    with pytest.raises(DataError, match="user ids of the log are"):
        log.user_index([1, 2])
    with pytest.raises(DataError, match="item ids of the log are int64"):
        log.item_index(["10"])
