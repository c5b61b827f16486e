"""Compiled loops that write and read sort keys on a CPU: one pass over memory where tensor operations take many."""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

_SIGN = np.int32(-0x80000000)
_REST = np.int32(0x7FFFFFFF)


@numba.njit(cache=True, nogil=True)
def pack_keys(
    bits: NDArray[np.int32], grades: NDArray[Any] | None, mask: NDArray[np.bool_] | None, keys: NDArray[np.int64]
) -> None:
    """Fill the keys of :mod:`torchrank.ops.order`.

    Args:
        bits: ``(N, L)`` float32 scores, read as integers.
        grades: ``(N, L)``; the flag says that it is above 0. None for no flags.
        mask: ``(N, L)``, True where a document is real; None when all are.
        keys: ``(N, L)``, written.
    """
    for row in range(bits.shape[0]):
        for place in range(bits.shape[1]):
            code = bits[row, place] ^ _SIGN
            if code == _SIGN:  # both zeros are one score
                code = np.int32(0)
            code ^= (code >> 31) & _REST
            if mask is not None and not mask[row, place]:
                code = _REST
            flag = grades is not None and grades[row, place] > 0
            keys[row, place] = (np.int64(code) << 32) | np.int64(2 * place + flag)


@numba.njit(cache=True, nogil=True)
def sum_precisions(
    keys: NDArray[np.int64], inverse: NDArray[Any], sums: NDArray[Any], hits: NDArray[Any], within: NDArray[Any]
) -> None:
    """Add up the precisions at the flagged ranks of each list.

    Args:
        keys: ``(N, L)`` ranked keys.
        inverse: ``(depth,)`` 1 / rank of the ranks that count.
        sums: ``(N,)``, written: the sum over the flagged ranks that count.
        hits: ``(N,)``, written: the flagged ranks.
        within: ``(N,)``, written: the flagged ranks that count.
    """
    depth = inverse.shape[0]
    for row in range(keys.shape[0]):
        found = 0
        total = 0.0
        for rank in range(depth):
            flag = keys[row, rank] & 1
            found += flag
            total += (flag * found) * np.float64(inverse[rank])
        within[row] = found
        for rank in range(depth, keys.shape[1]):
            found += keys[row, rank] & 1
        sums[row] = total
        hits[row] = found
