"""A scorer of your own under SAROS: two towers over what is known about users and items.

    python docs/tutorials/two_towers_under_saros.py

Users and items have attributes; a network maps each side to a vector, and a score is the inner product. SAROS needs no
more of a scorer than ``forward(users, items)``: ``engine="batched"`` cuts the log into blocks, takes one block of many
users at once, and leaves the gradient to autograd. Such a scorer answers for items that nobody has been shown, which a
vector a item cannot.
"""

import numpy as np
import polars as pl
import torch
from torch import nn

from torchrank.data import InteractionLog
from torchrank.metrics import auc
from torchrank.training import SAROSModule, evaluate_shown, fit_interactions


class TwoTowers(nn.Module):
    """Score by the inner product of two networks' outputs, plus what the item is worth to everybody."""

    def __init__(self, user_features, item_features, dim=16):
        super().__init__()
        # Attributes are no parameters: buffers move to a device and into a checkpoint with the module.
        self.register_buffer("user_features", user_features)
        self.register_buffer("item_features", item_features)
        self.dim = dim
        self.users = nn.Sequential(nn.Linear(user_features.shape[1], 32), nn.ReLU(), nn.Linear(32, dim))
        self.items = nn.Sequential(nn.Linear(item_features.shape[1], 32), nn.ReLU(), nn.Linear(32, dim + 1))

    def forward(self, users, items):
        """Score pairs: ``(...)`` indices each to ``(...)``."""
        item = self.items(self.item_features[items])
        return (self.users(self.user_features[users]) * item[..., :-1]).sum(-1) + item[..., -1]


def world(*, users=300, items=200, shown=40, unseen=40, seed=0):
    """Attributes, a log of the first items, and what users think of the last ones, which the log does not show."""
    random = np.random.default_rng(seed)
    user, item = random.normal(size=(users, 8)), random.normal(size=(items, 6))
    taste = random.normal(size=(8, 6)) / 4
    log_odds = user @ taste @ item.T
    liked = random.random(log_odds.shape) < 1 / (1 + np.exp(-2 * log_odds))
    rows = [(u, int(i)) for u in range(users) for i in random.permutation(items - unseen)[:shown]]
    owner, what = (np.array(column) for column in zip(*rows, strict=True))
    frame = pl.DataFrame({"user": owner, "item": what, "feedback": liked[owner, what], "time": np.arange(len(rows))})
    log = InteractionLog.from_frame(frame.with_columns(pl.col("feedback").cast(pl.Int8)), positive_at=1)
    # A log numbers ids by first appearance: put the attributes in its order.
    order = np.concatenate([log.item_ids, np.arange(items - unseen, items)])
    return torch.tensor(user[log.user_ids]).float(), torch.tensor(item[order]).float(), log, liked[:, items - unseen :]


def main(*, epochs=15):
    """Train on blocks, and compare on shown and on never shown items."""
    torch.manual_seed(0)
    user_features, item_features, log, unseen_liked = world()
    train, test = log.split_per_user(train=0.8)
    # lanes: how many users take a step together. The gradients of their blocks are summed, so eta is a block's.
    module = SAROSModule(
        TwoTowers(user_features, item_features), engine="batched", order="shuffled", lanes=16, eta=0.02, mu=0.0
    )
    report = {"auc before": evaluate_shown(module.scorer, test).mean["auc"]}
    fit_interactions(module, train, epochs=epochs)
    report["auc after"] = evaluate_shown(module.scorer, test).mean["auc"]
    new = torch.arange(log.num_items, len(item_features))
    with torch.no_grad():
        users = torch.arange(log.num_users)[:, None].expand(-1, len(new))
        scores = module(users, new.expand(len(users), -1))
    liked = torch.from_numpy(unseen_liked[log.user_ids]).float()
    report["auc, items never shown"] = auc(scores, liked, empty="skip").nanmean().item()
    return report


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value:.4f}")
