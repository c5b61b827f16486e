"""Which of several processes a user belongs to."""

import numpy as np
from numpy.typing import NDArray


def user_shares(num_users: int, processes: int) -> NDArray[np.int32]:
    """Deal users to processes by a hash of their index, so that neighbours in a log are spread.

    Args:
        num_users: users, numbered from 0.
        processes: how many there are, at least 1.

    Returns:
        ``(num_users,)`` the process of each user.

    Source: the mixing function of SplitMix64 (Steele, Lea & Flood, "Fast splittable pseudorandom number generators").

    Example:
        >>> np.bincount(user_shares(1000, 2)).tolist()
        [461, 539]
    """
    word = np.arange(1, num_users + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((word ^ (word >> np.uint64(31))) % np.uint64(processes)).astype(np.int32)
