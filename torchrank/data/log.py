"""Logs of shown items: who saw what, when, and with what feedback, as flat arrays sorted by user and time."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from torchrank.data.ids import look_up_ids, renumber
from torchrank.data.log_rows import moment_among, read_rows
from torchrank.data.tables import Table, frame_table, parquet_table
from torchrank.errors import DataError, TorchRankError, check_option, check_share, check_type
from torchrank.ops.logs import last_of_each_item, take_ranges, user_offsets


@dataclass(frozen=True, eq=False)
class InteractionLog:
    """Interactions sorted by user, then time, then their place in the original log.

    Users and items are known by internal indices, given by first appearance in the original log; parts of a log keep
    the whole log's indices. Make one with :meth:`from_frame`, :meth:`from_parquet` or :meth:`from_csv`.

    Attributes:
        users: ``(N,)`` int32 internal user indices.
        items: ``(N,)`` int32 internal item indices.
        preferred: ``(N,)`` boolean, True where the feedback reached ``positive_at``.
        feedback: ``(N,)`` the feedback itself.
        times: ``(N,)`` int64, float64 or datetime64.
        offsets: ``(num_users + 1,)`` int64; user u's rows are ``offsets[u]:offsets[u + 1]``.
        user_ids: ``(num_users,)`` original ids by internal index.
        item_ids: ``(num_items,)`` original ids by internal index.

    Example:
        >>> import polars as pl
        >>> rows = {"user": ["b", "a", "b"], "item": ["x", "x", "y"], "feedback": [5, 2, 4], "time": [3, 1, 2]}
        >>> log = InteractionLog.from_frame(pl.DataFrame(rows), positive_at=4)
        >>> log.user_ids.tolist(), log.users.tolist(), log.items.tolist(), log.preferred.tolist()
        (['b', 'a'], [0, 0, 1], [1, 0, 0], [True, True, False])
    """

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    preferred: NDArray[np.bool_]
    feedback: NDArray[Any]
    times: NDArray[Any]
    offsets: NDArray[np.int64]
    user_ids: NDArray[Any]
    item_ids: NDArray[Any]

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        share = f", {self.preferred.mean():.1%} preferred".replace("%", " %") if len(self) else ""
        return f"InteractionLog({len(self)} interactions of {self.num_users} users and {self.num_items} items{share})"

    @property
    def num_users(self) -> int:
        """Users of the id space, those without a row here included."""
        return len(self.user_ids)

    @property
    def num_items(self) -> int:
        """Items of the id space, those without a row here included."""
        return len(self.item_ids)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        positive_at: float,
        user: str = "user",
        item: str = "item",
        feedback: str = "feedback",
        time: str = "time",
        duplicates: str = "keep",
    ) -> Self:
        """Make a log from a frame.

        Args:
            frame: a polars, pandas or pyarrow frame, or any other that narwhals reads; one row an interaction.
            positive_at: an item is preferred where its feedback is at least this.
            user: column of user ids, of any type.
            item: column of item ids, of any type.
            feedback: column of numbers.
            time: column of numbers, dates or moments; rows of equal time keep their order.
            duplicates: what becomes of a user's further rows of one item: ``"keep"`` keeps all, ``"last"`` keeps the
                last in time, ``"error"`` refuses the log.

        Returns:
            the log.

        Raises:
            DataError: a column is missing or holds null, NaN or values of the wrong kind; there is no row;
                a pair occurs twice and ``duplicates="error"``.
            TorchRankError: an option has a bad value.

        Example:
            >>> import polars as pl
            >>> rows = {"user": [7, 7, 9], "item": ["p", "q", "p"], "feedback": [1, 0, 1], "time": [5, 2, 3]}
            >>> log = InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1)
            >>> log.user_ids[log.users].tolist(), log.item_ids[log.items].tolist()
            ([7, 7, 9], ['q', 'p', 'p'])
        """
        columns = {"user": user, "item": item, "feedback": feedback, "time": time}
        return cls.from_table(frame_table(frame), columns, positive_at=positive_at, duplicates=duplicates)

    @classmethod
    def from_parquet(
        cls,
        path: str | Path,
        *,
        positive_at: float,
        user: str = "user",
        item: str = "item",
        feedback: str = "feedback",
        time: str = "time",
        duplicates: str = "keep",
    ) -> Self:
        """Make a log from a Parquet file or a folder of Parquet files, hive partitions included.

        Args:
            path: the file, or the folder, whose files follow each other in the order of their names.
            positive_at: see :meth:`from_frame`, like every other option.
            user: column of user ids.
            item: column of item ids.
            feedback: column of numbers.
            time: column of numbers, dates or moments.
            duplicates: ``"keep"``, ``"last"`` or ``"error"``.

        Returns:
            the log.

        Raises:
            DataError: as :meth:`from_frame`, or the path is not Parquet.
        """
        columns = {"user": user, "item": item, "feedback": feedback, "time": time}
        return cls.from_table(parquet_table(path), columns, positive_at=positive_at, duplicates=duplicates)

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        *,
        positive_at: float,
        user: str = "user",
        item: str = "item",
        feedback: str = "feedback",
        time: str = "time",
        duplicates: str = "keep",
        separator: str = ",",
    ) -> Self:
        """Make a log from a CSV file with a header line, compressed or not.

        Args:
            path: the file.
            positive_at: see :meth:`from_frame`, like every other option.
            user: column of user ids; integers where all of them are, else text.
            item: column of item ids, likewise.
            feedback: column of numbers.
            time: column of numbers, or of dates or moments by ISO 8601.
            duplicates: ``"keep"``, ``"last"`` or ``"error"``.
            separator: one character between values.

        Returns:
            the log.

        Raises:
            DataError: as :meth:`from_frame`, or the path is not CSV.
        """
        from torchrank.data.csv_tables import csv_table  # polars, which Parquet does without

        columns = {"user": user, "item": item, "feedback": feedback, "time": time}
        table = csv_table(path, separator=separator)
        return cls.from_table(table, columns, positive_at=positive_at, duplicates=duplicates)

    @classmethod
    def from_table(cls, table: Table, columns: dict[str, str], *, positive_at: float, duplicates: str) -> Self:
        """Make a log from a table that is read column by column: what every reader ends in.

        Args:
            table: the table.
            columns: the table's column for each of ``user``, ``item``, ``feedback`` and ``time``.
            positive_at: see :meth:`from_frame`.
            duplicates: see :meth:`from_frame`.

        Returns:
            the log.

        Raises:
            DataError: as :meth:`from_frame`.
        """
        check_option("duplicates", duplicates, ["keep", "last", "error"])
        if not (isinstance(positive_at, int | float | np.number) and np.isfinite(positive_at)):
            raise TorchRankError(f"positive_at={positive_at!r}; give the least feedback that counts as preferred")
        rows = read_rows(table, columns)
        preferred = rows.feedback >= positive_at
        log = cls(
            rows.users, rows.items, preferred, rows.feedback, rows.times, rows.offsets, rows.user_ids, rows.item_ids
        )
        return log.without_duplicates(duplicates, table.where)

    def without_duplicates(self, policy: str, where: str = "the log") -> Self:
        """Leave out, or refuse, a user's further rows of one item.

        Args:
            policy: ``"last"`` keeps the last in time, ``"error"`` refuses the log, ``"keep"`` leaves it as it is.
            where: what the rows are from, for the message.

        Returns:
            the log, or a part of it in the same id space.

        Raises:
            DataError: a pair occurs twice and ``policy="error"``.
            TorchRankError: an unknown word.

        Example:
            >>> import polars as pl
            >>> frame = pl.DataFrame({"user": [1] * 3, "item": [5, 6, 5], "feedback": [0, 1, 1], "time": [1, 2, 3]})
            >>> InteractionLog.from_frame(frame, positive_at=1).without_duplicates("last").times.tolist()
            [2, 3]
        """
        check_option("duplicates", policy, ["keep", "last", "error"])
        if policy == "keep":
            return self
        keep, repeated = last_of_each_item(self.items, self.offsets, self.num_items)
        if repeated < 0:
            return self
        if policy == "error":
            first = slice(repeated, repeated + 1)
            user, item = self.user_ids[self.users[first]].tolist()[0], self.item_ids[self.items[first]].tolist()[0]
            raise DataError(
                f"{where} has {int((~keep).sum())} repeated pairs, the first user {user!r} with item {item!r}; pass"
                ' duplicates="last" to keep the last in time or "keep" to keep all'
            )
        return self.where(keep)

    def where(self, keep: NDArray[np.bool_]) -> Self:
        """Take the rows for which ``keep`` is True, in the same id space.

        Args:
            keep: ``(N,)`` boolean.

        Returns:
            the part of the log.

        Raises:
            DataError: ``keep`` does not have one value a row.
        """
        check_type("keep", keep, np.ndarray, f"an array of {len(self)} booleans", error=DataError)
        if keep.shape != self.users.shape or keep.dtype != np.bool_:
            raise DataError(f"keep has shape {keep.shape} and dtype {keep.dtype}; give {len(self)} booleans")
        users = self.users[keep]
        return replace(
            self,
            users=users,
            items=self.items[keep],
            preferred=self.preferred[keep],
            feedback=self.feedback[keep],
            times=self.times[keep],
            offsets=user_offsets(users, self.num_users),
        )

    def take_ranges(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> Self:
        """Take a stretch of each user's rows, in the same id space.

        Args:
            starts: ``(num_users,)`` first row of each user to take.
            stops: ``(num_users,)`` the row after the last.

        Returns:
            the part of the log.
        """
        sizes = stops - starts
        offsets = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        total = int(offsets[-1])
        keys = self.times.view(np.int64) if self.times.dtype.kind == "M" else self.times
        return replace(
            self,
            users=np.repeat(np.arange(self.num_users, dtype=np.int32), sizes),
            items=take_ranges(self.items, starts, stops, total),
            preferred=take_ranges(self.preferred, starts, stops, total),
            feedback=take_ranges(self.feedback, starts, stops, total),
            times=take_ranges(keys, starts, stops, total).view(self.times.dtype),
            offsets=offsets,
        )

    def split_per_user(self, *, train: float = 0.8) -> tuple[Self, Self]:
        """Split every user's interactions in time.

        Args:
            train: share of each user's rows in the first part: the first int(train · n) of n.

        Returns:
            the train and the test part, which share this log's id space.

        Raises:
            TorchRankError: ``train`` is not between 0 and 1.

        Example:
            >>> import polars as pl
            >>> frame = pl.DataFrame({"user": [1] * 5, "item": range(5), "feedback": [1.0] * 5, "time": range(5)})
            >>> [len(part) for part in InteractionLog.from_frame(frame, positive_at=1).split_per_user(train=0.8)]
            [4, 1]
        """
        check_share("train", train)
        cut = self.offsets[:-1] + (train * np.diff(self.offsets)).astype(np.int64)
        return self.take_ranges(self.offsets[:-1], cut), self.take_ranges(cut, self.offsets[1:])

    def split_by_time(self, at: Any) -> tuple[Self, Self]:
        """Split all interactions at one moment.

        Args:
            at: the first time of the test part; a number, or a date or datetime where the log's times are (UTC where it
                names no time zone).

        Returns:
            the rows before ``at`` and the rows from then on, which share this log's id space.

        Raises:
            TorchRankError: ``at`` does not compare with the log's times.

        Example:
            >>> import polars as pl
            >>> frame = pl.DataFrame({"user": [1, 2, 1], "item": range(3), "feedback": [1.0] * 3, "time": [10, 20, 30]})
            >>> [len(part) for part in InteractionLog.from_frame(frame, positive_at=1).split_by_time(20)]
            [1, 2]
        """
        before = self.times < moment_among(self.times, at)
        return self.where(before), self.where(~before)

    def in_space_of(self, user_ids: Any = None, item_ids: Any = None, *, unknown: str = "append") -> Self:
        """Number the users and items as an older log does, so that a model trained on that one knows them.

        Args:
            user_ids: ``(U,)`` the older log's, or its catalogue's, ``user_ids``; None keeps this log's own numbers.
            item_ids: ``(I,)`` likewise.
            unknown: what becomes of ids that are not among them: ``"append"`` gives them the numbers after these, by
                first appearance here; ``"drop"`` leaves their rows out.

        Returns:
            the same interactions in an id space that begins with the given ids.

        Raises:
            DataError: ids of another type than the log's, or no row is left.
            TorchRankError: an unknown word.

        Example:
            >>> import polars as pl
            >>> frame = pl.DataFrame({"user": ["new", "b"], "item": ["x", "y"], "feedback": [1.0] * 2, "time": [1, 2]})
            >>> log = InteractionLog.from_frame(frame, positive_at=1).in_space_of(np.array(["a", "b"], object))
            >>> log.user_ids.tolist(), log.users.tolist(), log.items.tolist()
            (['a', 'b', 'new'], [1, 2], [1, 0])
        """
        check_option("unknown", unknown, ["append", "drop"])
        users, user_ids = renumber(self.users, self.user_ids, user_ids, "user", unknown=unknown)
        items, item_ids = renumber(self.items, self.item_ids, item_ids, "item", unknown=unknown)
        keep = (users >= 0) & (items >= 0)
        if not keep.any():
            raise DataError('no row is of a known user and a known item; unknown="append" keeps the others too')
        rows = np.flatnonzero(keep)
        rows = rows[np.argsort(users[rows], kind="stable")]  # time order inside a user stays
        return replace(
            self,
            users=users[rows],
            items=items[rows],
            preferred=self.preferred[rows],
            feedback=self.feedback[rows],
            times=self.times[rows],
            offsets=user_offsets(users[rows], len(user_ids)),
            user_ids=user_ids,
            item_ids=item_ids,
        )

    def user_index(self, ids: Any) -> NDArray[np.int64]:
        """Look up users by their original ids.

        Args:
            ids: a sequence, array or series of original ids.

        Returns:
            internal indices, -1 where the log does not know the id.

        Raises:
            DataError: ids of another type than the log's.
        """
        return look_up_ids(self.user_ids, ids, "user")

    def item_index(self, ids: Any) -> NDArray[np.int64]:
        """Look up items by their original ids, as :meth:`user_index` does users."""
        return look_up_ids(self.item_ids, ids, "item")
