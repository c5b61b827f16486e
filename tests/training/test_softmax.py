"""Learning preferences by a softmax against the batch or a sample."""

from functools import partial

import numpy as np
import polars as pl
import pytest
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from torch import nn

import torchrank
from tests.preference_cases import assert_same_weights, factorization, feedback, log_arrays
from tests.training.trainers import fit_log
from torchrank.data import InteractionLog, make_interactions
from torchrank.errors import DataError, TorchRankError
from torchrank.models import Factorization
from torchrank.training import SoftmaxModule, evaluate_catalogue, fit_interactions
from torchrank.training.log_scorer import make_scorer

LOG, _ = make_interactions(num_users=60, num_items=80, num_interactions=1800, seed=3)
TRAIN, _ = LOG.split_per_user(train=0.8)


def tastes(groups=4, users=15, items=20, liked=10):
    """Users of each group like items of their own group alone."""
    generator = np.random.default_rng(0)
    rows = [
        (group * users + user, group * items + int(item))
        for group in range(groups)
        for user in range(users)
        for item in generator.permutation(items)[:liked]
    ]
    columns = {"user": [u for u, _ in rows], "item": [i for _, i in rows], "feedback": [1.0] * len(rows)}
    return InteractionLog.from_frame(pl.DataFrame({**columns, "time": range(len(rows))}), positive_at=1)


TASTES = tastes().split_per_user(train=0.8)
OPTIONS = {"dim": 8, "batch_size": 64, "eta": 0.02, "seed": 2}


class TwoTowers(nn.Module):
    """A scorer of one's own: an MLP over each side's table."""

    def __init__(self, num_users, num_items, dim=8):
        super().__init__()
        self.num_users, self.num_items, self.dim = num_users, num_items, dim
        self.users, self.items = nn.Embedding(num_users, dim), nn.Embedding(num_items, dim)
        self.tower = nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, dim))

    def embed_users(self, users):
        return self.tower(self.users(users))

    def embed_items(self, items):
        return self.items(items)

    def forward(self, users, items):
        return (self.embed_users(users) * self.embed_items(items)).sum(-1)


fit = partial(fit_log, log=LOG, max_epochs=2)


@pytest.mark.parametrize("item_bias", [True, False])
def test_embeddings_multiply_to_the_scores(item_bias):
    users, items, preferred, _ = log_arrays()
    for model in (factorization(item_bias=item_bias), feedback(users, items, preferred, item_bias=item_bias)):
        some, chosen = torch.tensor([0, 3, 3, 8]), torch.tensor([1, 0, 11, 5])
        products = model.embed_users(some) @ model.embed_items(torch.arange(12)).T
        torch.testing.assert_close(products, model.score_all(some))
        torch.testing.assert_close(products.gather(1, chosen[:, None]).squeeze(1), model(some, chosen))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"feedback": "preferred", "item_bias": True},
        {"correct_positive": False},
        {"negatives": "sampled", "samples": 32},
        {"negatives": "sampled", "samples": 32, "power": 0.75, "correct_positive": False},
    ],
    ids=str,
)
def test_it_finds_the_tastes_that_made_a_log(options):
    """A user's two test items are among the twelve of the group not seen in training: by chance NDCG@10 is about 0.6
    of the best inside the group, and 0.06 over the catalogue."""
    train, test = TASTES
    module = SoftmaxModule(**{**OPTIONS, **options})
    fit_interactions(module, train, epochs=12)
    assert evaluate_catalogue(module.scorer, train, test).mean["ndcg@10"] > 0.3


def test_a_step_is_adam_on_the_mean_loss():
    module = fit(SoftmaxModule(**{**OPTIONS, "batch_size": 10**6, "mu": 0.1}), steps=1, max_epochs=1)
    scorer = make_scorer(TRAIN, dim=8, init="normal", item_bias=False, feedback=None, seed=2)
    optimizer = torch.optim.Adam(scorer.parameters(), lr=0.02)
    liked = TRAIN.preferred
    users, items = torch.from_numpy(TRAIN.users[liked]).long(), torch.from_numpy(TRAIN.items[liked]).long()
    scores = scorer.user_vectors[users] @ scorer.item_vectors[items].T
    scores = scores - torch.bincount(items)[items].log()
    hits = (items == items[:, None]).fill_diagonal_(False)
    each = -scores.masked_fill(hits, -torch.inf).log_softmax(1).diagonal()
    norms = scorer.user_vectors[users].square().sum(1) + scorer.item_vectors[items].square().sum(1)
    (each + 0.1 * norms).mean().backward()
    optimizer.step()
    assert_same_weights(module.scorer, scorer, tolerance=1e-4)
    assert float(module.trainer.callback_metrics["train_loss"]) == pytest.approx(each.mean().item(), rel=1e-4)


def test_a_scorer_of_ones_own_with_vectors():
    torch.manual_seed(0)
    module = SoftmaxModule(TwoTowers(LOG.num_users, LOG.num_items), batch_size=64, eta=0.02)
    before = module.scorer.tower[0].weight.detach().clone()
    fit_interactions(module, TRAIN, epochs=3)
    assert not torch.equal(module.scorer.tower[0].weight, before)

    class Opaque(Factorization):
        embed_users = property()

    with pytest.raises(TorchRankError, match="Opaque has no embed_users"):
        fit(SoftmaxModule(Opaque(LOG.num_users, LOG.num_items, 4)))


def test_a_run_goes_on_where_it_stood(tmp_path):
    options = {**OPTIONS, "negatives": "sampled", "samples": 16}
    whole = fit(SoftmaxModule(**options), max_epochs=3)
    keep = ModelCheckpoint(tmp_path, every_n_train_steps=7, save_top_k=-1, filename="{step}")
    fit(SoftmaxModule(**options), max_epochs=3, enable_checkpointing=True, callbacks=[keep])
    path = sorted(tmp_path.glob("*.ckpt"))[0]
    again = ModelCheckpoint(tmp_path, every_n_train_steps=7, save_top_k=-1, filename="{step}")
    resumed = fit(SoftmaxModule(**options), max_epochs=3, ckpt_path=path, enable_checkpointing=True, callbacks=[again])
    assert_same_weights(resumed.scorer, whole.scorer, tolerance=0)
    assert torchrank.load(path).negatives == "sampled"


def test_what_cannot_be_trained_is_refused():
    with pytest.raises(TorchRankError, match="negatives"):
        SoftmaxModule(negatives="bach")
    with pytest.raises(TorchRankError, match="samples=0"):
        SoftmaxModule(samples=0)
    with pytest.raises(TorchRankError, match="power"):
        SoftmaxModule(power=-1.0)
    rows = {"user": [1, 1], "item": [1, 2], "feedback": [0.0, 0.0], "time": [1, 2]}
    with pytest.raises(DataError, match="prefers"):
        fit_interactions(SoftmaxModule(), InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1), epochs=1)
