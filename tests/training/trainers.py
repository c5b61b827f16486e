"""A Trainer that writes and prints nothing unless told to."""

import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint

from torchrank.training import InteractionDataModule


def quiet(**options):
    silent = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    return pl.Trainer(**{"accelerator": "cpu", "max_epochs": 1, "enable_model_summary": False, **silent, **options})


def fit_log(module, log, *, validation=0.0, steps=5, ckpt_path=None, **options):
    """Train a module of preferences on a log, and return it."""
    data = InteractionDataModule(log, validation=validation, steps_per_epoch=steps)
    quiet(**options).fit(module, datamodule=data, ckpt_path=ckpt_path)
    return module


def saving(folder, **options):
    """Options that keep a checkpoint of every step."""
    save = ModelCheckpoint(folder, filename="{step}", every_n_train_steps=1, save_top_k=-1)
    return {"enable_checkpointing": True, "callbacks": [save], "max_epochs": 3, **options}


def saved_steps(folder):
    """The checkpoints of :func:`saving`, in order."""
    return sorted(folder.glob("*.ckpt"), key=lambda path: int(path.stem.split("=")[1]))
