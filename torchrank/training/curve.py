"""Train a ranking principal curve in mini-batches, for tables that no single step can hold."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from torchrank.errors import TorchRankError, check_option
from torchrank.losses.projection import projection_loss
from torchrank.models.curve import RankingCurve
from torchrank.training.saved_module import SavedModule, with_schedule
from torchrank.training.table_data import TableDataModule
from torchrank.types import ObjectBatch


def default_optimizer(parameters: Iterable[Any]) -> Optimizer:
    """Make Adam with steps that suit logits of control points: in places J is flat, and small steps creep."""
    return torch.optim.Adam(parameters, lr=0.2)


class CurveModule(SavedModule):
    """Minimise the mean squared distance of objects to a ranking curve, batch by batch, by any optimiser.

    The parameters are the curve's logits, the gradient is the envelope theorem's. Where the table fits in memory,
    :func:`~torchrank.training.fit_curve` is faster, more exact and starts more than once. Logs ``train_loss``,
    ``val_loss`` and ``test_loss``, mean squared distances in the unit cube; predicts scores.

    A :class:`~torchrank.training.TableDataModule` tells the curve how to scale attributes when training starts; with
    other data, call ``module.curve.set_scaling`` first.

    Args:
        directions: +1 where more is better, −1 where less is, one an attribute.
        degree: 1, 2 or 3.
        ends: ``"corner"`` or ``"free"``.
        score: ``"arc_length"`` or ``"parameter"``.
        extend: score objects beyond the fitted box on the curve's end tangents.
        missing: ``"error"`` or ``"observed"``.
        optimizer: makes the optimiser from the parameters; ``Adam(lr=0.2)`` by default.
        lr_scheduler: makes the schedule from the optimiser; a ``ReduceLROnPlateau`` watches ``val_loss``.
        lr_interval: step the schedule every ``"epoch"`` or every ``"step"``.

    Raises:
        TorchRankError: what :class:`~torchrank.models.RankingCurve` refuses, or an unknown ``lr_interval``.

    Source:
        eq 20 of Li, Mei & Hu (arXiv 1402.4542), by stochastic gradients.

    Example:
        >>> module = CurveModule([1, -1])
        >>> module(torch.tensor([[0.0, 1.0], [1.0, 0.0]])).tolist()
        [0.0, 1.0]
    """

    def __init__(
        self,
        directions: Sequence[int],
        *,
        degree: int = 3,
        ends: str = "corner",
        score: str = "arc_length",
        extend: bool = True,
        missing: str = "error",
        optimizer: Callable[[Iterable[Any]], Optimizer] = default_optimizer,
        lr_scheduler: Callable[[Optimizer], LRScheduler | ReduceLROnPlateau] | None = None,
        lr_interval: Literal["epoch", "step"] = "epoch",
    ) -> None:
        super().__init__()
        check_option("lr_interval", lr_interval, ("epoch", "step"))
        self.curve = RankingCurve(directions, degree=degree, ends=ends, score=score, extend=extend, missing=missing)
        self.directions = self.curve.directions
        self.degree = degree
        self.ends = ends
        self.score = score
        self.extend = extend
        self.missing = missing
        self.optimizer = optimizer
        self.lr_scheduler = lr_scheduler
        self.lr_interval = lr_interval

    def setup(self, stage: str) -> None:
        """Take the scaling of the data that training starts with.

        Raises:
            TorchRankError: the table's columns were named with other directions, or another policy for missing values.
        """
        data = getattr(self.trainer, "datamodule", None)
        if stage != "fit" or not isinstance(data, TableDataModule):
            return
        width = data.points.shape[-1]
        if width != len(self.directions) or data.directions not in (None, self.directions):
            theirs = data.directions or f"{width} attributes"
            raise TorchRankError(f"the module has directions {self.directions}, the table {theirs}; make them agree")
        if data.missing != self.missing:
            theirs = data.missing
            raise TorchRankError(f"the module has missing={self.missing!r}, the table {theirs!r}; make them agree")
        self.curve.set_scaling(*data.maps())

    def forward(self, points: Tensor) -> Tensor:
        """Score objects: ``(..., d)`` in the user's units to ``(...)``."""
        scores: Tensor = self.curve(points)
        return scores

    def training_step(self, batch: ObjectBatch, batch_idx: int) -> Tensor:
        """Return the mean squared distance of a batch."""
        loss = self._distance(batch.points)
        size = len(batch.rows)
        self.log("train_loss", loss.detach(), on_step=True, on_epoch=True, batch_size=size, prog_bar=True)
        return loss

    def validation_step(self, batch: ObjectBatch, batch_idx: int) -> None:
        """Log the mean squared distance of a validation batch."""
        self.log("val_loss", self._distance(batch.points), batch_size=len(batch.rows), prog_bar=True, sync_dist=True)

    def test_step(self, batch: ObjectBatch, batch_idx: int) -> None:
        """Log the mean squared distance of a test batch."""
        self.log("test_loss", self._distance(batch.points), batch_size=len(batch.rows), sync_dist=True)

    def predict_step(self, batch: ObjectBatch, batch_idx: int) -> Tensor:
        """Score a batch: ``(B,)``, in the order of its rows."""
        scores: Tensor = self(batch.points)
        return scores

    def _distance(self, points: Tensor) -> Tensor:
        observed = None if self.missing == "error" else ~points.isnan()
        each = projection_loss(self.curve.to_cube(points), self.curve.control_points, observed=observed)
        return each.sum() / max(len(each), 1)  # a rank left over gets a batch of none

    def configure_optimizers(self) -> Any:
        """Make the optimiser, and the schedule where there is one."""
        optimizer = self.optimizer(self.parameters())
        return with_schedule(optimizer, self.lr_scheduler, interval=self.lr_interval, monitor="val_loss")

    def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        """Step, then bring parameters back into their bounds."""
        super().optimizer_step(*args, **kwargs)
        self.curve.clip_parameters()
