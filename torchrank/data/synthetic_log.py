"""A seeded interaction log whose best ranking is known."""

from dataclasses import dataclass

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit
from torch import Tensor

from torchrank.data.log import InteractionLog
from torchrank.data.published_tables import LogStatistics
from torchrank.data.synthetic_bots import BotAttack, add_bots
from torchrank.data.synthetic_counts import choose_preferred, deal_items, draw_counts
from torchrank.errors import TorchRankError, check_count, check_seed, check_share


@dataclass(frozen=True, eq=False)
class InteractionTruth:
    """The preferences a synthetic log was drawn from: no scorer ranks better, on average, than this one.

    Called like any scorer, with users and items by internal index.

    Attributes:
        user_factors: ``(num_users, dim)``; 0 for bots, who have no preferences.
        item_factors: ``(num_items, dim)``.
        item_bias: ``(num_items,)``.
        bots: ``(num_users,)`` boolean, True for a bot.
        targets: ``(T,)`` the items that bots click.
    """

    user_factors: Tensor
    item_factors: Tensor
    item_bias: Tensor
    bots: Tensor
    targets: Tensor

    def __repr__(self) -> str:
        (users, dim), items = self.user_factors.shape, len(self.item_bias)
        return f"InteractionTruth({users} users, {int(self.bots.sum())} of them bots, {items} items, dim={dim})"

    def __call__(self, users: Tensor, items: Tensor) -> Tensor:
        """Return the log-odds that each user prefers each item."""
        return (self.user_factors[users] * self.item_factors[items]).sum(-1) + self.item_bias[items]

    def score_all(self, users: Tensor) -> Tensor:
        """Return the log-odds of all items: ``(B,)`` users to ``(B, num_items)``."""
        return self.user_factors[users] @ self.item_factors.T + self.item_bias


def make_interactions(
    *,
    num_users: int = 6000,
    num_items: int = 3000,
    num_interactions: int = 1_000_000,
    dim: int = 4,
    positive_share: float = 0.5,
    sharpness: float = 2.0,
    statistics: LogStatistics | None = None,
    bots: float = 0.0,
    targets: int = 10,
    bot_activity: float = 10.0,
    seed: int = 0,
) -> tuple[InteractionLog, InteractionTruth]:
    """Draw a log of shown items and the feedback on them.

    Users differ in how much they see, items in how often they are shown; what is shown is only loosely related to what
    is liked. A user prefers an item with probability σ(U_u·V_i + b_i), and sees no item twice. With ``statistics``, how
    many items each user prefers is drawn first, and those are the ones with the largest U_u·V_i + b_i + noise, which is
    logistic: the same probabilities but for a constant of each user, which orders nothing.

    Args:
        num_users: users; each is shown at least one item.
        num_items: items to show; those shown to nobody are left out of the log.
        num_interactions: rows.
        dim: length of the user and item vectors.
        positive_share: expected share of preferred rows.
        sharpness: standard deviation of the log-odds: 0 makes preference pure chance.
        statistics: what the log is to look like, in place of ``num_users``, ``num_items``, ``num_interactions`` and
            ``positive_share``; one of :func:`torchrank.data.published_tables`, or your own.
        bots: share of all users who are bots; they come on top of the genuine ones, whose rows they do not change. See
            :func:`torchrank.data.add_bots`.
        targets: how many items bots click.
        bot_activity: interactions of a bot, in means of the genuine users.
        seed: what everything is drawn from.

    Returns:
        the log, whose time is seconds and whose ids are integers from 1, and the preferences it was drawn from.

    Raises:
        TorchRankError: fewer rows than users, or more than half of all pairs; a share outside (0, 1).

    Example:
        >>> log, truth = make_interactions(num_users=20, num_items=50, num_interactions=200, seed=1)
        >>> len(log), log.num_users, truth.item_factors.shape[1]
        (200, 20, 4)
        >>> from torchrank.data import log_statistics, published_statistics
        >>> log, truth = make_interactions(statistics=published_statistics("Pandor").scaled(users=0.01, items=0.1))
        >>> f"{log_statistics(log)['mean_other']:.2f}"
        '10.36'
    """
    for name, value in (("num_users", num_users), ("num_items", num_items), ("num_interactions", num_interactions)):
        check_count(name, value)
    check_count("dim", dim)
    check_seed(seed)
    generator = np.random.default_rng(seed)
    if statistics is not None:
        num_users, num_items, num_interactions = statistics.users, statistics.items, statistics.interactions
        positive_share = statistics.preferred / statistics.interactions
        preferred, others = draw_counts(statistics, generator)
        users = np.repeat(np.arange(num_users), preferred + others)
        items: NDArray[np.integer] = deal_items(preferred + others, num_items, generator)
    elif not num_users <= num_interactions <= num_users * num_items // 2:
        raise TorchRankError(
            f"num_interactions={num_interactions}; give at least one a user, {num_users}, and at most half of all"
            f" pairs, {num_users * num_items // 2}"
        )
    else:
        check_share("positive_share", positive_share)
        users, items = _shown(num_users, num_items, num_interactions, generator)
    user_factors = generator.normal(size=(num_users, dim))
    item_factors = generator.normal(size=(num_items, dim)) / np.sqrt(dim)
    item_bias = generator.normal(size=num_items)
    odds = np.einsum("nd,nd->n", user_factors[users], item_factors[items]) + item_bias[items]
    scale = sharpness / odds.std()
    odds *= scale
    some = odds if statistics is None else odds[:: 1 + num_interactions // 10**6]  # it orders nothing
    level = brentq(lambda shift: expit(some + shift).mean() - positive_share, -50 - 10 * sharpness, 50 + 10 * sharpness)
    if statistics is None:
        liked = generator.random(num_interactions) < expit(odds + level)
    else:
        liked = choose_preferred(odds + generator.logistic(size=num_interactions), users, preferred)
    log = InteractionLog.from_frame(
        pl.DataFrame(
            {
                "user": users + 1,
                "item": items + 1,
                "feedback": liked,
                "time": generator.integers(10 * num_interactions, size=num_interactions),
            }
        ),
        positive_at=1,
    )
    known = log.user_ids - 1, log.item_ids - 1
    attack = BotAttack(log, np.zeros(log.num_users, np.bool_), np.empty(0, np.int64))
    if bots != 0:
        attack = add_bots(log, share=bots, targets=targets, activity=bot_activity, seed=seed)
    factors = np.zeros((attack.log.num_users, dim))
    factors[: log.num_users] = user_factors[known[0]] * scale
    truth = InteractionTruth(
        torch.from_numpy(factors).float(),
        torch.from_numpy(item_factors[known[1]]).float(),
        torch.from_numpy(item_bias[known[1]] * scale + level).float(),
        torch.from_numpy(attack.bots),
        torch.from_numpy(attack.targets),
    )
    return attack.log, truth


def _shown(
    num_users: int, num_items: int, rows: int, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw different (user, item) pairs: active users and popular items more often."""
    activity = generator.lognormal(sigma=0.8, size=num_users)
    popularity = generator.lognormal(sigma=1.0, size=num_items)
    user_odds, item_odds = activity / activity.sum(), popularity / popularity.sum()
    # one row for everybody first, then rounds that replace what was drawn twice
    keys = np.arange(num_users) * num_items + generator.choice(num_items, num_users, p=item_odds)
    while len(keys) < rows:
        missing = int((rows - len(keys)) * 1.1) + 8
        drawn = generator.choice(num_users, missing, p=user_odds) * num_items
        drawn += generator.choice(num_items, missing, p=item_odds)
        both = np.concatenate([keys, drawn])
        keys = both[np.sort(np.unique(both, return_index=True)[1])]
    keys = generator.permutation(keys[:rows])
    return keys // num_items, keys % num_items
