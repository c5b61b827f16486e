"""Checks of tensors at the boundary of the public functions."""

import torch
from torch import Tensor

from torchrank.errors import DataError, ShapeError


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


def check_relevance(relevance: Tensor, mask: Tensor | None) -> None:
    """Refuse negative or NaN relevance where a document is real (eager CPU tensors only).

    Raises:
        DataError: a real document's relevance is below 0 or NaN.
    """
    if not values_can_be_read(relevance):
        return
    bad = ~(relevance >= 0)
    if mask is not None:
        bad = bad & mask
    if bool(bad.any()):
        raise DataError(f"relevance must be at least 0, found {relevance[bad][0].item()}; shift or clip the labels")


def check_scores(scores: Tensor, mask: Tensor | None) -> None:
    """Refuse NaN scores where a document is real (eager CPU tensors only).

    Raises:
        DataError: a real document's score is NaN.
    """
    if not values_can_be_read(scores):
        return
    bad = scores.isnan()
    if mask is not None:
        bad = bad & mask
    if bool(bad.any()):
        where = tuple(int(i) for i in bad.nonzero()[0])
        raise DataError(f"the score at index {where} is NaN; a ranking needs comparable scores")
