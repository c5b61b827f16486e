"""Tables column by column, from frames, Parquet and CSV, so that a large log is never held twice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads

from torchrank.errors import DataError


class Table(NamedTuple):
    """A table whose columns are read when asked for.

    Attributes:
        where: what to call it in a message.
        names: the columns there are.
        read: a column's name to its values.
        is_text: whether numbers and moments may come as text, as in CSV.
    """

    where: str
    names: list[str]
    read: Callable[[str], pa.ChunkedArray]
    is_text: bool = False


def require_columns(table: Table, wanted: dict[str, str]) -> None:
    """Refuse a table that lacks a column.

    Args:
        table: the table.
        wanted: option name to column name, as in ``{"user": "UserID"}``.

    Raises:
        DataError: it names the first missing column and the columns there are.
    """
    for option, name in wanted.items():
        if name not in table.names:
            there = ", ".join(map(repr, table.names)) or "none"
            raise DataError(
                f"{table.where} has no column {name!r}; its columns are {there}: name yours with {option}=…"
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
    eager = known.collect() if isinstance(known, nw.LazyFrame) else known

    def read(name: str) -> pa.ChunkedArray:
        try:
            column = eager.get_column(name).to_arrow()
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
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
    if not Path(path).exists():
        raise DataError(f"there is no {path}")
    try:
        source = pads.dataset(str(path), format="parquet", partitioning="hive")
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} is not Parquet: {str(error).splitlines()[0]}") from None
    if not source.files:
        raise DataError(f"the folder {path} holds no Parquet file")

    def read(name: str) -> pa.ChunkedArray:
        try:
            return source.to_table(columns=[name]).column(0)
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(f"column {name!r} of {path} cannot be read: {str(error).splitlines()[0]}") from None

    return Table(str(path), list(source.schema.names), read)


def csv_table(path: str | Path, *, separator: str = ",", names: list[str] | None = None) -> Table:
    """Open a CSV file, as it is or compressed.

    A column is integers where every value is a whole number in its usual spelling, and otherwise text: the ids ``7``
    and ``07`` stay different.

    Args:
        path: the file.
        separator: one character between values.
        names: the columns' names in a file without a header line.

    Returns:
        the table.

    Raises:
        DataError: nothing is there, or a line has more values than there are columns.
    """
    if not Path(path).exists():
        raise DataError(f"there is no {path}")

    def scan() -> pl.LazyFrame:
        return pl.scan_csv(path, separator=separator, has_header=names is None, new_columns=names, infer_schema=False)

    def read(name: str) -> pa.ChunkedArray:
        return pa.chunked_array([whole_numbers(_collect(path, scan().select(name))[name]).to_arrow()])

    try:
        there = scan().collect_schema().names()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path} is not a CSV file: {str(error).splitlines()[0]}") from None
    return Table(str(path), there, read, is_text=True)


def _collect(path: str | Path, frame: pl.LazyFrame) -> pl.DataFrame:
    try:
        return frame.collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path} is not a CSV file: {str(error).splitlines()[0]}") from None


def whole_numbers(text: pl.Series) -> pl.Series:
    """Turn a column of text into integers where that loses nothing.

    Args:
        text: strings; empty is null.

    Returns:
        int64 where every value is a whole number in its usual spelling, else the strings.

    Example:
        >>> whole_numbers(pl.Series(["10", "7"])).dtype, whole_numbers(pl.Series(["10", "07"])).dtype
        (Int64, String)
    """
    whole = text.cast(pl.Int64, strict=False)
    return whole if (whole.cast(pl.String).eq_missing(text)).all() else text
