"""A log's test part as lists of shown items, laid out once and scored as often as wanted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchrank.data.log import InteractionLog
from torchrank.errors import DataError, check_type
from torchrank.ops.logs import take_ranges
from torchrank.training.recommendation import device_of
from torchrank.types import InteractionScorer

#: pairs scored at once
_PAIRS = 2**18


@dataclass(frozen=True, eq=False)
class ShownLists:
    """One list a user: the items shown in a test part, in the order of its log.

    Attributes:
        user_ids: ``(Q,)`` original ids of the lists' users.
        users: ``(Q,)`` int64 internal user indices.
        items: ``(N,)`` int32 internal item indices.
        preferred: ``(N,)`` boolean.
        offsets: ``(Q + 1,)`` int64; list q is ``items[offsets[q]:offsets[q + 1]]``.

    Example:
        >>> from torchrank.data import make_interactions
        >>> log, _ = make_interactions(num_users=20, num_items=30, num_interactions=200)
        >>> lists = ShownLists.from_log(log.split_per_user(train=0.8)[1])
        >>> len(lists), int(lists.sizes.sum()) == len(lists.items)
        (20, True)
    """

    user_ids: NDArray[Any]
    users: NDArray[np.int64]
    items: NDArray[np.int32]
    preferred: NDArray[np.bool_]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        return f"ShownLists({len(self)} lists, {len(self.items)} items shown, {int(self.preferred.sum())} preferred)"

    @classmethod
    def from_log(cls, log: InteractionLog) -> Self:
        """Make a list of every user who has a row in the log.

        Raises:
            DataError: the log has no row.
        """
        check_type("test", log, InteractionLog, "an InteractionLog")
        if not len(log):
            raise DataError("the test part has no rows; split off more, or move the moment of the split")
        users = np.flatnonzero(np.diff(log.offsets))
        return cls(log.user_ids[users], users, log.items, log.preferred, np.append(log.offsets[users], len(log)))

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Items of each list: ``(Q,)``."""
        return np.diff(self.offsets)

    @cached_property
    def positives(self) -> NDArray[np.int64]:
        """Preferred items of each list: ``(Q,)``."""
        return np.diff(np.append(0, np.cumsum(self.preferred))[self.offsets])

    def where(self, keep: NDArray[np.bool_]) -> Self:
        """Take the lists for which ``keep``, ``(Q,)``, is True."""
        if keep.all():
            return self
        starts, stops = self.offsets[:-1][keep], self.offsets[1:][keep]
        offsets = np.append(0, np.cumsum(stops - starts))
        return replace(
            self,
            user_ids=self.user_ids[keep],
            users=self.users[keep],
            items=take_ranges(self.items, starts, stops, int(offsets[-1])),
            preferred=take_ranges(self.preferred, starts, stops, int(offsets[-1])),
            offsets=offsets,
        )

    @cached_property
    def _buckets(self) -> list[tuple[NDArray[np.int64], Tensor, Tensor]]:
        """Lists of like length: which, their places in ``items`` ``(B, L)``, and a mask ``(B, L)``."""
        width = 2 ** np.ceil(np.log2(np.maximum(self.sizes, 8))).astype(np.int64)
        buckets = []
        for size in np.unique(width):
            which = np.flatnonzero(width == size)
            mask = np.arange(self.sizes[which].max()) < self.sizes[which, None]
            places = np.where(mask, self.offsets[which, None] + np.arange(mask.shape[1]), 0)
            buckets.append((which, torch.from_numpy(places), torch.from_numpy(mask)))
        return buckets

    def padded(self, scores: Tensor) -> Iterator[tuple[NDArray[np.int64], Tensor, Tensor, Tensor]]:
        """Lay lists of like length side by side.

        Args:
            scores: ``(N,)`` on the CPU.

        Yields:
            which lists ``(B,)``, and their scores, relevance and mask ``(B, L)``.
        """
        relevance = torch.from_numpy(self.preferred).float()
        for which, places, mask in self._buckets:
            yield which, scores[places], relevance[places], mask


def join_lists(parts: Sequence[ShownLists]) -> ShownLists:
    """Put lists of different users end to end.

    Args:
        parts: at least one.

    Returns:
        all their lists.
    """
    return ShownLists(
        user_ids=np.concatenate([part.user_ids for part in parts]),
        users=np.concatenate([part.users for part in parts]),
        items=np.concatenate([part.items for part in parts]),
        preferred=np.concatenate([part.preferred for part in parts]),
        offsets=np.append(0, np.cumsum(np.concatenate([part.sizes for part in parts]))),
    )


@torch.no_grad()
def score_lists(scorer: InteractionScorer, lists: ShownLists) -> Tensor:
    """Score every item of every list.

    Args:
        scorer: scores ``(users, items)`` pairs of internal indices.
        lists: Q lists of N items in all.

    Returns:
        ``(N,)`` on the CPU, in order of ``lists.items``.
    """
    device = device_of(scorer)
    users = torch.from_numpy(np.repeat(lists.users, lists.sizes))
    items = torch.from_numpy(lists.items).long()
    parts = [slice(first, first + _PAIRS) for first in range(0, max(len(items), 1), _PAIRS)]
    return torch.cat([scorer(users[part].to(device), items[part].to(device)).float().cpu() for part in parts])
