"""SAROS as a LightningModule: two engines for one algorithm."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import LRScheduler

from torchrank.data.log import InteractionLog
from torchrank.data.prepared import PreparedLog
from torchrank.errors import TorchRankError, check_count, check_number, check_option
from torchrank.losses import BPRLoss
from torchrank.models import Factorization
from torchrank.ops.blocks import RULES
from torchrank.ops.sharded import is_sharded
from torchrank.ops.wave_steps import factorization_step, take_wave, wave_loss
from torchrank.ops.waves import Waves
from torchrank.training.averaging import StartAverage
from torchrank.training.interaction_data import EpochPart
from torchrank.training.preference import PreferenceModule
from torchrank.training.processes import add_moves, keep_apart
from torchrank.training.saros_plan import (
    BlockOptions,
    EpochPlan,
    plan_epoch,
    plan_partition,
    whole_log_options,
)
from torchrank.training.sequential_steps import check_sharing, saros_step
from torchrank.training.sharding import shard_tables


class SAROSModule(PreferenceModule):
    """Learn preferences from blocks: one gradient step a block, blocks in time inside a user, user after user.

    The step of a block is on the mean over its pairs of log(1 + exp(s_j − s_i)) + μ(‖U_u‖² + ‖V_i‖² + ‖V_j‖²), item i
    preferred over j. Needs ``trainer.fit(module, datamodule=InteractionDataModule(…))``. Logs ``train_loss``, the mean
    of the pair losses before their steps (with ``"batched"``: of the block losses), and for the validation and test
    part ``val_loss``, ``val_ndcg@10``, ``val_map@10``, ``val_auc``, ``val_published_ndcg@10``,
    ``val_published_map@10`` and the same for ``test_``.

    Args:
        scorer: scores users and items; made from the training log by default.
        dim: of a scorer made from the log, length of the vectors.
        init: of a scorer made from the log, ``"uniform"`` on [0, 1) (published) or ``"normal"`` with deviation 0.1.
        item_bias: of a scorer made from the log, give items offsets, started at the log-odds of their feedback.
        feedback: of a scorer made from the log, describe users by ``"all"`` their feedback, or by what they
            ``"preferred"`` (:class:`~torchrank.models.FeedbackFactorization`), and not by vectors of their own.
        engine: ``"sequential"``, the published algorithm as a compiled loop on the CPU; or ``"batched"``, many users
            side by side, for any scorer, pair loss, optimiser and device.
        rule: which blocks there are, see :func:`~torchrank.data.build_blocks`.
        order: of a user's interactions before they are cut into blocks: ``"time"``, or ``"shuffled"`` anew every epoch.
        user_order: ``"fixed"`` (by first appearance in the log) or ``"shuffled"`` anew every epoch. Of a
            :class:`~torchrank.data.PreparedLog` the partitions are shuffled, and the users within each.
        minimum: b, see :meth:`~torchrank.data.Blocks.select`; None for no limit.
        maximum: B, likewise.
        overflow: what becomes of users with more than B blocks, ``"discard"`` or ``"truncate"``.
        eta: step size η.
        mu: μ of the L2 term; a scorer of your own then needs ``squared_norms(users, items)``.
        momentum: every parameter keeps moving at every block, v ← m·v + g and ω ← ω − η·v.
        averaging: predict with the mean of the weights at the start of each user, and not with the last ones.
        lr_scheduler: makes the schedule of η from an optimiser; it moves once an epoch.
        loss: with ``"batched"``, a pair loss that sums its weighted pairs; ``BPRLoss(reduction="sum")`` by default.
        optimizer: with ``"batched"``, makes the optimiser from the parameters, in place of SGD with ``eta`` and
            ``momentum``; a wave's block losses are summed, not averaged.
        lanes: with ``"batched"``, how many users move side by side, in all processes together; one takes the steps of
            ``"sequential"``.
        threads: with ``"sequential"``, how many step through different users side by side on the same tables without
            locks (Hogwild); with more than 1 no two runs are quite the same.
        combine: with ``"sequential"`` in several processes, what becomes of the parameters that they share after every
            step of the trainer: the ``"mean"`` (local SGD), or the ``"sum"`` of how far each process moved them.
        seed: of a scorer made from the log and of the orders.

    Raises:
        TorchRankError: an option that does not exist, cannot be, or does not go with the engine.

    Source: Burashnikova, Maximov & Amini (arXiv 1902.08495), Algorithm 1; momentum: arXiv 2012.06910.

    Example:
        >>> import pytorch_lightning as pl
        >>> from torchrank.data import make_interactions
        >>> from torchrank.training import InteractionDataModule
        >>> log, _ = make_interactions(num_users=30, num_items=40, num_interactions=500)
        >>> module = SAROSModule(dim=4, feedback="all", item_bias=True, order="shuffled")
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
        init: Literal["uniform", "normal"] = "uniform",
        item_bias: bool = False,
        feedback: Literal["all", "preferred"] | None = None,
        engine: Literal["sequential", "batched"] = "sequential",
        rule: Literal["run", "single", "eager", "positive"] = "run",
        order: Literal["time", "shuffled"] = "time",
        user_order: Literal["fixed", "shuffled"] = "fixed",
        minimum: float | str | None = None,
        maximum: float | str | None = None,
        overflow: Literal["discard", "truncate"] = "discard",
        eta: float = 0.01,
        mu: float = 0.01,
        momentum: float = 0.0,
        averaging: bool = False,
        lr_scheduler: Callable[[Optimizer], LRScheduler] | None = None,
        loss: nn.Module | None = None,
        optimizer: Callable[[Iterable[Any]], Optimizer] | None = None,
        lanes: int = 4096,
        threads: int = 1,
        combine: Literal["mean", "sum"] = "mean",
        seed: int = 0,
    ) -> None:
        made: dict[str, Any] = {"dim": dim, "init": init, "item_bias": item_bias, "feedback": feedback, "seed": seed}
        super().__init__(scorer, eta=eta, mu=mu, lr_scheduler=lr_scheduler, optimizer=optimizer, **made)
        check_option("engine", engine, ("sequential", "batched"))
        check_option("rule", rule, RULES)
        check_option("order", order, ("time", "shuffled"))
        check_option("user_order", user_order, ("fixed", "shuffled"))
        check_option("overflow", overflow, ("discard", "truncate"))
        check_number("momentum", momentum, least=0)
        if momentum >= 1:
            raise TorchRankError(f"momentum={momentum!r}; give a number below 1")
        check_sharing(threads, combine, alone=engine == "batched" or momentum > 0 or averaging)
        check_count("lanes", lanes)
        if engine == "sequential" and not (loss is None and optimizer is None):
            raise TorchRankError(
                'the sequential engine has its own loss and steps; loss and optimizer go with "batched"'
            )
        if engine == "sequential" and momentum > 0 and averaging:
            raise TorchRankError('momentum with averaging needs engine="batched"')
        self.engine, self.rule, self.order, self.user_order = engine, rule, order, user_order
        self.minimum, self.maximum, self.overflow = minimum, maximum, overflow
        self.momentum, self.averaging, self.loss = momentum, averaging, loss
        self.lanes, self.threads, self.combine = lanes, threads, combine
        self.average = StartAverage(scorer) if averaging and scorer is not None else None
        self._plan: tuple[tuple[int, int], EpochPlan, Waves | None] | None = None
        self._block_options: tuple[int, BlockOptions] | None = None

    def setup(self, stage: str) -> None:
        """Make the scorer from the training log, and refuse what cannot be trained."""
        if stage != "fit":
            return
        self.prepare(compiled=self.engine == "sequential", from_disk=True)
        self._plan = self._block_options = None
        several = self._processes.size > 1
        if self.engine == "sequential" and several and (self.momentum > 0 or self.averaging):
            raise TorchRankError('momentum and averaging in several processes need engine="batched"')
        if self.engine == "sequential" and self.momentum > 0 and not isinstance(self.scorer, Factorization):
            raise TorchRankError('momentum with a feedback factorisation needs engine="batched"')
        if self.averaging and self.average is None:
            self.average = StartAverage(self.require_scorer())
        keep_apart(self)

    def stepped(self) -> nn.Module:
        """Return the scorer whose weights take the steps; with averaging the module's own holds their mean."""
        return self.require_scorer() if self.average is None else self.average.scorer

    def configure_model(self) -> None:
        """Deal the rows of the tables to the processes of a ``ModelParallelStrategy``."""
        shard_tables(self)

    def training_step(self, batch: EpochPart, batch_idx: int) -> None:
        """Take the steps of one part of the epoch."""
        optimizer: Any = self.optimizers()
        log = self._train_log
        assert log is not None  # noqa: S101 - for the type checker: set in setup
        place, batch = self.place(batch, divided="waves" if self.engine == "batched" else None)
        if self._plan is None or self._plan[0] != (self.current_epoch, place):
            self._plan = self._lay_out(log, self.current_epoch, place)
        _, plan, waves = self._plan
        loss: float | Tensor
        if waves is None:
            loss = self._run_users(plan, batch, optimizer)
            optimizer.step()  # without gradients: it moves nothing, and Lightning counts the step
        else:
            loss = self._run_waves(waves, batch.share(len(waves)), optimizer)
        if self.average is not None:
            self.average.write_mean(self.require_scorer())
        self.end_part(loss)

    def _run_users(self, plan: EpochPlan, batch: EpochPart, optimizer: Any) -> float | Tensor:
        users = plan.part(*batch)
        users = users if self._own is None else users[self._own[users + plan.first_user]]
        options: dict[str, Any] = {
            "mu": self.mu,
            "momentum": self.momentum,
            "average": self.average,
            "threads": self.threads,
        }
        scorer = self.stepped()
        with add_moves(self._processes, scorer, average=self.combine == "mean"):
            found = saros_step(scorer, plan, users, optimizer, **options)
        loss, pairs = self._processes.total(found)
        return loss / max(pairs, 1)

    def _lay_out(
        self, log: InteractionLog | PreparedLog, epoch: int, place: int
    ) -> tuple[tuple[int, int], EpochPlan, Waves | None]:
        before = None if self._plan is None else self._plan[1]
        same = self.order == "time" and self.user_order == "fixed"  # the same blocks in the same order every epoch
        if isinstance(log, PreparedLog):
            self._plan = None  # its partition is let go before the next is opened
            plan = plan_partition(log, self._options_from_disk(log, epoch), epoch, place, self._processes)
            same = False
        else:
            plan = plan_epoch(log, self._options(), epoch, before=before)
        if self.engine == "sequential":
            return (epoch, place), plan, None
        if before is not None and same:
            return (epoch, place), plan, self._plan[2]  # type: ignore[index] # there is one before
        processes = self._processes
        if self._own is None:
            return (epoch, place), plan, plan.waves(self.lanes).to(self.device)
        own = replace(plan, users=plan.users[self._own[plan.users + plan.first_user]])
        waves = own.waves(processes.share(self.lanes))
        length = processes.most(len(waves))  # where others have more waves, this process has empty ones
        starting = processes.totals(waves.starting, length)
        return (epoch, place), plan, waves.with_starting(starting).to(self.device)

    def _options(self) -> BlockOptions:
        return BlockOptions(
            self.rule, self.order, self.user_order, self.minimum, self.maximum, self.overflow, self.seed
        )

    def _options_from_disk(self, log: PreparedLog, epoch: int) -> BlockOptions:
        """The options with limits that hold for the whole log, which change only when rows are shuffled."""
        if self._block_options is None or (self.order == "shuffled" and self._block_options[0] != epoch):
            self._block_options = epoch, whole_log_options(log, self._options(), epoch, self._processes)
        return self._block_options[1]

    def _run_waves(self, waves: Waves, numbers: range, optimizer: Any) -> Tensor:
        scorer, loss = self.stepped(), self.loss or BPRLoss(reduction="sum")
        plain = type(scorer) is Factorization and self.loss is None and self.optimizer is None and self.momentum == 0
        plain = plain and not is_sharded(next(scorer.parameters()))
        total, blocks = torch.zeros((), device=self.device), torch.zeros((), device=self.device)
        for number in numbers:
            wave = take_wave(waves, number)
            if self.average is not None:
                self.average.count(waves.starting[number])
            if plain and isinstance(scorer, Factorization):
                tables = scorer.user_vectors.data, scorer.item_vectors.data
                offsets = None if scorer.item_offsets is None else scorer.item_offsets.data
                eta, together = optimizer.param_groups[0]["lr"], None if self._own is None else self._processes.sum
                total += factorization_step(*tables, offsets, wave, eta=eta, mu=self.mu, together=together)
            else:
                value, objective = wave_loss(scorer, loss, wave, mu=self.mu)
                optimizer.zero_grad(set_to_none=False)
                self._processes.backward(self, objective, scorer)
                optimizer.step()
                total += value
            blocks += wave.user_weights.sum()
        if plain:
            optimizer.step()  # without gradients, as above
        total, blocks = self._processes.sum(torch.stack([total, blocks])).unbind()
        return total / blocks.clamp(min=1)

    def default_optimizer(self, parameters: Iterable[nn.Parameter]) -> Optimizer:
        """Make SGD with the momentum."""
        return SGD(parameters, lr=self.eta, momentum=self.momentum)
