"""SLAM on an interaction log: each user a list of what was shown, a factorisation as scorer, beside SAROS.

    python docs/tutorials/slam_on_logs.py                                  # a synthetic log
    python docs/tutorials/slam_on_logs.py ratings.dat --positive-at 4      # MovieLens, or any log that read_log reads

A list loss does not care where lists come from. Here a batch is some users, the documents of a list are the items the
user was shown, relevance is whether they were preferred, and scores are U_u·V_i + b_i. SLAM-MAP charges each preferred
item for the best-scored other one, SAROS steps on the mean over the pairs of a block; both start from the same weights.
"""

import argparse

import numpy as np
import torch

from torchrank.data import make_interactions, read_log
from torchrank.losses import SLAMLoss
from torchrank.ops import ragged_to_padded
from torchrank.training import SAROSModule, evaluate_shown, fit_interactions
from torchrank.training.log_scorer import make_scorer

MODEL = {"dim": 16, "init": "normal", "item_bias": True}


def fit_slam(log, *, epochs, l2, step=0.01, users_a_step=64):
    """Train a factorisation by Adam on the mean SLAM-MAP loss of some users' lists."""
    scorer = make_scorer(log, feedback=None, seed=0, **MODEL)
    loss, optimizer = SLAMLoss(measure="map"), torch.optim.Adam(scorer.parameters(), lr=step)
    random = np.random.default_rng(0)
    users = np.flatnonzero(np.diff(log.offsets))
    for _ in range(epochs):
        for some in np.array_split(random.permutation(users), max(1, len(users) // users_a_step)):
            part = log.where(np.isin(log.users, some))
            present = np.flatnonzero(np.diff(part.offsets))
            offsets = torch.from_numpy(np.append(part.offsets[present], len(part)))
            items, mask = ragged_to_padded(torch.from_numpy(part.items.astype(np.int64)), offsets)
            relevance, _ = ragged_to_padded(torch.from_numpy(part.preferred).float(), offsets)
            owners = torch.from_numpy(present)[:, None].expand_as(items)
            user, item = scorer.squared_norms(owners, items)
            penalty = ((user + item) * mask).sum() / mask.sum()
            objective = loss(scorer(owners, items), relevance, mask) + l2 * penalty
            optimizer.zero_grad()
            objective.backward()
            optimizer.step()
    return scorer


def main(log=None, *, epochs=20):
    """Train both, and order each user's last fifth."""
    if log is None:
        log, _ = make_interactions(num_users=400, num_items=300, num_interactions=24_000, seed=0)
    train, test = log.split_per_user(train=0.8)
    fit, val = train.split_per_user(train=0.9)
    # each chooses its strength of shrinking on the last tenth of the training part
    tried = {l2: fit_slam(fit, epochs=epochs, l2=l2) for l2 in (0.01, 0.03, 0.1)}
    l2 = max(tried, key=lambda one: evaluate_shown(tried[one], val).mean["ndcg@10"])
    modules = {mu: SAROSModule(**MODEL, eta=0.05, mu=mu, order="shuffled", seed=0) for mu in (0.01, 0.02, 0.04)}
    for module in modules.values():
        fit_interactions(module, fit, epochs=epochs)
    mu = max(modules, key=lambda one: evaluate_shown(modules[one].scorer, val).mean["ndcg@10"])
    saros = SAROSModule(**MODEL, eta=0.05, mu=mu, order="shuffled", seed=0)
    fit_interactions(saros, train, epochs=epochs)
    start = make_scorer(train, feedback=None, seed=0, **MODEL)
    scorers = {"item rates": start, "SLAM-MAP": fit_slam(train, epochs=epochs, l2=l2), "SAROS": saros.scorer}
    report = {"λ of SLAM": l2, "μ of SAROS": mu}
    for name, scorer in scorers.items():
        found = evaluate_shown(scorer, test).mean
        report |= {f"{measure}, {name}": found[measure] for measure in ("ndcg@10", "map@10", "auc")}
    return report


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", nargs="?")
    parser.add_argument("--positive-at", type=float, default=4)
    parser.add_argument("--feedback", default="feedback")
    parser.add_argument("--time", default="time")
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()
    columns = {"feedback": args.feedback, "time": args.time}
    given = None if args.log is None else read_log(args.log, positive_at=args.positive_at, **columns)
    for name, value in main(given, epochs=args.epochs).items():
        print(f"{name}: {value:.4f}")
