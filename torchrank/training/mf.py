"""Regularised matrix factorisation of the observed feedback."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from torchrank.errors import TorchRankError
from torchrank.models import Factorization
from torchrank.training.interaction_data import EpochPart
from torchrank.training.preference import PreferenceModule
from torchrank.training.processes import add_moves, keep_apart
from torchrank.training.sequential_steps import check_sharing, mf_step
from torchrank.training.turns import Turn, take_turn


class MFModule(PreferenceModule):
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
        seed: of a scorer made from the log and of the order, drawn anew every epoch; of a
            :class:`~torchrank.data.PreparedLog` the order of the partitions, and of the rows of each.

    Raises:
        TorchRankError: a number that cannot be.

    Source: the method MF of arXiv 1902.08495, section 5.

    Example:
        >>> import pytorch_lightning as pl
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
        # without offsets: squared errors fit the share of positive feedback, not the log-odds that offsets start at
        super().__init__(scorer, dim=dim, init=init, eta=eta, mu=mu, lr_scheduler=lr_scheduler, seed=seed)
        check_sharing(threads, combine)
        self.threads, self.combine = threads, combine
        self._turn: tuple[tuple[int, int], Turn, NDArray[np.int64]] | None = None

    def setup(self, stage: str) -> None:
        """Make the scorer from the training log, and refuse what cannot be trained."""
        if stage != "fit":
            return
        self.prepare(compiled=True, from_disk=True)
        if not isinstance(self.scorer, Factorization):
            raise TorchRankError("MFModule is compiled for Factorization")
        self._turn = None
        keep_apart(self)

    def training_step(self, batch: EpochPart, batch_idx: int) -> None:
        """Take the steps of one part of the epoch."""
        optimizer: Any = self.optimizers()
        scorer, (place, part) = self.scorer, self.place(batch)
        assert isinstance(scorer, Factorization)  # noqa: S101 - for the type checker: refused in setup
        if self._turn is None or self._turn[0] != (self.current_epoch, place):
            self._turn = None  # its partition is let go before the next is opened
            self._turn = self._lay_out(self.current_epoch, place)
        _, turn, order = self._turn
        log, share = turn.log, part.share(len(order))
        rows = order[share.start : share.stop]
        rows = rows if self._own is None else rows[self._own[log.users[rows] + turn.first_user]]
        with add_moves(self._processes, scorer, average=self.combine == "mean"):
            loss = mf_step(scorer, log, rows, optimizer, mu=self.mu, first_user=turn.first_user, threads=self.threads)
        optimizer.step()  # without gradients: it moves nothing, and Lightning counts the step
        loss, stepped = self._processes.total([loss, len(rows)])
        self.end_part(loss / max(stepped, 1))

    def _lay_out(self, epoch: int, place: int) -> tuple[tuple[int, int], Turn, NDArray[np.int64]]:
        """Open what has its turn, and draw the order of its rows."""
        assert self._train_log is not None  # noqa: S101 - for the type checker: set in setup
        turn = take_turn(self._train_log, place, epoch=epoch, seed=self.seed, processes=self._processes)
        order = np.random.default_rng([self.seed, epoch, *turn.seeds]).permutation(len(turn.log))
        return (epoch, place), turn, order
