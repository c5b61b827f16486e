"""Measures of a user who reads down the ranking and stops: reciprocal rank, hit rate, expected reciprocal rank.

With h_i the probability of stopping at rank i having come there, the reader stops at rank i with probability
h_i Π_{j < i} (1 − h_j). Reciprocal rank and hit rate stop at the first relevant document for certain, and under tied
scores h_i is the chance that a relevant one stands there while none stood above.
"""

import torch
from torch import Tensor

from torchrank.errors import check_number
from torchrank.metrics._lists import Lists, Measured, per_list
from torchrank.metrics._ties import first_hit_hazards, tie_groups
from torchrank.ops.checks import check_cutoff


def reciprocal_rank(
    scores: Tensor,
    relevance: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    ties: str = "stable",
    empty: str = "zero",
) -> Tensor:
    """One over the rank of the first relevant document; 0 if it is not among the first k.

    Args:
        scores: ``(..., L)``, any numbers.
        relevance: ``(..., L)``; above 0 is relevant.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        k: ranks that count; None for all.
        ties: order of equal scores: ``"stable"`` (as given), ``"mean"`` (expectation over all orders),
            ``"pessimistic"`` or ``"optimistic"`` (relevance rising, falling).
        empty: value of a list with nothing relevant: ``"zero"``, ``"one"`` or ``"skip"`` (NaN).

    Returns:
        ``(...)``: float64 if the scores or the relevance are, else float32.

    Raises:
        TorchRankError: an option with a bad value.
        ShapeError: shapes that do not fit.
        DataError: NaN scores, or relevance that is negative or not finite (eager CPU tensors only).

    Example:
        >>> reciprocal_rank(torch.tensor([0.3, 0.2, 0.1]), torch.tensor([0, 1, 1]))
        tensor(0.5000)
    """
    check_cutoff(k)

    def measure(lists: Lists) -> Measured:
        return _mean_reciprocal(_stops(first_hit_hazards(lists)[..., : lists.cut(k)])), lists.relevance.amax(-1) > 0

    return per_list(measure, scores, relevance, mask, ties=ties, empty=empty, depth=k)


def hit_rate(
    scores: Tensor,
    relevance: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    ties: str = "stable",
    empty: str = "zero",
) -> Tensor:
    """Whether a relevant document stands in the first k ranks: 1 or 0, with ``ties="mean"`` a probability.

    Args:
        scores: ``(..., L)``, any numbers.
        relevance: ``(..., L)``; above 0 is relevant.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        k: ranks that count; None for all.
        ties: as for :func:`reciprocal_rank`.
        empty: as for :func:`reciprocal_rank`.

    Returns:
        ``(...)``: float64 if the scores or the relevance are, else float32.

    Raises:
        TorchRankError: an option with a bad value.
        ShapeError: shapes that do not fit.
        DataError: NaN scores, or relevance that is negative or not finite (eager CPU tensors only).

    Example:
        >>> hit_rate(torch.tensor([[0.3, 0.2, 0.1]]), torch.tensor([[0, 1, 0]]), k=2)
        tensor([1.])
    """
    check_cutoff(k)

    def measure(lists: Lists) -> Measured:
        hazards = first_hit_hazards(lists)[..., : lists.cut(k)]
        return 1 - (1 - hazards).prod(-1), lists.relevance.amax(-1) > 0

    return per_list(measure, scores, relevance, mask, ties=ties, empty=empty, depth=k)


def err(
    scores: Tensor,
    relevance: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    max_grade: float = 4.0,
    ties: str = "stable",
    empty: str = "zero",
) -> Tensor:
    """Expected reciprocal rank: a reader is satisfied by a document of grade r with probability (2^r − 1)/2^max_grade.

    Args:
        scores: ``(..., L)``, any numbers.
        relevance: ``(..., L)`` graded, from 0 to ``max_grade``.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        k: ranks that count; None for all.
        max_grade: the highest grade of the scale (not of the list).
        ties: as for :func:`reciprocal_rank`; ``"mean"`` takes the time of L · min(k, L) here, for want of a faster
            exact way.
        empty: as for :func:`reciprocal_rank`.

    Returns:
        ``(...)``: float64 if the scores or the relevance are, else float32.

    Raises:
        TorchRankError: an option with a bad value.
        ShapeError: shapes that do not fit.
        DataError: NaN scores, or relevance that is negative or not finite or above ``max_grade`` (eager CPU tensors
            only).

    Source: Chapelle, Metzler, Zhang & Grinspan, Expected Reciprocal Rank for Graded Relevance (CIKM 2009), §4.

    Example:
        >>> err(torch.tensor([0.2, 0.1]), torch.tensor([1, 2]), max_grade=2)  # 1/4 + (1 − 1/4) · 3/4 / 2
        tensor(0.5312)
    """
    check_cutoff(k)
    check_number("max_grade", max_grade, above=0)

    def measure(lists: Lists) -> Measured:
        depth = lists.cut(k)
        grades = lists.grades(lists.length if lists.mean else depth)
        satisfied = torch.exp2(grades - max_grade) - 2.0**-max_grade
        stops = _expected_stops(satisfied, lists, depth) if lists.mean else _stops(satisfied)
        return _mean_reciprocal(stops), lists.relevance.amax(-1) > 0

    return per_list(measure, scores, relevance, mask, ties=ties, empty=empty, most=max_grade, depth=k)


def _stops(hazards: Tensor) -> Tensor:
    """``(N, depth)`` probability of stopping at each rank."""
    passed = (1 - hazards).cumprod(-1)
    passed_above = torch.cat([torch.ones_like(passed[..., :1]), passed[..., :-1]], -1)
    return hazards * passed_above


def _mean_reciprocal(stops: Tensor) -> Tensor:
    rank = torch.arange(1, stops.shape[-1] + 1, dtype=stops.dtype, device=stops.device)
    return (stops / rank).sum(-1)


def _expected_stops(satisfied: Tensor, lists: Lists, depth: int) -> Tensor:
    """``(N, depth)`` probability of stopping at each rank, averaged over the orders of ties.

    The mean of Π (1 − R) over all choices of j documents of a tie grows from one document to the next: of c + 1
    documents, a choice of j leaves the newest out with probability (c + 1 − j)/(c + 1).
    """
    ties = tie_groups(lists)
    passing = 1 - satisfied
    chosen = ties.place[..., :depth] + 1  # j, by rank
    group = ties.group[..., :depth]
    mean = torch.zeros_like(chosen)
    for i in range(lists.length):
        seen = ties.place[..., i : i + 1] + 1
        fewer = torch.cat([torch.ones_like(mean[..., :1]), mean[..., :-1]], -1)
        fewer = torch.where(chosen == 1, 1, fewer)
        grown = mean + chosen / seen * (passing[..., i : i + 1] * fewer - mean)
        mean = torch.where(group == ties.group[..., i : i + 1], grown, mean)
    # the reader who comes to the tie has passed all before it, in whatever order
    passed = torch.cat([torch.ones_like(passing[..., :1]), passing.cumprod(-1)[..., :-1]], -1)
    arrived = passed.gather(-1, ties.start[..., :depth].long())
    mean_above = torch.cat([torch.ones_like(mean[..., :1]), mean[..., :-1]], -1)
    return arrived * (torch.where(chosen == 1, 1, mean_above) - mean)
