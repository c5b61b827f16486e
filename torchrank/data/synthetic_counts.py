"""Users, items and how often each takes part, drawn so that the totals are exact."""

import itertools

import numpy as np
from numpy.typing import NDArray

from torchrank.data.published_tables import LogStatistics
from torchrank.ops.logs import last_of_each_item

Counts = NDArray[np.int64]
#: rounds in which a repeated item is drawn anew by popularity
_BY_POPULARITY = 6


def draw_counts(statistics: LogStatistics, generator: np.random.Generator) -> tuple[Counts, Counts]:
    """Draw how many items each user prefers, and how many others each is shown.

    Args:
        statistics: what the log is to look like.
        generator: drawn from.

    Returns:
        two of ``(users,)``, each at least 1 and at most a quarter of the items, whose means are the statistics'.
    """
    activity = generator.pareto(statistics.tail, statistics.users) + 0.01
    most = statistics.items // 4
    totals = statistics.preferred, statistics.interactions - statistics.preferred
    first, second = (
        allot(total, activity * generator.lognormal(sigma=0.5, size=statistics.users), most=most) for total in totals
    )
    return first, second


def allot(total: int, weights: NDArray[np.float64], *, most: int) -> Counts:
    """Share a total out by weights, at least 1 and at most ``most`` each.

    Args:
        total: from the number of weights to ``most`` times that.
        weights: ``(n,)``, above 0.
        most: the largest share.

    Returns:
        ``(n,)`` that add up to ``total``.

    Example:
        >>> allot(10, np.array([1.0, 1.0, 8.0]), most=5).tolist()
        [3, 2, 5]
    """
    counts = np.ones(len(weights), np.int64)
    open_, left = np.arange(len(weights)), total - len(weights)
    while True:
        share = left * weights[open_] / weights[open_].sum()
        full = share >= most - 1
        if not full.any():
            break
        counts[open_[full]] = most
        open_, left = open_[~full], left - (most - 1) * int(full.sum())
        if not len(open_):
            return counts
    whole = share.astype(np.int64)
    counts[open_] += whole
    most_left = np.argsort(whole - share, kind="stable")[: left - int(whole.sum())]
    counts[open_[most_left]] += 1
    return counts


def deal_items(shown: Counts, num_items: int, generator: np.random.Generator) -> NDArray[np.int32]:
    """Deal items to users, popular ones more often, every item to somebody and none to anybody twice.

    Args:
        shown: ``(num_users,)`` items for each user, at most half of all.
        num_items: items there are, at most the sum of ``shown``.
        generator: drawn from.

    Returns:
        ``(N,)`` items, user by user.
    """
    total = int(shown.sum())
    popularity = allot(total, generator.lognormal(sigma=1.0, size=num_items), most=total)
    items = generator.permutation(np.repeat(np.arange(num_items, dtype=np.int32), popularity))
    offsets = np.append(0, np.cumsum(shown))
    for turn in itertools.count():
        single, repeated = last_of_each_item(items, offsets, num_items)
        if repeated < 0:
            break
        again = np.flatnonzero(~single)
        # by popularity at first; then from all items alike, at least half of which are new to the user
        pool = items[generator.integers(total, size=len(again))] if turn < _BY_POPULARITY else None
        items[again] = generator.integers(num_items, size=len(again)) if pool is None else pool
    while len(missing := np.flatnonzero((counts := np.bincount(items, minlength=num_items)) == 0)):
        spare = np.flatnonzero(counts[items] > 1)
        items[generator.choice(spare, min(len(missing), len(spare)), replace=False)] = missing[: len(spare)]
    return items


def choose_preferred(odds: NDArray[np.floating], users: NDArray[np.integer], preferred: Counts) -> NDArray[np.bool_]:
    """Mark each user's rows of the largest odds.

    Args:
        odds: ``(N,)``, noise included.
        users: ``(N,)``, ascending.
        preferred: ``(num_users,)`` how many rows of each user to mark.

    Returns:
        ``(N,)``.
    """
    order = np.argsort(users - 1 / (1 + np.exp(-odds.astype(np.float64))))
    shown = np.bincount(users, minlength=len(preferred))
    place = np.arange(len(users)) - np.repeat(np.cumsum(shown) - shown, shown)
    marks = np.empty(len(users), np.bool_)
    marks[order] = place < np.repeat(preferred, shown)
    return marks
