"""The best unseen items of many users, by original ids, in batches that never hold users × items."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchrank.data.catalogue import Catalogue
from torchrank.errors import DataError, TorchRankError, check_count, check_option, check_type
from torchrank.ops.rates import smoothed_rate
from torchrank.ops.topk import top_k
from torchrank.types import InteractionScorer

#: scores held at once where the scorer offers ``score_all``, and where every pair goes through ``forward``
_DENSE, _PAIRS = 2**22, 2**18


def recommend(
    scorer: InteractionScorer,
    catalogue: Catalogue,
    users: Any = None,
    *,
    k: int = 10,
    unknown: str = "error",
    exclude_seen: bool = True,
) -> pl.DataFrame:
    """Recommend each user's k best items.

    Candidates are the items that the training log has shown to anyone: the score of another item means nothing.

    Args:
        scorer: scores ``(users, items)`` pairs of internal indices; a method ``score_all(users)`` that returns
            ``(B, num_items)`` is used where there is one.
        catalogue: of the log the scorer was trained on.
        users: original ids, a sequence, array or series; every user with an interaction by default.
        k: items a user; users with fewer candidates get fewer rows.
        unknown: what a user without an interaction in the training log gets: ``"error"``, or ``"item_rate"``: the items
            of the largest smoothed share of positive feedback.
        exclude_seen: whether items the user has seen are left out.

    Returns:
        columns ``user``, ``item``, ``rank`` from 1, ``score`` and ``by`` (``"model"`` or ``"item_rate"``, whose scores
        do not compare), users in the order asked for.

    Raises:
        DataError: an unknown user and ``unknown="error"``, ids of another type than the log's, or a NaN score.
        TorchRankError: ``k`` below 1 or an unknown word.

    Example:
        >>> from torchrank.data import InteractionLog
        >>> rows = {"user": ["a", "a", "b"], "item": ["x", "y", "y"], "feedback": [1, 0, 1], "time": [1, 2, 3]}
        >>> log = InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1)
        >>> recommend(lambda users, items: 1.0 - items, Catalogue.from_log(log), ["b"], k=2).rows()
        [('b', 'x', 1, 1.0, 'model')]
    """
    parts = list(recommend_batches(scorer, catalogue, users, k=k, unknown=unknown, exclude_seen=exclude_seen))
    return pl.concat(parts)


def recommend_batches(
    scorer: InteractionScorer,
    catalogue: Catalogue,
    users: Any = None,
    *,
    k: int = 10,
    unknown: str = "error",
    exclude_seen: bool = True,
) -> Iterator[pl.DataFrame]:
    """Yield what :func:`recommend` returns in parts of some hundred or thousand users; at least one part."""
    check_option("unknown", unknown, ["error", "item_rate"])
    check_count("k", k)
    check_type("catalogue", catalogue, Catalogue, "a Catalogue, as Catalogue.from_log(log) makes one")
    if not callable(scorer):
        raise TorchRankError(f"scorer is a {type(scorer).__name__}; give what scores (users, items)")
    shown = np.append(np.diff(catalogue.offsets), 0)  # the last entry is for index -1, an unknown id
    index = np.flatnonzero(shown) if users is None else catalogue.user_index(users)
    names = catalogue.user_ids[index] if users is None else np.asarray(users)
    known = shown[index] > 0
    if unknown == "error" and not known.all():
        first = names[~known].tolist()[0]
        raise DataError(
            f"{int((~known).sum())} users have no interaction in the training log, the first is {first!r}; leave them"
            ' out or answer them with unknown="item_rate"'
        )
    rates = smoothed_rate(torch.from_numpy(catalogue.positives), torch.from_numpy(catalogue.shown)).float()
    size = batch_size(scorer, catalogue.num_items)
    for start in range(0, max(len(index), 1), size):
        part = slice(start, start + size)
        scores = rates.repeat(len(index[part]), 1)
        rows = np.flatnonzero(known[part])
        if len(rows):
            known_scores = score_items(scorer, index[part][rows], catalogue.num_items).float()
            scores = scores.to(known_scores.device).index_copy(
                0, torch.from_numpy(rows).to(known_scores.device), known_scores
            )
        excluded = _excluded(catalogue, index[part], rows if exclude_seen else rows[:0])
        yield _frame(catalogue, names[part], known[part], best_items(scores, min(k, catalogue.num_items), excluded))


def best_items(scores: Tensor, k: int, exclude: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Take the k best items of each row where the scores are, and bring only these to the CPU.

    Args:
        scores: ``(B, I)`` on any device.
        k: how many.
        exclude: rows ``(P,)`` and items ``(P,)`` to leave out, on the CPU.

    Returns:
        ``(B, k)`` items, scores and mask on the CPU.

    Raises:
        DataError: a NaN score.
    """
    rows, items = exclude
    items, best, mask = (x.cpu() for x in top_k(scores, k, exclude=(rows.to(scores.device), items.to(scores.device))))
    if bool(best.isnan().any()):  # NaN counts as the largest score, so it is among the best
        raise DataError("a score is NaN; a ranking needs comparable scores")
    return items, best, mask


def batch_size(scorer: InteractionScorer, num_items: int) -> int:
    """Return how many users' scores of all items are held at once."""
    return max(1, (_DENSE if hasattr(scorer, "score_all") else _PAIRS) // num_items)


@torch.no_grad()
def score_items(scorer: InteractionScorer, users: NDArray[np.integer], num_items: int) -> Tensor:
    """Score every item for some users.

    Args:
        scorer: see :func:`recommend`.
        users: ``(B,)`` internal indices.
        num_items: items of the id space.

    Returns:
        ``(B, num_items)`` on the scorer's device.
    """
    index = torch.from_numpy(np.asarray(users, np.int64)).to(device_of(scorer))
    if hasattr(scorer, "score_all"):
        every: Tensor = scorer.score_all(index)
        return every
    items = torch.arange(num_items, device=index.device).repeat(len(index))
    return scorer(index.repeat_interleave(num_items), items).view(len(index), num_items)


def device_of(scorer: object) -> torch.device:
    """Return where a scorer's parameters are; the CPU where it has none."""
    first = next(scorer.parameters(), None) if isinstance(scorer, torch.nn.Module) else None
    return torch.device("cpu") if first is None else first.device


def _excluded(catalogue: Catalogue, users: NDArray[np.int64], known_rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
    """Rows and items to leave out: what known users have seen, and what nobody has."""
    rows, items = catalogue.seen(users[known_rows])
    never = np.flatnonzero(catalogue.shown == 0)
    rows = np.concatenate([known_rows[rows], np.repeat(np.arange(len(users)), len(never))])
    return torch.from_numpy(rows), torch.from_numpy(np.concatenate([items, np.tile(never, len(users))]))


def _frame(
    catalogue: Catalogue, names: NDArray[Any], known: NDArray[np.bool_], best: tuple[Tensor, Tensor, Tensor]
) -> pl.DataFrame:
    items, scores, mask = (x.numpy() for x in best)
    rows, ranks = np.nonzero(mask)
    by = pl.Series("by", ["item_rate", "model"], dtype=pl.String).gather(known[rows].astype(np.uint32))
    return pl.DataFrame(
        {
            "user": pl.Series(names).gather(rows),
            "item": pl.Series(catalogue.item_ids).gather(items[rows, ranks]),
            "rank": ranks.astype(np.int32) + 1,
            "score": scores[rows, ranks],
            "by": by,
        }
    )
