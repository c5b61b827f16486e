"""SLAM: the listwise large-margin losses that bound 1 − NDCG and 1 − AP from above.

Source: Chaudhuri & Tewari, "Perceptron-like Algorithms and Generalization Bounds for Learning to Rank" (arXiv
1405.0591): the loss is its eq. 5, the weights its eq. 6 and 9.
"""

import math
import warnings

import torch
from torch import Tensor

from torchrank.errors import TorchRankError, check_number, check_option
from torchrank.losses._lists import ReducedLoss, prepare, prepare_weights, reduce_lists
from torchrank.ops.checks import check_cutoff, check_lists, check_relevance, values_can_be_read
from torchrank.ops.gains import cut_discounts, scaled_gains
from torchrank.ops.levels import Levels, best_below, has_ordered_pair, level_means, sort_levels
from torchrank.ops.masked import fill_padding, masked_count
from torchrank.ops.precision import at_least_float32
from torchrank.types import ScoreLipschitz

MEASURES = ("ndcg", "map")
TIES = ("mean", "first")


def slam_weights(
    relevance: Tensor, mask: Tensor | None = None, *, measure: str = "ndcg", ties: str = "mean", k: int | None = None
) -> Tensor:
    """Weights v of the SLAM loss with which it bounds a ranking measure.

    With i the position in the order of falling relevance, r the number of relevant documents among m: NDCG's are
    ``G(R_i) D(i) / Z`` and sum to 1 where anything is relevant; MAP's are ``(m − r) / (r (m − r + i))`` for the
    relevant and sum to at most 1.

    Args:
        relevance: ``(..., L)`` at least 0.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        measure: ``"ndcg"``, or ``"map"``, which takes relevance > 0 as relevant.
        ties: ``"mean"`` gives each document of a relevance level the level's mean weight; ``"first"`` lets input
            order break ties, as published.
        k: for ``"ndcg"``, cut the discounts and Z at this rank; None for the whole list.

    Returns:
        ``(..., L)``, 0 for padding and for lists with nothing relevant.

    Raises:
        ShapeError: the mask does not have the shape of the relevance.
        DataError: relevance below 0 or NaN (eager CPU tensors).
        TorchRankError: an unknown option, or ``k`` with ``measure="map"``.

    Source:
        arXiv 1405.0591, eq. 6 (MAP) and eq. 9 (NDCG).

    Example:
        >>> slam_weights(torch.tensor([[2.0, 1.0, 0.0]]))
        tensor([[0.8262, 0.1738, 0.0000]])
        >>> slam_weights(torch.tensor([[1.0, 0.0, 0.0, 1.0]]), measure="map", ties="first")
        tensor([[0.3333, 0.0000, 0.0000, 0.2500]])
    """
    _check_options(measure, ties, k)
    check_lists(relevance, relevance, mask)
    check_relevance(relevance, mask)
    relevance = at_least_float32(fill_padding(relevance, mask, 0))
    if measure == "map":
        return _map_weights(relevance > 0, masked_count(relevance, mask), relevance, ties)
    levels = sort_levels(relevance, mask, stable=ties == "first")
    weights = _ndcg_weights(levels, ties, k)
    return torch.empty_like(weights).scatter_(-1, levels.order, weights)


def _check_options(measure: str, ties: str, k: int | None) -> None:
    check_option("measure", measure, MEASURES)
    check_option("ties", ties, TIES)
    check_cutoff(k)
    if k is not None and measure == "map":
        raise TorchRankError(f"k={k} cuts NDCG's weights; measure='map' has none")


@torch.no_grad()
def _ndcg_weights(levels: Levels, ties: str, k: int | None) -> Tensor:
    """NDCG's weights at the places of sorted lists."""
    length = levels.relevance.shape[-1]
    gains = scaled_gains(levels.relevance.clamp(min=0))
    discount = cut_discounts(length, k, like=gains).flip(-1)  # sorted lists begin with the least relevant
    best = (gains * discount).sum(-1, keepdim=True)
    if ties == "mean":
        discount = level_means(discount, levels.opens)
    return gains * discount / torch.where(best > 0, best, torch.ones_like(best))


@torch.no_grad()
def _map_weights(relevant: Tensor, real: Tensor, like: Tensor, ties: str) -> Tensor:
    """MAP's weights at the documents' own places."""
    hits = relevant.sum(-1, keepdim=True).to(like.dtype)
    misses = real.unsqueeze(-1).to(like.dtype) - hits
    scale = misses / hits.clamp(min=1)
    if ties == "first":
        return relevant * scale / (misses + relevant.cumsum(-1)).clamp(min=1)
    position = torch.arange(1, relevant.shape[-1] + 1, device=like.device, dtype=like.dtype)
    total = torch.where(position <= hits, 1 / (misses + position), torch.zeros_like(like)).sum(-1, keepdim=True)
    return relevant * (scale * total / hits.clamp(min=1))


def slam_loss(
    scores: Tensor,
    relevance: Tensor,
    mask: Tensor | None = None,
    *,
    measure: str = "ndcg",
    weights: Tensor | None = None,
    margin: float = 1.0,
    graded_margin: bool = False,
    ties: str = "mean",
    k: int | None = None,
    document_weights: Tensor | None = None,
) -> Tensor:
    """SLAM loss: each document is to outscore the best of the less relevant by a margin.

    ``φ(s, R) = Σ_i v_i max(0, Δ + max{s_j : R_j < R_i} − s_i)``, in O(L log L) time and O(L) memory. With the default
    weights and Δ ≥ 1 it is at least 1 − NDCG (or 1 − AP), and its gradient's 1-norm is at most 2.

    Args:
        scores: ``(..., L)``; half precision is computed and returned in float32.
        relevance: ``(..., L)`` at least 0.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        measure: ``"ndcg"``, or ``"map"``, which takes relevance > 0 as relevant for weights and hinges alike.
        weights: ``(..., L)`` your own v in place of the measure's, used as given.
        margin: Δ, in units of the scores.
        graded_margin: make the margin ``Δ (R_i − R_j)``, inside the maximum.
        ties: ``"mean"`` or ``"first"``, as in :func:`slam_weights`.
        k: cut-off of the NDCG that is bounded; None for the whole list.
        document_weights: ``(..., L)`` factors of v, such as inverse propensities.

    Returns:
        ``(...)``, one value per list; 0 where no document is more relevant than another.

    Raises:
        ShapeError: tensors whose shapes differ.
        DataError: relevance or a weight below 0 or NaN (eager CPU tensors).
        TorchRankError: an option with a bad value.

    Warns:
        UserWarning: ``weights`` give a more relevant document a smaller weight (eager CPU tensors).

    Source:
        arXiv 1405.0591, eq. 5.

    Example:
        >>> slam_loss(torch.tensor([[0.0, 1.0, 2.0]]), torch.tensor([[2.0, 1.0, 0.0]]))
        tensor([2.8262])
    """
    _check_options(measure, ties, k)
    check_number("margin", margin, least=0)
    if weights is not None and k is not None:
        raise TorchRankError(f"k={k} cuts NDCG's weights, but weights of your own are given; cut those instead")
    scores, relevance = prepare(scores, relevance, mask)
    if scores.shape[-1] == 0:
        return scores.sum(-1)
    if measure == "map":
        levels = None
        relevance = (relevance > 0).to(scores.dtype)
        hinges = _binary_hinges(scores, relevance > 0, mask, margin)
    else:
        levels = sort_levels(relevance, mask, stable=ties == "first")
        hinges = _graded_hinges(scores.gather(-1, levels.order), levels, mask, margin, graded_margin)

    def at_places(given: Tensor) -> Tensor:
        return given if levels is None else given.gather(-1, levels.order)

    if weights is not None:
        weights = prepare_weights(weights, scores, mask, "weights")
        _warn_of_order(weights, relevance, mask)
        weights = at_places(weights)
    elif levels is None:
        weights = _map_weights(relevance > 0, masked_count(scores, mask), scores, ties)
    else:
        weights = _ndcg_weights(levels, ties, k)
    if document_weights is not None:
        weights = weights * at_places(prepare_weights(document_weights, scores, mask, "document_weights"))
    return (weights * hinges).sum(-1)


def _binary_hinges(scores: Tensor, relevant: Tensor, mask: Tensor | None, margin: float) -> Tensor:
    """Hinge of each document where there are two levels: one maximum serves all."""
    others = relevant if mask is None else relevant | ~mask
    below = scores.masked_fill(others, -torch.inf).amax(-1, keepdim=True)
    return (margin + below - scores).relu() * relevant


def _graded_hinges(scores: Tensor, levels: Levels, mask: Tensor | None, margin: float, graded: bool) -> Tensor:
    """Hinge of each place of sorted lists."""
    padding = None if mask is None else levels.relevance == -torch.inf
    offset = margin * (levels.relevance if padding is None else levels.relevance.masked_fill(padding, 0))
    rivals = scores - offset if graded else scores
    below = best_below(rivals if padding is None else rivals.masked_fill(padding, -torch.inf), levels.opens)
    return ((offset if graded else margin) + below - scores).relu()


def _warn_of_order(weights: Tensor, relevance: Tensor, mask: Tensor | None) -> None:
    """Warn of weights that fall while relevance rises: the loss they make is not listwise."""
    if not values_can_be_read(weights):
        return
    levels = sort_levels(relevance, mask)
    sorted_weights = weights.detach().gather(-1, levels.order)
    falls = best_below(sorted_weights, levels.opens) > sorted_weights
    if mask is not None:
        falls &= mask.gather(-1, levels.order)
    if bool(falls.any()):
        warnings.warn(
            "these SLAM weights give a less relevant document more weight than a more relevant one; a listwise loss"
            " has weights that do not fall as relevance rises",
            UserWarning,
            stacklevel=3,
        )


class SLAMLoss(ReducedLoss):
    """The SLAM loss of a batch of lists, as :func:`slam_loss`.

    The mean is over the lists that hold at least one ordered pair.

    Args:
        measure: ``"ndcg"`` or ``"map"``.
        margin: Δ, in units of the scores.
        graded_margin: make the margin ``Δ (R_i − R_j)``.
        ties: ``"mean"`` or ``"first"``.
        k: cut-off of the NDCG that is bounded; None for the whole list.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an option with a bad value.

    Example:
        >>> SLAMLoss(measure="map")(torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0]]))
        tensor(1.)
    """

    def __init__(
        self,
        *,
        measure: str = "ndcg",
        margin: float = 1.0,
        graded_margin: bool = False,
        ties: str = "mean",
        k: int | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        _check_options(measure, ties, k)
        check_number("margin", margin, least=0)
        self.measure = measure
        self.margin = margin
        self.graded_margin = graded_margin
        self.ties = ties
        self.k = k

    def forward(
        self,
        scores: Tensor,
        relevance: Tensor,
        mask: Tensor | None = None,
        list_weights: Tensor | None = None,
        *,
        weights: Tensor | None = None,
        document_weights: Tensor | None = None,
    ) -> Tensor:
        """Reduce the loss of each list.

        Args:
            scores: ``(..., L)``.
            relevance: ``(..., L)``.
            mask: ``(..., L)`` boolean or None.
            list_weights: ``(...)`` weight of each list, or None for ones.
            weights: ``(..., L)`` your own v.
            document_weights: ``(..., L)`` factors of v.

        Returns:
            a scalar, or ``(...)`` for ``reduction="none"``.
        """
        each = slam_loss(
            scores,
            relevance,
            mask,
            measure=self.measure,
            weights=weights,
            margin=self.margin,
            graded_margin=self.graded_margin,
            ties=self.ties,
            k=self.k,
            document_weights=document_weights,
        )
        labels = relevance > 0 if self.measure == "map" else relevance
        return reduce_lists(each, has_ordered_pair(at_least_float32(labels), mask), list_weights, self.reduction)

    def score_lipschitz(self, length: int) -> ScoreLipschitz:
        """Bound the gradient in the scores of a list of ``length`` documents, as `torchrank.theory` asks.

        2 Σv and √(Σv² + (Σv)²), both reached when one document outscores all those of positive weight: Σv is at most 1
        for NDCG and (m − 1) / m for MAP, reached by one relevant document. Weights of your own scale them.
        """
        total = 0.0 if length < 2 else 1.0 if self.measure == "ndcg" else (length - 1) / length
        return ScoreLipschitz(2 * total, math.sqrt(2) * total)
