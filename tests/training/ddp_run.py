"""Train under two processes and write what each saw: ``python ddp_run.py FOLDER QUERIES BATCH_SIZE``."""

import json
import sys
from pathlib import Path

import pytorch_lightning as pl
import torch
from torch.nn.functional import softplus

from torchrank.data import make_queries
from torchrank.models import LinearScorer
from torchrank.training import QueryDataModule


class Ranker(pl.LightningModule):
    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        self.scorer = LinearScorer(20)
        self.seen = {"train": [[], []], "val": [[], []]}

    def training_step(self, batch, batch_idx):
        self.seen["train"][self.current_epoch] += batch.lists.tolist()
        scores = self.scorer(batch.features, batch.mask)
        return (softplus(scores) - (batch.relevance > 0) * scores)[batch.mask].sum()

    def validation_step(self, batch, batch_idx):
        self.seen["val"][self.current_epoch] += batch.lists.tolist()

    def on_fit_end(self):
        found = {**self.seen, "weight": self.scorer.weight.tolist()}
        (self.folder / f"{self.global_rank}.json").write_text(json.dumps(found))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-2)


if __name__ == "__main__":
    folder, queries, batch_size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    made = make_queries(queries).dataset
    trainer = pl.Trainer(
        max_epochs=2,
        accelerator="cpu",
        devices=2,
        strategy="ddp_fork",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(Ranker(folder), QueryDataModule(train=made, val=made, batch_size=batch_size))
