"""Compiled loops that write and read sort keys on a CPU: one pass over memory where tensor operations take many."""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

_SIGN = np.int32(-0x80000000)
_REST = np.int32(0x7FFFFFFF)


@numba.njit(cache=True, nogil=True, inline="always")
def _key(bits: np.int32, flag: bool, real: bool, place: int) -> np.int64:
    """Make one key: the score's code above, place and flag below."""
    code = bits ^ _SIGN
    if code == _SIGN:  # both zeros are one score
        code = np.int32(0)
    code ^= (code >> 31) & _REST
    if not real:
        code = _REST
    return (np.int64(code) << 32) | np.int64(2 * place + flag)


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
            flag = grades is not None and grades[row, place] > 0
            real = mask is None or mask[row, place]
            keys[row, place] = _key(bits[row, place], flag, real, place)


@numba.njit(cache=True, nogil=True)
def pack_first_keys(
    bits: NDArray[np.int32], grades: NDArray[Any] | None, mask: NDArray[np.bool_] | None, keys: NDArray[np.int64]
) -> None:
    """Fill in the smallest keys of each list, in order, without sorting the others.

    Args:
        bits: as for :func:`pack_keys`.
        grades: likewise.
        mask: likewise.
        keys: ``(N, depth)``, written; depth is at most L and small, since a key is put in its place by moving others.
    """
    depth = keys.shape[1]
    for row in range(bits.shape[0]):
        for place in range(bits.shape[1]):
            flag = grades is not None and grades[row, place] > 0
            real = mask is None or mask[row, place]
            key = _key(bits[row, place], flag, real, place)
            rank = place
            if place >= depth:
                rank = depth - 1
                if key > keys[row, rank]:
                    continue
            while rank > 0 and keys[row, rank - 1] > key:
                keys[row, rank] = keys[row, rank - 1]
                rank -= 1
            keys[row, rank] = key


@numba.njit(cache=True, nogil=True)
def take_highest(grades: NDArray[Any], best: NDArray[Any]) -> None:
    """Take the highest values of each list, falling, without sorting the others.

    Args:
        grades: ``(N, L)``, no NaN.
        best: ``(N, k)``, written; k is at most L and small, likewise.
    """
    depth = best.shape[1]
    for row in range(grades.shape[0]):
        for place in range(grades.shape[1]):
            grade = grades[row, place]
            rank = place
            if place >= depth:
                rank = depth - 1
                if grade <= best[row, rank]:
                    continue
            while rank > 0 and best[row, rank - 1] < grade:
                best[row, rank] = best[row, rank - 1]
                rank -= 1
            best[row, rank] = grade


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
