"""Train a ranker of lists by one call."""

import copy
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import pytorch_lightning as pl
import torch
from torch import nn
from torch.optim import Optimizer
from torchmetrics import Metric

from torchrank.data import QueryDataset
from torchrank.errors import TorchRankError, check_count, check_type
from torchrank.training.listwise import ListwiseModule
from torchrank.training.query_data import QueryDataModule
from torchrank.training.quiet_trainer import quiet_trainer, silence

_ADAM = partial(torch.optim.Adam, lr=1e-2)


class ListFit(NamedTuple):
    """A trained ranker and how it came about.

    Attributes:
        module: the module, in evaluation mode, with the weights of ``epoch``.
        epoch: the epoch, from 1, whose weights were kept.
        history: one dictionary of validation measures an epoch, empty without a validation part.

    Example:
        >>> ListFit._fields
        ('module', 'epoch', 'history')
    """

    module: ListwiseModule
    epoch: int
    history: list[dict[str, float]]

    def __repr__(self) -> str:
        scorer, loss = (type(part).__name__ for part in (self.module.scorer, self.module.loss))
        of = f" of {len(self.history)}" if self.history else ""
        return f"ListFit({scorer} by {loss}, epoch {self.epoch}{of})"


class _KeepBest(pl.Callback):
    """Remember the weights of the epoch with the best validation measure."""

    def __init__(self, monitor: str) -> None:
        self.monitor = monitor
        self.history: list[dict[str, float]] = []
        self.best = 0
        self.weights: dict[str, torch.Tensor] = {}

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        values = {k.removeprefix("val_"): float(v) for k, v in trainer.callback_metrics.items() if k[:4] == "val_"}
        if self.monitor not in values:
            raise TorchRankError(f"monitor={self.monitor!r} is none of what is measured: {', '.join(values)}")
        self.history.append(values)
        if values[self.monitor] >= max(row[self.monitor] for row in self.history):
            self.best = len(self.history)
            self.weights = copy.deepcopy(pl_module.state_dict())


class _Average(pl.Callback):
    """Average the weights over the steps, the last ones most; validate and keep the average."""

    def __init__(self, decay: float) -> None:
        self.decay = decay
        self.steps = 0
        self.average: list[torch.Tensor] = []

    @torch.no_grad()
    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: Any) -> None:
        if not self.average:
            self.average = [p.detach().clone() for p in pl_module.parameters()]
        self.steps += 1
        share = max(1 / self.steps, 1 - self.decay)  # a plain mean until there are as many steps as the decay spans
        torch._foreach_lerp_(self.average, [p.detach() for p in pl_module.parameters()], share)

    @torch.no_grad()
    def _swap(self, pl_module: pl.LightningModule) -> None:
        for own, average in zip(pl_module.parameters(), self.average, strict=True):
            own.data, average.data = average.data, own.data

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._swap(pl_module)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._swap(pl_module)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._swap(pl_module)


def fit_lists(
    train: QueryDataset,
    scorer: nn.Module,
    loss: nn.Module,
    *,
    val: QueryDataset | None = None,
    monitor: str = "map",
    epochs: int = 20,
    batch_size: int = 32,
    optimizer: Callable[[Iterable[Any]], Optimizer] = _ADAM,
    l2: float = 0.0,
    average: float | None = None,
    metrics: dict[str, Metric] | None = None,
    seed: int = 0,
) -> ListFit:
    """Train a scorer on lists on the CPU, quietly, writing nothing; keep the best epoch on the validation part.

    For progress bars, checkpoints, schedules or other devices give a :class:`ListwiseModule` and a
    :class:`QueryDataModule` to a Lightning ``Trainer``.

    Args:
        train: the lists to learn from.
        scorer: trained where it is.
        loss: any loss of lists.
        val: lists to choose the epoch by; the last epoch is kept without.
        monitor: the measure to choose by, higher is better.
        epochs: passes over the lists.
        batch_size: lists a step.
        optimizer: makes the optimiser from the parameters; Adam with step size 0.01 by default.
        l2: λ of the penalty λ‖w‖².
        average: decay in [0, 1) of an average of the weights over the steps, which is then validated and kept in place
            of the last weights: 0.98 spans about 50 steps. It calms losses whose sub-gradients jump, as SLAM's do.
        metrics: what is measured on ``val``; NDCG@10 and MAP by default.
        seed: of the shuffling.

    Returns:
        the trained module, the epoch kept, and the validation measures of every epoch.

    Raises:
        TorchRankError: an option out of its range, or a monitor that is not measured.

    Example:
        >>> from torchrank.data import make_queries
        >>> from torchrank.losses import SLAMLoss
        >>> from torchrank.models import LinearScorer
        >>> lists = make_queries(60, num_features=5, seed=1).dataset
        >>> fit = fit_lists(lists, LinearScorer(5), SLAMLoss(), val=lists, epochs=5)
        >>> fit.history[-1]["ndcg@10"] > fit.history[0]["ndcg@10"] - 0.01, len(fit.history)
        (True, 5)
    """
    check_count("epochs", epochs)
    for name, module in (("scorer", scorer), ("loss", loss)):
        check_type(name, module, nn.Module, "an nn.Module, such as those of torchrank.models and torchrank.losses")
    if average is not None and not 0 <= average < 1:
        raise TorchRankError(f"average={average} must lie in [0, 1); None keeps the last weights")
    # an earlier fit may have left the scorer or the loss in evaluation mode
    module = ListwiseModule(scorer, loss, metrics=metrics, optimizer=optimizer, l2=l2).train()
    keep = _KeepBest(monitor)
    with silence():
        callbacks: list[pl.Callback] = [] if average is None else [_Average(average)]
        callbacks += [] if val is None else [keep]
        trainer = quiet_trainer(epochs, callbacks=callbacks, validate=val is not None)
        trainer.fit(module.train(), QueryDataModule(train=train, val=val, batch_size=batch_size, seed=seed))
    if val is not None:
        module.load_state_dict(keep.weights)
    return ListFit(module.eval(), keep.best or epochs, keep.history)
