"""Session-parallel lanes: every row that has a next one is read once, in order, where a lane is free."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchrank.errors import TorchRankError
from torchrank.ops.lanes import session_lanes


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=30), st.integers(1, 8), st.integers(0, 99))
def test_every_row_once_and_in_order(sizes, lanes, seed):
    starts = np.append(0, np.cumsum(sizes))
    order = np.random.default_rng(seed).permutation(len(sizes))
    table = session_lanes(order, starts, lanes=lanes)
    read = [row for start, size in zip(starts, sizes, strict=False) for row in range(start, start + size - 1)]
    assert sorted(table[table >= 0].tolist()) == read
    owner = np.repeat(np.arange(len(sizes)), sizes)
    for lane in table.T:
        rows = lane[lane >= 0]
        assert (lane[: len(rows)] >= 0).all()  # nothing after a gap
        same = owner[rows[1:]] == owner[rows[:-1]]
        assert (rows[1:][same] == rows[:-1][same] + 1).all()
        assert np.isin(rows[1:][~same], starts).all()
        assert not len(rows) or rows[0] in starts
    if len(read):
        assert (table[0] >= 0).sum() == min(lanes, sum(size > 1 for size in sizes))
    assert len(table) <= -(-len(read) // lanes) + max(max(sizes) - 1, 0)


def test_long_sequences_enter_first():
    starts = np.append(0, np.cumsum([3] * 200 + [50]))
    table = session_lanes(np.arange(201), starts, lanes=4)
    assert table[0].tolist() == [600, 0, 3, 6]
    assert len(table) == -(-449 // 4)


def test_no_lanes_are_refused():
    with pytest.raises(TorchRankError, match="lanes=0"):
        session_lanes(np.arange(1), np.array([0, 3]), lanes=0)
