"""A run resumed from what a resumed run saved, wherever the two were stopped, ends as one that never stopped."""

from functools import partial

import pytest
import pytorch_lightning as pl
import torch

from tests.training.trainers import quiet
from torchrank.data import make_interactions, make_objects, make_queries, make_sequences
from torchrank.losses import SLAMLoss
from torchrank.models import AttentionScorer, LinearChain
from torchrank.training import (
    BPRModule,
    ChainModule,
    CurveModule,
    GRU4RecModule,
    InteractionDataModule,
    ListwiseModule,
    MFModule,
    PerceptronModule,
    QueryDataModule,
    SAROSModule,
    SequenceDataModule,
    SoftmaxModule,
    TableDataModule,
)

EPOCHS, EPOCH = 4, 5  # EPOCH is the steps of one
falling = partial(torch.optim.lr_scheduler.ExponentialLR, gamma=0.5)


def interactions():
    log, _ = make_interactions(num_users=30, num_items=80, num_interactions=900)
    return InteractionDataModule(log, steps_per_epoch=EPOCH)


def queries():
    return QueryDataModule(
        train=make_queries(40).dataset, val=make_queries(8, seed=1).dataset, batch_size=8, max_padding=1
    )


RUNS = {
    "saros": (lambda: SAROSModule(order="shuffled", user_order="shuffled", lr_scheduler=falling), interactions),
    "saros momentum": (lambda: SAROSModule(momentum=0.5, item_bias=True), interactions),
    "saros average": (lambda: SAROSModule(averaging=True, init="normal"), interactions),
    "batched": (lambda: SAROSModule(engine="batched", lanes=4, order="shuffled", lr_scheduler=falling), interactions),
    "bpr": (lambda: BPRModule(lr_scheduler=falling), interactions),
    "mf": (lambda: MFModule(lr_scheduler=falling), interactions),
    "gru4rec": (lambda: GRU4RecModule(dim=4, dropout=0.5, lr_scheduler=falling), interactions),
    "softmax": (lambda: SoftmaxModule(lr_scheduler=falling), interactions),
    "listwise": (lambda: ListwiseModule(AttentionScorer(20, dim=8, heads=2, dropout=0.5), SLAMLoss()), queries),
    "perceptron": (lambda: PerceptronModule(20), queries),
    "chain": (
        lambda: ChainModule(LinearChain(8, 6)),
        lambda: SequenceDataModule(
            train=make_sequences(40).dataset, val=make_sequences(8, seed=1).dataset, batch_size=8
        ),
    ),
    "curve": (
        lambda: CurveModule([1, 1, -1], lr_scheduler=falling),
        lambda: TableDataModule(make_objects(200).points, batch_size=36),
    ),
}


class KilledError(Exception):
    pass


class Save(pl.Callback):
    """Saves after every step, and dies after one of them."""

    def __init__(self, folder, last):
        self.folder, self.last = folder, last

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        step = EPOCH * trainer.current_epoch + batch_idx + 1
        trainer.save_checkpoint(self.folder / f"{step}.ckpt")
        if step == self.last:
            raise KilledError


class Steps(pl.Callback):
    """The step sizes and the state of the counters, step by step."""

    def __init__(self):
        self.seen = {}

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        rates = [group["lr"] for optimizer in trainer.optimizers for group in optimizer.param_groups]
        self.seen[trainer.current_epoch, batch_idx] = trainer.global_step, rates


def train(name, folder, steps, limit, *, ckpt=None, last=None):
    """Train, and return the weights; None when killed."""
    torch.manual_seed(0)
    module, data = (make() for make in RUNS[name])
    trainer = quiet(**limit, callbacks=[Save(folder, last), steps])
    try:
        trainer.fit(module, datamodule=data, ckpt_path=ckpt)
    except KilledError:
        return None
    return module.state_dict()


@pytest.mark.parametrize("name", RUNS)
def test_kill_after_kill(name, tmp_path):
    check_kill_after_kill(name, tmp_path, {"max_epochs": EPOCHS})


@pytest.mark.parametrize("name", ["saros", "mf", "listwise", "perceptron", "chain", "curve"])
def test_kill_after_kill_of_a_run_of_so_many_steps(name, tmp_path):
    check_kill_after_kill(name, tmp_path, {"max_epochs": -1, "max_steps": EPOCH * EPOCHS})


def check_kill_after_kill(name, tmp_path, limit):
    unbroken, found = Steps(), Steps()
    whole = train(name, tmp_path, unbroken, limit)
    assert list(unbroken.seen) == [(epoch, step) for epoch in range(EPOCHS) for step in range(EPOCH)]
    ckpt = None
    for last in (EPOCH - 2, EPOCH, EPOCH + 2, EPOCH + 3, 2 * EPOCH, 2 * EPOCH + 1, 3 * EPOCH):
        assert train(name, tmp_path, found, limit, ckpt=ckpt, last=last) is None
        ckpt = tmp_path / f"{last}.ckpt"
    again = train(name, tmp_path, found, limit, ckpt=ckpt)
    assert found.seen == unbroken.seen
    for key, weight in whole.items():
        assert torch.equal(weight, again[key]), key
