"""The rows of a log's table, numbered and sorted, and moments among its times."""

from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from torchrank.data.columns import read_feedback, read_ids, read_times
from torchrank.data.tables import Table, require_columns
from torchrank.errors import DataError, TorchRankError
from torchrank.ops.logs import in_order, sort_rows, user_offsets

_T = TypeVar("_T")


class Rows(NamedTuple):
    """Rows sorted by user, then time, then their place in the table; see :class:`~torchrank.data.InteractionLog`."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    feedback: NDArray[Any]
    times: NDArray[Any]
    offsets: NDArray[np.int64]
    user_ids: NDArray[Any]
    item_ids: NDArray[Any]


def read_rows(table: Table, columns: dict[str, str]) -> Rows:
    """Read a log's four columns, one after the other.

    Args:
        table: where they are.
        columns: the table's column for each of ``user``, ``item``, ``feedback`` and ``time``.

    Returns:
        its rows, users and items numbered by first appearance.

    Raises:
        DataError: a column is missing or holds null, NaN or values of the wrong kind; there is no row.
    """
    require_columns(table, columns)
    users, user_ids = _released(read_ids(table, columns["user"]))
    if not len(users):
        raise DataError(f"{table.where} has no rows; a log needs at least one interaction")
    items, item_ids = _released(read_ids(table, columns["item"]))
    times = _released(read_times(table, columns["time"]))
    feedback = _released(read_feedback(table, columns["feedback"]))
    offsets = user_offsets(users, len(user_ids))
    keys = times.view(np.int64) if times.dtype.kind == "M" else times
    if not in_order(users, keys):
        items, feedback, keys = sort_rows(users, items, feedback, keys, offsets)
        times = keys.view(times.dtype)
    return Rows(users, items, feedback, times, offsets, user_ids, item_ids)


def moment_among(times: NDArray[Any], at: Any) -> Any:
    """Turn a moment into one that compares with a log's times.

    Args:
        times: ``(N,)`` numbers or datetime64.
        at: a number, or a date or datetime where the times are (UTC where it names no time zone).

    Returns:
        a float, or a datetime64 at least as fine as the times.

    Raises:
        TorchRankError: it does not compare with the times.

    Example:
        >>> moment_among(np.array(["2020-01-01"], "datetime64[D]"), datetime(2020, 5, 6, 7)).astype(str).item()
        '2020-05-06T07:00:00.000000'
    """
    moments = times.dtype.kind == "M"
    try:
        aware = isinstance(at, datetime) and at.tzinfo is not None
        at = at.astimezone(UTC).replace(tzinfo=None) if aware else at
        moment = _in_unit_of(times, np.datetime64(at)) if moments else float(at)
    except (TypeError, ValueError):
        moment = None
    if moment is None or bool(np.isnan(moment) if not moments else np.isnat(moment)):
        kind = f"dates or moments of {times.dtype}" if moments else "numbers"
        raise TorchRankError(f"at={at!r}; the log's times are {kind}")
    return moment


def _in_unit_of(times: NDArray[Any], moment: np.datetime64) -> np.datetime64:
    """Make a moment as fine as the times; a ValueError where that takes it out of range."""
    fine: np.datetime64 = moment.astype(np.promote_types(times.dtype, moment.dtype))
    if fine.astype(moment.dtype) != moment and not np.isnat(moment):
        raise ValueError(f"{moment} is out of the range of {times.dtype}")
    return fine


def _released(values: _T) -> _T:
    """Hand what Arrow keeps of the last column back to the system before the next is read."""
    pa.default_memory_pool().release_unused()
    return values
