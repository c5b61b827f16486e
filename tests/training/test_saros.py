"""SAROS as a LightningModule: the two engines, what is saved, resumed and refused."""

from functools import partial

import numpy as np
import polars as pl
import pytest
import torch
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from torch import nn
from torch.optim.lr_scheduler import LinearLR
from torch.utils.data import DataLoader

import torchrank
from tests.preference_cases import assert_same_weights, slow_saros
from tests.training.trainers import fit_log, quiet, saved_steps, saving
from torchrank.data import Catalogue, InteractionLog, build_blocks, make_interactions
from torchrank.errors import DataError, TorchRankError
from torchrank.losses import BPRLoss
from torchrank.models import Factorization, FeedbackFactorization
from torchrank.training import InteractionDataModule, SAROSModule, recommend
from torchrank.training.log_scorer import make_scorer

LOG, TRUTH = make_interactions(num_users=40, num_items=60, num_interactions=900, seed=3)
MODEL = {"dim": 4, "init": "normal", "item_bias": True, "seed": 2}
STEPS = {"eta": 0.05, "mu": 0.02}


fit = partial(fit_log, log=LOG)


def reference(epochs=1, *, rule="run", momentum=0.0, feedback=None, users=None, **thresholds):
    """The slow epochs, from the start that a module makes."""
    train, _ = LOG.split_per_user(train=0.8)
    blocks = build_blocks(train, rule=rule)
    if thresholds:
        blocks = blocks.select(**thresholds)
    scorer = make_scorer(train, feedback=feedback, **MODEL)
    starts = np.append(0, np.cumsum(blocks.counts))
    slices = blocks.preferred_start, blocks.preferred_stop, blocks.other_start, blocks.other_stop
    order = np.tile(np.arange(train.num_users), epochs)
    return slow_saros(scorer, order, starts, slices, blocks.items, momentum=momentum, **STEPS)


ENGINES = [{"engine": "sequential"}, {"engine": "batched", "lanes": 1}]


@pytest.mark.parametrize("engine", ENGINES, ids=["sequential", "one lane"])
@pytest.mark.parametrize("rule", ["run", "single", "eager", "positive"])
@pytest.mark.parametrize("feedback", [None, "all"])
def test_both_engines_take_the_published_steps(engine, rule, feedback):
    module = fit(SAROSModule(rule=rule, feedback=feedback, **engine, **MODEL, **STEPS))
    assert_same_weights(module.scorer, reference(rule=rule, feedback=feedback)[0])


@pytest.mark.parametrize("engine", ENGINES, ids=["sequential", "one lane"])
def test_momentum(engine):
    module = fit(SAROSModule(momentum=0.6, **engine, **MODEL, **STEPS), max_epochs=2)
    assert_same_weights(module.scorer, reference(2, momentum=0.6)[0], 3e-5)


@pytest.mark.parametrize("engine", ENGINES, ids=["sequential", "one lane"])
@pytest.mark.parametrize("feedback", [None, "all"])
def test_averaging_predicts_with_the_mean_of_the_starts(engine, feedback):
    module = fit(SAROSModule(averaging=True, feedback=feedback, **engine, **MODEL, **STEPS), max_epochs=2)
    last, _, seen = reference(2, feedback=feedback)
    for name, mean in module.scorer.named_parameters():
        expected = torch.stack([weights[name] for weights in seen]).double().mean(0)
        torch.testing.assert_close(mean.double(), expected, rtol=1e-5, atol=1e-5)
    assert_same_weights(module.average.scorer, last)
    assert int(module.average.starts) == len(seen)


def test_many_lanes_with_averaging_count_every_user_once():
    module = fit(SAROSModule(averaging=True, engine="batched", lanes=7, **MODEL, **STEPS))
    assert int(module.average.starts) == len(reference()[2])


@pytest.mark.parametrize("engine", ENGINES, ids=["sequential", "one lane"])
def test_discarding_before_training_is_rolling_back(engine):
    """The text drops a user after its updates: the weights go back to what they were before the user."""
    train, _ = LOG.split_per_user(train=0.8)
    blocks = build_blocks(train, rule="eager")
    limit = blocks.counts[blocks.counts > 0].mean()
    scorer = make_scorer(train, feedback=None, **MODEL)
    starts = np.append(0, np.cumsum(blocks.counts))
    slices = blocks.preferred_start, blocks.preferred_stop, blocks.other_start, blocks.other_stop
    rolled_back = 0
    for user in range(train.num_users):
        before = scorer
        scorer, _, _ = slow_saros(scorer, [user], starts, slices, blocks.items, **STEPS)
        if blocks.counts[user] > limit:
            scorer, rolled_back = before, rolled_back + 1
    assert rolled_back > 5
    module = fit(SAROSModule(rule="eager", minimum="min", maximum="mean", **engine, **MODEL, **STEPS))
    assert_same_weights(module.scorer, scorer)


def test_truncating_keeps_the_first_blocks():
    module = fit(SAROSModule(maximum=3, overflow="truncate", **MODEL, **STEPS))
    assert_same_weights(module.scorer, reference(minimum=None, maximum=3, overflow="truncate")[0])


VARIANTS = {
    "sequential": {"order": "shuffled", "user_order": "shuffled"},
    "momentum": {"momentum": 0.5},
    "averaging": {"averaging": True, "user_order": "shuffled"},
    "feedback": {"feedback": "all", "order": "shuffled", "averaging": True},
    "batched": {"engine": "batched", "lanes": 5, "order": "shuffled"},
    "adam": {"engine": "batched", "lanes": 5, "optimizer": partial(torch.optim.Adam, lr=0.01), "averaging": True},
}


def variant(name):
    schedule = partial(LinearLR, start_factor=1.0, end_factor=0.2, total_iters=3)
    return SAROSModule(lr_scheduler=schedule, **{"eta": 0.05, "mu": 0.01, **MODEL, **VARIANTS[name]})


@pytest.mark.parametrize("name", VARIANTS)
def test_a_checkpoint_between_users_resumes_exactly(name, tmp_path):
    whole = fit(variant(name), **saving(tmp_path))
    assert_same_weights(fit(variant(name), max_epochs=3), whole, 0)
    steps = saved_steps(tmp_path)
    assert len(steps) == 15
    for stop in (3, 7, 10):  # inside an epoch twice, and at the end of one
        resumed = fit(variant(name), ckpt_path=steps[stop - 1], **saving(tmp_path))
        assert_same_weights(resumed, whole, 0)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_seed_fixes_everything(name):
    one, same = fit(variant(name), max_epochs=2), fit(variant(name), max_epochs=2, steps=11)
    for first, second in zip(one.parameters(), same.parameters(), strict=True):
        torch.testing.assert_close(first, second, rtol=0, atol=3e-6 if name in ("momentum", "adam", "batched") else 0)
    again = fit(variant(name), max_epochs=2)
    assert_same_weights(again, one, 0)
    other = variant(name)
    other.seed = 99
    fit(other, max_epochs=2)
    assert not torch.equal(other.scorer.item_vectors, one.scorer.item_vectors)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_checkpoint_alone_rebuilds_the_module(name, tmp_path):
    module = fit(variant(name), enable_checkpointing=True, default_root_dir=tmp_path)
    module.trainer.save_checkpoint(tmp_path / "m.ckpt")
    again = torchrank.load(tmp_path / "m.ckpt")
    users, items = torch.arange(40), torch.arange(40)
    torch.testing.assert_close(again(users, items), module(users, items), rtol=0, atol=0)
    assert again.eta == module.eta
    assert again.order == module.order
    saved = torch.load(tmp_path / "m.ckpt", weights_only=True)
    frame = recommend(again.scorer, Catalogue.from_state(saved["catalogue"]), [1, 2], k=3)
    assert frame["user"].to_list() == [1] * 3 + [2] * 3


def test_validation_and_early_stopping(tmp_path):
    stop = EarlyStopping("val_loss", patience=2)
    save = ModelCheckpoint(tmp_path, monitor="val_ndcg@10", mode="max")
    module = SAROSModule(**{**MODEL, "dim": 16}, eta=0.3, mu=0)
    fit(module, validation=0.1, max_epochs=60, enable_checkpointing=True, callbacks=[stop, save])
    found = module.trainer.callback_metrics
    assert module.trainer.current_epoch < 60
    assert {"train_loss", "val_loss", "val_ndcg@10", "val_map@10", "val_auc", "val_published_ndcg@10"} <= set(found)
    assert save.best_model_path
    results = module.trainer.test(module, InteractionDataModule(LOG), ckpt_path=save.best_model_path, verbose=False)
    assert 0 < results[0]["test_published_map@10"] <= 1


@pytest.mark.parametrize(("engine", "epochs"), [("sequential", 15), ("batched", 15)])
def test_it_learns(engine, epochs):
    log, truth = make_interactions(num_users=200, num_items=150, num_interactions=10_000, sharpness=3.0, seed=1)
    module = SAROSModule(engine=engine, feedback="all", dim=8, init="normal", item_bias=True, rule="positive", eta=0.05)
    fit(module, log=log, max_epochs=epochs)
    data = InteractionDataModule(log)
    results = module.trainer.test(module, data, verbose=False)[0]
    best = module.trainer.test(Known(truth), data, verbose=False)[0]
    assert results["test_auc"] > 0.5 + 0.75 * (best["test_auc"] - 0.5)


class Known(SAROSModule):
    """The truth a log was drawn from, in place of a scorer."""

    def __init__(self, truth):
        super().__init__()
        self.truth = truth

    def forward(self, users, items):
        return self.truth(users, items)


class Shift(nn.Module):
    """A scorer of one's own, without squared_norms."""

    def __init__(self, num_items=60):
        super().__init__()
        self.num_items = num_items
        self.weight = nn.Parameter(torch.zeros(num_items))

    def forward(self, users, items):
        return self.weight[items]


def test_the_batched_engine_takes_any_scorer_loss_and_optimiser():
    module = SAROSModule(
        Shift(),
        engine="batched",
        mu=0,
        lanes=16,
        loss=BPRLoss(reduction="sum"),
        optimizer=partial(torch.optim.Adam, lr=0.05),
    )
    fit(module, max_epochs=5)
    train, _ = LOG.split_per_user(train=0.8)
    rates = np.bincount(train.items[train.preferred], minlength=60) / np.maximum(
        1, np.bincount(train.items, minlength=60)
    )
    assert np.corrcoef(module.scorer.weight.detach(), rates)[0, 1] > 0.7


def test_sparse_gradients_take_the_same_steps():
    modules = []
    for sparse in (False, True):
        torch.manual_seed(0)
        scorer = Factorization(LOG.num_users, LOG.num_items, 4, item_bias=True, sparse=sparse)
        modules.append(SAROSModule(scorer, engine="batched", lanes=9, loss=BPRLoss(reduction="sum"), **STEPS))
        fit(modules[-1])
    assert_same_weights(modules[1], modules[0], 1e-6)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"engine": "fast"}, "engine='fast'"),
        ({"rule": "ruun"}, "did you mean 'run'"),
        ({"order": "random"}, "order='random'"),
        ({"user_order": "random"}, "user_order"),
        ({"overflow": "drop"}, "overflow"),
        ({"eta": -1.0}, "eta=-1.0"),
        ({"mu": float("nan")}, "mu=nan"),
        ({"momentum": 1.0}, "momentum=1.0"),
        ({"lanes": 0}, "lanes=0"),
        ({"loss": BPRLoss()}, "batched"),
        ({"momentum": 0.5, "averaging": True}, "batched"),
    ],
)
def test_bad_options(options, told):
    with pytest.raises(TorchRankError, match=told):
        SAROSModule(**options)


@pytest.mark.parametrize(
    ("module", "told"),
    [
        (lambda: SAROSModule(Shift()), "Shift"),
        (lambda: SAROSModule(Shift(), engine="batched", mu=0.1), "squared_norms"),
        (lambda: SAROSModule(Factorization(3, 60, 2)), "num_users=3"),
        (lambda: SAROSModule(feedback="all", momentum=0.5), "feedback"),
        (lambda: SAROSModule(minimum=1000), "none within the limits"),
        (lambda: SAROSModule(Factorization(LOG.num_users, LOG.num_items, 2).double()), "float64"),
    ],
)
def test_what_cannot_be_trained_is_refused(module, told):
    with pytest.raises((TorchRankError, DataError), match=told):
        fit(module())


def test_a_log_of_one_kind_and_a_missing_log_are_refused():
    rows = {"user": [1, 1, 2], "item": [1, 2, 3], "feedback": [1, 1, 1], "time": [1, 2, 3]}
    with pytest.raises(DataError, match="no block"):
        fit(SAROSModule(), log=InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1))
    with pytest.raises(TorchRankError, match="no scorer yet"):
        SAROSModule()(torch.tensor([0]), torch.tensor([0]))
    with pytest.raises(DataError, match="InteractionDataModule"):
        quiet().fit(SAROSModule(), DataLoader([1, 2]), DataLoader([1, 2]))


def test_one_user_and_users_without_positives_are_documented_behaviour():
    rows = {"user": [1] * 10 + [2] * 5, "item": range(15), "feedback": [0, 1] * 5 + [0] * 5, "time": range(15)}
    module = fit(SAROSModule(), log=InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1))
    start = make_scorer(LOG, dim=4, init="uniform", item_bias=False, feedback=None, seed=0)
    assert isinstance(start, Factorization)
    assert module.scorer.user_vectors.shape == (2, 4)
    assert isinstance(make_scorer(LOG, **MODEL, feedback="all"), FeedbackFactorization)
