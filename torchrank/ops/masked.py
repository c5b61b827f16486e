"""Reductions over the real documents of padded lists."""

import torch
from torch import Tensor


def fill_padding(values: Tensor, mask: Tensor | None, fill: float) -> Tensor:
    """Return ``values`` with ``fill`` where the mask is False; no gradient reaches what was there, NaN or not.

    Args:
        values: ``(..., L)``.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        fill: the value written over padding.

    Returns:
        ``(..., L)``.

    Example:
        >>> fill_padding(torch.tensor([1.0, float("nan")]), torch.tensor([True, False]), 0.0)
        tensor([1., 0.])
    """
    return values if mask is None else torch.where(mask, values, torch.full_like(values, fill))


def masked_sum(values: Tensor, mask: Tensor | None) -> Tensor:
    """Sum each list's real entries: ``(..., L)`` to ``(...)``."""
    return fill_padding(values, mask, 0).sum(-1)


def masked_count(like: Tensor, mask: Tensor | None) -> Tensor:
    """Count each list's real documents: ``(..., L)`` to ``(...)`` int64."""
    if mask is None:
        return torch.full(like.shape[:-1], like.shape[-1], dtype=torch.int64, device=like.device)
    return mask.sum(-1)


def masked_mean(values: Tensor, mask: Tensor | None) -> Tensor:
    """Average each list's real entries, 0 for a list with none: ``(..., L)`` to ``(...)``."""
    return masked_sum(values, mask) / masked_count(values, mask).clamp(min=1)
