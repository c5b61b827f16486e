"""Original ids: looking them up, and numbering by those of an older log."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from torchrank.errors import DataError


def look_up_ids(known: NDArray[Any], ids: Any, what: str) -> NDArray[np.int64]:
    """Find ids among the known ones.

    Args:
        known: ``(M,)`` different ids.
        ids: a sequence, array or series of ids.
        what: what they name, for the message.

    Returns:
        ``(len(ids),)`` places in ``known``, -1 for an id that is not there.

    Raises:
        DataError: ids of another type than the known ones.

    Example:
        >>> look_up_ids(np.array([30, 10, 20]), [10, 11, 30], "user")
        array([ 1, -1,  0])
    """
    table = pa.array(known)
    try:
        wanted = pa.array(ids, from_pandas=True)
        if pa.types.is_integer(table.type) != pa.types.is_integer(wanted.type) and len(wanted):
            raise pa.ArrowTypeError(f"they are {wanted.type}")
        found = pc.index_in(wanted.cast(table.type), value_set=table)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataError(f"the {what} ids of the log are {table.type}, the ids asked for are not: {error}") from None
    return np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)


def renumber(
    codes: NDArray[np.int32], ids: NDArray[Any], known: Any, what: str, *, unknown: str
) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Number rows by ids that are known already.

    Args:
        codes: ``(N,)`` places in ``ids``.
        ids: ``(M,)`` different ids.
        known: ``(K,)`` the known ones; None keeps the numbers there are.
        what: what the ids name, for messages.
        unknown: ``"append"`` puts the ids that are not known after those that are; ``"drop"`` gives their rows -1.

    Returns:
        ``(N,)`` places in the second, ``(K,)`` or more ids, the known ones first.

    Raises:
        DataError: ids of another type than the known ones.

    Example:
        >>> renumber(np.array([0, 1, 0], np.int32), np.array([7, 5]), [5, 6], "user", unknown="append")
        (array([2, 0, 2], dtype=int32), array([5, 6, 7]))
    """
    if known is None:
        return codes, ids
    known = np.asarray(known)
    places = look_up_ids(known, ids, what).astype(np.int32)
    if unknown == "drop":
        return places[codes], known
    fresh = places < 0
    places[fresh] = len(known) + np.arange(fresh.sum(), dtype=np.int32)
    return places[codes], np.concatenate([known, ids[fresh]]) if fresh.any() else known
