"""CSV files column by column, as text that is turned into numbers only where nothing is lost."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from torchrank.data.files import as_path
from torchrank.data.tables import Table, require_columns
from torchrank.errors import DataError


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
    path = as_path(path)
    if not path.exists():
        raise DataError(f"there is no {path}")

    def scan() -> pl.LazyFrame:
        schema = None if names is None else dict.fromkeys(names, pl.String())
        return pl.scan_csv(path, separator=separator, has_header=names is None, schema=schema, infer_schema=False)

    def read(name: str) -> pa.ChunkedArray:
        return pa.chunked_array([whole_numbers(_collect(path, scan().select(name))[name]).to_arrow()])

    # one pass over all columns, since a line with too many values shows only where every column is read
    there = _collect(path, scan().select(pl.all().null_count())).columns
    return text_table(str(path), written_names(there), read)


def written_names(names: list[str]) -> list[str]:
    """Return columns' names as a file's header has them, where polars has told equal ones apart.

    Args:
        names: polars'.

    Returns:
        the file's, some of which may occur twice.

    Example:
        >>> written_names(["user", "item", "user_duplicated_0"])
        ['user', 'item', 'user']
    """
    bare = [re.sub(r"_duplicated_\d+$", "", name) for name in names]
    return [name if name in names else given for name, given in zip(bare, names, strict=True)]


def text_table(where: str, names: list[str], read: Callable[[str], pa.ChunkedArray], *, first_row: int = 0) -> Table:
    """Make a table whose columns of numbers and moments may come as text.

    Args:
        where: what to call it in a message.
        names: the columns there are.
        read: a column's name to its values.
        first_row: rows of the source before this table's first, for messages.

    Returns:
        the table.
    """
    moment = "a number or a moment by ISO 8601"
    return Table(
        where,
        names,
        read,
        numbers=lambda name, column: _parse(where, name, column, _numbers, "a number", first_row),
        moments=lambda name, column: _parse(where, name, column, _moments, moment, first_row),
        first_row=first_row,
    )


def _collect(path: str | Path, frame: pl.LazyFrame) -> pl.DataFrame:
    try:
        return frame.collect(engine="streaming")
    except (pl.exceptions.PolarsError, OSError) as error:
        told = str(error).splitlines()[0].split(". ")[0]  # what follows is advice on polars' own options
        raise DataError(f"{path} does not read as CSV: {told}") from None


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


def _parse(
    where: str, name: str, column: pa.ChunkedArray, read: Callable[[pl.Series], pl.Series], what: str, first_row: int
) -> pa.ChunkedArray:
    text = pl.Series(name, column)
    values = read(text)
    if values.null_count():
        row = int(values.is_null().arg_max() or 0)
        raise DataError(f"row {first_row + row + 1} of {where}: {name} {text[row]!r} is not {what}")
    return pa.chunked_array([values.to_arrow()])


def _numbers(text: pl.Series) -> pl.Series:
    return text.cast(pl.Float64, strict=False)


def _moments(text: pl.Series) -> pl.Series:
    number = _numbers(text)
    if not number.null_count():
        return number
    try:
        return text.str.to_datetime(time_unit="us", strict=False)
    except pl.exceptions.PolarsError:  # no format fits the first value
        return number


def join_tables(paths: Sequence[Path], *, separator: str, columns: Mapping[str, str]) -> Table:
    """Open CSV files of one layout as one table, one file after the other.

    Args:
        paths: the files.
        separator: one character between values.
        columns: the columns needed, by what they are.

    Returns:
        the table; a bad value is told by its own file and row.

    Raises:
        DataError: nothing is there, or a file lacks a column.
    """
    tables = [csv_table(path, separator=separator) for path in paths]
    for table in tables:
        require_columns(table, dict(columns))

    def read(name: str) -> pa.ChunkedArray:
        parts = [table.read(name) for table in tables]
        for table, part in zip(tables, parts, strict=True):
            if part.null_count:
                row = pc.index(pc.is_null(part), True).as_py()
                raise DataError(f"row {row + 1} of {table.where} has no {name}")
        return _end_to_end(parts)

    def parsed(name: str, kind: str) -> pa.ChunkedArray:
        parts = []
        for table in tables:
            part, parse = table.read(name), getattr(table, kind)
            parts.append(parse(name, part) if pa.types.is_large_string(part.type) else part)
        return _end_to_end(parts)

    return Table(
        str(paths[0]) if len(paths) == 1 else str(paths[0].parent),
        tables[0].names,
        read,
        numbers=lambda name, column: parsed(name, "numbers"),
        moments=lambda name, column: parsed(name, "moments"),
    )


def _end_to_end(parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Put columns behind each other: numbers of two kinds as floats, numbers and text as the text they were."""
    parts = [part for part in parts if len(part)] or parts[:1]
    kinds = {part.type for part in parts}
    if len(kinds) > 1:
        numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds)
        parts = [part.cast(pa.float64() if numbers else pa.large_string()) for part in parts]
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks])
