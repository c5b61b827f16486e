"""Train under two processes and write what each saw: ``python ddp_run.py FOLDER QUERIES BATCH_SIZE``."""

import json
import sys
from pathlib import Path

import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint

from torchrank.data import make_queries
from torchrank.losses import SLAMLoss
from torchrank.models import LinearScorer
from torchrank.training import ListwiseModule, QueryDataModule


class Seen(pl.Callback):
    def __init__(self, folder):
        self.folder = folder
        self.lists = {"train": [[], []], "val": [[], []]}

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        self.lists["train"][trainer.current_epoch] += batch.lists.tolist()

    def on_validation_batch_start(self, trainer, module, batch, batch_idx):
        self.lists["val"][trainer.current_epoch] += batch.lists.tolist()

    def on_fit_end(self, trainer, module):
        measured = {name: float(value) for name, value in trainer.callback_metrics.items() if name != "epoch"}
        found = {**self.lists, "weight": module.scorer.weight.tolist(), "measured": measured}
        (self.folder / f"{trainer.global_rank}.json").write_text(json.dumps(found))


def fit(folder, queries, batch_size, *, checkpoint=None, **options):
    made = make_queries(queries).dataset
    trainer = pl.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        callbacks=[Seen(folder), ModelCheckpoint(folder, filename="{epoch}", every_n_epochs=1, save_top_k=-1)],
        **options,
    )
    module = ListwiseModule(LinearScorer(20), SLAMLoss())
    trainer.fit(module, QueryDataModule(train=made, val=made, batch_size=batch_size), ckpt_path=checkpoint)
    return trainer, module


if __name__ == "__main__":
    fit(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), devices=2, strategy="ddp_fork")
