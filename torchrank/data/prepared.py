"""Logs on disk, made ready for training: users dealt to partitions, each read through a memory map."""

import copy
import hashlib
import json
import mmap
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc

from torchrank.data.ids import look_up_ids
from torchrank.data.log import InteractionLog
from torchrank.errors import DataError, check_share

#: what makes a folder a prepared log; written last
MANIFEST = "manifest.json"
#: changes when an older reader would misread the files
FORMAT = 1


class PreparedLog:
    """A log that ``torchrank data prepare`` or :func:`~torchrank.data.prepare_log` wrote, one partition at a time.

    Every user's rows lie in one partition. Internal user indices count through the partitions: partition p holds the
    users ``user_starts[p]`` to ``user_starts[p + 1] - 1``, in order of their first appearance in the log; internal item
    indices are by first appearance, as in an :class:`~torchrank.data.InteractionLog`. Opening reads the list of files
    alone and holds their sizes against it.

    Args:
        folder: what the log was prepared into.

    Attributes:
        folder: the same.
        positive_at: an item is preferred where its feedback is at least this.
        user_starts: ``(P + 1,)`` int64, first internal user index of each partition, and the number of users.
        num_items: items of the id space.

    Raises:
        DataError: the folder holds no prepared log, or one of its files is missing or of another size than it was
            written with.

    Example:
        >>> import tempfile
        >>> import polars as pl
        >>> from torchrank.data import prepare_log
        >>> rows = {"user": ["b", "a", "b"], "item": ["x", "x", "y"], "feedback": [5, 2, 4], "time": [3, 1, 2]}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pl.DataFrame(rows).write_parquet(f"{folder}/log.parquet")
        ...     prepared = prepare_log(f"{folder}/log.parquet", f"{folder}/prepared", positive_at=4, partitions=2)
        ...     len(prepared), prepared.num_users, prepared.num_items, int(prepared.user_starts[-1])
        (3, 2, 2, 2)
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._manifest = _read_manifest(self.folder)
        parts = self._manifest["partitions"]
        self.positive_at: float = self._manifest["positive_at"]
        self._cuts: tuple[tuple[float, bool], ...] = ()
        self.user_starts: NDArray[np.int64] = np.append(0, np.cumsum([part["users"] for part in parts]))
        self.num_items: int = self._manifest["num_items"]
        for entry in self._files():
            path = self.folder / entry["name"]
            size = path.stat().st_size if path.exists() else None
            if size != entry["bytes"]:
                found = (
                    "is missing" if size is None else f"has {size} bytes, not the {entry['bytes']} it was written with"
                )
                raise DataError(f"{path} {found}; remove {self.folder} and prepare the log again")

    def __len__(self) -> int:
        return int(self.rows.sum())

    def __repr__(self) -> str:
        return (
            f"PreparedLog({len(self)} interactions of {self.num_users} users and {self.num_items} items,"
            f" {self.num_partitions} partitions in {self.folder})"
        )

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Rows of each partition: ``(P,)``."""
        if not self._cuts:
            return np.array([part["rows"] for part in self._manifest["partitions"]], np.int64)
        sizes = []
        for number in range(self.num_partitions):
            offsets = np.append(0, np.cumsum(self.counts("rows", number)))
            starts, stops = self._ranges(offsets)
            sizes.append((stops - starts).sum())
        return np.array(sizes, np.int64)

    @property
    def num_users(self) -> int:
        """Users of the id space."""
        return int(self.user_starts[-1])

    @property
    def num_partitions(self) -> int:
        """Partitions, none of them empty."""
        return len(self._manifest["partitions"])

    @cached_property
    def item_ids(self) -> NDArray[Any]:
        """Original item ids by internal index: ``(num_items,)``."""
        return _ids(self._columns(self._manifest["items"]["name"]), "id")

    @cached_property
    def user_ids(self) -> NDArray[Any]:
        """Original user ids by internal index: ``(num_users,)``, all of them in memory."""
        return np.concatenate([_ids(self._users(number), "id") for number in range(self.num_partitions)])

    def user_index(self, ids: Any) -> NDArray[np.int64]:
        """Look up users by original id; -1 for an unknown one (DataError for ids of another type)."""
        return look_up_ids(self.user_ids, ids, "user")

    def item_index(self, ids: Any) -> NDArray[np.int64]:
        """Look up items by original id; -1 for an unknown one (DataError for ids of another type)."""
        return look_up_ids(self.item_ids, ids, "item")

    def counts(self, name: str, number: int | None = None) -> NDArray[np.int64]:
        """Read a number that was counted for every user, of the whole log even where this is a part of it.

        Args:
            name: ``"rows"``, ``"preferred"`` or the blocks of the whole log by a rule: ``"blocks_run"``,
                ``"blocks_single"``, ``"blocks_eager"``, ``"blocks_positive"``.
            number: of one partition's users; of all by default.

        Returns:
            ``(num_users,)`` or, of one partition, ``(users in it,)``.

        Raises:
            DataError: there is no such count.
        """
        numbers = range(self.num_partitions) if number is None else [number]
        found = []
        for each in numbers:
            columns = self._users(each)
            if name not in columns.schema.names or name == "id":
                there = ", ".join(repr(n) for n in columns.schema.names if n != "id")
                raise DataError(f"no count is called {name!r}; there are {there}")
            found.append(np.array(columns.column(name).to_numpy()))
        return np.concatenate(found)

    def partition(self, number: int) -> InteractionLog:
        """Open one partition as a log of its own users.

        Its user indices count from 0: user u of partition p is ``user_starts[p] + u`` of the whole. Item indices are
        the whole log's. The rows are mapped into memory and read from disk as they are used; writing to the arrays
        changes neither the file nor what others read.

        Args:
            number: from 0 to ``num_partitions - 1``.

        Returns:
            the log of these users.

        Raises:
            DataError: there is no such partition, or its file does not read.
        """
        if not 0 <= number < self.num_partitions:
            raise DataError(f"there is no partition {number}; {self.folder} has {self.num_partitions}, from 0")
        part = self._manifest["partitions"][number]
        users = self._users(number)
        columns = _mapped(self.folder / part["rows_file"]["name"], part["rows"])
        log = InteractionLog(
            users=columns["user"],
            items=columns["item"],
            preferred=columns["preferred"].view(np.bool_),
            feedback=columns["feedback"],
            times=columns["time"].view(np.dtype(self._manifest["times"])),
            offsets=np.append(0, np.cumsum(users.column("rows").to_numpy())),
            user_ids=_ids(users, "id"),
            item_ids=self.item_ids,
        )
        return log.take_ranges(*self._ranges(log.offsets)) if self._cuts else log

    def split_per_user(self, *, train: float = 0.8) -> tuple["PreparedLog", "PreparedLog"]:
        """Split every user's interactions in time, as :meth:`InteractionLog.split_per_user` does.

        Nothing is read: the parts split each partition when it is opened.

        Args:
            train: share of each user's rows in the first part: the first int(train · n) of n.

        Returns:
            the train and the test part, which share this log's id space and partitions.

        Raises:
            TorchRankError: ``train`` is not between 0 and 1.
        """
        check_share("train", train)
        return self._part(train, False), self._part(train, True)

    def _part(self, share: float, last: bool) -> "PreparedLog":
        part = copy.copy(self)
        part.__dict__.pop("rows", None)
        part._cuts = (*self._cuts, (share, last))
        return part

    def _ranges(self, offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the rows of each user that belong to this part begin and end."""
        starts, stops = offsets[:-1], offsets[1:]
        for share, last in self._cuts:
            cut = starts + (share * (stops - starts)).astype(np.int64)
            starts, stops = (cut, stops) if last else (starts, cut)
        return starts, stops

    def partitions(self) -> Iterator[InteractionLog]:
        """Open one partition after the other."""
        return map(self.partition, range(self.num_partitions))

    def to_log(self) -> InteractionLog:
        """Read the whole log into memory, in this log's id space."""
        parts = list(self.partitions())
        starts = self.user_starts
        return InteractionLog(
            users=np.concatenate([p.users + np.int32(starts[n]) for n, p in enumerate(parts)]),
            items=np.concatenate([p.items for p in parts]),
            preferred=np.concatenate([p.preferred for p in parts]),
            feedback=np.concatenate([p.feedback for p in parts]),
            times=np.concatenate([p.times for p in parts]),
            offsets=np.append(0, np.cumsum(np.concatenate([np.diff(p.offsets) for p in parts]))),
            user_ids=np.concatenate([p.user_ids for p in parts]),
            item_ids=self.item_ids,
        )

    def verify(self) -> None:
        """Read every file and hold its content against the checksum it was written with.

        Raises:
            DataError: one has changed.
        """
        for entry in self._files():
            if checksum(self.folder / entry["name"]) != entry["sha256"]:
                path = self.folder / entry["name"]
                raise DataError(f"{path} is not as it was written; remove {self.folder} and prepare the log again")

    def _files(self) -> list[dict[str, Any]]:
        parts = self._manifest["partitions"]
        return [self._manifest["items"], *(part[kind] for part in parts for kind in ("rows_file", "users_file"))]

    def _users(self, number: int) -> pa.RecordBatch:
        return self._columns(self._manifest["partitions"][number]["users_file"]["name"])

    def _columns(self, name: str) -> pa.RecordBatch:
        return _one_batch(self.folder / name, lambda path: pa.memory_map(str(path)))


def is_prepared(folder: str | Path) -> bool:
    """Whether a folder holds a prepared log."""
    return (Path(folder) / MANIFEST).is_file()


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file's content, as it stands in the manifest."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.exists():
        raise DataError(f"{folder} holds no prepared log; torchrank data prepare LOG --out {folder} writes one")
    try:
        manifest: dict[str, Any] = json.loads(path.read_text())
        known = manifest["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} does not read as the list of a prepared log: {error}") from None
    if known != FORMAT:
        raise DataError(f"{folder} is of format {known}, this torchrank reads {FORMAT}; prepare the log again")
    return manifest


def _one_batch(path: Path, source: Any) -> pa.RecordBatch:
    try:
        return ipc.open_file(source(path)).get_batch(0)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} does not read as Arrow: {str(error).splitlines()[0]}") from None


def _ids(columns: pa.RecordBatch, name: str) -> NDArray[Any]:
    return np.array(columns.column(name).to_numpy(zero_copy_only=False))


def _mapped(path: Path, rows: int) -> dict[str, NDArray[Any]]:
    """Map the columns of a file of one batch, copied on writing: compiled loops and torch want writable arrays."""
    with path.open("rb") as file:
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    start = pa.py_buffer(memory)
    batch = _one_batch(path, lambda _: pa.BufferReader(start))
    if batch.num_rows != rows:
        raise DataError(f"{path} has {batch.num_rows} rows, not the {rows} it was written with")
    arrays = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        place = column.buffers()[1].address - start.address
        arrays[name] = np.frombuffer(memory, column.type.to_pandas_dtype(), rows, place)
    return arrays
