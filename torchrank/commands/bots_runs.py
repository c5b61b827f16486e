"""Training under attack: methods with and without thresholds on a log with bots, measured on the genuine users."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torchrank.commands.method_choice import Choice, Trained
from torchrank.data.blocks import build_blocks
from torchrank.data.log import InteractionLog
from torchrank.data.published_tables import LogStatistics
from torchrank.data.synthetic_bots import add_bots
from torchrank.data.synthetic_log import InteractionTruth, make_interactions
from torchrank.metrics import ndcg
from torchrank.training.bpr import BPRModule
from torchrank.training.evaluation import evaluate_shown
from torchrank.training.interaction_fitting import fit_interactions
from torchrank.training.recommendation import score_items
from torchrank.training.saros import SAROSModule
from torchrank.training.shown_lists import ShownLists
from torchrank.types import InteractionScorer

#: thresholds as published: b the smallest and B the mean number of blocks a user has in the training log
LIMITS: dict[str, dict[str, Any]] = {
    "saros": {},
    "saros_discard": {"minimum": "min", "maximum": "mean"},
    "saros_truncate": {"minimum": "min", "maximum": "mean", "overflow": "truncate"},
}
MEASURES = {"ndcg@10": "NDCG@10", "auc": "AUC", "targets@10": "targets among the ten best"}
_SHARED = {"dim": 16, "init": "normal"}
_SAROS = tuple({"eta": eta, "mu": mu, "epochs": 15} for eta in (0.1, 0.3) for mu in (0.005, 0.02))
_BPR = tuple({"eta": 0.05, "mu": mu, "epochs": 15} for mu in (0.005, 0.02))
METHODS: dict[str, Trained] = {
    "saros": Trained("SAROS, every user", SAROSModule, {**_SHARED, "user_order": "shuffled"}, _SAROS),
    "saros_discard": Trained(
        "SAROS, users outside [b, B] left out",
        SAROSModule,
        {**_SHARED, "user_order": "shuffled", **LIMITS["saros_discard"]},
        _SAROS,
    ),
    "saros_truncate": Trained(
        "SAROS, each user's first B blocks",
        SAROSModule,
        {**_SHARED, "user_order": "shuffled", **LIMITS["saros_truncate"]},
        _SAROS,
    ),
    "bpr": Trained("BPR on pairs of shown items, every user", BPRModule, {**_SHARED, "users": "each"}, _BPR),
}


@dataclass(frozen=True, eq=False)
class Attacked:
    """A log with bots, split in time, and what is known of its genuine users.

    Attributes:
        train: everybody's first interactions; methods learn from these.
        lists: the genuine users' last interactions.
        truth: the preferences that the log was drawn from.
        targets: items that bots click, or would.
        known: all items, as far as the genuine training part shows them.
    """

    train: InteractionLog
    lists: ShownLists
    truth: InteractionTruth
    targets: torch.Tensor
    known: torch.Tensor

    @classmethod
    def of(cls, statistics: LogStatistics, *, share: float, targets: int, activity: float, seed: int) -> "Attacked":
        """Draw a log and split it; the genuine users' part depends on the statistics and the seed alone."""
        log, truth = make_interactions(
            statistics=statistics, bots=share, targets=targets, bot_activity=activity, seed=seed
        )
        train, test = log.split_per_user(train=0.8)
        genuine = ~truth.bots.numpy()
        lists = ShownLists.from_log(test.where(genuine[test.users]))
        ours = train.where(genuine[train.users])
        chosen = torch.from_numpy(add_bots(log, share=0, targets=targets, seed=seed).targets)
        return cls(train, lists, truth, chosen, torch.from_numpy(np.unique(ours.items)).long())


def run_attack(method: Trained, choice: Choice, attacked: Attacked, *, seed: int) -> dict[str, float]:
    """Train a method on the log with its bots and measure what genuine users get.

    Args:
        method: what to train.
        choice: its setting.
        attacked: the log.
        seed: of the training.

    Returns:
        the values of :data:`MEASURES`, and the seconds of training.
    """
    assert choice.epochs is not None  # noqa: S101 - for the type checker: these are trained by epochs
    module = method.make(seed, choice.setting)
    seconds = fit_interactions(module, attacked.train, epochs=choice.epochs)
    return {**measure(module.scorer, attacked), "seconds": seconds}


def measure(scorer: InteractionScorer, attacked: Attacked) -> dict[str, float]:
    """Measure a scorer on the genuine users.

    Args:
        scorer: what was trained.
        attacked: the log.

    Returns:
        ``ndcg@10`` of all items that the genuine users' training part shows, the true probability of preference as
        gain; ``auc`` of each user's own test items; and ``targets@10``, the share of target items among the ten
        ranked first.
    """
    auc = evaluate_shown(scorer, attacked.lists).mean["auc"]
    genuine = torch.from_numpy(np.flatnonzero(~attacked.truth.bots.numpy()))
    targets = torch.isin(attacked.known, attacked.targets)
    gains, taken = [], []
    for first in range(0, len(genuine), 1024):
        users = genuine[first : first + 1024]
        scores = score_items(scorer, users.numpy(), attacked.train.num_items)[:, attacked.known].float()
        chance = attacked.truth.score_all(users)[:, attacked.known].sigmoid()
        gains.append(ndcg(scores, chance, k=10, gain="linear"))
        taken.append(targets[scores.topk(10).indices].float().mean(1))
    return {
        "ndcg@10": float(torch.cat(gains).mean()),
        "auc": float(auc),
        "targets@10": float(torch.cat(taken).mean()),
    }


def count_limits(attacked: Attacked) -> dict[str, dict[str, float | None]]:
    """Count what the thresholds leave of the genuine users and of the bots.

    Args:
        attacked: the log.

    Returns:
        for each of :data:`LIMITS`: ``genuine_users`` and ``bots`` who have a block left, ``genuine_blocks`` and
        ``bot_blocks`` left, as shares of those there were (None where there were none), and the threshold ``B``.
    """
    blocks = build_blocks(attacked.train)
    bots = attacked.truth.bots.numpy()
    found: dict[str, dict[str, float | None]] = {}
    for name, limits in LIMITS.items():
        left = blocks.select(**limits).counts if limits else blocks.counts
        found[name] = {"B": float(blocks.counts[blocks.counts > 0].mean())}
        for who, key in ((~bots, "genuine_{}"), (bots, "bot_{}")):
            had = blocks.counts[who]
            found[name][key.format("users")] = _share(float((left[who] > 0).sum()), float((had > 0).sum()))
            found[name][key.format("blocks")] = _share(float(left[who].sum()), float(had.sum()))
    return found


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def summarise(runs: Mapping[str, list[float]]) -> dict[str, Any]:
    """Return means, deviations between seeds, and the values themselves."""
    return {
        name: {"mean": float(np.mean(each)), "std": float(np.std(each, ddof=1)) if len(each) > 1 else 0.0, "each": each}
        for name, each in runs.items()
    }
