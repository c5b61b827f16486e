"""The two steps that prepare a log: deal the rows of a piece to partitions; sort and number one partition.

Each call reads and writes files alone and is a function of the plan, so calls may run in any order and in any process,
and a call that was stopped is called again.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import ipc

from torchrank.data.columns import known_ids, read_feedback, read_times
from torchrank.data.csv_tables import text_table, whole_numbers
from torchrank.data.files import whole_file
from torchrank.data.ids import look_up_ids
from torchrank.data.log import InteractionLog
from torchrank.data.log_sources import Piece, read_piece
from torchrank.data.prepared import checksum
from torchrank.data.tables import Table
from torchrank.errors import DataError
from torchrank.ops.blocks import RULES, count_blocks

#: beside the finished files, what is not finished; removed in the end
UNFINISHED = ".unfinished"
ITEMS = "items.arrow"


@dataclass(frozen=True)
class Plan:
    """Everything the steps need to know, which a file keeps for a run that goes on.

    Attributes:
        out: the folder to prepare into.
        pieces: of the log, in its order.
        schema: the columns of the log's files.
        separator: of CSV files, None for Parquet.
        columns: the files' column for each of ``user``, ``item``, ``feedback`` and ``time``.
        positive_at: the least feedback that counts as preferred.
        duplicates: ``"keep"``, ``"last"`` or ``"error"``.
        partitions: how many to deal users to.
        batch_rows: rows dealt at once.
    """

    out: Path
    pieces: list[Piece]
    schema: pa.Schema
    separator: str | None
    columns: dict[str, str]
    positive_at: float
    duplicates: str
    partitions: int
    batch_rows: int

    @property
    def work(self) -> Path:
        """The folder of what is not finished."""
        return self.out / UNFINISHED

    def state(self) -> dict[str, Any]:
        """Return plain values, without the folder."""
        names = ("separator", "columns", "positive_at", "duplicates", "partitions", "batch_rows")
        schema = base64.b64encode(self.schema.serialize()).decode()
        return {"pieces": self.pieces, "schema": schema, **{name: getattr(self, name) for name in names}}

    @classmethod
    def from_state(cls, out: Path, state: Mapping[str, Any]) -> "Plan":
        """Undo :meth:`state`."""
        pieces = [Piece(*piece) for piece in state["pieces"]]
        schema = ipc.read_schema(pa.py_buffer(base64.b64decode(state["schema"])))
        return cls(out, **{**state, "pieces": pieces, "schema": schema})


class Dealt(NamedTuple):
    """What dealing the whole log told.

    Attributes:
        rows: ``(pieces, partitions)`` int64.
        batches: batches of each piece.
        kinds: of a CSV column by name, ``"whole"``, ``"number"``, ``"moment"`` or ``"text"``; empty for Parquet.
    """

    rows: NDArray[np.int64]
    batches: list[int]
    kinds: dict[str, str]


def deal_piece(plan: Plan, number: int) -> None:
    """Deal the rows of one piece to partitions by their users' hashes, into one file, and find its items.

    The file holds, for each batch of the piece, one batch for each partition, in the order of the log.

    Args:
        plan: of the whole.
        number: of the piece.

    Raises:
        DataError: the piece does not read, or a value cannot be in a log.
        OSError: the file cannot be written.
    """
    piece = plan.pieces[number]
    rows, kinds = np.zeros(plan.partitions, np.int64), {name: set[str]() for name in plan.columns.values()}
    items = _Distinct(plan.schema.field(plan.columns["item"]).type)
    batches, first_row = 0, piece.first_row
    with whole_file(_dealt(plan, number, "arrow")) as place, ipc.new_file(place, plan.schema) as file:
        for batch in read_piece(piece, plan.schema, plan.separator, plan.batch_rows):
            for name, kind in _check(plan, batch, piece.path, first_row).items():
                kinds[name].add(kind)
            partitions = _partitions(batch.column(plan.columns["user"]), plan.partitions)
            counts = np.bincount(partitions, minlength=plan.partitions)
            by_partition = batch.take(pa.array(np.argsort(partitions, kind="stable")))
            for start, count in zip(np.cumsum(counts) - counts, counts, strict=True):
                file.write_batch(by_partition.slice(start, count))
            items.add(batch.column(plan.columns["item"]))
            rows += counts
            batches, first_row = batches + 1, first_row + batch.num_rows
    _write_arrow(_dealt(plan, number, "items.arrow"), {"id": items.ids()})
    told = {"rows": rows.tolist(), "batches": batches, "kinds": {name: sorted(kinds[name]) for name in kinds}}
    _write_json(_dealt(plan, number, "json"), told)


def is_dealt(plan: Plan, number: int) -> bool:
    """Whether a piece was dealt to its end."""
    return _dealt(plan, number, "json").exists()


def read_dealt(plan: Plan) -> Dealt:
    """Put together what dealing each piece told.

    Raises:
        DataError: some times are numbers and others are moments.
    """
    told = [json.loads(_dealt(plan, number, "json").read_text()) for number in range(len(plan.pieces))]
    rows = np.array([each["rows"] for each in told], np.int64).reshape(len(told), plan.partitions)
    kinds = {}
    if plan.separator is not None:
        for name in plan.columns.values():
            found = {kind for each in told for kind in each["kinds"][name]}
            if "moment" in found and len(found) > 1:
                raise DataError(f"column {name!r} of the log mixes numbers and moments; write all times alike")
            kinds[name] = next((kind for kind in ("moment", "text", "number") if kind in found), "whole")
    return Dealt(rows, [each["batches"] for each in told], kinds)


def number_items(plan: Plan, dealt: Dealt) -> int:
    """Write the dictionary of items, numbered by first appearance in the log, and return how many there are."""
    kind = plan.schema.field(plan.columns["item"]).type
    items = _Distinct(kind)
    for number in range(len(plan.pieces)):
        with pa.OSFile(str(_dealt(plan, number, "items.arrow"))) as file:
            items.add(ipc.open_file(file).get_batch(0).column(0))
    ids = items.ids()
    if dealt.kinds.get(plan.columns["item"]) == "whole":
        ids = ids.cast(pa.int64())
    _write_arrow(plan.out / ITEMS, {"id": ids})
    return len(ids)


def sort_partition(plan: Plan, number: int, name: int, dealt: Dealt) -> None:
    """Sort the rows dealt to a partition by user and time, number its users, and write it.

    Args:
        plan: of the whole.
        number: of the partition, as it was dealt.
        name: the number it is to have among those that are not empty.
        dealt: what dealing told.

    Raises:
        DataError: a pair occurs twice and ``duplicates="error"``.
        OSError: a file cannot be read or written.
    """
    log = InteractionLog.from_table(
        _dealt_table(plan, number, dealt), plan.columns, positive_at=plan.positive_at, duplicates=plan.duplicates
    )
    with pa.OSFile(str(plan.out / ITEMS)) as file:
        every = ipc.open_file(file).get_batch(0).column(0)
    known = every.to_numpy(zero_copy_only=False)
    items = look_up_ids(known, log.item_ids, "item").astype(np.int32)[log.items]
    times = log.times.view(np.int64) if log.times.dtype.kind == "M" else log.times
    rows = {
        "user": log.users,
        "item": items,
        "preferred": log.preferred.view(np.uint8),
        "feedback": log.feedback,
        "time": times,
    }
    preferred = np.append(0, np.cumsum(log.preferred))[log.offsets]
    users = {"id": log.user_ids, "rows": np.diff(log.offsets), "preferred": np.diff(preferred)}
    users |= {f"blocks_{rule}": count_blocks(log.preferred, log.offsets, rule) for rule in RULES}
    files: dict[str, tuple[str, dict[str, Any]]] = {
        "rows_file": (f"rows-{name:05}.arrow", rows),
        "users_file": (f"users-{name:05}.arrow", users),
    }
    told: dict[str, Any] = {"rows": len(log), "users": log.num_users, "times": log.times.dtype.str}
    for key, (file_name, columns) in files.items():
        path = plan.out / file_name
        _write_arrow(path, columns)
        told[key] = entry(path)
    _write_json(_sorted(plan, name), told)


def read_sorted(plan: Plan, name: int) -> dict[str, Any] | None:
    """Return what is known of a partition that was written to its end, None of another."""
    path = _sorted(plan, name)
    if not path.exists():
        return None
    told: dict[str, Any] = json.loads(path.read_text())
    whole = all((plan.out / told[key]["name"]).exists() for key in ("rows_file", "users_file"))
    return told if whole else None


def entry(path: Path) -> dict[str, Any]:
    """Describe a finished file for the manifest."""
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": checksum(path)}


def _dealt(plan: Plan, number: int, kind: str) -> Path:
    return plan.work / f"dealt-{number:05}.{kind}"


def _sorted(plan: Plan, name: int) -> Path:
    return plan.work / f"sorted-{name:05}.json"


def _check(plan: Plan, batch: pa.RecordBatch, where: str, first_row: int) -> dict[str, str]:
    """Refuse values that cannot be in a log, and say what kind each CSV column is of."""
    if plan.separator is None:
        table = Table(
            where, batch.schema.names, lambda name: pa.chunked_array([batch.column(name)]), None, None, first_row
        )
    else:
        whole = {name: whole_numbers(pl.Series(batch.column(name))).to_arrow() for name in batch.schema.names}
        table = text_table(where, batch.schema.names, lambda name: pa.chunked_array([whole[name]]), first_row=first_row)
    read = {"feedback": read_feedback, "time": read_times}
    kinds = {}
    for option, name in plan.columns.items():
        if option in read:
            found = read[option](table, name).dtype.kind
            kinds[name] = {"M": "moment", "i": "whole"}.get(found, "number")
        else:
            kinds[name] = "whole" if pa.types.is_integer(known_ids(table, name).type) else "text"
    return kinds


def _partitions(users: pa.Array, partitions: int) -> NDArray[np.uint16]:
    """Which partition each user's rows go to."""
    return (pl.Series(users).hash(seed=0) % partitions).to_numpy().astype(np.uint16)


class _Distinct:
    """Different ids in order of first appearance, of more of them than are held."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._known = pa.array([], kind)
        self._more: list[pa.Array] = []

    def add(self, ids: pa.Array) -> None:
        self._more.append(pc.unique(ids))
        if sum(map(len, self._more)) > 2 * len(self._known) + 2**20:
            self.ids()

    def ids(self) -> pa.Array:
        if self._more:
            self._known = pc.unique(pa.chunked_array([self._known, *self._more], type=self._kind))
            self._more = []
        return self._known


def _dealt_table(plan: Plan, number: int, dealt: Dealt) -> Table:
    """The rows dealt to a partition, in the order of the log, read column by column."""

    def chunks(name: str) -> Iterator[pa.Array]:
        options = ipc.IpcReadOptions(included_fields=[plan.schema.get_field_index(name)])
        for piece in np.flatnonzero(dealt.rows[:, number]):
            with pa.OSFile(str(_dealt(plan, int(piece), "arrow"))) as file:
                reader = ipc.open_file(file, options=options)
                for batch in range(dealt.batches[piece]):
                    yield reader.get_batch(batch * plan.partitions + number).column(0)

    def read(name: str) -> pa.ChunkedArray:
        column = pa.chunked_array(list(chunks(name)), plan.schema.field(name).type)
        return column.cast(pa.int64()) if dealt.kinds.get(name) == "whole" else column

    where = f"partition {number} of the log"
    return (
        Table(where, plan.schema.names, read) if plan.separator is None else text_table(where, plan.schema.names, read)
    )


def _write_arrow(path: Path, columns: Mapping[str, Any]) -> None:
    batch = pa.record_batch({name: pa.array(values) for name, values in columns.items()})
    with whole_file(path) as place, ipc.new_file(place, batch.schema) as file:
        file.write_batch(batch)


def _write_json(path: Path, content: Any) -> None:
    with whole_file(path) as place:
        place.write_text(json.dumps(content))
