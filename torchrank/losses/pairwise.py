"""Pairwise losses: the mean over a list's ordered pairs of a hinge or a logistic loss of the score difference.

Source: Herbrich, Graepel & Obermayer, "Large Margin Rank Boundaries for Ordinal Regression" (hinge; RankSVM); Burges et
al., "Learning to Rank using Gradient Descent" (logistic; RankNet).
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from torchrank.errors import check_number
from torchrank.losses._lists import ListwiseLoss, prepare, prepare_weights
from torchrank.ops.dominance import dominance_sums
from torchrank.ops.levels import Levels, level_bounds, sort_levels
from torchrank.ops.masked import masked_count
from torchrank.ops.pairs import sum_pairs, with_gradient
from torchrank.ops.precision import softplus
from torchrank.types import ScoreLipschitz


def pairwise_hinge_loss(
    scores: Tensor,
    relevance: Tensor,
    mask: Tensor | None = None,
    *,
    margin: float = 1.0,
    document_weights: Tensor | None = None,
) -> Tensor:
    """Pairwise hinge loss: the mean over ordered pairs, R_i > R_j, of max(0, Δ + s_j − s_i).

    In O(L log L) time and O(L) memory: which pairs are active is counted per document, and given the counts the loss is
    linear in the scores.

    Args:
        scores: ``(..., L)``; half precision is computed and returned in float32.
        relevance: ``(..., L)`` at least 0.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        margin: Δ, in units of the scores.
        document_weights: ``(..., L)`` factors of the pairs in which the document is the more relevant, such as inverse
            propensities; what the mean divides by stays the number of pairs.

    Returns:
        ``(...)``, one value per list; 0 where there is no ordered pair.

    Raises:
        ShapeError: tensors whose shapes differ.
        DataError: relevance or a weight below 0 or NaN (eager CPU tensors).
        TorchRankError: a margin that is negative or not finite.

    Example:
        >>> pairwise_hinge_loss(torch.tensor([[0.0, 1.0, 2.0]]), torch.tensor([[1.0, 0.0, 0.0]]))
        tensor([2.5000])
    """
    check_number("margin", margin, least=0)
    scores, relevance = prepare(scores, relevance, mask)
    if document_weights is not None:
        document_weights = prepare_weights(document_weights, scores, mask, "document_weights")
    if scores.shape[-1] == 0:
        return scores.sum(-1)
    levels = sort_levels(relevance, mask)
    # Sums of many large terms that nearly cancel: float64 keeps what float32 would lose.
    exact = scores.double().gather(-1, levels.order)
    if document_weights is not None:
        document_weights = document_weights.double().gather(-1, levels.order)
    slopes, active, pairs = _active_pairs(exact.detach(), levels, mask, margin, document_weights)
    return (((slopes * exact).sum(-1) + margin * active) / pairs).to(scores.dtype)


@torch.no_grad()
def _active_pairs(
    scores: Tensor, levels: Levels, mask: Tensor | None, margin: float, weights: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Count the pairs with s_j > s_i − Δ at the places of sorted lists.

    Returns:
        ``(..., L)`` each document's (weighted) active pairs as the less minus as the more relevant one, ``(...)`` all
        active pairs, ``(...)`` all ordered pairs or 1.
    """
    # A level's documents see those below its opening as less relevant, those from its closing on as more relevant.
    opening, closing = level_bounds(levels, mask)
    if mask is not None:
        real = levels.relevance > -torch.inf
        scores = scores.masked_fill(~real, torch.inf)  # beyond every real query
    rising, order = scores.sort(-1)
    inert = torch.searchsorted(rising, scores - margin, right=True)
    beaten = torch.searchsorted(rising, scores + margin)
    padding = scores.shape[-1] - masked_count(scores, mask).unsqueeze(-1)
    ranks = (order - padding) % scores.shape[-1]  # padding, first so far, goes above all
    if weights is None:
        inert_below, beaten_level = dominance_sums(ranks, [(inert, opening), (beaten, closing)])
        below, above = opening - inert_below, (beaten - beaten_level).to(scores.dtype)
        weighted = below.to(scores.dtype)
    else:
        (inert_below,) = dominance_sums(ranks, [(inert, opening)])
        sorted_weights = weights.gather(-1, order)
        (beaten_level,) = dominance_sums(ranks, [(beaten, closing)], sorted_weights)
        before = F.pad(sorted_weights.cumsum(-1), (1, 0)).gather(-1, beaten)
        above = before - beaten_level
        weighted = weights * (opening - inert_below)
    slopes = above - weighted
    if mask is not None:
        slopes = slopes * real
    return slopes, weighted.sum(-1), opening.sum(-1).clamp(min=1)


def pairwise_logistic_loss(
    scores: Tensor, relevance: Tensor, mask: Tensor | None = None, *, document_weights: Tensor | None = None
) -> Tensor:
    """Pairwise logistic loss (RankNet): the mean over ordered pairs, R_i > R_j, of log(1 + exp(s_j − s_i)).

    In O(L²) time and O(L) memory, block by block; it can be differentiated once.

    Args:
        scores: ``(..., L)``; half precision is computed and returned in float32.
        relevance: ``(..., L)`` at least 0.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        document_weights: ``(..., L)`` factors of the pairs in which the document is the more relevant, such as inverse
            propensities; what the mean divides by stays the number of pairs.

    Returns:
        ``(...)``, one value per list; 0 where there is no ordered pair.

    Raises:
        ShapeError: tensors whose shapes differ.
        DataError: relevance or a weight below 0 or NaN (eager CPU tensors).

    Example:
        >>> pairwise_logistic_loss(torch.tensor([[0.0, 0.0, 9.0]]), torch.tensor([[2.0, 1.0, 2.0]]))
        tensor([0.3466])
    """
    scores, relevance = prepare(scores, relevance, mask)
    levels = sort_levels(relevance, mask)
    scores = scores.gather(-1, levels.order)
    factors = None
    if document_weights is not None:
        factors = prepare_weights(document_weights, scores, mask, "document_weights").gather(-1, levels.order)
    # No comparison with NaN holds: padding is in no pair.
    labels = levels.relevance.masked_fill(levels.relevance == -torch.inf, torch.nan)

    def terms(difference: Tensor, rows: slice, columns: slice) -> tuple[Tensor, Tensor]:
        pairs = (labels[..., None, columns] < labels[..., rows, None]).to(difference.dtype)
        if factors is not None:
            pairs *= factors[..., rows, None]
        return softplus(difference).mul_(pairs), difference.sigmoid().mul_(pairs)

    value, gradient = sum_pairs(scores, terms, triangular=True)
    pairs = level_bounds(levels, mask)[0].sum(-1).clamp(min=1).to(value.dtype)
    return with_gradient(value / pairs, scores, gradient / pairs.unsqueeze(-1))


class PairwiseHingeLoss(ListwiseLoss):
    """The pairwise hinge loss of a batch of lists, as :func:`pairwise_hinge_loss`.

    The mean is over the lists that hold at least one ordered pair.

    Args:
        margin: Δ, in units of the scores.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an option with a bad value.

    Example:
        >>> PairwiseHingeLoss()(torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0]]))
        tensor(2.)
    """

    def __init__(self, *, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        check_number("margin", margin, least=0)
        self.margin = margin

    def each(self, scores: Tensor, relevance: Tensor, mask: Tensor | None, document_weights: Tensor | None) -> Tensor:
        """Return :func:`pairwise_hinge_loss`."""
        return pairwise_hinge_loss(scores, relevance, mask, margin=self.margin, document_weights=document_weights)

    def score_lipschitz(self, length: int) -> ScoreLipschitz:
        """Bound the gradient in the scores of a list of ``length`` documents, as `torchrank.theory` asks.

        A mean over pairs of gradients between −1 and 1; reached with one relevant document below all others.
        """
        return ScoreLipschitz(2.0, math.sqrt(length / (length - 1))) if length > 1 else ScoreLipschitz(0.0, 0.0)


class PairwiseLogisticLoss(ListwiseLoss):
    """The pairwise logistic loss of a batch of lists, as :func:`pairwise_logistic_loss`.

    The mean is over the lists that hold at least one ordered pair.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an option with a bad value.

    Example:
        >>> PairwiseLogisticLoss()(torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 0.0]]))
        tensor(0.6931)
    """

    def each(self, scores: Tensor, relevance: Tensor, mask: Tensor | None, document_weights: Tensor | None) -> Tensor:
        """Return :func:`pairwise_logistic_loss`."""
        return pairwise_logistic_loss(scores, relevance, mask, document_weights=document_weights)

    def score_lipschitz(self, length: int) -> ScoreLipschitz:
        """Bound the gradient in the scores of a list of ``length`` documents, as `torchrank.theory` asks.

        A mean over pairs of gradients between −1 and 1; approached with one relevant document far below all others.
        """
        return ScoreLipschitz(2.0, math.sqrt(length / (length - 1))) if length > 1 else ScoreLipschitz(0.0, 0.0)
