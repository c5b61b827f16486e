"""GRU4Rec as a LightningModule, against one lane at a time in plain Python."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from torch.optim.lr_scheduler import LinearLR

import torchrank
from tests.preference_cases import assert_same_weights
from tests.training.trainers import fit_log, saved_steps, saving
from torchrank.data import Catalogue, InteractionLog, make_interactions
from torchrank.errors import DataError, TorchRankError
from torchrank.losses import BPRMaxLoss, SampledSoftmaxLoss, TOP1MaxLoss, top1_loss
from torchrank.models import Factorization
from torchrank.ops.rates import smoothed_log_odds
from torchrank.training import GRU4RecModule, evaluate_shown, fit_interactions, recommend
from torchrank.training.sessions import Sessions

LOG, _ = make_interactions(num_users=40, num_items=60, num_interactions=900, seed=3)
TRAIN, _ = LOG.split_per_user(train=0.8)
MODEL = {"dim": 4, "lanes": 6, "unroll": 3, "seed": 2}


fit = partial(fit_log, log=LOG)


def one_by_one(scorer, table, sequence, starts, *, unroll, eta):
    """Each lane by itself, one item a step, states reset where a sequence begins."""
    optimizer = torch.optim.SGD(scorer.parameters(), lr=eta)
    lanes = table.shape[1]
    states = [torch.zeros(1, 1, scorer.dim) for _ in range(lanes)]
    for first in range(0, len(table), unroll):
        states = [state.detach() for state in states]
        losses = []
        for rows in table[first : first + unroll]:
            active = [lane for lane in range(lanes) if rows[lane] >= 0]
            following = {lane: int(sequence[rows[lane] + 1]) for lane in active}
            for lane in active:
                if rows[lane] in starts:
                    states[lane] = torch.zeros(1, 1, scorer.dim)
                told = scorer.input_vectors[int(sequence[rows[lane]])]
                states[lane] = scorer.gru(told[None, None], states[lane])[1]
            for lane in active:
                others = [following[other] for other in active if following[other] != following[lane]]
                if others:
                    scores = scorer.item_vectors @ states[lane][0, 0]
                    losses.append(top1_loss(scores[following[lane]][None], scores[others][None])[0])
        if losses:  # a lane alone has nothing to be compared with
            optimizer.zero_grad()
            torch.stack(losses).mean().backward()
            optimizer.step()


@pytest.mark.parametrize("unroll", [1, 4])
def test_an_epoch_is_its_lanes_one_by_one(unroll):
    options = {**MODEL, "unroll": unroll, "eta": 0.5}
    module = fit(GRU4RecModule(optimizer=partial(torch.optim.SGD, lr=0.5), **options))
    start = fit(GRU4RecModule(**options), limit_train_batches=0).scorer
    sessions = Sessions.from_log(TRAIN)
    table = sessions.lay_out(np.random.default_rng([2, 0, 2, 0]), lanes=6)
    begins = set(sessions.starts[:-1][np.diff(sessions.starts) > 0].tolist())
    expected = start
    assert not torch.equal(expected.item_vectors, module.scorer.item_vectors)
    one_by_one(expected, table, sessions.items, begins, unroll=unroll, eta=0.5)
    assert_same_weights(module.scorer, expected)


VARIANTS = {
    "published": {},
    "dropout": {"dropout": 0.4, "layers": 2, "samples": 5},
    "softmax": {"loss": SampledSoftmaxLoss(), "samples": 7, "exponent": 0.0, "item_bias": True},
    "max": {"loss": TOP1MaxLoss(), "optimizer": torch.optim.Adam},
    "shown": {"loss": BPRMaxLoss(), "negatives": "shown", "samples": 3},
}


def variant(name):
    schedule = partial(LinearLR, start_factor=1.0, end_factor=0.2, total_iters=3)
    return GRU4RecModule(lr_scheduler=schedule, **MODEL, **VARIANTS[name])


def test_a_checkpoint_inside_an_epoch_resumes_exactly(tmp_path):
    name = "dropout"

    whole = fit(variant(name), **saving(tmp_path))
    steps = saved_steps(tmp_path)
    assert len(steps) == 15
    for stop in (3, 10):
        torch.manual_seed(stop)  # what others have drawn since plays no part
        resumed = fit(variant(name), ckpt_path=steps[stop - 1], **saving(tmp_path))
        assert_same_weights(resumed, whole, 0)
    again = torchrank.load(steps[-1])
    users, items = torch.arange(40), torch.arange(40)
    torch.testing.assert_close(again(users, items), whole.eval()(users, items), rtol=0, atol=0)
    saved = torch.load(steps[-1], weights_only=True)
    frame = recommend(again.scorer, Catalogue.from_state(saved["catalogue"]), [1, 2], k=3)
    assert frame["user"].to_list() == [1] * 3 + [2] * 3


@pytest.mark.parametrize("name", VARIANTS)
def test_a_seed_fixes_everything_and_how_an_epoch_is_cut_changes_nothing(name):
    one = fit(variant(name))
    assert_same_weights(fit(variant(name), steps=11), one, 0)
    other = variant(name)
    other.seed = 99
    assert not torch.equal(fit(other).scorer.item_vectors, one.scorer.item_vectors)
    assert all(bool(p.isfinite().all()) for p in one.parameters())
    fresh = fit(variant(name), limit_train_batches=0).scorer
    for before, after in zip(fresh.parameters(), one.scorer.parameters(), strict=True):
        assert not torch.equal(before, after)  # everything is trained


def test_a_second_fit_drops_as_the_first(monkeypatch):
    module = GRU4RecModule(dropout=0.5, **MODEL)
    fit_interactions(module, TRAIN, epochs=1)
    assert not module.scorer.training
    dropping = []
    monkeypatch.setattr(
        module.scorer,
        "read",
        lambda *a, read=module.scorer.read: (dropping.append(module.scorer.training), read(*a))[1],
    )
    fit_interactions(module, TRAIN, epochs=1)
    assert dropping
    assert all(dropping)


def test_training_leaves_other_random_numbers_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    module = variant("dropout")
    torch.manual_seed(5)
    fit(module)
    assert torch.equal(torch.rand(3), expected)


def ring_log():
    """Every user walks round a ring of items from a random place."""
    generator = np.random.default_rng(0)
    rows = []
    for user in range(60):
        place = generator.integers(20)
        for step in range(12):
            rows.append((user, int((place + step) % 20), 1.0))
    users, items, feedback = zip(*rows, strict=True)
    frame = pl.DataFrame({"user": users, "item": items, "feedback": feedback, "time": range(len(rows))})
    return InteractionLog.from_frame(frame, positive_at=1)


@pytest.mark.parametrize("loss", [None, TOP1MaxLoss(), BPRMaxLoss(), SampledSoftmaxLoss()])
def test_it_learns_what_comes_next(loss):
    log = ring_log()
    module = GRU4RecModule(dim=24, lanes=12, unroll=8, eta=0.2, loss=loss, samples=10, exponent=0.0)
    train, _ = log.split_per_user(train=0.95)  # all but the last item
    fit_interactions(module, train, epochs=20)
    best = module.scorer.score_all(torch.arange(60)).argmax(1).numpy()
    last = log.items[log.offsets[1:] - 1]
    assert (best == last).mean() > 0.9


def test_shown_negatives_teach_what_users_do_not_prefer():
    log, _ = make_interactions(num_users=150, num_items=100, num_interactions=6000, sharpness=4.0, seed=1)
    train, test = log.split_per_user(train=0.8)
    found = {}
    for negatives in ("lanes", "shown"):
        module = GRU4RecModule(dim=16, lanes=16, negatives=negatives, samples=8, loss=SampledSoftmaxLoss(), eta=0.1)
        fit_interactions(module, train, epochs=8)
        found[negatives] = evaluate_shown(module.scorer, test).mean["auc"]
    assert found["shown"] > found["lanes"] + 0.05


def test_offsets_start_at_the_log_odds():
    module = fit(GRU4RecModule(item_bias=True, **MODEL), limit_train_batches=0)
    counts = Catalogue.from_log(TRAIN)
    expected = smoothed_log_odds(torch.from_numpy(counts.positives), torch.from_numpy(counts.shown))
    torch.testing.assert_close(module.scorer.item_offsets[:, 0].detach(), expected.float())


def test_what_a_step_reads():
    sessions = Sessions.from_log(TRAIN)
    table = sessions.lay_out(np.random.default_rng(0), lanes=6)
    owner = np.repeat(np.arange(40), np.diff(sessions.starts))
    read, before = [], None
    for first in range(0, len(table), 4):
        step = sessions.step(table[first : first + 4])
        assert step.lengths.sum() == len(step.rows) == len(step.targets) == int(step.real.sum()) == int(step.mask.sum())
        assert torch.equal(step.pieces[step.mask], torch.from_numpy(sessions.items[step.rows.numpy()]).long())
        assert torch.equal(step.targets, torch.from_numpy(sessions.items[step.rows.numpy() + 1]).long())
        ends = step.lengths.cumsum(0)
        for piece in range(len(step.lengths)):
            rows = step.rows[ends[piece] - step.lengths[piece] : ends[piece]].numpy()
            assert (np.diff(rows) == 1).all()
            assert len(set(owner[rows])) == 1
            goes_on = before is not None and int(rows[0]) - 1 in before
            assert bool(step.resumed[piece]) == goes_on == (int(rows[0]) not in sessions.starts)
        before = set(step.rows.tolist())
        read += step.rows.tolist()
    assert len(read) == len(set(read)) == int(np.maximum(np.diff(sessions.starts) - 1, 0).sum())


def test_draws_are_of_the_users_own_others():
    sessions = Sessions.from_log(TRAIN)
    rows = np.arange(len(sessions.items))
    drawn, some = sessions.draw_others(rows, 5, np.random.default_rng(0))
    users = TRAIN.users[TRAIN.preferred]
    for row in rows:
        own = set(TRAIN.items[(TRAIN.users == users[row]) & ~TRAIN.preferred].tolist())
        assert set(drawn[row][some[row]].tolist()) <= own
        assert bool(some[row].all()) == bool(own)


def test_validation_measures(tmp_path):
    module = fit(GRU4RecModule(**MODEL), validation=0.1)
    assert {"train_loss", "val_loss", "val_ndcg@10", "val_auc"} <= set(module.trainer.callback_metrics)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"lanes": 0}, "lanes=0"),
        ({"unroll": 0}, "unroll=0"),
        ({"negatives": "lane"}, "did you mean 'lanes'"),
        ({"negatives": "shown"}, "samples=1"),
        ({"lanes": 1}, "lanes=2"),
        ({"samples": -1}, "samples=-1"),
        ({"eta": float("nan")}, "eta=nan"),
        ({"exponent": float("inf")}, "exponent=inf"),
    ],
)
def test_bad_options(options, told):
    with pytest.raises(TorchRankError, match=told):
        GRU4RecModule(**options)


def test_what_cannot_be_trained_is_refused():
    with pytest.raises(TorchRankError, match="not a Factorization"):
        fit(GRU4RecModule(Factorization(40, 60, 4)))
    frame = pl.DataFrame({"user": [0, 1, 2], "item": [0, 1, 2], "feedback": [1.0, 1.0, 0.0], "time": [0, 1, 2]})
    with pytest.raises(DataError, match="two preferred items"):
        fit_interactions(GRU4RecModule(), InteractionLog.from_frame(frame, positive_at=1), epochs=1)
    other = fit(GRU4RecModule(**MODEL), limit_train_batches=0).scorer
    with pytest.raises(DataError, match="num_users"):
        fit_interactions(GRU4RecModule(other), ring_log(), epochs=1)


KILLED = """
import os, signal, sys
import pytorch_lightning as lightning
from tests.training.test_gru4rec import fit, variant, ModelCheckpoint
class Die(lightning.Callback):
    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        if trainer.current_epoch == 1 and batch_idx == 2:
            os.kill(os.getpid(), signal.SIGKILL)
save = ModelCheckpoint(sys.argv[1], filename="{epoch}-{step}", every_n_train_steps=1, save_top_k=-1)
fit(variant("dropout"), enable_checkpointing=True, callbacks=[save, Die()], max_epochs=2)
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_weights(tmp_path):
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=root, env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    last = max(tmp_path.glob("*.ckpt"), key=lambda path: int(path.stem.split("step=")[1]))
    assert last.stem.startswith("epoch=1")
    saving = {"enable_checkpointing": True, "max_epochs": 2}
    resumed = fit(
        variant("dropout"), ckpt_path=last, callbacks=[ModelCheckpoint(tmp_path, every_n_train_steps=1)], **saving
    )
    assert_same_weights(resumed, fit(variant("dropout"), max_epochs=2), 0)
