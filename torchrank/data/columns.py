"""The four columns of a log, checked and turned into flat arrays."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from torchrank.data.tables import Table
from torchrank.errors import DataError
from torchrank.ops.logs import number_dense

#: types of single values that every step knows; halves and decimals of 256 bits are not among them
_SINGLE = (
    pa.types.is_null,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_decimal128,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_temporal,
)


def is_single(kind: pa.DataType) -> bool:
    """Whether a column of this type holds single values that can be told apart.

    Args:
        kind: the type; of a dictionary, that of its values counts.

    Returns:
        False for lists, structs and the like.

    Example:
        >>> is_single(pa.int8()), is_single(pa.list_(pa.int8()))
        (True, False)
    """
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(is_kind(kind) for is_kind in _SINGLE)


def read_ids(table: Table, name: str) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Read a column of ids and number them by first appearance.

    Integers of a narrow range are numbered by a table of that range, everything else by hashing.

    Args:
        table: where the column is.
        name: the column; ids of any type.

    Returns:
        ``(N,)`` int32 numbers and the ids by number.

    Raises:
        DataError: an id is null or NaN, or of a type that cannot be an id.
    """
    column = known_ids(table, name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_integer(column.type) and len(column):
        low, high = (bound.as_py() for bound in pc.min_max(column).values())
        if high - low < 2 * len(column) + 65536 and high < 2**63:
            return _number_by_table(column, low, high)
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    encoded = column.dictionary_encode().unify_dictionaries()
    if not encoded.num_chunks:
        return np.empty(0, np.int32), np.empty(0, object)
    codes = np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks]).astype(np.int32, copy=False)
    return codes, encoded.chunk(0).dictionary.to_numpy(zero_copy_only=False)


def known_ids(table: Table, name: str) -> pa.ChunkedArray:
    """Read a column of ids as it is.

    Args:
        table: where the column is.
        name: the column; ids of any type.

    Returns:
        the column.

    Raises:
        DataError: an id is null or NaN, or of a type that cannot be an id.
    """
    column = _without_null(table, name, table.read(name))
    if not is_single(column.type):
        raise DataError(
            f"column {name!r} of {table.where} holds {_kind(column)}, which cannot be an id; cast it to integers or"
            " text"
        )
    _refuse_nan(table, name, column)
    return column


def _number_by_table(column: pa.ChunkedArray, low: int, high: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
    codes = np.empty(len(column), np.int32)
    table = np.full(high - low + 1, -1, np.int32)
    found = row = 0
    for chunk in column.chunks:
        values = chunk.to_numpy()
        values = values.astype(np.int64) if values.dtype == np.uint64 else values
        found = number_dense(values, low, table, codes[row : row + len(values)], found)
        row += len(values)
    ids = np.empty(found, column.type.to_pandas_dtype())
    slots = np.flatnonzero(table >= 0)
    ids[table[slots]] = slots + low
    return codes, ids


def read_feedback(table: Table, name: str) -> NDArray[Any]:
    """Read a column of numeric feedback.

    Args:
        table: where the column is.
        name: the column: integers, floats or booleans.

    Returns:
        ``(N,)`` numbers, in the column's own precision.

    Raises:
        DataError: a value is null, not finite or not a number.
    """
    column = _without_null(table, name, table.read(name))
    if table.numbers and pa.types.is_large_string(column.type):
        column = table.numbers(name, column)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if pa.types.is_float16(column.type):  # which compiled loops do not know
        column = column.cast(pa.float32())
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise DataError(
            f"column {name!r} of {table.where} holds {_kind(column)}; feedback must be numbers, such as 0 and 1"
        )
    _refuse_nan(table, name, column, infinite=True)
    return _own(column, np.dtype(column.type.to_pandas_dtype()))


def _own(column: pa.ChunkedArray, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Copy a column into an array of its own, which outlives Arrow's memory and may be written to."""
    values = np.empty(len(column), dtype)
    row = 0
    for chunk in column.chunks:
        values[row : row + len(chunk)] = chunk.to_numpy(zero_copy_only=False)
        row += len(chunk)
    return values


def read_times(table: Table, name: str) -> NDArray[Any]:
    """Read a column of times.

    Args:
        table: where the column is.
        name: the column: integers, floats, dates or moments; in CSV also text that is a date or moment by ISO 8601.

    Returns:
        ``(N,)`` int64, float64 or datetime64 in the column's own unit, UTC where it names a time zone.

    Raises:
        DataError: a value is null, NaN, or text or another type that has no order in time.
    """
    column = _without_null(table, name, table.read(name))
    if table.moments and pa.types.is_large_string(column.type):
        column = table.moments(name, column)
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        unit = "D" if pa.types.is_date32(column.type) else getattr(column.type, "unit", "ms")
        return _own(column, np.dtype(f"datetime64[{unit}]"))
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise DataError(
            f"column {name!r} of {table.where} holds {_kind(column)}; time must be numbers, dates or moments: parse"
            f" text first, in polars with pl.col({name!r}).str.to_datetime()"
        )
    _refuse_nan(table, name, column)
    return _own(column, np.dtype(np.int64 if pa.types.is_integer(column.type) else np.float64))


def _kind(column: pa.ChunkedArray) -> str:
    of_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return "text" if of_text or pa.types.is_string_view(column.type) else str(column.type)


def _without_null(table: Table, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.null_count:
        row = table.first_row + pc.index(pc.is_null(column), True).as_py()
        raise DataError(
            f"column {name!r} of {table.where} has {column.null_count} null values, the first in row {row + 1};"
            " drop or fill them"
        )
    return column


def _refuse_nan(table: Table, name: str, column: pa.ChunkedArray, *, infinite: bool = False) -> None:
    """Refuse NaN and, where asked to, infinite numbers."""
    if not pa.types.is_floating(column.type):
        return
    row = pc.index(pc.is_finite(column), False).as_py() if infinite else pc.index(pc.is_nan(column), True).as_py()
    if row >= 0:
        value = column[row].as_py()
        told = "NaN" if value != value else f"{value:g}"
        raise DataError(
            f"column {name!r} of {table.where} is {told} in row {table.first_row + row + 1}; drop or fill such rows"
        )
