"""What every LightningModule here shares: checkpoints that rebuild it and that training resumes from exactly."""

from collections.abc import Callable
from typing import Any

import pytorch_lightning as pl
from torch.optim import Optimizer

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

    def on_train_start(self) -> None:
        """Begin a new epoch where the run goes on from an epoch's last step.

        Lightning counts the epoch of such a checkpoint as ended, and then takes the next one for begun already: what
        is saved inside it counts one epoch too few, and a run resumed from there starts the epoch again in the middle
        of its data.
        """
        loop = self.trainer.fit_loop
        epochs: Any = loop.epoch_progress.current
        if loop.restarted_mid_epoch and epochs.processed == epochs.started:
            loop.reset_restart_stage()


def with_schedule(optimizer: Optimizer, make: Callable[[Any], Any] | None, **how: Any) -> Any:
    """Return what ``configure_optimizers`` returns for an optimiser and the schedule of its step size.

    Args:
        optimizer: it.
        make: makes the schedule from the optimiser; None for none.
        how: Lightning is to move it.
    """
    if make is None:
        return optimizer
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": make(optimizer), **how}}
