"""Original ids: look them up, and turn them into plain data that a checkpoint may hold."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
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


def ids_to_plain(ids: NDArray[Any]) -> dict[str, Any]:
    """Turn ids into tensors and plain values.

    Args:
        ids: ``(M,)``.

    Returns:
        what :func:`ids_from_plain` reads.

    Raises:
        DataError: ids that are neither numbers, moments nor strings.
    """
    if ids.dtype.kind == "O":
        values = ids.tolist()
        if not all(isinstance(value, str) for value in values):
            raise DataError(f"ids such as {values[0]!r} cannot be kept in a checkpoint; make them strings or integers")
        return {"dtype": "object", "values": values}
    wide = (
        ids.view(np.int64) if ids.dtype.kind == "M" else ids.astype(np.float64 if ids.dtype.kind == "f" else np.int64)
    )
    return {"dtype": ids.dtype.str, "values": torch.from_numpy(wide.copy())}


def ids_from_plain(plain: dict[str, Any]) -> NDArray[Any]:
    """Undo :func:`ids_to_plain`.

    Args:
        plain: what it returned.

    Returns:
        ``(M,)`` ids.

    Example:
        >>> ids_from_plain(ids_to_plain(np.array(["b", "a"], object)))
        array(['b', 'a'], dtype=object)
    """
    if plain["dtype"] == "object":
        ids = np.empty(len(plain["values"]), object)
        ids[:] = plain["values"]
        return ids
    dtype = np.dtype(plain["dtype"])
    values: NDArray[Any] = plain["values"].cpu().numpy()
    return values.view(dtype) if dtype.kind == "M" else values.astype(dtype)
