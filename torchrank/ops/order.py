"""Rankings: the documents of each list in the order of their scores.

A document's place is decided by one 64-bit key: the score in the upper half, mapped to an integer that grows as the
score falls, and in the lower half the document's position in the input with one flag beside it. Sorting keys therefore
ranks the documents, keeps the input order among equal scores and carries the flag along, with nothing to gather.

Keys of float32 scores on a CPU are laid out by a compiled loop; on other devices, under ``torch.compile`` and of 64-bit
scores by tensor operations. The keys are the same.
"""

import sys
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from torchrank.ops.checks import values_can_be_read

_LARGEST = 0x7FFFFFFF  # the code of padding: behind every score, infinite ones included


def highest(grades: Tensor, k: int) -> Tensor:
    """Take the k highest values of each list.

    Args:
        grades: ``(..., L)`` at least 0, float32 or float64.
        k: at most L.

    Returns:
        ``(..., k)``, falling.

    Example:
        >>> highest(torch.tensor([[0.0, 2.0, 1.0]]), 2)
        tensor([[2., 1.]])
    """
    if values_can_be_read(grades) and _few(k, grades.shape[-1]):
        from torchrank.ops.rank_keys import take_highest  # loads numba, which a user of a GPU can do without

        best = grades.new_empty((*grades.shape[:-1], k))
        take_highest(_rows(grades), _rows(best))
        return best
    # The bits of numbers from 0 up are ordered as the numbers are, and integers sort faster.
    bits = grades.view(torch.int64 if grades.dtype == torch.float64 else torch.int32)
    ordered = _sort_fresh(bits.clone(memory_format=torch.contiguous_format))
    return ordered[..., grades.shape[-1] - k :].flip(-1).view(grades.dtype)


def _few(ranks: int, length: int) -> bool:
    """Whether so few ranks are found faster by putting each document in its place than by a sort of the list."""
    return ranks <= 64 and 32 * ranks <= length


def _sort_fresh(rows: Tensor) -> Tensor:
    """Sort each row, from small to large, of a tensor nobody else holds.

    On eager CPU tensors NumPy sorts, in vector instructions: ten times faster than ``torch.sort``, which moves the
    permutation along.
    """
    if not values_can_be_read(rows):
        return rows.sort(-1).values
    rows.numpy().sort(-1)
    return rows


def ranked_keys(
    scores: Tensor, grades: Tensor | None = None, mask: Tensor | None = None, *, depth: int | None = None
) -> Tensor:
    """Rank the documents of each list, input order among equal scores, padding last.

    Args:
        scores: ``(..., L)`` of any real dtype; no NaN where a document is real.
        grades: ``(..., L)``; a key's flag says that the grade is above 0. None for no flags.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        depth: how many ranks are wanted, at most L; None for all.

    Returns:
        ``(..., depth)`` int64 keys, best document first; read them with :func:`key_codes`, :func:`key_positions` and
        :func:`key_flags`.

    Example:
        >>> keys = ranked_keys(torch.tensor([0.1, 0.9, 0.9]), torch.tensor([1, 0, 1]))
        >>> key_positions(keys), key_flags(keys)
        (tensor([1, 2, 0]), tensor([0, 1, 1], dtype=torch.int8))
    """
    if scores.dtype in (torch.float16, torch.bfloat16):
        scores = scores.float()
    if values_can_be_read(scores) and scores.dtype == torch.float32:
        from torchrank.ops.rank_keys import pack_first_keys, pack_keys  # likewise

        bits = _rows(scores.view(torch.int32))
        flagged, real = (None if x is None else _rows(x) for x in (grades, mask))
        if depth is not None and _few(depth, scores.shape[-1]):
            keys = torch.empty((*scores.shape[:-1], depth), dtype=torch.int64)
            pack_first_keys(bits, flagged, real, _rows(keys))
            return keys
        keys = torch.empty(scores.shape, dtype=torch.int64)
        pack_keys(bits, flagged, real, _rows(keys))
        return _sort_fresh(keys)[..., :depth]
    lower = torch.arange(0, 2 * scores.shape[-1], 2, dtype=torch.int32, device=scores.device).expand(scores.shape)
    if grades is not None:
        lower = lower + (grades > 0)
    codes = _score_codes(scores, mask)
    # two integers of 32 bits side by side are one of 64
    halves = (lower, codes) if sys.byteorder == "little" else (codes, lower)
    return _sort_fresh(torch.stack(halves, -1).view(torch.int64)[..., 0])[..., :depth]


def _rows(values: Tensor) -> NDArray[Any]:
    """Look at ``(..., L)`` as ``(N, L)`` in NumPy."""
    return values.detach().reshape(-1, values.shape[-1]).contiguous().numpy()


def _score_codes(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Map scores to int32 in the opposite order: equal scores to equal codes, padding behind all."""
    if scores.dtype == torch.float32:
        # 0 − s turns the order round and makes −0 equal to 0. The bits of a float grow with it, but for negative ones,
        # whose lower 31 bits are turned over.
        bits = (0.0 - scores).view(torch.int32)
        codes = (bits >> 31).bitwise_and_(_LARGEST).bitwise_xor_(bits)
    else:  # 64 bits do not fit: the dense rank inside the list
        if mask is not None:
            scores = torch.where(mask, scores, 0)  # a NaN under the mask would break the sort
        ranked, place = scores.sort(-1, descending=True)
        steps = torch.zeros_like(ranked, dtype=torch.int32)
        steps[..., 1:] = ranked[..., 1:] != ranked[..., :-1]
        codes = torch.empty_like(steps).scatter_(-1, place, steps.cumsum(-1, dtype=torch.int32))
    return codes if mask is None else torch.where(mask, codes, _LARGEST)


def key_codes(keys: Tensor) -> Tensor:
    """Read the score codes back from keys."""
    return keys >> 32


def key_positions(keys: Tensor) -> Tensor:
    """Read from keys where in the input each ranked document stands."""
    return (keys & 0xFFFFFFFF) >> 1


def key_flags(keys: Tensor) -> Tensor:
    """Read the flags of the ranked documents: int8, 0 or 1."""
    return keys.to(torch.int8).bitwise_and_(1)


def best_first(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Rank the documents of each list by their scores.

    Args:
        scores: ``(..., L)``.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.

    Returns:
        ``(..., L)`` int64: positions in the input, highest score first, input order among equals, padding last.

    Example:
        >>> best_first(torch.tensor([[0.0, 2.0, -1.0, 2.0]]), torch.tensor([[True, True, False, True]]))
        tensor([[1, 3, 0, 2]])
    """
    return key_positions(ranked_keys(scores, mask=mask))
