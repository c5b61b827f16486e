"""Which of several processes a user belongs to, and which partitions of a log each of them reads."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def user_shares(num_users: int, processes: int, starts: NDArray[np.integer[Any]] | None = None) -> NDArray[np.int32]:
    """Deal users to processes by a hash of their index, so that neighbours in a log are spread.

    Args:
        num_users: users, numbered from 0.
        processes: how many there are, at least 1.
        starts: ``(P + 1,)`` of a log in partitions, the first user of each, and the number of users: the users of a
            partition that :func:`partition_rounds` deals to one process are all that process's.

    Returns:
        ``(num_users,)`` the process of each user.

    Source: the mixing function of SplitMix64 (Steele, Lea & Flood, "Fast splittable pseudorandom number generators").

    Example:
        >>> np.bincount(user_shares(1000, 2)).tolist()
        [461, 539]
        >>> user_shares(8, 2, np.array([0, 2, 5, 8])).tolist()
        [0, 0, 1, 1, 1, 0, 1, 0]
    """
    word = np.arange(1, num_users + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    shares = ((word ^ (word >> np.uint64(31))) % np.uint64(processes)).astype(np.int32)
    if starts is not None:
        whole = (len(starts) - 1) // processes * processes
        owners = np.arange(whole, dtype=np.int32) % processes
        shares[: starts[whole]] = np.repeat(owners, np.diff(starts[: whole + 1]))
    return shares


def partition_rounds(partitions: int, processes: int) -> NDArray[np.int64]:
    """Deal the partitions of a log to processes, as many to each.

    Args:
        partitions: how many there are.
        processes: likewise, at least 1.

    Returns:
        ``(rounds, processes)`` the partition that each process reads in each round: partitions of their own as long as
        they go round, then each of the rest by all processes, which share its users.

    Example:
        >>> partition_rounds(5, 2).tolist()
        [[0, 1], [2, 3], [4, 4]]
    """
    whole = partitions // processes * processes
    own = np.arange(whole).reshape(-1, processes)
    shared = np.repeat(np.arange(whole, partitions)[:, None], processes, axis=1)
    return np.concatenate([own, shared])
