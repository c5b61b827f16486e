"""Train a module of preferences by one call, timed."""

import time
from collections.abc import Callable
from typing import Any

import pytorch_lightning as pl

from torchrank.data.log import InteractionLog
from torchrank.data.prepared import PreparedLog
from torchrank.training.interaction_data import InteractionDataModule
from torchrank.training.quiet_trainer import quiet_trainer, silence


class _Stopwatch(pl.Callback):
    """Seconds of training, without what the watcher takes."""

    def __init__(self, watch: Callable[[float, int], bool] | None) -> None:
        self.watch = watch
        self.spent = 0.0
        self._since: float | None = None

    def on_train_start(self, *_: Any) -> None:
        self._since = time.perf_counter()

    def stop(self) -> None:
        if self._since is not None:
            self.spent += time.perf_counter() - self._since
            self._since = None

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self.watch is None:
            return
        self.stop()
        done = trainer.current_epoch * int(trainer.num_training_batches) + batch_idx + 1
        if self.watch(self.spent, done):
            trainer.should_stop = True
        self._since = time.perf_counter()

    def on_train_end(self, *_: Any) -> None:
        self.stop()


def fit_interactions(
    module: pl.LightningModule,
    log: InteractionLog | PreparedLog,
    *,
    epochs: int,
    steps_per_epoch: int = 20,
    watch: Callable[[float, int], bool] | None = None,
) -> float:
    """Train on a whole log on the CPU, quietly, writing nothing.

    For progress bars, validation, checkpoints or other devices give the module and an
    :class:`~torchrank.training.InteractionDataModule` to a Lightning ``Trainer``.

    Args:
        module: a :class:`~torchrank.training.SAROSModule`, ``BPRModule``, ``MFModule``, ``SoftmaxModule`` or
            ``GRU4RecModule``; trained where it is.
        log: what to learn from, in memory or on disk.
        epochs: passes over it.
        steps_per_epoch: steps an epoch is cut into.
        watch: called after every step with the seconds spent and the steps taken so far; training ends where it returns
            True. What it does takes no time.

    Returns:
        seconds of training, without what ``watch`` took.

    Example:
        >>> from torchrank.data import make_interactions
        >>> from torchrank.training import SAROSModule
        >>> log, _ = make_interactions(num_users=30, num_items=40, num_interactions=500)
        >>> module = SAROSModule(dim=4)
        >>> seconds = fit_interactions(module, log, epochs=2)
        >>> 0 < seconds < 60, module.training
        (True, False)
    """
    clock = _Stopwatch(watch)
    module.train()  # an earlier fit has left it evaluating
    with silence():
        trainer = quiet_trainer(epochs, callbacks=[clock])
        data = InteractionDataModule(log, train=1, validation=0, steps_per_epoch=steps_per_epoch)
        trainer.fit(module, datamodule=data)
    module.eval()
    return clock.spent
