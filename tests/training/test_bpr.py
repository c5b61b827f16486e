"""BPR, batch BPR and MF as LightningModules."""

from functools import partial

import numpy as np
import polars as pl
import pytest
import torch
from torch.optim.lr_scheduler import LinearLR

import torchrank
from tests.preference_cases import assert_same_weights
from tests.training.trainers import fit_log, saved_steps, saving
from torchrank.data import InteractionLog, PairLists, make_interactions
from torchrank.errors import DataError, TorchRankError
from torchrank.losses import BPRLoss
from torchrank.models import Factorization
from torchrank.training import BPRModule, MFModule
from torchrank.training.log_scorer import make_scorer

LOG, _ = make_interactions(num_users=40, num_items=60, num_interactions=900, seed=3)
TRAIN, _ = LOG.split_per_user(train=0.8)
MODEL = {"dim": 4, "init": "normal", "seed": 2}


fit = partial(fit_log, log=LOG)


def frame(rows):
    users, items, feedback = zip(*rows, strict=True)
    return pl.DataFrame({"user": users, "item": items, "feedback": feedback, "time": range(len(rows))})


@pytest.mark.parametrize("pairs", ["shown", "rejection", "unobserved"])
@pytest.mark.parametrize("users", ["random", "each"])
@pytest.mark.parametrize("feedback", [None, "all"])
def test_pairs_one_by_one_are_the_same_in_both_engines(pairs, users, feedback):
    options = {
        "item_bias": True,
        "pairs": pairs,
        "users": users,
        "feedback": feedback,
        "eta": 0.05,
        "mu": 0.02,
        **MODEL,
    }
    one = fit(BPRModule(**options))
    other = fit(BPRModule(engine="batched", batch_size=1, **options))
    assert_same_weights(one.scorer, other.scorer)
    start = make_scorer(TRAIN, **MODEL, item_bias=True, feedback=feedback)
    assert not torch.equal(one.scorer.item_vectors, start.item_vectors)


def test_every_user_once_with_as_many_pairs_as_interactions():
    seen = []

    class Watch(BPRModule):
        def _run_visits(self, visits, *how):
            seen.append((visits.users, visits.pairs))
            return super()._run_visits(visits, *how)

    fit(Watch(users="each"))
    users, pairs = (np.concatenate(x) for x in zip(*seen, strict=True))
    both = PairLists.from_log(TRAIN).with_both_kinds()
    assert sorted(users.tolist()) == both.tolist()
    assert (pairs == np.diff(TRAIN.offsets)[users]).all()


def test_rejections_grow_as_kinds_grow_unequal():
    rows = [(user, item, float(item < 2)) for user in range(20) for item in range(40)]
    log = InteractionLog.from_frame(frame(rows), positive_at=1)
    module = fit(BPRModule(pairs="rejection"), log=log, max_epochs=4)
    train, _ = log.split_per_user(train=0.8)  # 2 of 32 preferred
    assert len(train) == 20 * 32
    expected = 32**2 / (2 * 2 * 30) - 1
    assert float(module.trainer.callback_metrics["rejected"]) == pytest.approx(expected, rel=0.3)


def test_a_user_who_likes_everything_is_skipped_and_counted():
    rows = [(0, item, 1.0) for item in range(10)] + [(1, item, float(item % 2)) for item in range(5)]
    log = InteractionLog.from_frame(frame(rows), positive_at=1)
    whole, _ = log.split_per_user(train=0.99)
    for pairs, skipped in (("unobserved", 0), ("shown", 1), ("rejection", 1)):
        module = fit(BPRModule(pairs=pairs), log=log)
        assert int(module.trainer.callback_metrics["skipped_users"]) == skipped
    assert PairLists.from_log(log).with_unseen()[1] == 1
    assert PairLists.from_log(whole).with_unseen()[1] == 0


def test_a_log_without_pairs_is_refused():
    log = InteractionLog.from_frame(frame([(0, item, 1.0) for item in range(10)]), positive_at=1)
    with pytest.raises(DataError, match="preferred and other"):
        fit(BPRModule(), log=log)
    with pytest.raises(DataError, match="never shown"):
        fit(BPRModule(pairs="unobserved"), log=InteractionLog.from_frame(frame([(0, 1, 0.0)] * 10), positive_at=1))


def test_batch_bpr_steps_on_the_exact_gradient():
    module = fit(BPRModule(item_bias=True, pairs="all", eta=0.5, mu=0, **MODEL), steps=3)
    scorer = make_scorer(TRAIN, item_bias=True, feedback=None, **MODEL)
    optimizer = torch.optim.SGD(scorer.parameters(), lr=0.5)
    users, losses = PairLists.from_log(TRAIN).with_both_kinds(), []
    for _ in range(3):
        own = []
        for user in users.tolist():
            rows = slice(*TRAIN.offsets[user : user + 2])
            items, liked = torch.from_numpy(TRAIN.items[rows]).long(), torch.from_numpy(TRAIN.preferred[rows])
            scores = scorer(torch.full_like(items, user), items)
            own.append(BPRLoss()(*(s.flatten() for s in torch.meshgrid(scores[liked], scores[~liked], indexing="ij"))))
        loss = torch.stack(own).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert_same_weights(module.scorer, scorer)
    assert float(module.trainer.callback_metrics["train_loss_epoch"]) == pytest.approx(np.mean(losses), rel=1e-5)


def test_mf_lowers_its_error():
    module = MFModule(dim=4, eta=0.05, mu=0.001)
    first = float(fit(module).trainer.callback_metrics["train_loss_epoch"])
    assert float(fit(module, max_epochs=30).trainer.callback_metrics["train_loss_epoch"]) < 0.7 * first


VARIANTS = {
    "shown": lambda **o: BPRModule(item_bias=True, offset_mu=0.1, **o),
    "unobserved": lambda **o: BPRModule(pairs="unobserved", users="each", feedback="all", **o),
    "batched": lambda **o: BPRModule(engine="batched", batch_size=64, optimizer=torch.optim.Adam, **o),
    "all": lambda **o: BPRModule(pairs="all", **{**o, "eta": 10.0}),
    "mf": MFModule,
}


def variant(name):
    schedule = partial(LinearLR, start_factor=1.0, end_factor=0.2, total_iters=3)
    return VARIANTS[name](eta=0.05, mu=0.01, lr_scheduler=schedule, **MODEL)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_checkpoint_inside_an_epoch_resumes_exactly(name, tmp_path):
    whole = fit(variant(name), **saving(tmp_path))
    steps = saved_steps(tmp_path)
    assert len(steps) == 15
    for stop in (3, 7, 10):
        resumed = fit(variant(name), ckpt_path=steps[stop - 1], **saving(tmp_path))
        assert_same_weights(resumed, whole, 0)
    again = torchrank.load(steps[-1])
    users, items = torch.arange(40), torch.arange(40)
    torch.testing.assert_close(again(users, items), whole(users, items), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["shown", "unobserved", "mf"])
def test_how_an_epoch_is_cut_changes_nothing(name):
    assert_same_weights(fit(variant(name), steps=11).scorer, fit(variant(name), steps=2).scorer, 0)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"pairs": "seen"}, "pairs='seen'"),
        ({"users": "all"}, "users='all'"),
        ({"engine": "gpu"}, "engine='gpu'"),
        ({"eta": float("inf")}, "eta=inf"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"loss": BPRLoss()}, "batched"),
        ({"engine": "batched", "pairs": "all"}, "sequential"),
        ({"engine": "batched", "offset_mu": 0.1}, "sequential"),
    ],
)
def test_bad_options(options, told):
    with pytest.raises(TorchRankError, match=told):
        BPRModule(**options)


def test_scorers_the_loops_do_not_know_are_refused():
    class Own(Factorization):
        pass

    with pytest.raises(TorchRankError, match="Own"):
        fit(BPRModule(Own(LOG.num_users, LOG.num_items, 2)))
    with pytest.raises(TorchRankError, match="Factorization"):
        fit(BPRModule(pairs="all", feedback="all"))
    with pytest.raises(TorchRankError, match="Factorization"):
        fit(MFModule(make_scorer(TRAIN, feedback="all", item_bias=True, **MODEL)))
