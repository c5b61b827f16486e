"""Checks of tensors at the boundary of the public functions."""

import math

import torch
from torch import Tensor

from torchrank.errors import DataError, ShapeError, TorchRankError
from torchrank.ops.masked import fill_padding


def check_lists(scores: Tensor, relevance: Tensor, mask: Tensor | None) -> None:
    """Refuse scores, relevance and mask that do not describe the same lists.

    Args:
        scores: ``(..., L)``.
        relevance: ``(..., L)``.
        mask: ``(..., L)`` boolean or None.

    Raises:
        ShapeError: the shapes differ, or the mask is not boolean.
    """
    if scores.ndim == 0 or scores.shape != relevance.shape:
        raise ShapeError(
            f"scores have shape {tuple(scores.shape)} and relevance {tuple(relevance.shape)}; both must be (..., L)"
        )
    if mask is None:
        return
    if mask.shape != scores.shape:
        raise ShapeError(f"mask has shape {tuple(mask.shape)}, scores have {tuple(scores.shape)}; they must be equal")
    if mask.dtype != torch.bool:
        raise ShapeError(f"mask has dtype {mask.dtype}; give a boolean mask, True where a document is real")


def values_can_be_read(*tensors: Tensor) -> bool:
    """Say whether looking at values costs no synchronisation: eager tensors on the CPU."""
    return not torch.compiler.is_compiling() and all(t.device.type == "cpu" for t in tensors)


def check_relevance(relevance: Tensor, mask: Tensor | None, *, most: float = torch.inf) -> None:
    """Refuse relevance that is negative, infinite, NaN or above ``most`` where a document is real.

    Looks at eager CPU tensors only.

    Raises:
        DataError: it is.
    """
    if not values_can_be_read(relevance) or relevance.numel() == 0:
        return
    filled = fill_padding(relevance, mask, 0)
    low, high = (x.item() for x in filled.aminmax())  # both are NaN when any value is: one pass where all is well
    if low >= 0 and high <= most and high < torch.inf:
        return
    bad = ~((filled >= 0) & (filled <= most) & (filled < torch.inf))
    limits = "finite and at least 0" if most == torch.inf else f"from 0 to {most:g}"
    raise DataError(f"relevance must be {limits}, found {filled[bad][0].item()}; shift or clip the labels")


def check_scores(scores: Tensor, mask: Tensor | None) -> None:
    """Refuse NaN scores where a document is real (eager CPU tensors only).

    Raises:
        DataError: a real document's score is NaN.
    """
    if not values_can_be_read(scores) or scores.numel() == 0:
        return
    filled = fill_padding(scores, mask, 0)
    if not math.isnan(filled.amin().item()):  # the least of values with a NaN among them is NaN
        return
    where = tuple(int(i) for i in filled.isnan().nonzero()[0])
    raise DataError(f"the score at index {where} is NaN; a ranking needs comparable scores")


def check_cutoff(k: int | None, name: str = "k") -> None:
    """Refuse a cut-off that is not a positive integer or None.

    Raises:
        TorchRankError: it is not.
    """
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 1):
        raise TorchRankError(f"{name}={k!r}; give an integer of at least 1, or None for the whole list")
