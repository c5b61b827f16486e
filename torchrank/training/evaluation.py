"""How well a scorer orders a log's test part, by the published protocol and by the standard ones, kept apart."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchrank.data.catalogue import Catalogue
from torchrank.data.log import InteractionLog
from torchrank.errors import DataError, check_type
from torchrank.metrics import auc, average_precision, ndcg, recall
from torchrank.ops.pair_loss import mean_logistic_loss
from torchrank.training.evaluation_results import PublishedEvaluation, StandardEvaluation
from torchrank.training.recommendation import batch_size, best_items, score_items
from torchrank.training.shown_lists import ShownLists, score_lists
from torchrank.types import InteractionScorer

_Measure = Callable[[Tensor, Tensor, Tensor], Tensor]
NOT_PUBLISHED = "no user has two test items, one of them preferred; the published protocol leaves all out"
NO_PAIR = "no user has both preferred and other test items, so there is no pair to lose on"


def evaluate_published(
    scorer: InteractionScorer, test: InteractionLog | ShownLists, *, cutoffs: Sequence[int] = (5, 10)
) -> PublishedEvaluation:
    """Measure by the protocol behind the published tables of SAROS and its rivals.

    Each user's own test items are ranked. Users without a preferred test item, or with a single test item, are left
    out. AP@k divides by the hits in the first k; NDCG@k uses Järvelin's discount, and as its ideal the best order of
    the ten items ranked first.

    Args:
        scorer: scores ``(users, items)`` pairs of internal indices.
        test: the test part, or its lists.
        cutoffs: the k of ``map@k`` and ``ndcg@k``.

    Returns:
        the measures of each user.

    Raises:
        DataError: no user counts, or a score is NaN.

    Source: arXiv 1902.08495, tables 4 and 5, and the authors' program.

    Example:
        >>> from torchrank.data import make_interactions
        >>> log, truth = make_interactions(num_users=50, num_items=40, num_interactions=800)
        >>> result = evaluate_published(truth, log.split_per_user(train=0.8)[1], cutoffs=[5])
        >>> sorted(result.mean)
        ['map@5', 'ndcg@5']
    """
    found = measure_published(scorer, test if isinstance(test, ShownLists) else ShownLists.from_log(test), cutoffs)
    if not len(found.users):
        raise DataError(NOT_PUBLISHED)
    return found


def measure_published(
    scorer: InteractionScorer, lists: ShownLists, cutoffs: Sequence[int] = (5, 10)
) -> PublishedEvaluation:
    """Measure what :func:`evaluate_published` does; of lists where nobody counts there are no values."""
    lists = lists.where((lists.positives > 0) & (lists.sizes > 1))
    measures: dict[str, _Measure] = {}
    for k in cutoffs:
        measures[f"map@{k}"] = partial(average_precision, k=k, normalize="hits")
        measures[f"ndcg@{k}"] = partial(ndcg, k=k, discount="jarvelin", ideal="retrieved")
    # none of these looks below the ten retrieved or the last cut-off
    return PublishedEvaluation(lists.user_ids, _measure(scorer, lists, measures, head=max(10, *cutoffs)))


def evaluate_shown(
    scorer: InteractionScorer,
    test: InteractionLog | ShownLists,
    *,
    cutoffs: Sequence[int] = (5, 10),
    empty: str = "zero",
) -> StandardEvaluation:
    """Rank each user's own test items and measure by the usual conventions.

    Args:
        scorer: scores ``(users, items)`` pairs of internal indices.
        test: the test part, or its lists; every user with a test item counts.
        cutoffs: the k of ``map@k`` (over at most k relevant items) and ``ndcg@k``.
        empty: what a user without a preferred test item counts: ``"zero"``, ``"one"`` or ``"skip"``. For ``auc``,
            which such a user has none of, always ``"skip"``.

    Returns:
        the measures of each user, ``auc`` among them.

    Raises:
        DataError: a score is NaN.

    Example:
        >>> from torchrank.data import make_interactions
        >>> log, truth = make_interactions(num_users=50, num_items=40, num_interactions=800)
        >>> train, test = log.split_per_user(train=0.8)
        >>> evaluate_shown(truth, test).mean["auc"] > 0.7
        True
    """
    lists = test if isinstance(test, ShownLists) else ShownLists.from_log(test)
    measures: dict[str, _Measure] = {}
    for k in cutoffs:
        measures[f"map@{k}"] = partial(average_precision, k=k, normalize="cutoff", empty=empty)
        measures[f"ndcg@{k}"] = partial(ndcg, k=k, empty=empty)
    measures["auc"] = partial(auc, empty="skip")
    return StandardEvaluation("shown", lists.user_ids, _measure(scorer, lists, measures))


def evaluate_catalogue(
    scorer: InteractionScorer,
    train: InteractionLog,
    test: InteractionLog,
    *,
    cutoffs: Sequence[int] = (10,),
    empty: str = "zero",
) -> StandardEvaluation:
    """Rank all items but those the user has seen in training, and measure by the usual conventions.

    Relevant are the preferred items of the test part that the user has not seen in training. Candidates are the items
    that the training part has shown to anyone, since the score of another item means nothing; a relevant item among
    the others counts as missed.

    Args:
        scorer: see :func:`torchrank.training.recommend`.
        train: the part the scorer was trained on.
        test: the test part, of the same id space; every user with a row in it counts.
        cutoffs: the k of ``ndcg@k`` and ``recall@k`` (over all relevant items).
        empty: what a user without a relevant item counts: ``"zero"``, ``"one"`` or ``"skip"``.

    Returns:
        the measures of each user. Scores are held for some hundred or thousand users at once, never for all.

    Raises:
        DataError: the two parts have different id spaces, the test part is empty, or a score is NaN.

    Example:
        >>> from torchrank.data import make_interactions
        >>> log, truth = make_interactions(num_users=50, num_items=40, num_interactions=800)
        >>> sorted(evaluate_catalogue(truth, *log.split_per_user(train=0.8)).mean)
        ['ndcg@10', 'recall@10']
    """
    check_type("train", train, InteractionLog, "the InteractionLog trained on")
    check_type("test", test, InteractionLog, "an InteractionLog")
    if train.num_users != test.num_users or train.num_items != test.num_items:
        raise DataError("train and test have different id spaces; make both by splitting one log")
    lists = ShownLists.from_log(test)
    known, wanted = Catalogue.from_log(train), Catalogue.from_log(test.where(test.preferred))
    never = torch.from_numpy(np.flatnonzero(known.shown == 0))
    values = {f"{name}@{k}": np.empty(len(lists)) for k in cutoffs for name in ("ndcg", "recall")}
    size = batch_size(scorer, train.num_items)
    for first in range(0, len(lists), size):
        part = slice(first, first + size)
        users = lists.users[part]
        seen = _tensors(known.seen(users))
        relevant = torch.zeros(len(users), train.num_items, dtype=torch.bool)
        relevant[_tensors(wanted.seen(users))] = True
        relevant[seen] = False
        scores = score_items(scorer, users, train.num_items).float()
        columns, _, mask = best_items(scores, max(cutoffs), _with_columns(seen, never, len(users)))
        ranking = _as_list(relevant.gather(1, columns) & mask, relevant.sum(1))
        for k in cutoffs:
            values[f"ndcg@{k}"][part] = ndcg(*ranking, k=k, empty=empty).numpy()
            values[f"recall@{k}"][part] = recall(*ranking, k=k, empty=empty).numpy()
    return StandardEvaluation("catalogue", lists.user_ids, values)


def evaluate_loss(scorer: InteractionScorer, test: InteractionLog | ShownLists) -> float:
    """Average the logistic pair loss of the test part: the paper's eq. 1 without the μ term.

    Args:
        scorer: scores ``(users, items)`` pairs of internal indices.
        test: the test part, or its lists.

    Returns:
        the mean, over users with preferred and other test items, of the mean of log(1 + exp(−(s_i − s_j))) over the
        user's pairs of a preferred i and another j.

    Raises:
        DataError: no user has both kinds of items.

    Source: arXiv 1902.08495, eq. 1 and 2, table 3.

    Example:
        >>> import polars as pl
        >>> rows = {"user": [1] * 3, "item": [1, 2, 3], "feedback": [1, 0, 0], "time": range(3)}
        >>> log = InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1)
        >>> round(evaluate_loss(lambda users, items: 0.0 * items, log), 4)  # log 2
        0.6931
    """
    lists = test if isinstance(test, ShownLists) else ShownLists.from_log(test)
    losses = pair_losses(scorer, lists)
    if np.isnan(losses).all():
        raise DataError(NO_PAIR)
    return float(np.nanmean(losses))


def pair_losses(scorer: InteractionScorer, lists: ShownLists) -> NDArray[np.float64]:
    """Average the logistic pair loss of each list: ``(Q,)``, NaN where a list has no pair."""
    losses: NDArray[np.float64] = mean_logistic_loss(
        score_lists(scorer, lists).double().numpy(), lists.preferred, lists.offsets
    )
    return losses


def _measure(
    scorer: InteractionScorer, lists: ShownLists, measures: Mapping[str, _Measure], *, head: int | None = None
) -> dict[str, NDArray[np.float64]]:
    """Measure every list, or the ``head`` items ranked first of every list."""
    values = {name: np.empty(len(lists)) for name in measures}
    for which, scores, relevance, mask in lists.padded(score_lists(scorer, lists)):
        ranking = scores, relevance, mask
        if head is not None:
            first = scores.masked_fill(~mask, -torch.inf).sort(dim=1, descending=True, stable=True)[1][:, :head]
            ranking = scores.gather(1, first), relevance.gather(1, first), mask.gather(1, first)
        for name, measure in measures.items():
            values[name][which] = measure(*ranking).numpy()
    return values


def _tensors(pairs: tuple[NDArray[np.int64], NDArray[np.int64]]) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(pairs[0]), torch.from_numpy(pairs[1])


def _with_columns(pairs: tuple[Tensor, Tensor], columns: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """Add every row's entries in some columns to pairs of rows and columns."""
    more = torch.arange(rows).repeat_interleave(len(columns)), columns.repeat(rows)
    return torch.cat([pairs[0], more[0]]), torch.cat([pairs[1], more[1]])


def _as_list(hits: Tensor, relevant: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Describe whole rankings by their heads: ``(B, K)`` hits in order, and how many are relevant in all.

    What the measures at K or less see of a ranking is its first K items and the number of relevant ones below, so a
    list of these, the latter at its end, measures the same.
    """
    missed = relevant - hits.sum(1)
    below = torch.arange(int(missed.max())) < missed[:, None]
    relevance = torch.cat([hits, below], 1)
    scores = -torch.arange(relevance.shape[1], dtype=torch.float32).expand(relevance.shape)
    return scores, relevance.float(), torch.cat([torch.ones_like(hits), below], 1)
