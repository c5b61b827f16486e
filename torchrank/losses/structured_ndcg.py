"""The structured hinge over whole rankings with NDCG cost: the listwise alternative to SLAM that needs a full ranking.

A ranking is scored by ⟨w, Ψ⟩ = Σ_i v_i s_i, v_i larger the higher document i stands. The most violating ranking solves
an assignment problem, documents to positions, exactly, in O(L³) a list and on the host: SLAM bounds the same cost in
O(L log L), and needs no map from grades to one full ranking.
"""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchrank.errors import DataError, check_option
from torchrank.losses._lists import ReducedLoss, prepare, reduce_lists
from torchrank.ops.checks import check_cutoff, refuse_transforms
from torchrank.ops.gains import discounts, scaled_gains
from torchrank.ops.levels import has_ordered_pair, sort_levels
from torchrank.ops.masked import masked_count
from torchrank.ops.precision import at_least_float32
from torchrank.types import ScoreLipschitz

TIES = ("first", "scores")


def structured_ndcg_loss(
    scores: Tensor,
    relevance: Tensor,
    mask: Tensor | None = None,
    *,
    ties: str = "first",
    k: int | None = None,
    normalize: str | None = None,
) -> Tensor:
    """Generalised hinge over rankings: the largest NDCG cost plus how far its ranking outscores the right one.

    ``max over rankings π of { 1 − NDCG(π) + Σ_i (v_π(i) − v_π*(i)) s_i }`` with v_π(i) = L − (position of i in π). It
    is at least 1 − NDCG of the ranking by scores, whatever order breaks its ties.

    Args:
        scores: ``(..., L)``; half precision is computed and returned in float32.
        relevance: ``(..., L)`` at least 0.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        ties: how grades become the one right ranking π*: among documents of one grade in input order (``"first"``), or
            by falling score (``"scores"``), which makes the least of the loss but takes its convexity.
        k: cut-off of the NDCG; None for the whole list.
        normalize: ``"length"`` divides v by L, so that long lists weigh no more than short ones; None takes the book's
            integers.

    Returns:
        ``(...)``, one value per list; 0 where no document is more relevant than another.

    Raises:
        ShapeError: tensors whose shapes differ.
        DataError: relevance below 0 or NaN (eager CPU tensors); a real document's score that is not finite.
        TorchRankError: an option with a bad value.

    Source:
        Shalev-Shwartz & Ben-David, "Understanding Machine Learning", 17.4; the assignment by
        ``scipy.optimize.linear_sum_assignment`` on the host.

    Example:
        >>> structured_ndcg_loss(torch.tensor([[3.0, 0.0]]), torch.tensor([[1.0, 0.0]]))
        tensor([0.])
        >>> structured_ndcg_loss(torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0]]))  # 1 − 1/log2(3) + 1
        tensor([1.3691])
    """
    _check_options(ties, k, normalize)
    scores, relevance = prepare(scores, relevance, mask)
    length = scores.shape[-1]
    if length == 0:
        return scores.sum(-1)
    with torch.no_grad():
        discount = discounts(length, like=scores)
        if k is not None:
            discount[k:] = 0
        gains = scaled_gains(relevance)
        best = (gains.sort(-1, descending=True).values * discount).sum(-1, keepdim=True)
        gains = gains / torch.where(best > 0, best, torch.ones_like(best))
        counts = masked_count(scores, mask).clamp(min=1).to(scores.dtype)
        unit = 1 / counts if normalize == "length" else torch.ones_like(counts)
        right = _right_positions(scores, relevance, mask, ties)
        worst = _worst_positions(scores * unit[..., None], gains, discount, mask)
        cost = (gains * (discount[right] - discount[worst])).sum(-1)
        moved = (right - worst).to(scores.dtype) * unit[..., None]
    loss = cost + (moved * scores).sum(-1)
    return torch.where(has_ordered_pair(relevance, mask), loss, torch.zeros_like(loss))


def _check_options(ties: str, k: int | None, normalize: str | None) -> None:
    check_option("ties", ties, TIES)
    if normalize is not None:
        check_option("normalize", normalize, ("length",))
    check_cutoff(k)


def _right_positions(scores: Tensor, relevance: Tensor, mask: Tensor | None, ties: str) -> Tensor:
    """Position of each document in the right ranking, from 0; padding stands last."""
    if ties == "first":
        order = sort_levels(relevance, mask, stable=True).order.flip(-1)
    else:
        by_score = scores.argsort(dim=-1, descending=True, stable=True)
        levels = relevance if mask is None else relevance.masked_fill(~mask, -1)
        order = by_score.gather(-1, levels.gather(-1, by_score).argsort(dim=-1, descending=True, stable=True))
    return order.argsort(-1)


def _worst_positions(scores: Tensor, gains: Tensor, discount: Tensor, mask: Tensor | None) -> Tensor:
    """Position of each document, from 0, in the ranking with the largest cost plus score; padding keeps its place."""
    refuse_transforms("this loss")
    length = scores.shape[-1]
    flat = scores.reshape(-1, length).cpu().double().numpy()
    gain = gains.reshape(-1, length).cpu().double().numpy()
    rank = discount.cpu().double().numpy()
    if not np.isfinite(flat).all():
        row, place = np.argwhere(~np.isfinite(flat))[0]
        raise DataError(f"a score of list {row} is {flat[row, place]}; the most violating ranking needs finite scores")
    real = np.ones(flat.shape, dtype=bool) if mask is None else mask.reshape(-1, length).cpu().numpy()
    found = np.broadcast_to(np.arange(length), flat.shape).copy()
    for row, keep in enumerate(real):
        found[row, keep] = _assign(flat[row, keep], gain[row, keep], rank)
    return torch.from_numpy(found).view(scores.shape).to(scores.device)


def _assign(scores: NDArray[np.float64], gains: NDArray[np.float64], rank: NDArray[np.float64]) -> NDArray[np.int64]:
    # Here and not above: who wants another loss does not wait for scipy.
    from scipy.optimize import linear_sum_assignment

    count = len(scores)
    value = -np.outer(scores, np.arange(count)) - np.outer(gains, rank[:count])
    positions: NDArray[np.int64] = linear_sum_assignment(value, maximize=True)[1]
    return positions


class StructuredNDCGLoss(ReducedLoss):
    """The structured hinge over rankings of a batch of lists, as :func:`structured_ndcg_loss`.

    The mean is over the lists that hold at least one ordered pair.

    Args:
        ties: ``"first"`` or ``"scores"``.
        k: cut-off of the NDCG; None for the whole list.
        normalize: ``"length"`` or None.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an option with a bad value.

    Example:
        >>> StructuredNDCGLoss()(torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0]]))
        tensor(1.3691)
    """

    def __init__(
        self, *, ties: str = "first", k: int | None = None, normalize: str | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction=reduction)
        _check_options(ties, k, normalize)
        self.ties = ties
        self.k = k
        self.normalize = normalize

    def forward(
        self, scores: Tensor, relevance: Tensor, mask: Tensor | None = None, list_weights: Tensor | None = None
    ) -> Tensor:
        """Reduce the loss of each list.

        Args:
            scores: ``(..., L)``.
            relevance: ``(..., L)``.
            mask: ``(..., L)`` boolean or None.
            list_weights: ``(...)`` weight of each list, or None for ones.

        Returns:
            a scalar, or ``(...)`` for ``reduction="none"``.
        """
        each = structured_ndcg_loss(scores, relevance, mask, ties=self.ties, k=self.k, normalize=self.normalize)
        return reduce_lists(each, has_ordered_pair(at_least_float32(relevance), mask), list_weights, self.reduction)

    def score_lipschitz(self, length: int) -> ScoreLipschitz:
        """Bound the gradient in the scores of a list of ``length`` documents, as `torchrank.theory` asks.

        The gradient is a difference of two rankings' positions, largest where one is the other reversed.
        """
        unit = 1 / length if self.normalize == "length" and length else 1.0
        return ScoreLipschitz(unit * (length * length // 2), unit * math.sqrt(length * (length * length - 1) / 3))
