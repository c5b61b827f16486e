"""Train a small ranker and, if asked, die in the middle: ``python resume_run.py FOLDER [DIE_AT_STEP]``."""

import os
import signal
import sys
from pathlib import Path

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint

from torchrank.data import make_queries
from torchrank.losses import SLAMLoss
from torchrank.models import AttentionScorer
from torchrank.training import ListwiseModule, QueryDataModule

EPOCHS = 3


class Seen(pl.Callback):
    """Which lists came in which batch of which epoch."""

    def __init__(self):
        self.batches = []

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        self.batches.append((trainer.current_epoch, batch_idx, batch.lists.tolist()))


class Die(pl.Callback):
    def __init__(self, step):
        self.step = step

    def on_train_batch_start(self, trainer, *_):
        if trainer.global_step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


def train(folder, *callbacks, checkpoint=None, every=1, **options):
    """Train, dropout included; return the weights and what was seen."""
    torch.manual_seed(0)
    scorer = AttentionScorer(20, dim=8, heads=2, layers=1, dropout=0.5)
    module = ListwiseModule(scorer, SLAMLoss())
    data = QueryDataModule(
        train=make_queries(70).dataset, val=make_queries(10, seed=1).dataset, batch_size=16, max_padding=0.3, seed=5
    )
    seen = Seen()
    save = ModelCheckpoint(folder, filename="{step}", every_n_train_steps=every, save_top_k=-1)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    trainer = pl.Trainer(callbacks=[save, seen, *callbacks], **{"max_epochs": EPOCHS, **quiet, **options})
    trainer.fit(module, data, ckpt_path=checkpoint)
    return torch.cat([p.detach().flatten() for p in module.parameters()]), seen.batches


if __name__ == "__main__":
    train(Path(sys.argv[1]), *(Die(int(step)) for step in sys.argv[2:]), every=4)
