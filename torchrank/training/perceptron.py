"""The ranking perceptron as a LightningModule: manual steps, a cumulative loss, and the bound above it."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torchmetrics import Metric

from torchrank.errors import ShapeError, TorchRankError
from torchrank.losses import slam_weights
from torchrank.models import LinearScorer
from torchrank.ops.perceptron import check_perceptron_options, hinges, perceptron_round, plan_lists
from torchrank.theory import perceptron_loss_bound, perceptron_regret_bound
from torchrank.training.listwise import ListScores, collect_metrics, default_metrics
from torchrank.training.saved_module import SavedModule
from torchrank.types import ListBatch


class PerceptronModule(SavedModule):
    """Learn a linear ranker online: a batch is a round, its lists averaged; one list a batch is the published rule.

    Logs ``cumulative_loss``, the sum over rounds of 1 − NDCG or 1 − AP (ties against the ranker) before the step, and
    ``bound``, which it never passes, where ``separation`` or ``comparator`` is given; ``val_NAME`` and ``test_NAME``
    for every metric.

    Args:
        num_features: d.
        measure: the measure whose loss is learned from.
        update: ``"slam"`` (sub-gradient of the SLAM loss) or ``"pair"`` (the worst pair, times the measure loss).
        active: documents that move with ``"slam"``: ``"margin"`` (all inside the margin, published) or ``"mistakes"``
            (the outscored ones; rankings then do not depend on ``eta``).
        margin: Δ of the SLAM loss.
        eta: step size η.
        separation: γ by which some unit vector separates every ordered pair, when known: for the bound on separable
            streams.
        comparator: weights u of any linear ranker, such as the batch solution: the bound in regret form.
        metrics: name to metric, each updated with ``(scores, relevance, mask)``; NDCG@10 and MAP by default.

    Raises:
        TorchRankError: an option that does not exist or cannot be, or both ``separation`` and ``comparator``.
        ShapeError: a comparator of another length than ``num_features``.

    Source: Chaudhuri & Tewari (arXiv 1405.0591), Algorithm 1; ``update="pair"``: arXiv 1508.00842.

    Example:
        >>> PerceptronModule(3)(torch.ones(1, 2, 3)).tolist()
        [[0.0, 0.0]]
    """

    def __init__(
        self,
        num_features: int,
        *,
        measure: Literal["ndcg", "map"] = "ndcg",
        update: Literal["slam", "pair"] = "slam",
        active: Literal["margin", "mistakes"] = "margin",
        margin: float = 1.0,
        eta: float = 1.0,
        separation: float | None = None,
        comparator: Sequence[float] | None = None,
        metrics: dict[str, Metric] | None = None,
    ) -> None:
        super().__init__()
        check_perceptron_options(measure=measure, update=update, active=active, eta=eta, margin=margin)
        if separation is not None and comparator is not None:
            raise TorchRankError("give separation (separable streams) or comparator (any stream), not both")
        if separation is not None:
            perceptron_loss_bound(1.0, separation)
        if comparator is not None and len(comparator) != num_features:
            raise ShapeError(f"comparator has {len(comparator)} weights for num_features={num_features}")
        self.num_features = num_features
        self.measure = measure
        self.update = update
        self.active = active
        self.margin = margin
        self.eta = eta
        self.separation = separation
        self.comparator = None if comparator is None else [float(u) for u in comparator]
        self.metrics = default_metrics() if metrics is None else dict(metrics)
        self.automatic_optimization = False
        self.scorer = LinearScorer(num_features)
        self.val_metrics = collect_metrics(self.metrics, "val_")
        self.test_metrics = collect_metrics(self.metrics, "test_")
        for name in ("cumulative_loss", "comparator_loss", "squared_steps", "radius"):
            self.register_buffer(name, torch.zeros((), dtype=torch.float64))

        self.register_buffer("_u", torch.tensor(self.comparator or [], dtype=torch.float64), persistent=False)

    cumulative_loss: Tensor
    comparator_loss: Tensor
    squared_steps: Tensor
    radius: Tensor
    _u: Tensor

    def forward(self, features: Tensor, mask: Tensor | None = None) -> Tensor:
        """Score the documents of lists: ``(B, L, d)`` and ``(B, L)`` to ``(B, L)``."""
        scores: Tensor = self.scorer(features, mask)
        return scores

    @torch.no_grad()
    def training_step(self, batch: ListBatch, batch_idx: int) -> None:
        """Measure the lists of a batch, then step against the mean of their directions."""
        mask = batch.mask
        x = torch.where(mask[..., None], batch.features, 0)
        weights = slam_weights(batch.relevance.to(x.dtype), mask, measure=self.measure)
        plan = plan_lists(batch.relevance, weights, mask, measure=self.measure)
        found = perceptron_round(
            self(x, mask), plan, measure=self.measure, update=self.update, active=self.active, margin=self.margin
        )
        share = batch.list_weights / batch.list_weights.sum()
        direction = torch.einsum("b,bl,bld->d", share, found.coefficients, x)
        self.scorer.weight.grad = direction
        optimizer = self.optimizers()
        assert not isinstance(optimizer, list)  # noqa: S101 # configure_optimizers returns one; this tells the checker
        optimizer.step()

        self.cumulative_loss += (share * found.measure_loss).sum()
        self.squared_steps += direction.square().sum()
        self.radius.copy_(torch.maximum(self.radius, x.square().sum(-1).amax().sqrt()))
        if self.comparator is not None:
            u = self._u.to(x.dtype)
            self.comparator_loss += (share * (found.charged * hinges(x @ u, plan, margin=self.margin)).sum(-1)).sum()
        self.log("cumulative_loss", self.cumulative_loss, prog_bar=True, batch_size=len(share))
        bound = self.bound()
        if bound is not None:
            self.log("bound", bound, batch_size=len(share))

    def bound(self) -> Tensor | None:
        """Return what the cumulative loss so far cannot pass; None without ``separation`` and ``comparator``."""
        options: dict[str, Any] = {name: getattr(self, name) for name in ("update", "active", "margin", "eta")}
        if self.separation is not None:
            return perceptron_loss_bound(self.radius, self.separation, **options)
        if self.comparator is None:
            return None
        norm = math.hypot(*self.comparator)
        return perceptron_regret_bound(self.comparator_loss, norm, self.squared_steps, **options)

    def validation_step(self, batch: ListBatch, batch_idx: int) -> None:
        """Measure a validation batch."""
        self.val_metrics.update(self(batch.features, batch.mask), batch.relevance, batch.mask)
        self.log_dict(self.val_metrics, batch_size=len(batch.lists), prog_bar=True)

    def test_step(self, batch: ListBatch, batch_idx: int) -> None:
        """Measure a test batch."""
        self.test_metrics.update(self(batch.features, batch.mask), batch.relevance, batch.mask)
        self.log_dict(self.test_metrics, batch_size=len(batch.lists))

    def predict_step(self, batch: ListBatch, batch_idx: int) -> ListScores:
        """Score a batch."""
        return ListScores(self(batch.features, batch.mask), batch.mask, batch.lists)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Make the plain step ``w ← w − η z``."""
        return torch.optim.SGD(self.scorer.parameters(), lr=self.eta)

    def on_fit_start(self) -> None:
        """Refuse several processes, whose weights would part.

        Raises:
            TorchRankError: there is more than one process.
        """
        if self.trainer.world_size > 1:
            raise TorchRankError("the perceptron learns from one stream; train it with devices=1")
