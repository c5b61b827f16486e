"""Regularised matrix factorisation of the observed feedback."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from torchrank.data.log import InteractionLog
from torchrank.errors import TorchRankError, check_option
from torchrank.models import Factorization
from torchrank.training.interaction_data import EpochPart
from torchrank.training.lists import ShownLists
from torchrank.training.preference import (
    check_numbers,
    check_threads,
    log_measures,
    make_optimizer,
    move_schedule,
    prepare,
    score,
    store,
)
from torchrank.training.processes import Processes, add_moves, keep_apart, user_tables
from torchrank.training.saved_module import SavedModule
from torchrank.training.sequential_steps import mf_step


class MFModule(SavedModule):
    """Fit scores to feedback, 1 where preferred, else 0: (y − s)² + μ(‖U_u‖² + ‖V_i‖²), one step an interaction.

    Needs ``trainer.fit(module, datamodule=InteractionDataModule(…))``. Logs ``train_loss``, the mean squared error
    before the steps, and the measures that :class:`~torchrank.training.SAROSModule` logs.

    Args:
        scorer: a :class:`~torchrank.models.Factorization`; made from the training log by default.
        dim: of a scorer made from the log, length of the vectors.
        init: of a scorer made from the log, ``"uniform"`` on [0, 1) or ``"normal"`` with deviation 0.1.
        eta: step size η.
        mu: μ.
        lr_scheduler: makes the schedule of η from an optimiser; it moves once an epoch.
        threads: how many step through different users side by side on the same tables without
            locks (Hogwild); with more than 1 no two runs are quite the same.
        combine: in several processes, what becomes of items' vectors after every step of the trainer: the ``"mean"`` of
            the processes' (local SGD), or the ``"sum"`` of how far each moved them.
        seed: of a scorer made from the log and of the order, drawn anew every epoch.

    Raises:
        TorchRankError: a number that cannot be.

    Source: the method MF of arXiv 1902.08495, section 5.

    Example:
        >>> import torch
        >>> from torchrank.data import make_interactions
        >>> from torchrank.training import InteractionDataModule
        >>> log, _ = make_interactions(num_users=30, num_items=40, num_interactions=500)
        >>> module = MFModule(dim=4)
        >>> quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
        >>> trainer = pl.Trainer(max_epochs=2, accelerator="cpu", enable_checkpointing=False, **quiet)
        >>> trainer.fit(module, datamodule=InteractionDataModule(log))
        >>> module(torch.tensor([0]), torch.tensor([3])).shape
        torch.Size([1])
    """

    def __init__(
        self,
        scorer: nn.Module | None = None,
        *,
        dim: int = 4,
        init: Literal["uniform", "normal"] = "normal",
        eta: float = 0.01,
        mu: float = 0.01,
        lr_scheduler: Callable[[Optimizer], LRScheduler] | None = None,
        threads: int = 1,
        combine: Literal["mean", "sum"] = "mean",
        seed: int = 0,
    ) -> None:
        super().__init__()
        check_option("combine", combine, ("mean", "sum"))
        check_numbers(eta=eta, mu=mu)
        check_threads(threads)
        self.threads, self.combine = threads, combine
        self.scorer = scorer
        self.dim, self.init, self.eta, self.mu, self.lr_scheduler, self.seed = dim, init, eta, mu, lr_scheduler, seed
        # squared errors fit the share of positive feedback, not its log-odds, so offsets start nowhere useful
        self.item_bias, self.feedback = False, None
        self.automatic_optimization = False
        self._train_log: InteractionLog | None = None
        self._rows: tuple[int, Any] | None = None
        self._processes, self._own = Processes(0, 1), None

    _own: NDArray[np.bool_] | None

    def setup(self, stage: str) -> None:
        """Make the scorer from the training log, and refuse what cannot be trained."""
        if stage != "fit":
            return
        self._train_log, self._rows = prepare(self, compiled=True), None
        if not isinstance(self.scorer, Factorization):
            raise TorchRankError("MFModule is compiled for Factorization")
        processes = self._processes = Processes.of(self.trainer)
        self._own = None if processes.size == 1 else processes.own(self._train_log.num_users)
        keep_apart(self)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """Score users and items by internal index: ``(...)`` each to ``(...)``."""
        return score(self.scorer, users, items)

    def training_step(self, batch: EpochPart, batch_idx: int) -> None:
        """Take the steps of one part of the epoch."""
        optimizer: Any = self.optimizers()
        log, scorer = self._train_log, self.scorer
        assert log is not None  # noqa: S101 - for the type checker: set in setup
        assert isinstance(scorer, Factorization)  # noqa: S101 - likewise
        if self._rows is None or self._rows[0] != self.current_epoch:
            order = np.random.default_rng([self.seed, self.current_epoch]).permutation(len(log))
            self._rows = self.current_epoch, order
        first, last = (len(log) * n // batch.parts for n in (batch.number, batch.number + 1))
        rows, processes = self._rows[1][first:last], self._processes
        rows = rows if self._own is None else rows[self._own[log.users[rows]]]
        with add_moves(processes, scorer, average=self.combine == "mean"):
            loss = mf_step(scorer, log, rows, optimizer, mu=self.mu, threads=self.threads)
        optimizer.step()  # without gradients: it moves nothing, and Lightning counts the step
        loss = processes.total([loss])[0] / max(last - first, 1)
        several = processes.size > 1
        self.log("train_loss", loss, on_step=True, on_epoch=True, batch_size=1, prog_bar=True, sync_dist=several)
        move_schedule(self)

    def validation_step(self, batch: ShownLists, batch_idx: int) -> None:
        """Log the measures of the validation part."""
        log_measures(self, batch, "val_")

    def test_step(self, batch: ShownLists, batch_idx: int) -> None:
        """Log the measures of the test part."""
        log_measures(self, batch, "test_")

    def configure_optimizers(self) -> Any:
        """Make the optimiser; it holds η and its schedule."""
        return make_optimizer(self, self.parameters())

    def on_train_end(self) -> None:
        """Give every process the vectors of all users."""
        if self._processes.size > 1:
            self._processes.merge_users(user_tables(self))

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Store what rebuilds the module, and the users and items it knows."""
        store(self, self._train_log, checkpoint)
