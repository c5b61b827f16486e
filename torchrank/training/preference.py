"""What the modules that learn preferences share: the scorer made from the log, what they measure, what they save."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import LRScheduler

from torchrank.data.catalogue import Catalogue
from torchrank.data.log import InteractionLog
from torchrank.data.prepared import PreparedLog
from torchrank.errors import DataError, TorchRankError, check_count, check_number, check_option, check_seed
from torchrank.training.evaluation import NO_PAIR, NOT_PUBLISHED, evaluate_shown, measure_published, pair_losses
from torchrank.training.interaction_data import EpochPart
from torchrank.training.log_scorer import check_sizes, compiled_scorer, make_scorer
from torchrank.training.processes import Processes, check_place, user_tables
from torchrank.training.saved_module import SavedModule, with_schedule
from torchrank.training.shown_lists import ShownLists
from torchrank.training.turns import place_of


class PreferenceModule(SavedModule):
    """Learn preferences from a log of shown items: all that the methods have in common but their steps.

    A method derives from it, gives ``super().__init__`` the options that are shared, calls :meth:`prepare` in ``setup``
    and :meth:`end_part` at the end of a ``training_step``, each of which is one part of an epoch.

    Args:
        scorer: scores users and items; made from the training log where there is none.
        dim: of a scorer made from the log, length of the vectors.
        init: of a scorer made from the log, how vectors start.
        item_bias: of a scorer made from the log, give items offsets.
        feedback: of a scorer made from the log, the feedback that describes users in place of vectors of their own.
        eta: step size η.
        mu: μ of the L2 term.
        lr_scheduler: makes the schedule of η from an optimiser; it moves once an epoch.
        optimizer: makes the optimiser from the parameters, in place of :meth:`default_optimizer`.
        seed: of a scorer made from the log, and of what the method draws.

    Raises:
        TorchRankError: an option that does not exist or cannot be.
    """

    scorer: nn.Module | None
    _train_log: InteractionLog | PreparedLog | None
    _own: NDArray[np.bool_] | None

    def __init__(
        self,
        scorer: nn.Module | None,
        *,
        dim: int,
        init: str = "normal",
        item_bias: bool = False,
        feedback: str | None = None,
        eta: float,
        mu: float = 0.0,
        lr_scheduler: Callable[[Optimizer], LRScheduler] | None,
        optimizer: Callable[[Iterable[Any]], Optimizer] | None = None,
        seed: int,
    ) -> None:
        super().__init__()
        if feedback is not None:
            check_option("feedback", feedback, ["all", "preferred"])
        check_count("dim", dim)
        check_number("eta", eta, least=0)
        check_number("mu", mu, least=0)
        check_seed(seed)
        self.scorer = scorer
        self.dim, self.init, self.item_bias, self.feedback = dim, init, item_bias, feedback
        self.eta, self.mu, self.lr_scheduler, self.optimizer, self.seed = eta, mu, lr_scheduler, optimizer, seed
        self.automatic_optimization = False
        self._train_log = None
        self._resumed_with: int | None = None  # the number of processes of the checkpoint a run goes on from
        self._processes, self._own = Processes(0, 1), None

    @overload
    def prepare(self, *, compiled: bool = ..., one_process: bool = ...) -> InteractionLog: ...

    @overload
    def prepare(self, *, compiled: bool = ..., from_disk: Literal[True]) -> InteractionLog | PreparedLog: ...

    def prepare(
        self, *, compiled: bool = False, from_disk: bool = False, one_process: bool = False
    ) -> InteractionLog | PreparedLog:
        """Make the scorer where there is none, deal out the users to the processes, and refuse what cannot be trained.

        Args:
            compiled: whether the compiled loops will step through the scorer's tables.
            from_disk: whether the module reads a prepared log partition by partition.
            one_process: whether the module learns in one process alone.

        Returns:
            what is trained on.

        Raises:
            DataError: there is no log, it is on disk, or the scorer was made for another.
            TorchRankError: a scorer that the engine or μ does not go with, or several processes.
        """
        if one_process and self.trainer.world_size > 1:
            raise TorchRankError(
                f"preferences are learned in 1 process, not in {self.trainer.world_size}; use Trainer(devices=1)"
            )
        log = getattr(getattr(self.trainer, "datamodule", None), "train_log", None)
        if not isinstance(log, InteractionLog | PreparedLog):
            raise DataError("training needs a log: trainer.fit(module, datamodule=InteractionDataModule(…))")
        if isinstance(log, PreparedLog) and not from_disk:
            raise DataError(
                "SAROSModule, MFModule and BPRModule read a prepared log partition by partition, the last not with"
                ' pairs="all"; here read it into memory: InteractionDataModule(PreparedLog(…).to_log())'
            )
        if self.scorer is None:
            self.scorer = self.make_scorer(log)
        check_sizes(self.scorer, log)
        if compiled:
            compiled_scorer(self.scorer)
        elif self.mu > 0 and not hasattr(self.scorer, "squared_norms"):
            raise TorchRankError(
                f"mu={self.mu!r} needs {type(self.scorer).__name__}.squared_norms(users, items), the squared norms of"
                " what users and items are described by; define it, or set mu=0"
            )
        self._train_log, self._processes = log, Processes.of(self.trainer)
        self._own = None if self._processes.size == 1 else self._processes.own(log)
        return log

    def make_scorer(self, log: InteractionLog | PreparedLog) -> nn.Module:
        """Make the scorer that the options describe, for the users and items of a log."""
        options: dict[str, Any] = {"item_bias": self.item_bias, "feedback": self.feedback, "seed": self.seed}
        scorer: nn.Module = make_scorer(log, dim=self.dim, init=self.init, **options)
        return scorer

    def require_scorer(self) -> nn.Module:
        """Return the scorer.

        Raises:
            TorchRankError: there is none yet.
        """
        if self.scorer is None:
            raise TorchRankError("this module has no scorer yet: trainer.fit makes it from the log")
        return self.scorer

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """Score users and items by internal index: ``(...)`` each to ``(...)``."""
        scores: Tensor = self.require_scorer()(users, items)
        return scores

    def place(self, batch: EpochPart, *, divided: str | None = None) -> tuple[int, EpochPart]:
        """Find the turn that a part of the epoch belongs to, and which part of the turn it is.

        Args:
            batch: the part.
            divided: what the processes have divided among them, if only their number may go on inside an epoch;
                the partitions of a log on disk they always have.

        Returns:
            the turn's place in the epoch, 0 where the log is in memory; and the part of the turn.

        Raises:
            DataError: the run goes on inside an epoch that another number of processes divides otherwise.
        """
        log = self._train_log
        assert log is not None  # noqa: S101 - for the type checker: set in setup
        divided = divided or ("partitions" if isinstance(log, PreparedLog) else None)
        if divided is not None:
            check_place(batch.number, divided, before=self._resumed_with, now=self._processes.size)
        self._resumed_with = None  # what follows is this run's own
        place, *part = place_of(log, *batch, self._processes)
        return place, EpochPart(*part)

    def end_part(self, loss: float | Tensor) -> None:
        """Log the loss of a part of the epoch; after the last part, move the schedule of η."""
        several = self._processes.size > 1
        self.log("train_loss", loss, on_step=True, on_epoch=True, batch_size=1, prog_bar=True, sync_dist=several)
        scheduler: Any = self.lr_schedulers()
        if scheduler is not None and self.trainer.is_last_batch:
            scheduler.step()

    def validation_step(self, batch: ShownLists, batch_idx: int) -> None:
        """Log the measures of the validation part."""
        self.log_measures(batch, "val_")

    def test_step(self, batch: ShownLists, batch_idx: int) -> None:
        """Log the measures of the test part."""
        self.log_measures(batch, "test_")

    def log_measures(self, lists: ShownLists, prefix: str) -> None:
        """Log how the module orders a part's shown items.

        ``loss`` is the logistic pair loss, ``ndcg@10``, ``map@10`` and ``auc`` are by the usual conventions,
        ``published_ndcg@10`` and ``published_map@10`` by those of the SAROS paper. Of several processes each measures
        its own users' lists; what is logged are the means over all users.

        Raises:
            DataError: no user of the part counts, or a score is NaN.
        """
        values: dict[str, NDArray[np.float64]] = {"loss": pair_losses(self, lists)}
        shown = evaluate_shown(self, lists).values
        values |= {name: shown[name] for name in ("ndcg@10", "map@10", "auc")}
        published = measure_published(self, lists).values
        values |= {f"published_{name}": published[name] for name in ("ndcg@10", "map@10")}
        processes = Processes.of(self.trainer)
        sums = processes.total([float(np.nansum(each)) for each in values.values()])
        counts = processes.total([int((~np.isnan(each)).sum()) for each in values.values()])
        for name, problem in (("loss", NO_PAIR), ("published_ndcg@10", NOT_PUBLISHED)):
            if counts[list(values).index(name)] == 0:
                raise DataError(problem)
        bar = {"loss", "ndcg@10"}
        for name, total, count in zip(values, sums, counts, strict=True):
            mean = total / count if count else float("nan")
            # of several batches, the mean over all users who count
            how: dict[str, Any] = {"batch_size": max(int(count), 1), "sync_dist": self.trainer.world_size > 1}
            self.log(prefix + name, mean, **how, prog_bar=name in bar)

    def configure_optimizers(self) -> Any:
        """Make the optimiser and its schedule; for the compiled loops it holds η and the velocities."""
        parameters = self.stepped().parameters()
        optimizer = self.default_optimizer(parameters) if self.optimizer is None else self.optimizer(parameters)
        return with_schedule(optimizer, self.lr_scheduler)

    def default_optimizer(self, parameters: Iterable[nn.Parameter]) -> Optimizer:
        """Make the optimiser of a module that was given none."""
        return SGD(parameters, lr=self.eta)

    def stepped(self) -> nn.Module:
        """Return what the optimiser steps on: the module, with the parameters of a loss that has some."""
        return self

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Remember how many processes the run had."""
        super().on_load_checkpoint(checkpoint)
        self._resumed_with = checkpoint.get("processes", 1)

    def on_train_end(self) -> None:
        """Give every process the vectors of all users."""
        if self._processes.size > 1:
            self._processes.merge_users(user_tables(self), self._own)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Store what rebuilds the module, the users and items it knows, and how many processes trained it.

        What each process knows of its own users is put together first. All processes call this; the first one writes,
        and it alone reads the log.
        """
        processes = Processes.of(self.trainer)
        if processes.size > 1:
            processes.merge_users(user_tables(self), self._own)
        super().on_save_checkpoint(checkpoint)
        checkpoint["processes"] = processes.size
        if self._train_log is not None and self.trainer.is_global_zero:
            checkpoint["catalogue"] = Catalogue.from_log(self._train_log).state()
