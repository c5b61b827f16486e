"""Outbrain's click prediction log, as the competition publishes it."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from torchrank.data.csv_tables import join_tables
from torchrank.data.log import InteractionLog
from torchrank.data.tables import Table
from torchrank.errors import DataError


def read_outbrain(path: str | Path, *, duplicates: str = "keep") -> InteractionLog:
    r"""Read Outbrain's promoted contents, shown and clicked or not.

    ``clicks_train.csv`` (``display_id,ad_id,clicked``) says which promoted contents each display showed and which one
    was clicked; ``events.csv`` (``display_id,uuid,document_id,timestamp,platform,geo_location``) who saw it, and when,
    in milliseconds since 1465876799998 ms after 1970. The competition's other files are not needed, and its
    ``clicks_test.csv`` has no clicks. The layout is that of the competition's page, as repeated by programs that read
    the files; the files could not be opened when this was written.

    Args:
        path: the folder of the two files; gzipped or not.
        duplicates: see :meth:`InteractionLog.from_frame`.

    Returns:
        the log: users are ``uuid``, items ``ad_id``, times the file's own milliseconds.

    Raises:
        DataError: a file is missing or lacks a column; a value is none, a display occurs twice in the events, or a
            shown content's display is not among them. The message names file and row.

    Source: https://www.kaggle.com/c/outbrain-click-prediction/data.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = (Path(folder) / "clicks_train.csv").write_text("display_id,ad_id,clicked\n1,42,0\n1,139,1\n")
        ...     head = "display_id,uuid,document_id,timestamp,platform,geo_location\n"
        ...     _ = (Path(folder) / "events.csv").write_text(head + "1,cb8c55,379743,61,3,US>SC>519\n")
        ...     log = read_outbrain(folder)
        >>> log.user_ids.tolist(), log.item_ids.tolist(), log.preferred.tolist()
        (['cb8c55'], [42, 139], [False, True])
    """
    path = Path(path)
    clicks = _open(path, "clicks_train.csv", ("display_id", "ad_id", "clicked"))
    events = _open(path, "events.csv", ("display_id", "uuid", "timestamp"))
    place = _places(_displays(clicks), _displays(events), clicks.where, events.where)

    def read(name: str) -> pa.ChunkedArray:
        if name in ("ad_id", "clicked"):
            return clicks.read(name)
        return events.read(name).take(pa.array(place))

    columns = {"user": "uuid", "item": "ad_id", "feedback": "clicked", "time": "timestamp"}
    _refuse_text(events, "timestamp")
    table = Table(str(path), list(columns.values()), read, numbers=clicks.numbers)
    return InteractionLog.from_table(table, columns, positive_at=1, duplicates=duplicates)


def _open(folder: Path, name: str, columns: tuple[str, ...]) -> Table:
    for file in (folder / name, folder / f"{name}.gz"):
        if file.is_file():
            return join_tables([file], separator=",", columns={column: column for column in columns})
    raise DataError(f"{folder} holds no {name}, gzipped or not")


def _refuse_text(table: Table, name: str) -> None:
    """Refuse a column with a value that is no whole number, naming the first."""
    column = table.read(name)
    if pa.types.is_integer(column.type):
        return
    whole = pc.match_substring_regex(column, r"^-?(0|[1-9][0-9]{0,17})$")
    row = pc.index(whole, False).as_py()
    raise DataError(f"row {row + 1} of {table.where}: {name} {column[row].as_py()!r} is not a whole number")


def _displays(table: Table) -> NDArray[np.int64]:
    _refuse_text(table, "display_id")
    displays: NDArray[np.int64] = table.read("display_id").to_numpy()
    return displays


def _places(wanted: NDArray[np.int64], known: NDArray[np.int64], where: str, among: str) -> NDArray[np.int64]:
    """Find the event of each display."""
    order = np.argsort(known, kind="stable")
    ordered = known[order]
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(twice):
        row = order[twice[0] + 1]
        raise DataError(f"row {row + 1} of {among}: display_id {known[row]} occurs before")
    place = np.searchsorted(ordered, wanted)
    missing = np.flatnonzero(ordered[np.minimum(place, len(ordered) - 1)] != wanted) if len(ordered) else [0]
    if len(missing):
        row = missing[0]
        raise DataError(f"row {row + 1} of {where}: display_id {wanted[row]} is not in {among}")
    return order[place]
