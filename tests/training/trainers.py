"""A Trainer that writes and prints nothing unless told to."""

import pytorch_lightning as pl


def quiet(**options):
    silent = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    return pl.Trainer(**{"accelerator": "cpu", "max_epochs": 1, "enable_model_summary": False, **silent, **options})
