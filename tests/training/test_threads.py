"""Several threads on the same tables: the same steps where users share no item, nearly as good where they do."""

from functools import partial

import numpy as np
import polars as pl
import pytest
import torch

from tests.preference_cases import assert_same_weights
from torchrank.data import InteractionLog, make_interactions
from torchrank.errors import TorchRankError
from torchrank.training import BPRModule, MFModule, SAROSModule, evaluate_shown, fit_interactions

MODEL = {"dim": 4, "init": "normal", "item_bias": True, "mu": 0.01, "seed": 1}
MODULES = {
    "saros": partial(SAROSModule, **MODEL, eta=0.05),
    "saros, feedback": partial(SAROSModule, **MODEL, eta=0.05, feedback="all"),
    "bpr": partial(BPRModule, **MODEL, eta=0.05, users="each"),
    "bpr, feedback": partial(BPRModule, **MODEL, eta=0.05, users="each", feedback="all"),
    "mf": partial(MFModule, dim=4, eta=0.02),
}


def apart(threads):
    """Users that different threads take are shown different items."""
    generator = np.random.default_rng(0)
    rows = [
        {
            "user": user,
            "item": threads * int(item) + user % threads,
            "feedback": int(generator.random() < 0.5),
            "time": t,
        }
        for user in range(30)
        for t, item in enumerate(generator.integers(12, size=20))
    ]
    return InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1)


@pytest.mark.parametrize("name", ["saros", "saros, feedback", "mf"])
def test_threads_whose_users_share_no_item_take_the_steps_of_one(name):
    log = apart(3)
    one, three = MODULES[name](), MODULES[name](threads=3)
    for module in (one, three):
        fit_interactions(module, log, epochs=2, steps_per_epoch=4)
    assert_same_weights(three.scorer, one.scorer, 1e-6)


@pytest.mark.parametrize("name", MODULES)
def test_threads_learn_as_well_as_one(name):
    log, _ = make_interactions(num_users=200, num_items=150, num_interactions=10_000, sharpness=3.0, seed=1)
    train, test = log.split_per_user(train=0.8)
    found = []
    for threads in (1, 3):
        module = MODULES[name](threads=threads)
        fit_interactions(module, train, epochs=6)
        found.append(evaluate_shown(module.scorer, test).mean["auc"])
    assert found[0] > 0.6
    assert found[1] == pytest.approx(found[0], abs=0.02)


def test_each_thread_draws_pairs_of_its_own():
    log, _ = make_interactions(num_users=60, num_items=80, num_interactions=1500, seed=2)
    first = []
    for _ in range(2):
        module = BPRModule(dim=4, users="random", threads=2)
        fit_interactions(module, log, epochs=1, steps_per_epoch=1)
        assert bool(torch.isfinite(module.scorer.item_vectors).all())
        first.append(int(module.draw_state))
    assert first[0] == first[1] != 0


def test_what_needs_one_thread_says_so():
    for make in (SAROSModule, BPRModule, MFModule):
        with pytest.raises(TorchRankError, match="threads=0"):
            make(threads=0)
    for options in ({"engine": "batched"}, {"momentum": 0.5}, {"averaging": True}):
        with pytest.raises(TorchRankError, match="threads=2"):
            SAROSModule(threads=2, **options)
    with pytest.raises(TorchRankError, match="threads=2"):
        BPRModule(threads=2, pairs="all")
