"""What the losses of one wanted item against sampled others share at their edges."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from torchrank.errors import ShapeError
from torchrank.losses._lists import ReducedLoss, reduce_lists
from torchrank.ops.checks import check_tensors
from torchrank.ops.masked import fill_padding
from torchrank.ops.precision import at_least_float32


def prepare_samples(
    positive: Tensor, negative: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """Check one wanted score and S sampled ones a row; return them in working precision.

    Args:
        positive: ``(...)``.
        negative: ``(..., S)``.
        mask: ``(..., S)`` boolean, True where a sample is real; None where all are.

    Returns:
        ``(...)`` and ``(..., S)`` with zeros as padding, a mask that is True everywhere in rows without a sample, and
        ``(...)`` boolean, the rows with one.

    Raises:
        ShapeError: shapes that do not fit, or a mask that is not boolean.
    """
    check_tensors({"positive": positive, "negative": negative}, mask=mask)
    if negative.ndim == 0 or positive.shape != negative.shape[:-1]:
        raise ShapeError(
            f"positive has shape {tuple(positive.shape)}, negative {tuple(negative.shape)}; give (...) and (..., S)"
        )
    if mask is not None and (mask.shape != negative.shape or mask.dtype != torch.bool):
        raise ShapeError(
            f"mask has shape {tuple(mask.shape)} and dtype {mask.dtype}; give booleans of shape {tuple(negative.shape)}"
        )
    positive, negative = at_least_float32(positive), at_least_float32(fill_padding(negative, mask, 0))
    wide = torch.promote_types(positive.dtype, negative.dtype)
    if mask is None:
        counted = torch.full(positive.shape, negative.shape[-1] > 0, device=positive.device)
        return positive.to(wide), negative.to(wide), None, counted
    counted = mask.any(-1)
    return positive.to(wide), negative.to(wide), mask | ~counted[..., None], counted


def sample_log_weights(negative: Tensor, mask: Tensor | None) -> Tensor:
    """Return the log-softmax of the samples' scores, −∞ at padding: ``(..., S)``."""
    return fill_padding(negative, mask, -torch.inf).log_softmax(-1)


def reduce_rows(each: Tensor, negative: Tensor, mask: Tensor | None, weights: Tensor | None, reduction: str) -> Tensor:
    """Reduce one value a row; a mean is over the rows with a sample."""
    counted = torch.full(each.shape, negative.shape[-1] > 0, device=each.device) if mask is None else mask.any(-1)
    return reduce_lists(each, counted, weights, reduction)


class SampledLoss(ReducedLoss, ABC):
    """A loss of wanted items against sampled ones, reduced; the subclass says which in :meth:`each`.

    Args:
        reduction: ``"mean"`` (over rows with a sample), ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an unknown reduction.
    """

    @abstractmethod
    def each(self, positive: Tensor, negative: Tensor, mask: Tensor | None) -> Tensor:
        """Return the loss of each row: ``(...)``."""

    def forward(
        self, positive: Tensor, negative: Tensor, mask: Tensor | None = None, weights: Tensor | None = None
    ) -> Tensor:
        """Reduce the loss of each row.

        Args:
            positive: ``(...)`` score of the wanted item.
            negative: ``(..., S)`` scores of the sampled items.
            mask: ``(..., S)`` boolean, True where a sample counts; None where all do.
            weights: ``(...)`` at least 0, or None for ones.

        Returns:
            a scalar, or ``(...)`` for ``reduction="none"``.
        """
        return reduce_rows(self.each(positive, negative, mask), negative, mask, weights, self.reduction)
