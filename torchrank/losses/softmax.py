"""Softmax cross-entropy over a list: ListNet's top-one loss.

Source: Cao et al., "Learning to Rank: From Pairwise Approach to Listwise Approach" (ICML 2007).
"""

import math

import torch
from torch import Tensor

from torchrank.errors import check_option
from torchrank.losses._lists import ListwiseLoss, prepare, prepare_weights
from torchrank.ops.masked import fill_padding
from torchrank.types import ScoreLipschitz

TARGETS = ("softmax", "relevance")


def softmax_loss(
    scores: Tensor,
    relevance: Tensor,
    mask: Tensor | None = None,
    *,
    target: str = "softmax",
    document_weights: Tensor | None = None,
) -> Tensor:
    """Cross-entropy of softmax(scores) against a distribution made of the relevance.

    Args:
        scores: ``(..., L)``; half precision is computed and returned in float32.
        relevance: ``(..., L)`` at least 0.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        target: ``"softmax"`` for softmax(relevance) (ListNet), ``"relevance"`` for relevance / Σ relevance.
        document_weights: ``(..., L)`` factors of the documents' terms, such as inverse propensities.

    Returns:
        ``(...)``, one value per list; 0 where nothing is relevant.

    Raises:
        ShapeError: tensors whose shapes differ.
        DataError: relevance or a weight below 0 or NaN (eager CPU tensors).
        TorchRankError: an unknown target.

    Example:
        >>> softmax_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 0.0]]), target="relevance")
        tensor([0.1269])
    """
    check_option("target", target, TARGETS)
    scores, relevance = prepare(scores, relevance, mask)
    if scores.shape[-1] == 0:
        return scores.sum(-1)
    # A list of padding alone keeps its zeros: a softmax over nothing is NaN.
    real = None if mask is None else mask | ~mask.any(-1, keepdim=True)
    if target == "softmax":
        wanted = fill_padding(relevance, real, -torch.inf).softmax(-1)
    else:
        total = relevance.sum(-1, keepdim=True)
        wanted = relevance / torch.where(total > 0, total, torch.ones_like(total))
    if document_weights is not None:
        wanted = wanted * prepare_weights(document_weights, scores, mask, "document_weights")
    log_share = fill_padding(fill_padding(scores, real, -torch.inf).log_softmax(-1), real, 0)
    loss = -(wanted * log_share).sum(-1)
    return torch.where(relevance.amax(-1) > 0, loss, torch.zeros_like(loss))


class SoftmaxLoss(ListwiseLoss):
    """The softmax cross-entropy of a batch of lists, as :func:`softmax_loss`.

    The mean is over the lists that hold at least one relevant document.

    Args:
        target: ``"softmax"`` or ``"relevance"``.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an option with a bad value.

    Example:
        >>> SoftmaxLoss(target="relevance")(torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 0.0]]))
        tensor(0.6931)
    """

    def __init__(self, *, target: str = "softmax", reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        check_option("target", target, TARGETS)
        self.target = target

    def each(self, scores: Tensor, relevance: Tensor, mask: Tensor | None, document_weights: Tensor | None) -> Tensor:
        """Return :func:`softmax_loss`."""
        return softmax_loss(scores, relevance, mask, target=self.target, document_weights=document_weights)

    def counted(self, relevance: Tensor, mask: Tensor | None) -> Tensor:
        """Return the lists with a relevant document: ``(...)`` boolean."""
        return (fill_padding(relevance, mask, 0) > 0).any(-1)

    def score_lipschitz(self, length: int) -> ScoreLipschitz:
        """Bound the gradient in the scores of a list of ``length`` documents, as `torchrank.theory` asks.

        The gradient is the difference of two distributions; approached where they share no document.
        """
        return ScoreLipschitz(2.0, math.sqrt(2)) if length > 1 else ScoreLipschitz(0.0, 0.0)
