"""ApproxNDCG: NDCG with each rank replaced by a smooth one.

Source: Qin, Liu & Li, "A General Approximation Framework for Direct Optimization of Information Retrieval Measures"
(Information Retrieval 13, 2010); its α is one over the temperature here.
"""

import math

import torch
from torch import Tensor

from torchrank.errors import check_number
from torchrank.losses._lists import ListwiseLoss, prepare, prepare_weights
from torchrank.ops.gains import discounts, scaled_gains
from torchrank.ops.levels import has_ordered_pair
from torchrank.ops.pairs import row_blocks, sum_pairs, with_gradient
from torchrank.types import ScoreLipschitz

_STEEPEST = 0.373365  # S / ((2 + S) ln(2 + S)) at its largest, where S = 2 ln(2 + S); rounded up


def approx_ndcg_loss(
    scores: Tensor,
    relevance: Tensor,
    mask: Tensor | None = None,
    *,
    temperature: float = 0.1,
    document_weights: Tensor | None = None,
) -> Tensor:
    """One minus NDCG, where document i has rank 1 + Σ_{j≠i} sigmoid((s_j − s_i) / temperature).

    In O(L²) time and O(L) memory, block by block; it can be differentiated once.

    Args:
        scores: ``(..., L)``; half precision is computed and returned in float32.
        relevance: ``(..., L)`` at least 0.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        temperature: width of the sigmoid, in units of the scores; the smaller, the closer to NDCG.
        document_weights: ``(..., L)`` factors of the gains, in NDCG and in its ideal, such as inverse propensities.

    Returns:
        ``(...)``, one value from 0 to 1 per list; 0 where there is no ordered pair.

    Raises:
        ShapeError: tensors whose shapes differ.
        DataError: relevance or a weight below 0 or NaN (eager CPU tensors).
        TorchRankError: a temperature that is not above 0.

    Example:
        >>> approx_ndcg_loss(torch.tensor([[0.0, 9.0]]), torch.tensor([[1.0, 0.0]]))  # 1 − 1 / log2 3
        tensor([0.3691])
    """
    _check_temperature(temperature)
    scores, relevance = prepare(scores, relevance, mask)
    if scores.shape[-1] == 0:
        return scores.sum(-1)
    learning = torch.is_grad_enabled() and scores.requires_grad
    gains = scaled_gains(relevance)
    if document_weights is not None:
        gains = gains * prepare_weights(document_weights, scores, mask, "document_weights")
    with torch.no_grad():
        ideal = (gains.sort(-1, descending=True).values * discounts(gains.shape[-1], like=gains)).sum(-1, keepdim=True)
        share = gains / torch.where(ideal > 0, ideal, torch.ones_like(ideal))
        learns = has_ordered_pair(relevance, mask).unsqueeze(-1) & (ideal > 0)
        share = share * learns
        real = None if mask is None else mask.to(scores.dtype)
        log_rank = torch.empty_like(scores)  # log(1 + rank)
        for rows in row_blocks(scores):
            above = ((scores[..., None, :] - scores[..., rows, None]) / temperature).sigmoid_()
            if real is not None:
                above *= real[..., None, :]
            log_rank[..., rows] = torch.log(above.sum(-1) + 1.5)  # a document is half above itself
        value = (learns.squeeze(-1).to(scores.dtype) - (share * (math.log(2) / log_rank)).sum(-1)).clamp(min=0)
        if not learning:
            return value
        steepness = share * (math.log(2) / temperature) / (log_rank.exp() * log_rank.square())

        def terms(difference: Tensor, rows: slice, columns: slice) -> tuple[None, Tensor]:
            above = (difference / temperature).sigmoid_()
            slopes = above * (1 - above) * steepness[..., rows, None]
            return None, slopes if real is None else slopes * real[..., None, columns]

        _, gradient = sum_pairs(scores, terms)
    return with_gradient(value, scores, gradient)


def _check_temperature(temperature: float) -> None:
    check_number("temperature", temperature, above=0)


class ApproxNDCGLoss(ListwiseLoss):
    """The ApproxNDCG loss of a batch of lists, as :func:`approx_ndcg_loss`.

    The mean is over the lists that hold at least one ordered pair.

    Args:
        temperature: width of the sigmoid, in units of the scores.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an option with a bad value.

    Example:
        >>> ApproxNDCGLoss()(torch.tensor([[0.0, 9.0]]), torch.tensor([[1.0, 0.0]]))
        tensor(0.3691)
    """

    def __init__(self, *, temperature: float = 0.1, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        _check_temperature(temperature)
        self.temperature = temperature

    def each(self, scores: Tensor, relevance: Tensor, mask: Tensor | None, document_weights: Tensor | None) -> Tensor:
        """Return :func:`approx_ndcg_loss`."""
        return approx_ndcg_loss(
            scores, relevance, mask, temperature=self.temperature, document_weights=document_weights
        )

    def score_lipschitz(self, length: int) -> ScoreLipschitz:
        """Bound the gradient in the scores of a list of ``length`` documents, as `torchrank.theory` asks.

        Free of the length, not reached: a document's share of NDCG times S / ((2 + S) ln(2 + S)), S the sum of its
        sigmoids, largest at S = 2 ln(2 + S); the shares sum to at most 1. Not convex.
        """
        if length < 2:
            return ScoreLipschitz(0.0, 0.0)
        steepest = _STEEPEST / self.temperature
        return ScoreLipschitz(2 * steepest, math.sqrt(2) * steepest)
