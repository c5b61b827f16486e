"""The compiled pass that cuts users' interactions into SAROS blocks."""

import numba
import numpy as np
from numpy.typing import NDArray

#: rule name to the number the compiled pass knows it by
RULES = {"run": 0, "single": 1, "eager": 2, "positive": 3}
Slices = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


@numba.njit(cache=True, nogil=True)
def _scan(
    preferred: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    rule: int,
    counts: NDArray[np.int64],
    found: Slices,
    write: bool,
) -> None:
    preferred_start, preferred_stop, other_start, other_stop = found
    block = 0
    for user in range(len(offsets) - 1):
        row, end = offsets[user], offsets[user + 1]
        before = block
        if rule == 2:  # eager: a run of one kind, closed by the first row of the other
            start = row
            while row < end:
                if preferred[row] != preferred[start]:
                    if write:
                        likes_first = preferred[start]
                        preferred_start[block] = start if likes_first else row
                        preferred_stop[block] = row if likes_first else row + 1
                        other_start[block] = row if likes_first else start
                        other_stop[block] = row + 1 if likes_first else row
                    block += 1
                    start = row + 1
                row += 1
            counts[user] = block - before
            continue
        while row < end and preferred[row]:
            row += 1
        while row < end:
            start = row
            while row < end and not preferred[row]:
                row += 1
            middle = row
            while row < end and preferred[row]:
                row += 1
            if row == middle:
                break
            if rule == 3:  # positive: every preferred row alone
                if write:
                    for k in range(middle, row):
                        preferred_start[block + k - middle] = k
                        preferred_stop[block + k - middle] = k + 1
                        other_start[block + k - middle] = start
                        other_stop[block + k - middle] = middle
                block += row - middle
                continue
            if write:
                preferred_start[block] = middle
                preferred_stop[block] = middle + 1 if rule == 1 else row
                other_start[block] = start
                other_stop[block] = middle
            block += 1
        counts[user] = block - before


def count_blocks(preferred: NDArray[np.bool_], offsets: NDArray[np.int64], rule: str) -> NDArray[np.int64]:
    """Count every user's blocks.

    Args:
        preferred: ``(N,)`` by user, then time.
        offsets: ``(num_users + 1,)``.
        rule: a key of :data:`RULES`.

    Returns:
        ``(num_users,)`` blocks of each user.
    """
    counts, none = np.zeros(len(offsets) - 1, np.int64), np.empty(0, np.int64)
    _scan(preferred, offsets, RULES[rule], counts, (none, none, none, none), False)
    return counts


def find_blocks(
    preferred: NDArray[np.bool_], offsets: NDArray[np.int64], rule: str
) -> tuple[NDArray[np.int64], Slices]:
    """Cut every user's rows into blocks.

    Args:
        preferred: ``(N,)`` by user, then time.
        offsets: ``(num_users + 1,)``.
        rule: a key of :data:`RULES`.

    Returns:
        ``(num_users,)`` blocks of each user, and for each of the K blocks, user by user in time order, the first row
        and the row after the last of its preferred and of its other part.
    """
    liked = int(np.count_nonzero(preferred))
    most = liked if rule == "positive" else min(liked, len(preferred) - liked)  # a block has rows of both kinds
    counts = np.zeros(len(offsets) - 1, np.int64)
    found = (np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64))
    _scan(preferred, offsets, RULES[rule], counts, found, True)
    total = int(counts.sum())
    return counts, (found[0][:total], found[1][:total], found[2][:total], found[3][:total])
