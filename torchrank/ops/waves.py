"""Waves: blocks of many users side by side, so that a step of the batched engine takes one block of each.

Users enter lanes in training order; a lane that finishes its user takes the next one (greedy list scheduling). Wave t
holds the blocks that the lanes take at time t: at most one a lane, all of different users, each user's blocks in order.
"""

import heapq
from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchrank.errors import check_count

Ints = NDArray[np.int64]
Slices = tuple[Ints, Ints, Ints, Ints]


@dataclass(frozen=True, eq=False)
class Waves:
    """Waves laid out flat: wave t holds entries ``entry_bounds[t]:entry_bounds[t + 1]`` and likewise pairs.

    Attributes:
        users: ``(E,)`` int32, user of each entry.
        items: ``(E,)`` int32, item of each entry.
        item_weights: ``(E,)`` share of the entry in its block's L2 term: 1/|Π| where preferred, else 1/|N|.
        user_weights: ``(E,)`` share of the user's vector: 1/|Π| where preferred, else 0; they sum to 1 a block.
        preferred: ``(P,)`` int32, the preferred entry of each pair, counted from its wave's first entry.
        others: ``(P,)`` int32, the other entry.
        pair_weights: ``(P,)`` 1/(|Π||N|).
        entry_bounds: waves + 1 numbers, on the host.
        pair_bounds: waves + 1 numbers, on the host.
        starting: how many users begin in each wave, on the host.
    """

    users: Tensor
    items: Tensor
    item_weights: Tensor
    user_weights: Tensor
    preferred: Tensor
    others: Tensor
    pair_weights: Tensor
    entry_bounds: list[int]
    pair_bounds: list[int]
    starting: list[int]

    def __len__(self) -> int:
        return len(self.starting)

    def __repr__(self) -> str:
        return f"Waves({len(self)} waves, {len(self.users)} entries, {len(self.preferred)} pairs)"

    def with_starting(self, starting: list[int]) -> "Waves":
        """Say how many users begin in each wave; waves beyond the last are empty."""
        more = len(starting) - len(self)
        ends = ([bounds[-1]] * more for bounds in (self.entry_bounds, self.pair_bounds))
        entry_bounds, pair_bounds = (a + b for a, b in zip((self.entry_bounds, self.pair_bounds), ends, strict=True))
        return replace(self, entry_bounds=entry_bounds, pair_bounds=pair_bounds, starting=starting)

    def to(self, device: torch.device | str) -> "Waves":
        """Move the tensors to a device."""
        return replace(
            self,
            users=self.users.to(device),
            items=self.items.to(device),
            item_weights=self.item_weights.to(device),
            user_weights=self.user_weights.to(device),
            preferred=self.preferred.to(device),
            others=self.others.to(device),
            pair_weights=self.pair_weights.to(device),
        )


def build_waves(
    order: NDArray[np.integer], block_starts: Ints, slices: Slices, items: NDArray[np.int32], *, lanes: int
) -> Waves:
    """Schedule users to lanes and lay their blocks out by wave.

    Args:
        order: users in training order.
        block_starts: ``(num_users + 1,)``, user u's blocks are ``block_starts[u]:block_starts[u + 1]``.
        slices: first row and row after the last, of the preferred and of the other part of each block, in ``items``.
        items: ``(N,)`` int32.
        lanes: how many users move side by side, at least 1; one lane keeps the sequential order. Where the training
            order would leave thin waves at the end (a tenth more waves than need be), longest users enter first.

    Returns:
        the waves, on the CPU.

    Raises:
        TorchRankError: ``lanes`` below 1.

    Example:
        >>> one = np.arange(0, 6, 2), np.arange(1, 7, 2), np.arange(1, 7, 2), np.arange(2, 8, 2)  # three blocks
        >>> waves = build_waves(np.arange(2), np.array([0, 2, 3]), one, np.arange(6, dtype=np.int32), lanes=2)
        >>> len(waves), waves.entry_bounds, waves.users.tolist(), waves.items.tolist()
        (2, [0, 4, 6], [0, 0, 1, 1, 0, 0], [0, 1, 4, 5, 2, 3])
    """
    check_count("lanes", lanes)
    counts: Ints = np.diff(block_starts)
    entering: Ints = order[counts[order] > 0].astype(np.int64)
    first, length = _schedule(counts[entering], lanes)
    least = max(int(counts[entering].max(initial=0)), -(-int(counts[entering].sum()) // lanes))
    if length > 1.1 * least:
        longest_first = entering[np.argsort(-counts[entering], kind="stable")]
        again, shorter = _schedule(counts[longest_first], lanes)
        if shorter < length:
            entering, first, length = longest_first, again, shorter
    blocks, users, sizes = _blocks_by_wave(entering, first, counts, block_starts, length)
    entries, pairs = _sizes(blocks, slices)
    entry_bounds, pair_bounds = _bounds(entries, sizes), _bounds(pairs, sizes)
    total, all_pairs = int(entry_bounds[-1]), int(pair_bounds[-1])
    entry_users, entry_items = np.empty(total, np.int32), np.empty(total, np.int32)
    item_weights, user_weights = np.empty(total, np.float32), np.empty(total, np.float32)
    preferred, others = np.empty(all_pairs, np.int32), np.empty(all_pairs, np.int32)
    pair_weights = np.empty(all_pairs, np.float32)
    flat, paired = (entry_users, entry_items, item_weights, user_weights), (preferred, others, pair_weights)
    _flatten(blocks, users, np.cumsum(sizes), slices, items, flat, paired)
    return Waves(
        users=torch.from_numpy(entry_users),
        items=torch.from_numpy(entry_items),
        item_weights=torch.from_numpy(item_weights),
        user_weights=torch.from_numpy(user_weights),
        preferred=torch.from_numpy(preferred),
        others=torch.from_numpy(others),
        pair_weights=torch.from_numpy(pair_weights),
        entry_bounds=entry_bounds.tolist(),
        pair_bounds=pair_bounds.tolist(),
        starting=np.bincount(first, minlength=length).tolist(),
    )


@numba.njit(cache=True, nogil=True)
def _schedule(counts: Ints, lanes: int) -> tuple[Ints, int]:
    """First wave of each user, and how many waves there are: every user takes the lane that is free first."""
    first = np.empty(len(counts), np.int64)
    free = [(0, lane) for lane in range(min(lanes, max(1, len(counts))))]
    length = 0
    for place in range(len(counts)):
        time, lane = free[0]
        first[place] = time
        heapq.heapreplace(free, (time + counts[place], lane))
        length = max(length, time + counts[place])
    return first, length


@numba.njit(cache=True, nogil=True)
def _blocks_by_wave(order: Ints, first: Ints, counts: Ints, block_starts: Ints, length: int) -> tuple[Ints, Ints, Ints]:
    """Blocks and their users by wave, then training order (a counting sort), and the number of blocks of each wave."""
    sizes = np.zeros(length, np.int64)
    for place in range(len(order)):
        sizes[first[place] : first[place] + counts[order[place]]] += 1
    at = np.cumsum(sizes) - sizes
    blocks, users = np.empty(sizes.sum(), np.int64), np.empty(sizes.sum(), np.int64)
    for place in range(len(order)):
        user = order[place]
        for k in range(counts[user]):
            wave = first[place] + k
            blocks[at[wave]] = block_starts[user] + k
            users[at[wave]] = user
            at[wave] += 1
    return blocks, users, sizes


def _sizes(blocks: Ints, slices: Slices) -> tuple[Ints, Ints]:
    """Entries and pairs of each block."""
    preferred = slices[1][blocks] - slices[0][blocks]
    others = slices[3][blocks] - slices[2][blocks]
    return preferred + others, preferred * others


def _bounds(values: Ints, sizes: Ints) -> Ints:
    """Where waves of ``sizes`` blocks begin when each block takes ``values`` places."""
    places = np.concatenate([[0], np.cumsum(values)])
    return np.asarray(places[np.concatenate([[0], np.cumsum(sizes)])], np.int64)


@numba.njit(cache=True, nogil=True)
def _flatten(
    blocks: Ints, users: Ints, wave_ends: Ints, slices: Slices, items: NDArray[np.int32], flat: Any, paired: Any
) -> None:
    preferred_start, preferred_stop, other_start, other_stop = slices
    entry_users, entry_items, item_weights, user_weights = flat
    preferred, others, pair_weights = paired
    entry = pair = wave_entry = wave = 0
    for place in range(len(blocks)):
        while place == wave_ends[wave]:
            wave += 1
            wave_entry = entry
        block = blocks[place]
        a, b, c, d = preferred_start[block], preferred_stop[block], other_start[block], other_stop[block]
        for row in range(a, b):
            entry_users[entry + row - a], entry_items[entry + row - a] = users[place], items[row]
            item_weights[entry + row - a] = user_weights[entry + row - a] = 1 / (b - a)
        for row in range(c, d):
            at = entry + b - a + row - c
            entry_users[at], entry_items[at] = users[place], items[row]
            item_weights[at], user_weights[at] = 1 / (d - c), 0
        for i in range(b - a):
            for j in range(d - c):
                preferred[pair], others[pair] = entry - wave_entry + i, entry - wave_entry + b - a + j
                pair_weights[pair] = 1 / ((b - a) * (d - c))
                pair += 1
        entry += b - a + d - c
