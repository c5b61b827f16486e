"""Train a small chain and, if asked, die in the middle: ``python chain_run.py FOLDER [DIE_AT_STEP]``."""

import os
import signal
import sys
from functools import partial
from pathlib import Path

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint

from torchrank.data import make_sequences
from torchrank.models import LinearChain
from torchrank.training import ChainModule, SequenceDataModule


class Die(pl.Callback):
    def __init__(self, step):
        self.step = step

    def on_train_batch_start(self, trainer, *_):
        if trainer.global_step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


def train(folder, *callbacks, checkpoint=None, every=1):
    module = ChainModule(
        LinearChain(8, 6, start=True), optimizer=partial(torch.optim.Adagrad, lr=0.1, weight_decay=1e-4)
    )
    data = SequenceDataModule(
        train=make_sequences(70).dataset, val=make_sequences(10, seed=1).dataset, batch_size=16, seed=5
    )
    save = ModelCheckpoint(folder, filename="{step}", every_n_train_steps=every, save_top_k=-1)
    trainer = pl.Trainer(
        callbacks=[save, *callbacks],
        max_epochs=3,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accelerator="cpu",
    )
    trainer.fit(module, data, ckpt_path=checkpoint)
    return module


if __name__ == "__main__":
    train(Path(sys.argv[1]), *(Die(int(step)) for step in sys.argv[2:]), every=2)
