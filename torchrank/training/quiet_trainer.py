"""A Lightning Trainer for fitting from a function call: on the CPU, silent, writing nothing."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytorch_lightning as pl


def quiet_trainer(epochs: int, *, callbacks: Sequence[pl.Callback] = (), validate: bool = False) -> pl.Trainer:
    """Make the trainer; use it inside :func:`silence`.

    Args:
        epochs: passes over the data.
        callbacks: as Lightning's.
        validate: run the validation part after every epoch.
    """
    return pl.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        devices=1,
        logger=False,
        callbacks=list(callbacks),
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        limit_val_batches=1.0 if validate else 0,
        num_sanity_val_steps=0,
    )


@contextmanager
def silence() -> Iterator[None]:
    """Keep Lightning from announcing its devices and tips, and from warning of what it itself calls."""
    logger = logging.getLogger("pytorch_lightning")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*LeafSpec.*")
            yield
    finally:
        logger.setLevel(level)
