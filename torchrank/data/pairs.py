"""What pairs of items are drawn from: each user's preferred and other items, and all items one was shown."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from torchrank.data.log import InteractionLog


@dataclass(frozen=True, eq=False)
class PairLists:
    """A log laid out for drawing pairs.

    Attributes:
        starts: ``(num_users + 1,)`` int64, user u was shown ``items[starts[u]:starts[u + 1]]``.
        middles: ``(num_users,)`` int64, of these the preferred come first, up to ``middles[u]``.
        items: ``(N,)`` int32, in time order inside each kind.
        seen_starts: ``(num_users + 1,)`` int64, the same for ``seen``.
        seen: int32, the different items of each user, ascending.
        num_items: items of the log's id space.

    Example:
        >>> import polars as pl
        >>> rows = {"user": [7] * 4, "item": list("pqrq"), "feedback": [0, 1, 0, 1], "time": range(4)}
        >>> lists = PairLists.from_log(InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1))
        >>> lists.items.tolist(), lists.middles.tolist(), lists.seen.tolist()
        ([1, 1, 0, 2], [2], [0, 1, 2])
    """

    starts: NDArray[np.int64]
    middles: NDArray[np.int64]
    items: NDArray[np.int32]
    seen_starts: NDArray[np.int64]
    seen: NDArray[np.int32]
    num_items: int

    def __repr__(self) -> str:
        return f"PairLists({len(self.items)} interactions of {len(self.middles)} users and {self.num_items} items)"

    @classmethod
    def from_log(cls, log: InteractionLog) -> Self:
        """Lay a log out."""
        users = log.users.astype(np.int64)
        positives = np.bincount(users[log.preferred], minlength=log.num_users)
        by_kind = np.argsort(2 * users + ~log.preferred, kind="stable")
        keys = np.unique(users * log.num_items + log.items)
        seen_starts = np.append(0, np.cumsum(np.bincount(keys // log.num_items, minlength=log.num_users)))
        return cls(
            starts=log.offsets,
            middles=log.offsets[:-1] + positives,
            items=log.items[by_kind],
            seen_starts=seen_starts,
            seen=(keys % log.num_items).astype(np.int32),
            num_items=log.num_items,
        )

    def with_both_kinds(self) -> NDArray[np.int32]:
        """Return the users who were shown preferred and other items."""
        both = (self.starts[:-1] < self.middles) & (self.middles < self.starts[1:])
        return np.flatnonzero(both).astype(np.int32)

    def with_unseen(self) -> tuple[NDArray[np.int32], int]:
        """Return the users with a preferred item and an item never shown to them, and how many lack only the latter."""
        positive = self.starts[:-1] < self.middles
        unseen = np.diff(self.seen_starts) < self.num_items
        return np.flatnonzero(positive & unseen).astype(np.int32), int((positive & ~unseen).sum())
