"""Measures of which documents are relevant at all (relevance above 0): precision, recall, average precision, AUC."""

import torch
from torch import Tensor

from torchrank.errors import check_option
from torchrank.metrics._lists import Lists, Measured, per_list
from torchrank.metrics._ties import expected_hits, tie_groups
from torchrank.ops.checks import check_cutoff, values_can_be_read

NORMALIZERS = ("relevant", "cutoff", "hits")


def precision(
    scores: Tensor,
    relevance: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    ties: str = "stable",
    empty: str = "zero",
) -> Tensor:
    """Share of relevant documents among the first k ranks.

    Args:
        scores: ``(..., L)``, any numbers.
        relevance: ``(..., L)``; above 0 is relevant.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        k: ranks that count, and what divides, also where the list is shorter; None for the list's own documents.
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
        >>> precision(torch.tensor([0.3, 0.2, 0.1]), torch.tensor([1, 0, 2]), k=2)
        tensor(0.5000)
    """
    check_cutoff(k)

    def measure(lists: Lists) -> Measured:
        found = expected_hits(lists)[..., : lists.cut(k)].sum(-1)
        return found / (lists.sizes if k is None else k), lists.relevance.amax(-1) > 0

    return per_list(measure, scores, relevance, mask, ties=ties, empty=empty, depth=k)


def recall(
    scores: Tensor,
    relevance: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    ties: str = "stable",
    empty: str = "zero",
) -> Tensor:
    """Share of the list's relevant documents that stand in the first k ranks.

    Args:
        scores: ``(..., L)``, any numbers.
        relevance: ``(..., L)``; above 0 is relevant.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        k: ranks that count; None for all.
        ties: as for :func:`precision`.
        empty: as for :func:`precision`.

    Returns:
        ``(...)``: float64 if the scores or the relevance are, else float32.

    Raises:
        TorchRankError: an option with a bad value.
        ShapeError: shapes that do not fit.
        DataError: NaN scores, or relevance that is negative or not finite (eager CPU tensors only).

    Example:
        >>> recall(torch.tensor([0.4, 0.3, 0.2, 0.1]), torch.tensor([1, 0, 0, 1]), k=2)
        tensor(0.5000)
    """
    check_cutoff(k)

    def measure(lists: Lists) -> Measured:
        hits = expected_hits(lists)
        relevant = _relevant(lists)
        return hits[..., : lists.cut(k)].sum(-1) / relevant, relevant > 0

    return per_list(measure, scores, relevance, mask, ties=ties, empty=empty, depth=k)


def average_precision(
    scores: Tensor,
    relevance: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    normalize: str = "relevant",
    ties: str = "stable",
    empty: str = "zero",
) -> Tensor:
    """Average precision: the precision at the rank of each relevant document of the first k, summed and divided.

    Args:
        scores: ``(..., L)``, any numbers.
        relevance: ``(..., L)``; above 0 is relevant.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        k: ranks that count; None for all.
        normalize: what divides: ``"relevant"``, the list's relevant documents (trec_eval); ``"cutoff"``, at most k of
            them; ``"hits"``, those in the first k ranks (0 when none is there).
        ties: as for :func:`precision`.
        empty: as for :func:`precision`.

    Returns:
        ``(...)``: float64 if the scores or the relevance are, else float32.

    Raises:
        TorchRankError: an option with a bad value.
        ShapeError: shapes that do not fit.
        DataError: NaN scores, or relevance that is negative or not finite (eager CPU tensors only).

    Source: trec_eval ``map`` and ``map_cut``; ``"hits"`` is the published protocol of the SAROS tables.

    Example:
        >>> average_precision(torch.tensor([0.3, 0.2, 0.1]), torch.tensor([1, 0, 1]))  # (1/1 + 2/3) / 2
        tensor(0.8333)
    """
    check_cutoff(k)
    check_option("normalize", normalize, NORMALIZERS)

    def measure(lists: Lists) -> Measured:
        depth = lists.cut(k)
        total, relevant, within = _precision_totals(lists, depth)
        if normalize == "hits" and lists.mean:
            return _mean_over_hits(lists, depth), relevant > 0
        if normalize == "relevant":
            divisor = relevant
        elif normalize == "cutoff":
            divisor = relevant.clamp(max=depth)
        else:
            divisor = within.clamp(min=1)
        return total / divisor, relevant > 0

    return per_list(measure, scores, relevance, mask, ties=ties, empty=empty, depth=k)


def _inverse_ranks(depth: int, like: Tensor) -> Tensor:
    return 1 / torch.arange(1, depth + 1, dtype=like.dtype, device=like.device)


def _precision_totals(lists: Lists, depth: int) -> tuple[Tensor, Tensor, Tensor]:
    """Three ``(N,)``: precisions summed over the relevant documents of the first ranks, all of these, those there."""
    if values_can_be_read(lists.keys) and not lists.mean:
        from torchrank.ops.rank_keys import sum_precisions  # loads numba, which a user of a GPU can do without

        total, relevant, within = lists.relevance.new_empty((3, len(lists.keys)))
        inverse = _inverse_ranks(depth, total)
        sum_precisions(lists.keys.numpy(), inverse.numpy(), total.numpy(), relevant.numpy(), within.numpy())
        return total, relevant if lists.keys.shape[-1] == lists.length else _relevant(lists), within
    hits = lists.hits()
    total = _precision_sums(lists, hits)[..., :depth] @ _inverse_ranks(depth, hits)
    return total, _relevant(lists), hits[..., :depth].sum(-1)


def _relevant(lists: Lists) -> Tensor:
    """``(N,)`` how many relevant documents each list has."""
    return lists.relevance.sign().sum(-1)


def _precision_sums(lists: Lists, hits: Tensor) -> Tensor:
    """``(N, L)`` rank times precision at each rank that holds a relevant document, else 0; on average over ties."""
    if not lists.mean:
        return hits.cumsum(-1).mul_(hits)
    ties = tie_groups(lists)
    above = ties.before + ties.place * (ties.relevant - 1) / (ties.size - 1).clamp(min=1)
    return ties.relevant / ties.size * (1 + above)


def _mean_over_hits(lists: Lists, depth: int) -> Tensor:
    """Expected average precision over the hits in the first ``depth`` ranks, whose number depends on the tie there.

    Of the tie that the cut-off divides, t of n places count, and h of its m relevant documents fall there with
    hypergeometric probability; then any h of the t places are as likely as any others.
    """
    ties = tie_groups(lists)
    at = slice(depth - 1, depth)  # the last rank that counts
    n, m, start, before = (x[..., at] for x in (ties.size, ties.relevant, ties.start, ties.before))
    t = depth - start
    inverse = _inverse_ranks(depth, n)
    divided = torch.arange(depth, device=n.device) >= start
    certain = torch.where(divided, 0, _precision_sums(lists, lists.hits())[..., :depth]) @ inverse
    first = torch.where(divided, 1.0, 0.0).to(n) @ inverse
    second = torch.where(divided, ties.place[..., :depth], 0) @ inverse
    h = torch.arange(depth + 1, dtype=n.dtype, device=n.device)
    spread = (before + 1) * first[..., None] + (h - 1) / (t - 1).clamp(min=1) * second[..., None]
    sums = certain[..., None] + h / t * spread
    return (_hypergeometric(h, n, m, t) * sums / (before + h).clamp(min=1)).sum(-1)


def _hypergeometric(h: Tensor, n: Tensor, m: Tensor, t: Tensor) -> Tensor:
    """Probability of h relevant ones in t draws without replacement from n with m relevant."""
    exact = torch.float32 if n.device.type == "mps" else torch.float64

    def log_choose(a: Tensor, b: Tensor) -> Tensor:
        a, b = a.to(exact), b.to(exact)
        return torch.lgamma(a + 1) - torch.lgamma(b + 1) - torch.lgamma(a - b + 1)

    possible = (h <= m) & (h <= t) & (t - h <= n - m)
    some = torch.where(possible, h, (t - n + m).clamp(min=0))  # where h is not possible, a number that is
    log = log_choose(m, some) + log_choose(n - m, t - some) - log_choose(n, t)
    return torch.where(possible, log.exp(), 0).to(n.dtype)


def auc(
    scores: Tensor,
    relevance: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    ties: str = "mean",
    empty: str = "zero",
) -> Tensor:
    """Area under the ROC curve: the share of pairs, one document relevant and one not, that are ranked rightly.

    Args:
        scores: ``(..., L)``, any numbers.
        relevance: ``(..., L)``; above 0 is relevant.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        k: ranks that count; a pair with both documents beyond them is half right. None for all.
        ties: order of equal scores; the default ``"mean"`` counts a tied pair half, ``"stable"``, ``"pessimistic"``
            and ``"optimistic"`` as for :func:`precision`.
        empty: value of a list without such a pair, all or none of its documents being relevant: as for
            :func:`precision`.

    Returns:
        ``(...)``: float64 if the scores or the relevance are, else float32.

    Raises:
        TorchRankError: an option with a bad value.
        ShapeError: shapes that do not fit.
        DataError: NaN scores, or relevance that is negative or not finite (eager CPU tensors only).

    Example:
        >>> auc(torch.tensor([4.0, 3.0, 3.0, 1.0]), torch.tensor([0, 1, 0, 1]))  # half a pair of four
        tensor(0.1250)
    """
    check_cutoff(k)

    def measure(lists: Lists) -> Measured:
        relevant = _relevant(lists)
        others = lists.sizes - relevant
        hits = expected_hits(lists)[..., : lists.cut(k)]
        misses = 1 - hits
        # others above a rank; a tie shared out over its ranks meets itself half
        above = misses.cumsum(-1) - misses / 2
        within = (hits * (others[..., None] - above)).sum(-1)
        beyond = (relevant - hits.sum(-1)) * (others - misses.sum(-1)) / 2
        return (within + beyond) / (relevant * others), (relevant > 0) & (others > 0)

    return per_list(measure, scores, relevance, mask, ties=ties, empty=empty, depth=k)
