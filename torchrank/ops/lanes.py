"""Session-parallel lanes: many sequences side by side, a new one entering wherever one has ended."""

import heapq

import numba
import numpy as np
from numpy.typing import NDArray

from torchrank.errors import check_count

Ints = NDArray[np.int64]

#: sequences longer than this share of the steps enter first, so that none is left nearly alone at the end
_LONG = 0.05


def session_lanes(order: Ints, starts: Ints, *, lanes: int) -> Ints:
    """Lay sequences out in lanes: at each step a lane reads one item, and the next is what it should foretell.

    Sequences take, in the given order, the lane that is free first; but those longer than a twentieth of all steps
    enter before the others, since one that entered last would be left alone.

    Args:
        order: ``(U,)`` sequences in the order in which they enter.
        starts: ``(number of sequences + 1,)``; sequence u is rows ``starts[u]:starts[u + 1]``. Of n rows, n − 1 are
            read; the last is only foretold.
        lanes: how many sequences move side by side, at least 1.

    Returns:
        ``(T, lanes)`` the row read by each lane at each step, −1 where a lane has no sequence left. A lane's real rows
        come first.

    Raises:
        TorchRankError: ``lanes`` below 1.

    Source: session-parallel mini-batches, arXiv 1511.06939, figure 2.

    Example:
        >>> session_lanes(np.array([0, 1, 2]), np.array([0, 3, 5, 8]), lanes=2)  # read: 0, 1 | 3 | 5, 6
        array([[ 0,  3],
               [ 1,  5],
               [-1,  6]])
    """
    check_count("lanes", lanes)
    sizes = np.diff(starts) - 1
    entering = order[sizes[order] > 0].astype(np.int64)
    long = sizes[entering] > _LONG * max(1, int(sizes[entering].sum()) // lanes)
    entering = np.concatenate([entering[long], entering[~long]])
    first, lane, length = _schedule(sizes[entering], lanes)
    table: Ints = np.full((length, lanes), -1, np.int64)
    _fill(table, first, lane, sizes[entering], starts[entering])
    return table


@numba.njit(cache=True, nogil=True)
def _schedule(sizes: Ints, lanes: int) -> tuple[Ints, Ints, int]:
    """First step and lane of each sequence, and how many steps there are."""
    first, where = np.empty(len(sizes), np.int64), np.empty(len(sizes), np.int64)
    free = [(0, lane) for lane in range(lanes)]
    length = 0
    for place in range(len(sizes)):
        first[place], where[place] = free[0]
        heapq.heapreplace(free, (first[place] + sizes[place], where[place]))
        length = max(length, first[place] + sizes[place])
    return first, where, length


@numba.njit(cache=True, nogil=True)
def _fill(table: Ints, first: Ints, lane: Ints, sizes: Ints, starts: Ints) -> None:
    for place in range(len(sizes)):
        for step in range(sizes[place]):
            table[first[place] + step, lane[place]] = starts[place] + step
