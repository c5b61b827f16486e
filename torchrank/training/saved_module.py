"""What every LightningModule here shares: checkpoints that rebuild it and that training resumes from exactly."""

from typing import Any

import pytorch_lightning as pl

from torchrank.training.checkpoint import SPEC_KEY
from torchrank.training.spec import describe


class SavedModule(pl.LightningModule):
    """A LightningModule whose checkpoints describe it, so that :func:`~torchrank.load` rebuilds it from them alone."""

    def on_fit_start(self) -> None:
        """Refuse, before any work is done, a module that its checkpoints could not rebuild."""
        if self.trainer.checkpoint_callbacks:
            describe(self)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep what :func:`~torchrank.load` needs."""
        checkpoint[SPEC_KEY] = describe(self)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Count the epoch as ended of which the checkpoint holds the last step."""
        if "fit_loop" in checkpoint.get("loops", {}):
            end_epoch(checkpoint["loops"]["fit_loop"])


def end_epoch(loop: dict[str, Any]) -> None:
    """Change a checkpoint of an epoch's last step into one of the epoch's end.

    Lightning resumes from the former without counting the next epoch as begun, so that what the resumed run saves
    inside that epoch counts one epoch too few, and a run resumed from there starts the epoch again in the middle of
    its data.

    Args:
        loop: the state of Lightning's fit loop, changed in place.
    """
    epochs, batches = loop["epoch_progress"], loop["epoch_loop.batch_progress"]
    last, here = batches["is_last_batch"], batches["current"]
    if not (last and here["processed"] == here["ready"] and here["completed"] == here["processed"] - 1):
        return
    for counts in epochs.values():
        counts["processed"] += 1
    for counts in (batches["total"], here):
        counts["completed"] += 1
    loop["epoch_loop.state_dict"]["_batches_that_stepped"] += 1
