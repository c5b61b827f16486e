"""Rankings: the documents of each list in the order of their scores.

A document's place is decided by one 64-bit key: the score in the upper half, mapped to an integer that grows as the
score falls, and in the lower half the document's position in the input with one flag beside it. Sorting keys therefore
ranks the documents, keeps the input order among equal scores and carries the flag along, with nothing to gather.
"""

import torch
from torch import Tensor

from torchrank.ops.checks import values_can_be_read

_LARGEST = 0x7FFFFFFF  # the code of padding: behind every score, infinite ones included


def sorted_rows(values: Tensor) -> Tensor:
    """Sort each row from small to large.

    On eager CPU tensors NumPy sorts, in vector instructions: ten times faster than ``torch.sort``, which moves the
    permutation along.

    Args:
        values: ``(..., L)``, no NaN.

    Returns:
        ``(..., L)``.

    Example:
        >>> sorted_rows(torch.tensor([[3, 1, 2]]))
        tensor([[1, 2, 3]])
    """
    if not values_can_be_read(values):
        return values.sort(-1).values
    rows = values.clone(memory_format=torch.contiguous_format)
    rows.numpy().sort(-1)
    return rows


def score_codes(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Map scores to 32-bit integers in the opposite order: equal scores to equal codes, padding behind all.

    Args:
        scores: ``(..., L)`` of any real dtype; no NaN where a document is real.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.

    Returns:
        ``(..., L)`` int32, to be compared inside a list only.

    Example:
        >>> score_codes(torch.tensor([0.5, -1.0, 7.0], dtype=torch.float64))
        tensor([1, 2, 0], dtype=torch.int32)
    """
    if scores.dtype in (torch.float32, torch.float16, torch.bfloat16):
        # 0 − s turns the order round and makes −0 equal to 0. The bits of a float grow with it, but for negative ones,
        # whose lower 31 bits are turned over.
        bits = (0.0 - scores.float()).view(torch.int32)
        codes = (bits >> 31).bitwise_and_(_LARGEST).bitwise_xor_(bits)
    else:  # 64 bits do not fit: the dense rank inside the list
        if mask is not None:
            scores = torch.where(mask, scores, 0)  # a NaN under the mask would break the sort
        ranked, place = scores.sort(-1, descending=True)
        steps = torch.zeros_like(ranked, dtype=torch.int32)
        steps[..., 1:] = ranked[..., 1:] != ranked[..., :-1]
        codes = torch.empty_like(steps).scatter_(-1, place, steps.cumsum(-1, dtype=torch.int32))
    return codes if mask is None else torch.where(mask, codes, _LARGEST)


def ranked_keys(codes: Tensor, flags: Tensor) -> Tensor:
    """Sort documents by their code, input order among equals, with a flag each.

    Args:
        codes: ``(..., L)`` int32 as :func:`score_codes` gives them.
        flags: ``(..., L)`` of zeros and ones, any dtype.

    Returns:
        ``(..., L)`` int64 keys, best document first; read them with :func:`key_codes`, :func:`key_positions` and
        :func:`key_flags`.

    Example:
        >>> keys = ranked_keys(score_codes(torch.tensor([0.1, 0.9, 0.9])), torch.tensor([1, 0, 1]))
        >>> key_positions(keys), key_flags(keys)
        (tensor([1, 2, 0]), tensor([0, 1, 1], dtype=torch.int32))
    """
    lower = flags.int() + torch.arange(0, 2 * codes.shape[-1], 2, dtype=torch.int32, device=codes.device)
    return sorted_rows((codes.long() << 32) | lower.long())


def key_codes(keys: Tensor) -> Tensor:
    """Read the score codes back from keys."""
    return keys >> 32


def key_positions(keys: Tensor) -> Tensor:
    """Read from keys where in the input each ranked document stands."""
    return (keys & 0xFFFFFFFF) >> 1


def key_flags(keys: Tensor) -> Tensor:
    """Read the flags of the ranked documents: int32, 0 or 1."""
    return keys.int() & 1


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
    codes = score_codes(scores, mask)
    return key_positions(ranked_keys(codes, torch.zeros_like(codes)))
