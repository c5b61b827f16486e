"""What recommending needs besides a model: original ids, what every user has seen, and the feedback of every item."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from torchrank.data.ids import look_up_ids
from torchrank.data.log import InteractionLog
from torchrank.data.prepared import PreparedLog
from torchrank.errors import DataError, check_type


@dataclass(frozen=True, eq=False)
class Catalogue:
    """The users and items of a training log, small enough to travel in a checkpoint.

    Attributes:
        user_ids: ``(num_users,)`` original ids by internal index.
        item_ids: ``(num_items,)`` original ids by internal index.
        offsets: ``(num_users + 1,)`` int64; user u has seen ``items[offsets[u]:offsets[u + 1]]``.
        items: ``(N,)`` int32 internal item indices.
        positives: ``(num_items,)`` int64, how often an item was preferred.
        shown: ``(num_items,)`` int64, how often it was shown; 0 for an item that only another part of the log has.

    Example:
        >>> import polars as pl
        >>> rows = {"user": ["b", "a", "b"], "item": ["x", "x", "y"], "feedback": [1, 0, 1], "time": [3, 1, 2]}
        >>> catalogue = Catalogue.from_log(InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1))
        >>> catalogue.positives.tolist(), catalogue.shown.tolist(), catalogue.seen(np.array([1, 0]))
        ([1, 1], [2, 1], (array([0, 1, 1]), array([0, 1, 0])))
    """

    user_ids: NDArray[Any]
    item_ids: NDArray[Any]
    offsets: NDArray[np.int64]
    items: NDArray[np.int32]
    positives: NDArray[np.int64]
    shown: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"Catalogue({self.num_users} users, {self.num_items} items, {len(self.items)} interactions seen)"

    @property
    def num_users(self) -> int:
        """Users of the id space."""
        return len(self.user_ids)

    @property
    def num_items(self) -> int:
        """Items of the id space."""
        return len(self.item_ids)

    @classmethod
    def from_log(cls, log: InteractionLog | PreparedLog) -> Self:
        """Take what a catalogue holds from a training log.

        Args:
            log: the part that a model was trained on.

        Returns:
            the catalogue; it shares the log's arrays. Of a log on disk it holds four bytes a row in memory.
        """
        check_type("log", log, (InteractionLog, PreparedLog), "an InteractionLog")
        positives, shown = item_counts(log)
        if isinstance(log, InteractionLog):
            return cls(log.user_ids, log.item_ids, log.offsets, log.items, positives, shown)
        offsets, items = np.zeros(log.num_users + 1, np.int64), np.empty(len(log), np.int32)
        for number, part in enumerate(log.partitions()):
            first, last = log.user_starts[number : number + 2]
            offsets[first + 1 : last + 1] = offsets[first] + part.offsets[1:]
            items[offsets[first] : offsets[last]] = part.items
        return cls(log.user_ids, log.item_ids, offsets, items, positives, shown)

    def with_users(self, log: InteractionLog) -> Self:
        """Take the users of another log, such as new ones, and what they have seen there; the items' counts stay.

        Args:
            log: with this catalogue's items, see :meth:`InteractionLog.in_space_of`.

        Returns:
            a new catalogue.

        Raises:
            DataError: the log has other items.
        """
        self._check_items(log)
        return replace(self, user_ids=log.user_ids, offsets=log.offsets, items=log.items)

    def updated(self, log: InteractionLog) -> Self:
        """Add later interactions to what users have seen and to the items' counts.

        Args:
            log: the later rows, in an id space that begins with this catalogue's, see
                :meth:`InteractionLog.in_space_of`.

        Returns:
            a new catalogue, with the users and items of the log's id space.

        Raises:
            DataError: the log's ids do not begin with the catalogue's.

        Example:
            >>> import polars as pl
            >>> rows = {"user": ["b", "a"], "item": ["x", "x"], "feedback": [1, 0], "time": [1, 2]}
            >>> catalogue = Catalogue.from_log(InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1))
            >>> later = {"user": ["b"], "item": ["z"], "feedback": [1], "time": [3]}
            >>> log = InteractionLog.from_frame(pl.DataFrame(later), positive_at=1)
            >>> catalogue = catalogue.updated(log.in_space_of(catalogue.user_ids, catalogue.item_ids))
            >>> catalogue.item_ids.tolist(), catalogue.items.tolist(), catalogue.shown.tolist()
            (['x', 'z'], [0, 1, 0], [2, 1])
        """
        for what, ours, theirs in (("user", self.user_ids, log.user_ids), ("item", self.item_ids, log.item_ids)):
            if len(theirs) < len(ours) or not np.array_equal(theirs[: len(ours)], ours):
                raise DataError(
                    f"the log's {what} ids do not begin with the catalogue's; number it by log.in_space_of("
                    "catalogue.user_ids, catalogue.item_ids)"
                )
        new = self.from_log(log)
        before = np.repeat(np.arange(self.num_users, dtype=np.int64), np.diff(self.offsets))
        owners = np.concatenate([before, log.users.astype(np.int64)])
        order = np.argsort(owners, kind="stable")
        positives, shown = new.positives.copy(), new.shown.copy()
        positives[: self.num_items] += self.positives
        shown[: self.num_items] += self.shown
        offsets = np.append(0, np.cumsum(np.bincount(owners, minlength=log.num_users)))
        items = np.concatenate([self.items, log.items])[order]
        return replace(new, offsets=offsets, items=items, positives=positives, shown=shown)

    def _check_items(self, log: InteractionLog) -> None:
        if len(log.item_ids) != len(self.item_ids) or not np.array_equal(log.item_ids, self.item_ids):
            raise DataError(
                "the log has other items than the catalogue; number it by log.in_space_of(item_ids=catalogue.item_ids,"
                ' unknown="drop")'
            )

    def user_index(self, ids: Any) -> NDArray[np.int64]:
        """Look up users by original id; -1 for an unknown one (DataError for ids of another type)."""
        return look_up_ids(self.user_ids, ids, "user")

    def item_index(self, ids: Any) -> NDArray[np.int64]:
        """Look up items by original id; -1 for an unknown one (DataError for ids of another type)."""
        return look_up_ids(self.item_ids, ids, "item")

    def seen(self, users: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return what users have seen as pairs.

        Args:
            users: ``(B,)`` internal indices.

        Returns:
            ``(P,)`` places in ``users`` and ``(P,)`` internal item indices.
        """
        sizes = self.offsets[users + 1] - self.offsets[users]
        rows = np.repeat(np.arange(len(users)), sizes)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return rows, self.items[np.repeat(self.offsets[users], sizes) + within].astype(np.int64)

    def state(self) -> dict[str, Any]:
        """Return tensors and plain values only, which ``torch.load(…, weights_only=True)`` reads.

        Raises:
            DataError: ids that are neither numbers, moments nor strings.
        """
        arrays = {name: torch.from_numpy(getattr(self, name)) for name in ("offsets", "items", "positives", "shown")}
        return {"user_ids": ids_to_plain(self.user_ids), "item_ids": ids_to_plain(self.item_ids), **arrays}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Undo :meth:`state`."""
        arrays = {name: state[name].cpu().numpy() for name in ("offsets", "items", "positives", "shown")}
        return cls(ids_from_plain(state["user_ids"]), ids_from_plain(state["item_ids"]), **arrays)


def item_counts(log: InteractionLog | PreparedLog) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count how often every item was preferred and how often it was shown.

    Args:
        log: in memory or on disk.

    Returns:
        ``(num_items,)`` each.
    """
    positives, shown = np.zeros(log.num_items, np.int64), np.zeros(log.num_items, np.int64)
    for part in log.partitions() if isinstance(log, PreparedLog) else [log]:
        positives += np.bincount(part.items[part.preferred], minlength=log.num_items)
        shown += np.bincount(part.items, minlength=log.num_items)
    return positives, shown


def ids_to_plain(ids: NDArray[Any]) -> dict[str, Any]:
    """Turn ids into tensors and plain values.

    Args:
        ids: ``(M,)``.

    Returns:
        what :func:`ids_from_plain` reads.

    Raises:
        DataError: ids that are neither numbers, moments nor strings.
    """
    if ids.dtype.kind == "O":
        values = ids.tolist()
        if not all(isinstance(value, str) for value in values):
            raise DataError(f"ids such as {values[0]!r} cannot be kept in a checkpoint; make them strings or integers")
        return {"dtype": "object", "values": values}
    wide = (
        ids.view(np.int64) if ids.dtype.kind == "M" else ids.astype(np.float64 if ids.dtype.kind == "f" else np.int64)
    )
    return {"dtype": ids.dtype.str, "values": torch.from_numpy(wide.copy())}


def ids_from_plain(plain: dict[str, Any]) -> NDArray[Any]:
    """Undo :func:`ids_to_plain`.

    Args:
        plain: what it returned.

    Returns:
        ``(M,)`` ids.

    Example:
        >>> ids_from_plain(ids_to_plain(np.array(["b", "a"], object)))
        array(['b', 'a'], dtype=object)
    """
    if plain["dtype"] == "object":
        ids = np.empty(len(plain["values"]), object)
        ids[:] = plain["values"]
        return ids
    dtype = np.dtype(plain["dtype"])
    values: NDArray[Any] = plain["values"].cpu().numpy()
    return values.view(dtype) if dtype.kind == "M" else values.astype(dtype)
