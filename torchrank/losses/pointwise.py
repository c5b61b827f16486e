"""Pointwise losses: each document for itself, averaged over the list."""

import math

import torch
from torch import Tensor

from torchrank.losses._lists import ListwiseLoss, prepare, prepare_weights
from torchrank.ops.masked import masked_count, masked_mean
from torchrank.ops.precision import softplus
from torchrank.types import ScoreLipschitz


def pointwise_squared_loss(
    scores: Tensor, relevance: Tensor, mask: Tensor | None = None, *, document_weights: Tensor | None = None
) -> Tensor:
    """Mean over the documents of (s − R)².

    Args:
        scores: ``(..., L)``; half precision is computed and returned in float32.
        relevance: ``(..., L)`` at least 0.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        document_weights: ``(..., L)`` factors of the documents' terms; what the mean divides by stays their number.

    Returns:
        ``(...)``, one value per list; 0 where no document is real.

    Raises:
        ShapeError: tensors whose shapes differ.
        DataError: relevance or a weight below 0 or NaN (eager CPU tensors).

    Example:
        >>> pointwise_squared_loss(torch.tensor([[0.0, 1.0]]), torch.tensor([[2.0, 1.0]]))
        tensor([2.])
    """
    scores, relevance = prepare(scores, relevance, mask)
    return _mean((scores - relevance).square(), mask, document_weights)


def pointwise_logistic_loss(
    scores: Tensor, relevance: Tensor, mask: Tensor | None = None, *, document_weights: Tensor | None = None
) -> Tensor:
    """Mean over the documents of log(1 + exp(∓s)): minus where the relevance is above 0, plus where it is 0.

    Args:
        scores: ``(..., L)``; half precision is computed and returned in float32.
        relevance: ``(..., L)`` at least 0.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        document_weights: ``(..., L)`` factors of the documents' terms; what the mean divides by stays their number.

    Returns:
        ``(...)``, one value per list; 0 where no document is real.

    Raises:
        ShapeError: tensors whose shapes differ.
        DataError: relevance or a weight below 0 or NaN (eager CPU tensors).

    Example:
        >>> pointwise_logistic_loss(torch.tensor([[0.0, -100.0]]), torch.tensor([[2.0, 0.0]]))
        tensor([0.3466])
    """
    scores, relevance = prepare(scores, relevance, mask)
    return _mean(softplus(torch.where(relevance > 0, -scores, scores)), mask, document_weights)


def _mean(values: Tensor, mask: Tensor | None, document_weights: Tensor | None) -> Tensor:
    if document_weights is not None:
        values = values * prepare_weights(document_weights, values, mask, "document_weights")
    return masked_mean(values, mask)


class PointwiseSquaredLoss(ListwiseLoss):
    """The pointwise squared loss of a batch of lists, as :func:`pointwise_squared_loss`.

    The mean is over the lists that hold at least one real document.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an unknown reduction.

    Example:
        >>> PointwiseSquaredLoss()(torch.tensor([[0.0]]), torch.tensor([[2.0]]))
        tensor(4.)
    """

    def each(self, scores: Tensor, relevance: Tensor, mask: Tensor | None, document_weights: Tensor | None) -> Tensor:
        """Return :func:`pointwise_squared_loss`."""
        return pointwise_squared_loss(scores, relevance, mask, document_weights=document_weights)

    def counted(self, relevance: Tensor, mask: Tensor | None) -> Tensor:
        """Return the lists with a real document: ``(...)`` boolean."""
        return masked_count(relevance, mask) > 0

    def score_lipschitz(self, length: int) -> ScoreLipschitz:
        """Bound the gradient in the scores of a list of ``length`` documents, as `torchrank.theory` asks.

        The gradient grows with the scores: no finite constant.
        """
        return ScoreLipschitz(math.inf, math.inf) if length > 0 else ScoreLipschitz(0.0, 0.0)


class PointwiseLogisticLoss(ListwiseLoss):
    """The pointwise logistic loss of a batch of lists, as :func:`pointwise_logistic_loss`.

    The mean is over the lists that hold at least one real document.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an unknown reduction.

    Example:
        >>> PointwiseLogisticLoss()(torch.tensor([[0.0]]), torch.tensor([[1.0]]))
        tensor(0.6931)
    """

    def each(self, scores: Tensor, relevance: Tensor, mask: Tensor | None, document_weights: Tensor | None) -> Tensor:
        """Return :func:`pointwise_logistic_loss`."""
        return pointwise_logistic_loss(scores, relevance, mask, document_weights=document_weights)

    def counted(self, relevance: Tensor, mask: Tensor | None) -> Tensor:
        """Return the lists with a real document: ``(...)`` boolean."""
        return masked_count(relevance, mask) > 0

    def score_lipschitz(self, length: int) -> ScoreLipschitz:
        """Bound the gradient in the scores of a list of ``length`` documents, as `torchrank.theory` asks.

        A mean over documents of derivatives between −1 and 1; approached where every document is far on the wrong side.
        """
        return ScoreLipschitz(1.0, 1 / math.sqrt(length)) if length > 0 else ScoreLipschitz(0.0, 0.0)
