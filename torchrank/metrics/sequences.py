"""Measures of labelled sequences."""

import torch
from torch import Tensor

from torchrank.errors import ShapeError
from torchrank.ops.checks import check_tensors
from torchrank.ops.masked import masked_count, masked_sum


def position_accuracy(labels: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """Share of positions labelled right, in each sequence.

    Args:
        labels: ``(..., T)`` predicted labels.
        targets: ``(..., T)`` right labels.
        mask: ``(..., T)`` boolean, True where a position is real; None when all are.

    Returns:
        ``(...)`` float32; 0 for a sequence with no position. 1 − it is the Hamming cost over the length.

    Raises:
        ShapeError: shapes that differ, or a mask that is not boolean.

    Example:
        >>> position_accuracy(torch.tensor([[0, 1, 1, 1]]), torch.tensor([[0, 1, 1, 0]]))
        tensor([0.7500])
    """
    right = _right(labels, targets, mask)
    return masked_sum(right.float(), mask) / masked_count(right, mask).clamp(min=1)


def sequence_accuracy(labels: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """Whether a sequence is labelled right from end to end.

    Args:
        labels: ``(..., T)`` predicted labels.
        targets: ``(..., T)`` right labels.
        mask: ``(..., T)`` boolean, True where a position is real; None when all are.

    Returns:
        ``(...)`` float32, 1 or 0.

    Raises:
        ShapeError: shapes that differ, or a mask that is not boolean.

    Example:
        >>> sequence_accuracy(torch.tensor([[0, 1], [0, 1]]), torch.tensor([[0, 1], [0, 0]]))
        tensor([1., 0.])
    """
    right = _right(labels, targets, mask)
    return (right if mask is None else right | ~mask).all(-1).float()


def _right(labels: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
    check_tensors({"labels": labels, "targets": targets}, mask=mask)
    if labels.ndim == 0 or labels.shape != targets.shape:
        raise ShapeError(
            f"labels have shape {tuple(labels.shape)} and targets {tuple(targets.shape)}; both must be (..., T)"
        )
    if mask is not None and (mask.shape != labels.shape or mask.dtype != torch.bool):
        raise ShapeError(
            f"mask has shape {tuple(mask.shape)} and dtype {mask.dtype}; give a boolean {tuple(labels.shape)}"
        )
    return labels == targets
