"""Learn preferences under several processes and write what each saw: ``python -m … FOLDER PROCESSES CASE…``."""

import sys
from functools import partial
from pathlib import Path

import pandas as pd
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint

from torchrank.data import make_interactions, prepare_log
from torchrank.models import Factorization
from torchrank.training import BPRModule, InteractionDataModule, MFModule, SAROSModule, saros

USERS, ITEMS, STEPS = 41, 60, 5
LOG, _ = make_interactions(num_users=USERS, num_items=ITEMS, num_interactions=900, seed=3)
FEW, _ = make_interactions(num_users=5, num_items=60, num_interactions=150, seed=3)  # of four processes one has no user
MODEL = {"dim": 4, "init": "normal", "item_bias": True, "seed": 2, "mu": 0.02}
SAROS = partial(SAROSModule, **MODEL, eta=0.05)
BATCHED = partial(SAROS, engine="batched", lanes=8)
BPR = partial(BPRModule, **MODEL, eta=0.05, users="each")


def own_scorer(sparse):
    torch.manual_seed(2)
    return Factorization(USERS, ITEMS, 4, init="normal", item_bias=True, sparse=sparse)


CASES = {
    "mean": SAROS,
    "sum": partial(SAROS, combine="sum", order="shuffled", user_order="shuffled"),
    "feedback": partial(SAROS, feedback="all"),
    "few": SAROS,
    "few batched": BATCHED,
    "batched": BATCHED,
    "batched feedback": partial(BATCHED, feedback="all"),
    "momentum": partial(BATCHED, momentum=0.5),
    "averaging": partial(BATCHED, averaging=True),
    "adam": partial(BATCHED, optimizer=partial(torch.optim.Adam, lr=0.01)),
    "sparse": lambda: BATCHED(own_scorer(True), optimizer=partial(torch.optim.SGD, lr=0.05)),
    "bpr": BPR,
    "bpr batched": partial(BPR, engine="batched", batch_size=64),
    "disk": partial(SAROS, user_order="shuffled"),
    "disk batched": BATCHED,
    "disk bpr": BPR,
    "disk mf": partial(MFModule, dim=4, seed=2, eta=0.05),
    "mf": partial(MFModule, dim=4, seed=2, eta=0.05),
}


def log_of(name, folder):
    """The log of a case, of some on disk in three partitions."""
    if not name.startswith("disk"):
        return FEW if name.startswith("few") else LOG
    columns = {"user": LOG.users, "item": LOG.items, "feedback": LOG.preferred.astype(float), "time": LOG.times}
    file = Path(folder, "log.csv")
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(columns).to_csv(file, index=False)
    return prepare_log(file, Path(folder, "prepared"), positive_at=1, partitions=3)


class Saw(pl.Callback):
    """The users and pairs of every step, and what was left in the end."""

    def __init__(self, path):
        self.path = path
        self.users = []

    def on_fit_start(self, trainer, module):
        step = saros.saros_step

        def watched(scorer, plan, users, optimizer, **options):
            self.users.append((trainer.current_epoch, (users + plan.first_user).tolist()))
            return step(scorer, plan, users, optimizer, **options)

        self.step, saros.saros_step = step, watched

    def on_fit_end(self, trainer, module):
        saros.saros_step = self.step
        found = {
            "weights": module.state_dict(),
            "metrics": {name: float(value) for name, value in trainer.callback_metrics.items()},
            "users": self.users,
        }
        torch.save(found, f"{self.path}-{trainer.global_rank}.pt")


def fit(name, folder, processes, *, checkpoint=None):
    folder = Path(folder)
    save = ModelCheckpoint(folder / name, filename="{step}", every_n_train_steps=1, save_top_k=-1)
    trainer = pl.Trainer(
        max_epochs=2,
        accelerator="cpu",
        devices=processes,
        strategy="ddp_fork" if processes > 1 else "auto",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        callbacks=[save, Saw(folder / name)],
    )
    module = CASES[name]()
    data = InteractionDataModule(log_of(name, folder), validation=0.2, steps_per_epoch=STEPS)
    trainer.fit(module, datamodule=data, ckpt_path=checkpoint)
    return trainer, module


if __name__ == "__main__":
    target, size, *names = sys.argv[1:]
    for name in names:
        case, _, checkpoint = name.partition("@")
        folder = Path(target, Path(checkpoint).stem) if checkpoint else Path(target)
        fit(case, folder, int(size), checkpoint=checkpoint or None)
