"""Bots in a log: users who click a few target items over and over."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torchrank.data.log import InteractionLog
from torchrank.errors import DataError, TorchRankError, check_number
from torchrank.ops.logs import user_offsets


class BotAttack(NamedTuple):
    """A log with bots in it.

    Attributes:
        log: the genuine users first, with the internal indices they had, then the bots.
        bots: ``(num_users,)`` boolean, True for a bot.
        targets: ``(T,)`` internal indices of the items that bots click.

    Example:
        >>> from torchrank.data import make_interactions
        >>> log, _ = make_interactions(num_users=30, num_items=40, num_interactions=300)
        >>> attack = add_bots(log, share=0.25, targets=1)
        >>> bots = attack.log.where(attack.bots[attack.log.users])
        >>> len(set(bots.items[bots.preferred]))
        1
    """

    log: InteractionLog
    bots: NDArray[np.bool_]
    targets: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"BotAttack({self.log!r}, {int(self.bots.sum())} bots, {len(self.targets)} targets)"


def add_bots(
    log: InteractionLog, *, share: float, targets: int = 10, activity: float = 10.0, seed: int = 0
) -> BotAttack:
    """Add bots that are shown items as others are and click nothing but target items.

    A bot has ``activity`` times as many interactions as the mean user, by turns an item shown by popularity and not
    preferred, and a target item, preferred: every second row closes a block, whatever the rule. It repeats items.

    Args:
        log: of genuine users; every item is one that they know.
        share: bots among all users, from 0 to below 1.
        targets: how many items are clicked; drawn from all alike.
        activity: interactions of a bot, in means of the genuine users.
        seed: what bots are drawn from. The targets are the same for every share.

    Returns:
        the log, who is a bot, and what they click. The genuine rows are as they were.

    Raises:
        TorchRankError: an option out of its range.
        DataError: user ids that are neither integers nor strings, or no item but targets.

    Source: arXiv 1902.08495, section 3: "bot attacks in the form of excessive clicks over some target items".

    Example:
        >>> from torchrank.data import make_interactions
        >>> log, _ = make_interactions(num_users=90, num_items=60, num_interactions=900)
        >>> attack = add_bots(log, share=0.1, targets=2, activity=5)
        >>> int(attack.bots.sum()), len(attack.log) - len(log)
        (10, 500)
    """
    check_number("activity", activity, above=0)
    if not 0 <= share < 1:
        raise TorchRankError(f"share={share!r}; give bots' share of all users, from 0 to below 1")
    if not 1 <= targets < log.num_items:
        raise TorchRankError(f"targets={targets!r}; give from 1 to fewer than the {log.num_items} items")
    generator = np.random.default_rng([seed, 2])
    chosen = generator.choice(log.num_items, targets, replace=False)
    genuine = int((np.diff(log.offsets) > 0).sum())
    bots = round(share * genuine / (1 - share))
    marks = np.arange(log.num_users + bots) >= log.num_users
    if bots == 0:
        return BotAttack(log, marks, chosen)
    turns = max(1, round(activity * len(log) / genuine / 2))
    rows = (bots, turns, 2)
    shown = log.items[~np.isin(log.items, chosen)]
    if not len(shown):
        raise DataError(f"all {len(log):,} rows show target items, so there is nothing else to show to bots")
    items = np.empty(rows, np.int32)
    items[..., 0] = shown[generator.integers(len(shown), size=rows[:2])]
    items[..., 1] = chosen[generator.integers(targets, size=rows[:2])]
    clicked = np.broadcast_to(np.array([False, True]), rows)
    liked = np.broadcast_to(np.array([log.feedback.min(), log.feedback.max()], log.feedback.dtype), rows)
    users = np.concatenate([log.users, np.repeat(np.arange(log.num_users, len(marks), dtype=np.int32), 2 * turns)])
    attacked = replace(
        log,
        users=users,
        items=np.concatenate([log.items, items.ravel()]),
        preferred=np.concatenate([log.preferred, clicked.ravel()]),
        feedback=np.concatenate([log.feedback, liked.ravel()]),
        times=np.concatenate([log.times, _times(log.times, bots, 2 * turns, generator)]),
        offsets=user_offsets(users, len(marks)),
        user_ids=np.concatenate([log.user_ids, _new_ids(log.user_ids, bots)]),
    )
    return BotAttack(attacked, marks, chosen)


def _times(times: NDArray[Any], bots: int, rows: int, generator: np.random.Generator) -> NDArray[Any]:
    """Draw times of the log for each bot, ascending."""
    drawn: NDArray[Any] = np.sort(times[generator.integers(len(times), size=(bots, rows))], axis=1)
    return drawn.ravel()


def _new_ids(ids: NDArray[Any], count: int) -> NDArray[Any]:
    if ids.dtype.kind in "iu":
        return (int(ids.max()) + 1 + np.arange(count)).astype(ids.dtype)
    if ids.dtype.kind == "O" and isinstance(ids[0], str):
        longest = max(map(len, ids))  # so long a name is nobody's
        return np.array([f"bot{number:0{longest}}" for number in range(count)], object)
    raise DataError(f"user ids of {ids.dtype} have no next one; make them integers or strings")
