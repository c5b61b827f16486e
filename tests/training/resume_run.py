"""Train a small ranker and, if asked, die in the middle: ``python resume_run.py FOLDER [DIE_AT_STEP]``."""

import os
import signal
import sys
from pathlib import Path

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from torch.nn.functional import softplus

from torchrank.data import make_queries
from torchrank.models import LinearScorer
from torchrank.training.query_data import QueryDataModule

EPOCHS = 3


class Ranker(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.scorer = LinearScorer(20)
        self.seen = []

    def training_step(self, batch, batch_idx):
        self.seen.append((self.current_epoch, batch_idx, batch.lists.tolist()))
        scores = self.scorer(batch.features, batch.mask)
        return (softplus(scores) - (batch.relevance > 0) * scores)[batch.mask].mean()

    def validation_step(self, batch, batch_idx):
        pass

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-2)


class Die(pl.Callback):
    def __init__(self, step):
        self.step = step

    def on_train_batch_start(self, trainer, *_):
        if trainer.global_step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


def train(folder, *callbacks, checkpoint=None, every=1, **options):
    module = Ranker()
    data = QueryDataModule(
        train=make_queries(70).dataset, val=make_queries(10, seed=1).dataset, batch_size=16, max_padding=0.3, seed=5
    )
    save = ModelCheckpoint(folder, filename="{step}", every_n_train_steps=every, save_top_k=-1)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    trainer = pl.Trainer(callbacks=[save, *callbacks], **{"max_epochs": EPOCHS, **quiet, **options})
    trainer.fit(module, data, ckpt_path=checkpoint)
    return module


if __name__ == "__main__":
    train(Path(sys.argv[1]), *(Die(int(step)) for step in sys.argv[2:]), every=4)
