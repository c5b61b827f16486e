"""Discounted cumulative gain: NDCG in its published variants, and LETOR's mean over all cut-offs."""

import torch
from torch import Tensor

from torchrank.errors import TorchRankError, check_option
from torchrank.metrics._lists import Lists, Measured, per_list, value_dtype
from torchrank.metrics._ties import tie_groups, tie_means
from torchrank.ops.checks import check_cutoff, check_lists
from torchrank.ops.gains import DISCOUNTS, GAINS, discounts, scaled_gains
from torchrank.ops.order import highest

IDEALS = ("list", "retrieved", "full")


#: ranks that ``ideal="full"`` sums over at most where no list is longer
_MOST_FULL = 1_000_000


def ndcg(
    scores: Tensor,
    relevance: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    gain: str = "exponential",
    discount: str = "log2",
    ideal: str = "list",
    retrieved: int = 10,
    ties: str = "stable",
    empty: str = "zero",
) -> Tensor:
    """Normalised discounted cumulative gain: Σ_{i ≤ k} G(r_i) D(i), divided by the same sum of an ideal ranking.

    Args:
        scores: ``(..., L)``, any numbers.
        relevance: ``(..., L)`` graded, at least 0.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        k: ranks that count; None for all.
        gain: ``"exponential"`` (2^r − 1) or ``"linear"`` (r).
        discount: ``"log2"`` (1/log2(1 + i)) or ``"jarvelin"`` (1, then 1/log2 i).
        ideal: what divides. ``"list"``: the best order of the whole list. ``"retrieved"``: the best order of the
            ``retrieved`` documents ranked first, the only ones that count then. ``"full"``: Σ_{i ≤ k} D(i), a relevant
            document of gain 1 at each of the k ranks (all the list's when k is None), also where the list has fewer;
            grades above 1 can then exceed 1.
        retrieved: documents retrieved, for ``ideal="retrieved"``.
        ties: order of equal scores: ``"stable"`` (as given), ``"mean"`` (expectation over all orders; not with
            ``ideal="retrieved"``), ``"pessimistic"`` or ``"optimistic"`` (relevance rising, falling).
        empty: value of a list with nothing relevant: ``"zero"``, ``"one"`` or ``"skip"`` (NaN).

    Returns:
        ``(...)``: float64 if the scores or the relevance are, else float32.

    Raises:
        TorchRankError: an option with a bad value, or ``ties="mean"`` with ``ideal="retrieved"``.
        ShapeError: shapes that do not fit.
        DataError: NaN scores, or relevance that is negative or not finite (eager CPU tensors only).

    Source: Järvelin & Kekäläinen (2002); gains and discounts of Burges et al. (2005). ``"jarvelin"`` with
    ``"retrieved"`` is the published protocol of the SAROS tables, ``"full"`` their text's formula.

    Example:
        >>> ndcg(torch.tensor([0.3, 0.2, 0.1]), torch.tensor([0, 2, 1]))  # (3/log2(3) + 1/log2(4)) / (3 + 1/log2(3))
        tensor(0.6590)
    """
    check_cutoff(k)
    check_cutoff(retrieved, "retrieved")
    check_option("gain", gain, GAINS)
    check_option("discount", discount, DISCOUNTS)
    check_option("ideal", ideal, IDEALS)
    if ideal == "retrieved" and ties == "mean":
        raise TorchRankError(
            "ties='mean' is not offered with ideal='retrieved', whose ideal would change with the order; choose another"
            " ties policy or ideal='list'"
        )

    check_lists(scores, relevance, mask)
    length = max(scores.shape[-1], 1)
    depth = min(length, k or length, retrieved if ideal == "retrieved" else length)
    read = min(retrieved, length) if ideal == "retrieved" else depth
    like = torch.empty((), dtype=value_dtype(scores, relevance), device=scores.device)
    weights = discounts(depth, discount=discount, like=like)
    if ideal == "full" and k is not None and k > max(length, _MOST_FULL):
        raise TorchRankError(
            f"k={k} with ideal='full' sums the discounts of {k} ranks, most of which no list has; give k of at most"
            f" {_MOST_FULL}, or None for the list's length"
        )
    constant = discounts(k or length, discount=discount, like=like).cumsum(-1) if ideal == "full" else None

    def measure(lists: Lists) -> Measured:
        best = highest(lists.grades(read) if ideal == "retrieved" else lists.relevance, depth)
        top = best[..., :1]
        # 2^top cancels, but not against a constant
        scale = top if constant is None else torch.zeros_like(top)
        gained = _gains_by_rank(lists, depth, gain, scale) @ weights
        if constant is None:
            possible = scaled_gains(best, gain=gain, top=scale) @ weights
        elif k is None:
            possible = constant[(lists.sizes.long() - 1).clamp(min=0)]
        else:
            possible = constant[-1]
        value = gained / possible
        if ideal != "retrieved":
            return value, top[..., 0] > 0
        # where nothing relevant was retrieved, 0 of 0 is 0
        return torch.where(possible > 0, value, 0), lists.relevance.amax(-1) > 0

    return per_list(measure, scores, relevance, mask, ties=ties, empty=empty, depth=read)


def _gains_by_rank(lists: Lists, depth: int, gain: str, scale: Tensor) -> Tensor:
    """``(N, depth)`` gain at each rank, divided by 2^scale; where ties are averaged over, on average."""
    if not lists.mean:
        return scaled_gains(lists.grades(depth), gain=gain, top=scale)
    gains = scaled_gains(lists.grades(lists.length), gain=gain, top=scale)
    return tie_means(gains, tie_groups(lists))[..., :depth]


def mean_ndcg(
    scores: Tensor,
    relevance: Tensor,
    mask: Tensor | None = None,
    *,
    gain: str = "exponential",
    discount: str = "jarvelin",
    ties: str = "stable",
    empty: str = "zero",
) -> Tensor:
    """LETOR's MeanNDCG: the mean of NDCG@k over every cut-off k = 1 … L of the list, in the time of one sort.

    Args:
        scores: ``(..., L)``, any numbers.
        relevance: ``(..., L)`` graded, at least 0.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        gain: ``"exponential"`` (2^r − 1) or ``"linear"`` (r).
        discount: ``"jarvelin"`` (1, then 1/log2 i), LETOR's own, or ``"log2"``.
        ties: as for :func:`ndcg`; LETOR's script keeps the order of the file, ``"stable"``.
        empty: as for :func:`ndcg`; LETOR's script counts 0.

    Returns:
        ``(...)``: float64 if the scores or the relevance are, else float32.

    Raises:
        TorchRankError: an option with a bad value.
        ShapeError: shapes that do not fit.
        DataError: NaN scores, or relevance that is negative or not finite (eager CPU tensors only).

    Source: the evaluation script of LETOR 4.0 (Qin & Liu, arXiv 1306.2597).

    Example:
        >>> mean_ndcg(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([0, 1, 0]))  # (0/1 + 1/1 + 1/1) / 3
        tensor(0.6667)
    """
    check_option("gain", gain, GAINS)
    check_option("discount", discount, DISCOUNTS)

    def measure(lists: Lists) -> Measured:
        best = highest(lists.relevance, lists.length)
        top = best[..., :1]
        weights = discounts(lists.length, discount=discount, like=top)
        gained = (_gains_by_rank(lists, lists.length, gain, top) * weights).cumsum(-1)
        possible = (scaled_gains(best, gain=gain, top=top) * weights).cumsum(-1)
        real = torch.arange(lists.length, device=top.device) < lists.sizes[..., None]
        value = torch.where(real, gained / possible, 0).sum(-1) / lists.sizes
        return value, top[..., 0] > 0

    return per_list(measure, scores, relevance, mask, ties=ties, empty=empty)
