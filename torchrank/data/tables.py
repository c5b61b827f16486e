"""Tables column by column, from frames and Parquet, so that a large log is never held twice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import pyarrow as pa
import pyarrow.parquet as pq

from torchrank.data.files import as_path
from torchrank.errors import DataError, as_option


class Table(NamedTuple):
    """A table whose columns are read when asked for.

    Attributes:
        where: what to call it in a message.
        names: the columns there are.
        read: a column's name to its values.
        numbers: turns a column that comes as text into numbers, where the source is text, as CSV is; None elsewhere.
        moments: the same for numbers or moments.
        first_row: rows of the source before this table's first, for messages.
    """

    where: str
    names: list[str]
    read: Callable[[str], pa.ChunkedArray]
    numbers: Callable[[str, pa.ChunkedArray], pa.ChunkedArray] | None = None
    moments: Callable[[str, pa.ChunkedArray], pa.ChunkedArray] | None = None
    first_row: int = 0


def require_columns(table: Table, wanted: dict[str, str]) -> None:
    """Refuse a table that lacks a column, or has it twice.

    Args:
        table: the table.
        wanted: option name to column name, as in ``{"user": "UserID"}``.

    Raises:
        DataError: it names the first such column, and for a missing one the columns there are.
    """
    for option, name in wanted.items():
        if table.names.count(name) > 1:
            raise DataError(f"{table.where} has a column {name!r} twice; rename or drop one")
        if name not in table.names:
            there = ", ".join(map(repr, table.names)) or "none"
            raise DataError(
                f"{table.where} has no column {name!r}; its columns are {there}: name yours with {as_option(option)}"
            )


def frame_table(frame: Any) -> Table:
    """Wrap a frame of polars, pandas, pyarrow or anything else that narwhals reads.

    Args:
        frame: an eager or lazy frame.

    Returns:
        the table.

    Raises:
        DataError: narwhals does not know the frame.
    """
    try:
        known = nw.from_native(frame)
    except TypeError:
        raise DataError(
            "a log is made from a frame of polars, pandas, pyarrow or any library narwhals reads, not from a"
            f" {type(frame).__name__}"
        ) from None
    except nw.exceptions.DuplicateError as error:
        told = " ".join(str(error).split())
        raise DataError(f"the frame has a column twice; rename or drop one ({told})") from None
    eager = known.collect() if isinstance(known, nw.LazyFrame) else known

    def read(name: str) -> pa.ChunkedArray:
        try:
            column = eager.get_column(name).to_arrow()
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            if "128" in str(eager.schema[name]):
                raise DataError(
                    f"column {name!r} of the frame holds integers of 128 bits, which Arrow does not have; cast it to"
                    " 64 bits, or ids to text"
                ) from None
            raise DataError(f"column {name!r} of the frame mixes types: {error}") from None
        return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])

    return Table("the frame", list(eager.columns), read)


def parquet_table(path: str | Path) -> Table:
    """Open a Parquet file or a (hive-partitioned) folder of them.

    Args:
        path: file or folder; the files of a folder are read in the order of their names.

    Returns:
        the table.

    Raises:
        DataError: nothing is there, or it is not Parquet.
    """
    path = as_path(path)
    if not path.exists():
        raise DataError(f"there is no {path}")
    try:
        names, load = _file(path) if path.is_file() else _folder(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} is not Parquet: {str(error).splitlines()[0]}") from None

    def read(name: str) -> pa.ChunkedArray:
        try:
            return load(name).column(0)
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(f"column {name!r} of {path} cannot be read: {str(error).splitlines()[0]}") from None

    return Table(str(path), names, read)


def _file(path: str | Path) -> tuple[list[str], Callable[[str], pa.Table]]:
    file = pq.ParquetFile(path)
    return file.schema_arrow.names, lambda name: file.read(columns=[name])


def _folder(path: str | Path) -> tuple[list[str], Callable[[str], pa.Table]]:
    import pyarrow.dataset as pads  # 45 MiB that a single file does not need

    source = pads.dataset(str(path), format="parquet", partitioning="hive")
    if not source.files:
        raise DataError(f"the folder {path} holds no Parquet file")
    return source.schema.names, lambda name: source.to_table(columns=[name])
