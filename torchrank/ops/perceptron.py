"""One round of the ranking perceptron on lists' scores; no weights of a model are touched here.

Source: Chaudhuri & Tewari, "Perceptron-like Algorithms and Generalization Bounds for Learning to Rank" (arXiv
1405.0591), §5, and its successor (arXiv 1508.00842). Where scores tie, the less relevant document counts as the higher
one: at w = 0 every score ties, and a learner that saw no mistake there would never make its first step.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from torchrank.errors import check_number, check_option
from torchrank.ops.gains import discounts, scaled_gains
from torchrank.ops.levels import sort_levels
from torchrank.ops.masked import fill_padding

MEASURES = ("ndcg", "map")
UPDATES = ("slam", "pair")
ACTIVE = ("margin", "mistakes")


class ListPlan(NamedTuple):
    """What a round needs to know of the relevance of lists: documents from the least to the most relevant.

    Padding stands before them all, as in :class:`torchrank.ops.levels.Levels`.

    Attributes:
        order: ``(..., L)`` int64, the document at each place.
        real: ``(..., L)`` boolean, True where a document is real.
        below: ``(..., L)`` int64, the last place of a lower level; 0 where there is none.
        has_rival: ``(..., L)`` boolean, True where a real document is less relevant.
        weights: ``(..., L)`` SLAM weights, 0 over padding.
        gains: ``(..., L)`` gain over the best attainable sum (NDCG) or 1 for relevant (AP), 0 over padding.
        discounts: ``(L,)`` of the ranks: 1/log2(1+i) (NDCG) or 1/i (AP).
    """

    order: Tensor
    real: Tensor
    below: Tensor
    has_rival: Tensor
    weights: Tensor
    gains: Tensor
    discounts: Tensor


class PerceptronRound(NamedTuple):
    """What one round found in each list.

    Attributes:
        coefficients: ``(..., L)`` in input order; the step direction is ``z = Xᵀ coefficients``, to be subtracted.
        measure_loss: ``(...)`` 1 − NDCG or 1 − AP, ties against the ranker; exactly 0 where no document is outscored.
        touched: ``(...)`` V, the sum of the weights of the documents the update touches.
        charged: ``(..., L)`` in the plan's order, the weights of the hinges that the round's convex loss f is made of:
            ``f(s) = Σ charged_i h_i(s)``, of which z is a sub-gradient. All of SLAM's for ``"margin"``, those of the
            outscored documents for ``"mistakes"``, the measure loss at the worst document for ``"pair"``.
        surrogate: ``(...)`` f at the round's own scores, at least Δ times the measure loss.
    """

    coefficients: Tensor
    measure_loss: Tensor
    touched: Tensor
    charged: Tensor
    surrogate: Tensor


def check_perceptron_options(*, measure: str, update: str, active: str, eta: float, margin: float) -> None:
    """Refuse options of the perceptron that do not exist or cannot be.

    Raises:
        TorchRankError: an unknown measure, update or active set; a step size or margin that is not above 0.
    """
    check_option("measure", measure, MEASURES)
    check_option("update", update, UPDATES)
    check_option("active", active, ACTIVE)
    check_number("eta", eta, above=0)
    check_number("margin", margin, above=0)


def plan_lists(relevance: Tensor, weights: Tensor, mask: Tensor | None = None, *, measure: str = "ndcg") -> ListPlan:
    """Sort lists by relevance once, so that each round costs one sort of the scores.

    Args:
        relevance: ``(..., L)`` at least 0; ``"map"`` takes what is above 0 as relevant.
        weights: ``(..., L)`` SLAM weights, in floating point; the plan takes their dtype.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        measure: ``"ndcg"`` or ``"map"``.

    Returns:
        the plan.

    Raises:
        TorchRankError: an unknown measure.
    """
    check_option("measure", measure, MEASURES)
    level = relevance.to(weights.dtype) if measure == "ndcg" else (relevance > 0).to(weights.dtype)
    # Stable: which of several tied documents moves must not depend on the padding of the batch.
    levels = sort_levels(level, mask, stable=True)
    real = levels.relevance > -torch.inf
    place = torch.arange(level.shape[-1], device=level.device)
    start = torch.where(levels.opens, place, 0).cummax(-1).values
    below = (start - 1).clamp(min=0)
    level = fill_padding(level, mask, 0)
    length = level.shape[-1]
    if measure == "ndcg":
        discount = discounts(length, like=level)
        gains = scaled_gains(level)
        best = (gains.sort(-1, descending=True).values * discount).sum(-1, keepdim=True)
        gains = torch.where(best > 0, gains / best, torch.zeros_like(gains))
    else:
        discount = 1 / torch.arange(1, length + 1, device=level.device).to(level.dtype)
        gains = level
    return ListPlan(
        order=levels.order,
        real=real,
        below=below,
        has_rival=real & (start > 0) & real.gather(-1, below),
        weights=fill_padding(weights, mask, 0).gather(-1, levels.order),
        gains=gains.gather(-1, levels.order),
        discounts=discount,
    )


def take_list(plan: ListPlan, index: int, length: int) -> ListPlan:
    """Cut one list, without its padding, out of the plan of a batch whose padding stood behind the documents.

    Args:
        plan: of ``(Q, L)`` lists.
        index: which list.
        length: its number of documents n.

    Returns:
        the plan of ``(n,)`` documents.
    """
    skip = plan.order.shape[-1] - length
    return ListPlan(
        order=plan.order[index, skip:],
        real=plan.real[index, skip:],
        below=(plan.below[index, skip:] - skip).clamp(min=0),
        has_rival=plan.has_rival[index, skip:],
        weights=plan.weights[index, skip:],
        gains=plan.gains[index, skip:],
        discounts=plan.discounts[:length],
    )


def perceptron_round(
    scores: Tensor,
    plan: ListPlan,
    *,
    measure: str = "ndcg",
    update: str = "slam",
    active: str = "margin",
    margin: float = 1.0,
) -> PerceptronRound:
    """Measure the loss of lists' scores and say how the perceptron moves them; ``O(L log L)``.

    With ``update="slam"`` the direction is the sub-gradient of the SLAM loss over the active documents: −v_i at
    document i, +v_i at the highest-scored less relevant one. Active are those inside the margin (``"margin"``, the
    published rule) or those really outscored (``"mistakes"``, decided by comparing the two scores, so that rankings do
    not depend on the step size). With ``update="pair"`` it is the measure loss at the single worst pair.

    Args:
        scores: ``(..., L)`` in input order; what lies under the mask has no meaning.
        plan: of the same lists.
        measure: ``"ndcg"`` or ``"map"``, the same as the plan's.
        update: ``"slam"`` or ``"pair"``.
        active: ``"margin"`` or ``"mistakes"``; ``"pair"`` always moves one outscored pair and does not use it.
        margin: Δ of the SLAM loss.

    Returns:
        the round, all zeros for a list that is ranked perfectly.

    Example:
        >>> relevance, scores = torch.tensor([2.0, 1.0, 0.0]), torch.tensor([0.0, 1.0, 2.0])
        >>> plan = plan_lists(relevance, torch.tensor([0.8, 0.2, 0.0]))
        >>> perceptron_round(scores, plan).coefficients
        tensor([-0.8000, -0.2000,  1.0000])
    """
    score, rival, rival_score = _rivals(scores, plan)
    outscored = rival_score >= score
    wrong = outscored.any(-1)
    loss = torch.where(wrong, _measure_loss(score, plan, measure), 0)
    gap = rival_score - score
    hinge = (margin + gap).clamp(min=0)
    if update == "slam":
        charged = torch.where(wrong[..., None], plan.weights, 0)
        step = torch.where(outscored if active == "mistakes" else hinge > 0, charged, 0)
        charged = step if active == "mistakes" else charged
    else:
        worst = gap.argmax(-1, keepdim=True)
        step = charged = torch.zeros_like(hinge).scatter(-1, worst, loss[..., None])
    sorted_coefficients = (-step).scatter_add(-1, rival, step)
    return PerceptronRound(
        coefficients=torch.zeros_like(step).scatter(-1, plan.order, sorted_coefficients),
        measure_loss=loss,
        touched=step.sum(-1),
        charged=charged,
        surrogate=(charged * hinge).sum(-1),
    )


def hinges(scores: Tensor, plan: ListPlan, *, margin: float = 1.0) -> Tensor:
    """Return SLAM's hinges ``h_i = max(0, Δ + max{s_j : R_j < R_i} − s_i)``, in the plan's order.

    Args:
        scores: ``(..., L)`` in input order.
        plan: of the same lists.
        margin: Δ.

    Returns:
        ``(..., L)``, 0 where no document is less relevant.

    Example:
        >>> plan = plan_lists(torch.tensor([2.0, 1.0, 0.0]), torch.tensor([0.8, 0.2, 0.0]))
        >>> hinges(torch.tensor([0.0, 1.0, 2.0]), plan)
        tensor([0., 2., 3.])
    """
    score, _, rival_score = _rivals(scores, plan)
    return (margin + (rival_score - score)).clamp(min=0)


def _rivals(scores: Tensor, plan: ListPlan) -> tuple[Tensor, Tensor, Tensor]:
    """Sorted scores, and each document's highest-scored less relevant one: its place and its score, −inf for none."""
    score = torch.where(plan.real, scores.gather(-1, plan.order), -torch.inf)
    running, place = torch.cummax(score, dim=-1)
    rival_score = torch.where(plan.has_rival, running.gather(-1, plan.below), -torch.inf)
    # Padding takes part in no comparison: its score becomes a number that nothing reaches.
    return torch.where(plan.real, score, torch.inf), place.gather(-1, plan.below), rival_score


def _measure_loss(score: Tensor, plan: ListPlan, measure: str) -> Tensor:
    # A stable sort of documents in ascending relevance puts the less relevant of equal scores first.
    shown = torch.where(plan.real, score, -torch.inf)
    rank = torch.argsort(shown, dim=-1, descending=True, stable=True)
    gains = plan.gains.gather(-1, rank)
    if measure == "ndcg":
        value = (gains * plan.discounts).sum(-1)
    else:
        value = (gains * gains.cumsum(-1) * plan.discounts).sum(-1) / gains.sum(-1).clamp(min=1)
    return (1 - value).clamp(min=0)
