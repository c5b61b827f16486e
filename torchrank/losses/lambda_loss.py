"""LambdaLoss: logistic losses of pairs, weighted by what NDCG would change.

Source: Wang et al., "The LambdaLoss Framework for Ranking Metric Optimization" (CIKM 2018). Its weights are
functions of the current order, so the loss jumps where two scores cross; its gradient takes the weights as constants.
"""

import math

import torch
from torch import Tensor

from torchrank.errors import TorchRankError, check_number, check_option
from torchrank.losses._lists import ListwiseLoss, prepare, prepare_weights
from torchrank.ops.checks import check_cutoff
from torchrank.ops.gains import cut_discounts, scaled_gains
from torchrank.ops.levels import has_ordered_pair
from torchrank.ops.masked import fill_padding
from torchrank.ops.pairs import sum_pairs, with_gradient
from torchrank.types import ScoreLipschitz

VARIANTS = ("ndcg1", "ndcg2", "ndcg2++")
_MU = 10.0  # the value of the paper's experiments


def lambda_loss(
    scores: Tensor,
    relevance: Tensor,
    mask: Tensor | None = None,
    *,
    variant: str = "ndcg2",
    sigma: float = 1.0,
    mu: float | None = None,
    k: int | None = None,
    document_weights: Tensor | None = None,
) -> Tensor:
    """NDCG-Loss1, NDCG-Loss2 or NDCG-Loss2++: Σ w_ij log2(1 + exp(−σ (s_i − s_j))).

    With gains ``g = G(R) / Z``, D the discount at a document's rank in the current order (ties in input order) and
    ``ρ_ij = D(|rank_i − rank_j|) − D(|rank_i − rank_j| + 1)``, the weights are

    - ``"ndcg1"``: ``g_i D_i`` over all j ≠ i;
    - ``"ndcg2"``: ``ρ_ij |g_i − g_j|`` over the ordered pairs, R_i > R_j;
    - ``"ndcg2++"``: ``(μ ρ_ij + |D_i − D_j|) |g_i − g_j|`` over the ordered pairs; LambdaRank's weights with μ = 0.

    In O(L²) time and O(L) memory, block by block; it can be differentiated once.

    Args:
        scores: ``(..., L)``; half precision is computed and returned in float32.
        relevance: ``(..., L)`` at least 0.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        variant: ``"ndcg1"``, ``"ndcg2"`` or ``"ndcg2++"``.
        sigma: σ, steepness of the logistic function.
        mu: μ of ``"ndcg2++"``, by default 10; not for the others.
        k: cut D and Z at this rank; None for the whole list.
        document_weights: ``(..., L)`` factors of the pairs in which the document is i, such as inverse propensities.

    Returns:
        ``(...)``, one value per list; 0 where there is no ordered pair.

    Raises:
        ShapeError: tensors whose shapes differ.
        DataError: relevance or a weight below 0 or NaN (eager CPU tensors).
        TorchRankError: an option with a bad value.

    Example:
        >>> lambda_loss(torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, 1.0]]))  # ρ = 1 − 1 / log2 3
        tensor([0.3691])
    """
    mu = _check_options(variant, sigma, mu, k)
    scores, relevance = prepare(scores, relevance, mask)
    if scores.shape[-1] == 0:
        return scores.sum(-1)
    order = fill_padding(scores.detach(), mask, -torch.inf).sort(dim=-1, descending=True, stable=True).indices
    at = scores.gather(-1, order)
    with torch.no_grad():
        share = _shares(relevance, mask, k).gather(-1, order)
        real = None if mask is None else mask.gather(-1, order)
        factors = None
        if document_weights is not None:
            factors = prepare_weights(document_weights, scores, mask, "document_weights").gather(-1, order)
        discount = cut_discounts(at.shape[-1], k, like=at)

        def terms(difference: Tensor, rows: slice, columns: slice) -> tuple[Tensor, Tensor]:
            """The pairs of a document i with the j before it: a part for s_i above s_j, a part for the reverse."""
            own, other = share[..., rows, None], share[..., None, columns]
            if variant == "ndcg1":
                earlier = _of_distance(torch.ones_like(discount[1:]), rows, columns)
                up, down = own * discount[rows, None] * earlier, other * discount[columns] * earlier
            else:
                scale = _of_distance(-discount.diff(), rows, columns)
                if variant == "ndcg2++":
                    scale = mu * scale + (discount[columns] - discount[rows, None]).clamp(min=0)
                weight = (own - other) * scale
                up, down = weight.relu(), (-weight).relu_()
            if factors is not None:
                up, down = up * factors[..., rows, None], down * factors[..., None, columns]
            if real is not None:  # padding stands last
                up, down = up * real[..., rows, None], down * real[..., rows, None]
            # Documents before i score no less: with x >= 0, softplus(x) = x + l and softplus(-x) = l.
            x = (sigma * difference).clamp_(min=0)
            e = (-x).exp_()
            values = (up + down) * e.log1p() + up * x
            slopes = (up - down * e) / (1 + e)
            return values / math.log(2), slopes * (sigma / math.log(2))

        value, gradient = sum_pairs(at, terms, triangular=True)
    return with_gradient(value, at, gradient)


def _of_distance(values: Tensor, rows: slice, columns: slice) -> Tensor:
    """A block of the matrix with ``values[i − j − 1]`` where j is before i, and 0 elsewhere.

    Args:
        values: ``(L − 1,)``.
        rows: the block's i.
        columns: the block's j, from 0.

    Returns:
        ``(rows, columns)``.
    """
    length = len(values) + 1
    line = torch.cat([values.flip(0), values.new_zeros(length)])  # each row of the matrix is a window of it
    windows = line.unfold(0, columns.stop, 1)
    return windows[length - rows.stop : length - rows.start].flip(0)


def _shares(relevance: Tensor, mask: Tensor | None, k: int | None) -> Tensor:
    """Each document's gain over Z; zeros where there is no ordered pair."""
    gains = scaled_gains(relevance)
    best = gains.sort(-1, descending=True).values * cut_discounts(gains.shape[-1], k, like=gains)
    ideal = best.sum(-1, keepdim=True)
    learns = has_ordered_pair(relevance, mask).unsqueeze(-1)
    return learns * gains / torch.where(ideal > 0, ideal, torch.ones_like(ideal))


def _check_options(variant: str, sigma: float, mu: float | None, k: int | None) -> float:
    """Refuse bad options; return μ."""
    check_option("variant", variant, VARIANTS)
    check_cutoff(k)
    check_number("sigma", sigma, above=0)
    if mu is None:
        return _MU
    if variant != "ndcg2++":
        raise TorchRankError(f"mu={mu} is an option of variant='ndcg2++' alone, not of {variant!r}")
    check_number("mu", mu, least=0)
    return mu


class LambdaLoss(ListwiseLoss):
    """The LambdaLoss of a batch of lists, as :func:`lambda_loss`.

    The mean is over the lists that hold at least one ordered pair.

    Args:
        variant: ``"ndcg1"``, ``"ndcg2"`` or ``"ndcg2++"``.
        sigma: σ, steepness of the logistic function.
        mu: μ of ``"ndcg2++"``, by default 10; not for the others.
        k: cut D and Z at this rank; None for the whole list.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an option with a bad value.

    Example:
        >>> LambdaLoss()(torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, 1.0]]))
        tensor(0.3691)
    """

    def __init__(
        self,
        *,
        variant: str = "ndcg2",
        sigma: float = 1.0,
        mu: float | None = None,
        k: int | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        _check_options(variant, sigma, mu, k)
        self.variant = variant
        self.sigma = sigma
        self.mu = mu
        self.k = k

    def each(self, scores: Tensor, relevance: Tensor, mask: Tensor | None, document_weights: Tensor | None) -> Tensor:
        """Return :func:`lambda_loss`."""
        return lambda_loss(
            scores,
            relevance,
            mask,
            variant=self.variant,
            sigma=self.sigma,
            mu=self.mu,
            k=self.k,
            document_weights=document_weights,
        )

    def score_lipschitz(self, length: int) -> ScoreLipschitz:
        """Bound the gradient in the scores of a list of ``length`` documents, as `torchrank.theory` asks.

        The weights times σ / ln 2 times at most 2 or √2 a pair, not reached. It holds between the jumps of the weights;
        the loss is not convex.
        """
        if length < 2:
            return ScoreLipschitz(0.0, 0.0)
        steepness = self.sigma / math.log(2)
        if self.variant == "ndcg1":  # Σ g D ≤ 1, each document with length − 1 others
            return ScoreLipschitz(2 * steepness * (length - 1), steepness * math.sqrt(length * (length - 1)))
        discount = cut_discounts(length, self.k, like=torch.zeros((), dtype=torch.float64))
        gains = length / float(discount.sum())  # Σ g is largest where all gains are alike
        near = 1 - discount  # Σ ρ to one side of a rank telescopes
        weight = float((near + near.flip(-1)).max())
        if self.variant == "ndcg2++":
            mu = _MU if self.mu is None else self.mu
            weight = mu * weight + max(float((1 - discount).sum()), float((discount - discount[-1]).sum()))
        return ScoreLipschitz(2 * steepness * gains * weight, math.sqrt(2) * steepness * gains * weight)
