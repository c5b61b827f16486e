"""Compiled passes over interaction logs: number ids, sort by user and time, find repeated items."""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray


@numba.njit(cache=True, nogil=True)
def number_dense(values: NDArray[Any], low: int, table: NDArray[np.int32], codes: NDArray[np.int32], found: int) -> int:
    """Number integers of a narrow range by first appearance.

    Args:
        values: ``(N,)`` integers in ``[low, low + len(table))``.
        low: the smallest value there is.
        table: number of each value, -1 before it was seen; filled here, so that chunks can follow each other.
        codes: ``(N,)``, written here.
        found: how many values were numbered before.

    Returns:
        how many values are numbered now.
    """
    for row in range(len(values)):
        slot = values[row] - low
        code = table[slot]
        if code < 0:
            code = found
            table[slot] = code
            found += 1
        codes[row] = code
    return found


@numba.njit(cache=True, nogil=True)
def in_order(users: NDArray[np.int32], times: NDArray[Any]) -> bool:
    """Say whether rows already lie by user, then time."""
    for row in range(1, len(users)):
        if users[row] < users[row - 1] or (users[row] == users[row - 1] and times[row] < times[row - 1]):
            return False
    return True


@numba.njit(cache=True, nogil=True)
def user_offsets(users: NDArray[np.int32], num_users: int) -> NDArray[np.int64]:
    """Return where each user's rows begin and end once they lie by user: ``(num_users + 1,)``."""
    offsets = np.zeros(num_users + 1, np.int64)
    for row in range(len(users)):
        offsets[users[row] + 1] += 1
    for user in range(num_users):
        offsets[user + 1] += offsets[user]
    return offsets


@numba.njit(cache=True, nogil=True)
def sort_rows(
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    feedback: NDArray[Any],
    times: NDArray[Any],
    offsets: NDArray[np.int64],
) -> tuple[NDArray[np.int32], NDArray[Any], NDArray[Any]]:
    """Return items, feedback and times by user, then time, then row, and write ``users`` in that order too.

    A counting sort by user, then a stable sort by time inside each user. Users whose rows come in time order, as in a
    log kept as it happens, cost no sort.
    """
    new_items, new_feedback, new_times = np.empty_like(items), np.empty_like(feedback), np.empty_like(times)
    place = offsets[:-1].copy()
    for row in range(len(users)):
        k = place[users[row]]
        place[users[row]] = k + 1
        new_items[k] = items[row]
        new_feedback[k] = feedback[row]
        new_times[k] = times[row]
    for user in range(len(offsets) - 1):
        first, last = offsets[user], offsets[user + 1]
        users[first:last] = user
        for k in range(first + 1, last):
            if new_times[k] < new_times[k - 1]:
                order = np.argsort(new_times[first:last], kind="mergesort")
                new_times[first:last] = new_times[first:last][order]
                new_items[first:last] = new_items[first:last][order]
                new_feedback[first:last] = new_feedback[first:last][order]
                break
    return new_items, new_feedback, new_times


@numba.njit(cache=True, nogil=True)
def take_ranges(values: NDArray[Any], starts: NDArray[np.int64], stops: NDArray[np.int64], total: int) -> NDArray[Any]:
    """Return ``values[starts[0]:stops[0]]``, ``values[starts[1]:stops[1]]``, … end to end, ``total`` rows in all."""
    out = np.empty(total, values.dtype)
    place = 0
    for k in range(len(starts)):
        for row in range(starts[k], stops[k]):
            out[place] = values[row]
            place += 1
    return out


@numba.njit(cache=True, nogil=True)
def last_of_each_item(
    items: NDArray[np.int32], offsets: NDArray[np.int64], num_items: int
) -> tuple[NDArray[np.bool_], int]:
    """Mark each user's last row of every item.

    Args:
        items: ``(N,)`` by user, then time.
        offsets: ``(num_users + 1,)``.
        num_items: how many items there are.

    Returns:
        ``(N,)`` marks, and the first row that the same user repeats later (-1 when none does).
    """
    keep = np.ones(len(items), np.bool_)
    seen_by = np.full(num_items, -1, np.int64)
    repeated = -1
    for user in range(len(offsets) - 1):
        for row in range(offsets[user + 1] - 1, offsets[user] - 1, -1):
            if seen_by[items[row]] == user:
                keep[row] = False
                if repeated < 0 or row < repeated:
                    repeated = row
            seen_by[items[row]] = user
    return keep, repeated


@numba.njit(cache=True, nogil=True)
def shuffle_within_users(
    items: NDArray[np.int32], preferred: NDArray[np.bool_], offsets: NDArray[np.int64], generator: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return copies in which each user's rows are in a random order."""
    items, preferred = items.copy(), preferred.copy()
    for user in range(len(offsets) - 1):
        first = offsets[user]
        for k in range(offsets[user + 1] - first - 1, 0, -1):
            other = first + int(generator.random() * (k + 1))
            row = first + k
            items[row], items[other] = items[other], items[row]
            preferred[row], preferred[other] = preferred[other], preferred[row]
    return items, preferred
