"""Train any scorer of lists with any loss of lists."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from torchmetrics import Metric, MetricCollection

from torchrank.errors import ShapeError, TorchRankError, check_number, check_option
from torchrank.metrics import NDCG, MeanAveragePrecision
from torchrank.training.checkpoint import RANDOM_KEY, random_state, set_random_state
from torchrank.training.saved_module import SavedModule, with_schedule
from torchrank.types import ListBatch


class ListScores(NamedTuple):
    """Predicted scores of a batch.

    Attributes:
        scores: ``(B, L)``; what lies under the mask has no meaning.
        mask: ``(B, L)`` boolean, True where a document is real.
        lists: ``(B,)`` int64, each list's number in its dataset.

    Example:
        >>> ListScores(torch.zeros(1, 2), torch.ones(1, 2, dtype=torch.bool), torch.tensor([7])).lists
        tensor([7])
    """

    scores: Tensor
    mask: Tensor
    lists: Tensor


class ListwiseModule(SavedModule):
    """Minimise a loss over lists, plus λ‖w‖² or inside the ball ‖w‖ ≤ B, and watch measures of ranking.

    Logs ``train_loss`` (without the penalty), ``val_loss``, ``val_NAME`` and ``test_NAME`` for every metric.

    Args:
        scorer: ``(B, L, d)`` features and ``(B, L)`` mask to ``(B, L)`` scores.
        loss: called ``loss(scores, relevance, mask, list_weights)``, returns a number.
        metrics: name to metric, each updated with ``(scores, relevance, mask)``; NDCG@10 and MAP by default.
        optimizer: makes the optimiser from the parameters, such as ``partial(torch.optim.Adam, lr=1e-2)``.
        lr_scheduler: makes the schedule from the optimiser; a ``ReduceLROnPlateau`` watches ``val_loss``.
        lr_interval: step the schedule every ``"epoch"`` or every ``"step"``.
        l2: λ ≥ 0, the weight of the squared Euclidean norm of the scorer's parameters.
        max_norm: B > 0; after every step the scorer's parameters are projected to norm B.

    Raises:
        TorchRankError: a negative ``l2``, a ``max_norm`` that is not above 0, an unknown ``lr_interval``.

    Source: regularised and constrained risk minimisation, Chaudhuri & Tewari (arXiv 1405.0591), §6.

    Example:
        >>> from torchrank.losses import SLAMLoss
        >>> from torchrank.models import LinearScorer
        >>> module = ListwiseModule(LinearScorer(3), SLAMLoss(measure="ndcg"), l2=1e-3)
        >>> module(torch.ones(1, 2, 3)).tolist()
        [[0.0, 0.0]]
    """

    def __init__(
        self,
        scorer: nn.Module,
        loss: nn.Module,
        *,
        metrics: dict[str, Metric] | None = None,
        optimizer: Callable[[Iterable[Any]], Optimizer] = torch.optim.Adam,
        lr_scheduler: Callable[[Optimizer], LRScheduler | ReduceLROnPlateau] | None = None,
        lr_interval: Literal["epoch", "step"] = "epoch",
        l2: float = 0.0,
        max_norm: float | None = None,
    ) -> None:
        super().__init__()
        check_option("lr_interval", lr_interval, ("epoch", "step"))
        check_number("l2", l2, least=0)
        if max_norm is not None and not max_norm > 0:
            raise TorchRankError(f"max_norm={max_norm!r} must be above 0; None sets no limit")
        self.scorer = scorer
        self.loss = loss
        self.metrics = default_metrics() if metrics is None else dict(metrics)
        self.optimizer = optimizer
        self.lr_scheduler = lr_scheduler
        self.lr_interval = lr_interval
        self.l2 = l2
        self.max_norm = max_norm
        self.val_metrics = collect_metrics(self.metrics, "val_")
        self.test_metrics = collect_metrics(self.metrics, "test_")
        self._random: dict[str, Tensor] | None = None

    def forward(self, features: Tensor, mask: Tensor | None = None) -> Tensor:
        """Score the documents of lists: ``(B, L, d)`` and ``(B, L)`` to ``(B, L)``."""
        scores: Tensor = self.scorer(features, mask)
        if scores.shape != features.shape[:-1]:
            raise ShapeError(
                f"{type(self.scorer).__name__} returned scores of shape {tuple(scores.shape)} for features of shape"
                f" {tuple(features.shape)}; one score a document is {tuple(features.shape[:-1])}"
            )
        return scores

    def training_step(self, batch: ListBatch, batch_idx: int) -> Tensor:
        """Return the loss of a batch, penalty included."""
        loss: Tensor = self.loss(self(batch.features, batch.mask), batch.relevance, batch.mask, batch.list_weights)
        how: dict[str, Any] = {"on_step": False, "on_epoch": True, "prog_bar": True, "sync_dist": True}
        self.log("train_loss", loss.detach(), batch_size=len(batch.lists), **how)
        return loss + self.l2 * squared_norm(self.scorer) if self.l2 > 0 else loss

    def validation_step(self, batch: ListBatch, batch_idx: int) -> None:
        """Log the loss and the metrics of a validation batch."""
        scores = self(batch.features, batch.mask)
        loss = self.loss(scores, batch.relevance, batch.mask, batch.list_weights)
        self.log("val_loss", loss, batch_size=len(batch.lists), sync_dist=True)
        self.val_metrics.update(scores, batch.relevance, batch.mask)
        self.log_dict(self.val_metrics, batch_size=len(batch.lists), prog_bar=True)

    def test_step(self, batch: ListBatch, batch_idx: int) -> None:
        """Log the metrics of a test batch."""
        self.test_metrics.update(self(batch.features, batch.mask), batch.relevance, batch.mask)
        self.log_dict(self.test_metrics, batch_size=len(batch.lists))

    def predict_step(self, batch: ListBatch, batch_idx: int) -> ListScores:
        """Score a batch."""
        return ListScores(self(batch.features, batch.mask), batch.mask, batch.lists)

    def configure_optimizers(self) -> Any:
        """Make the optimiser, and the schedule where there is one."""
        optimizer = self.optimizer(self.parameters())
        return with_schedule(optimizer, self.lr_scheduler, interval=self.lr_interval, monitor="val_loss")

    def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        """Step, then project to the ball."""
        super().optimizer_step(*args, **kwargs)
        if self.max_norm is not None:
            project_to_ball(self.scorer, self.max_norm)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Store class paths and plain arguments, from which :func:`torchrank.load` rebuilds the module."""
        super().on_save_checkpoint(checkpoint)
        checkpoint[RANDOM_KEY] = random_state(self.device)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep the state of the random numbers until training goes on."""
        self._random = checkpoint.get(RANDOM_KEY)

    def on_train_start(self) -> None:
        """Go on with the random numbers of a resumed run, so that dropout draws what it would have drawn."""
        super().on_train_start()
        if self._random is not None and self.trainer.world_size == 1:
            set_random_state(self._random, self.device)
        self._random = None


def default_metrics() -> dict[str, Metric]:
    """Return what modules of lists measure unless told otherwise: NDCG@10 and MAP."""
    return {"ndcg@10": NDCG(k=10), "map": MeanAveragePrecision()}


def collect_metrics(metrics: Mapping[str, Metric], prefix: str) -> MetricCollection:
    """Copy metrics into a collection that logs each as ``prefix`` + name, each with its own state."""
    copies: dict[str, Metric | MetricCollection] = {name: metric.clone() for name, metric in metrics.items()}
    return MetricCollection(copies, prefix=prefix, compute_groups=False)


def squared_norm(module: nn.Module) -> Tensor:
    """Return ‖w‖² over a module's trainable parameters."""
    return torch.stack([p.square().sum() for p in module.parameters() if p.requires_grad]).sum()


@torch.no_grad()
def project_to_ball(module: nn.Module, radius: float) -> None:
    """Scale a module's trainable parameters, all together, so that their Euclidean norm is at most ``radius``."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    norm = squared_norm(module).sqrt()
    scale = torch.where(norm > radius, radius / norm, torch.ones_like(norm))
    for parameter in parameters:
        parameter.mul_(scale)
