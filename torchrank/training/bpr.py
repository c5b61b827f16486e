"""BPR on logs of shown items: pairs from what a user was shown, against items never shown, or all pairs at once."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from torchrank.data.pairs import PairLists
from torchrank.data.prepared import PreparedLog
from torchrank.errors import DataError, TorchRankError, check_count, check_number, check_option
from torchrank.losses import BPRLoss
from torchrank.models import Factorization
from torchrank.ops.sequential.bpr import REJECT, SHOWN, UNSEEN, draw_visits
from torchrank.ops.sequential.compiled import random_state
from torchrank.training.interaction_data import EpochPart
from torchrank.training.preference import PreferenceModule
from torchrank.training.processes import Processes, add_moves, keep_apart
from torchrank.training.sequential_steps import bpr_step, check_sharing, full_step
from torchrank.training.sharding import shard_tables
from torchrank.training.turns import ALONE, take_turn

_DRAWS = {"shown": SHOWN, "rejection": REJECT, "unobserved": UNSEEN}


class BPRModule(PreferenceModule):
    """Learn preferences from random pairs: a gradient step a pair on log(1 + exp(s_j − s_i)), item i preferred over j.

    Needs ``trainer.fit(module, datamodule=InteractionDataModule(…))``. An epoch draws as many pairs as there are
    interactions to draw from. Logs ``train_loss`` (each pair before its step), ``rejected`` draws a pair,
    ``skipped_users`` who have no pair of the kind asked for though they prefer something, and the measures that
    :class:`~torchrank.training.SAROSModule` logs.

    Args:
        scorer: scores users and items; made from the training log by default.
        dim: of a scorer made from the log, length of the vectors.
        init: of a scorer made from the log, ``"uniform"`` on [0, 1) or ``"normal"`` with deviation 0.1.
        item_bias: of a scorer made from the log, give items offsets, started at the log-odds of their feedback.
        feedback: of a scorer made from the log, describe users by ``"all"`` their feedback, or by what they
            ``"preferred"``, and not by vectors of their own.
        pairs: where j comes from: ``"shown"`` (another item the user was shown), ``"rejection"`` (the same, as
            published: two shown items are drawn until one is preferred over the other), ``"unobserved"`` (an item never
            shown to the user, verified), or ``"all"`` (batch BPR: a step is one step on the exact gradient of the mean
            over users of all their shown pairs).
        users: ``"random"`` draws a user for every pair (for ``"unobserved"``, a positive feedback); ``"each"`` takes
            every user once an epoch, in random order, with as many pairs as interactions. Of a
            :class:`~torchrank.data.PreparedLog` both do so partition by partition, these in random order.
        engine: ``"sequential"``, a compiled loop on the CPU; or ``"batched"``, for any scorer, pair loss, optimiser and
            device.
        eta: step size η.
        mu: μ of the L2 term μ(‖U_u‖² + ‖V_i‖² + ‖V_j‖²); a scorer of your own then needs
            ``squared_norms(users, items)``.
        offset_mu: the same for the items' offsets; of ``"sequential"``.
        lr_scheduler: makes the schedule of η from an optimiser; it moves once an epoch.
        loss: with ``"batched"``, a pair loss that sums its pairs; ``BPRLoss(reduction="sum")`` by default.
        optimizer: with ``"batched"``, makes the optimiser from the parameters, in place of SGD with ``eta``.
        batch_size: with ``"batched"``, pairs a step, in all processes together; their losses are summed, not averaged.
        threads: with ``"sequential"``, how many step through different users side by side on the same tables without
            locks (Hogwild); with more than 1 no two runs are quite the same.
        combine: with ``"sequential"`` in several processes, what becomes of the parameters that they share after every
            step of the trainer: the ``"mean"`` (local SGD), or the ``"sum"`` of how far each process moved them.
        seed: of a scorer made from the log and of the draws.

    Raises:
        TorchRankError: an option that does not exist, cannot be, or does not go with the engine.

    Source: Rendle et al. (arXiv 1205.2618); the comparison of arXiv 1902.08495, section 5.

    Example:
        >>> import pytorch_lightning as pl
        >>> from torchrank.data import make_interactions
        >>> from torchrank.training import InteractionDataModule
        >>> log, _ = make_interactions(num_users=30, num_items=20, num_interactions=300)
        >>> module = BPRModule(dim=4, pairs="unobserved")
        >>> quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
        >>> trainer = pl.Trainer(max_epochs=2, accelerator="cpu", enable_checkpointing=False, **quiet)
        >>> trainer.fit(module, datamodule=InteractionDataModule(log))
        >>> module.scorer.score_all(torch.tensor([0, 1])).shape
        torch.Size([2, 20])
    """

    def __init__(
        self,
        scorer: nn.Module | None = None,
        *,
        dim: int = 4,
        init: Literal["uniform", "normal"] = "uniform",
        item_bias: bool = False,
        feedback: Literal["all", "preferred"] | None = None,
        pairs: Literal["shown", "rejection", "unobserved", "all"] = "shown",
        users: Literal["random", "each"] = "random",
        engine: Literal["sequential", "batched"] = "sequential",
        eta: float = 0.01,
        mu: float = 0.01,
        offset_mu: float = 0.0,
        lr_scheduler: Callable[[Optimizer], LRScheduler] | None = None,
        loss: nn.Module | None = None,
        optimizer: Callable[[Iterable[Any]], Optimizer] | None = None,
        batch_size: int = 4096,
        threads: int = 1,
        combine: Literal["mean", "sum"] = "mean",
        seed: int = 0,
    ) -> None:
        made: dict[str, Any] = {"dim": dim, "init": init, "item_bias": item_bias, "feedback": feedback, "seed": seed}
        super().__init__(scorer, eta=eta, mu=mu, lr_scheduler=lr_scheduler, optimizer=optimizer, **made)
        check_option("pairs", pairs, [*_DRAWS, "all"])
        check_option("users", users, ["random", "each"])
        check_option("engine", engine, ["sequential", "batched"])
        check_number("offset_mu", offset_mu, least=0)
        check_sharing(threads, combine, alone=engine == "batched" or pairs == "all")
        check_count("batch_size", batch_size)
        if engine == "sequential" and not (loss is None and optimizer is None):
            raise TorchRankError('loss and optimizer go with engine="batched"; "sequential" has its own')
        if engine == "batched" and (pairs == "all" or offset_mu > 0):
            raise TorchRankError('pairs="all" and offset_mu go with engine="sequential"')
        self.pairs, self.users, self.engine = pairs, users, engine
        self.offset_mu, self.loss, self.batch_size = offset_mu, loss, batch_size
        self.threads, self.combine = threads, combine
        # the draws of an epoch follow each other, so that a checkpoint inside it knows the next
        self.register_buffer("draw_state", torch.zeros(1, dtype=torch.int64))
        self._lists: PairLists | None = None
        self._turn: tuple[tuple[int, int], _Visits] | None = None

    draw_state: Tensor

    def setup(self, stage: str) -> None:
        """Make the scorer from the training log, and refuse what cannot be trained."""
        if stage != "fit":
            return
        compiled = self.engine == "sequential"
        all_pairs = self.pairs == "all"
        log = self.prepare(compiled=compiled) if all_pairs else self.prepare(compiled=compiled, from_disk=True)
        if self.pairs == "all" and not isinstance(self.scorer, Factorization):
            raise TorchRankError('pairs="all" is compiled for Factorization; draw pairs for other scorers')
        if self.pairs == "all" and self._processes.size > 1:
            raise TorchRankError('pairs="all" steps on the gradient of all users at once, in 1 process; use devices=1')
        keep_apart(self)
        self._lists = self._turn = None
        if isinstance(log, PreparedLog):
            self.skipped_users = skipped_users(
                each_partition(log, self._processes), unobserved=self._unobserved, processes=self._processes
            )
        else:
            self._lists = PairLists.from_log(log)
            self.skipped_users = skipped_users([self._lists], unobserved=self._unobserved)

    @property
    def _unobserved(self) -> bool:
        return self.pairs == "unobserved"

    def configure_model(self) -> None:
        """Deal the rows of the tables to the processes of a ``ModelParallelStrategy``."""
        shard_tables(self)

    def training_step(self, batch: EpochPart, batch_idx: int) -> None:
        """Take the steps of one part of the epoch."""
        optimizer: Any = self.optimizers()
        loss: float | Tensor
        several = self._processes.size > 1
        if self.pairs == "all":
            assert self._lists is not None  # noqa: S101 - for the type checker: made in setup
            loss = full_step(self.require_scorer(), self._lists, optimizer, mu=self.mu)
        else:
            place, part = self.place(batch)
            if self._turn is None or self._turn[0] != (self.current_epoch, place):
                self._turn = None  # its partition is let go before the next is opened
                self._turn = (self.current_epoch, place), self._lay_out(self.current_epoch, place)
            state = self._state(batch.number)
            run = self._run_visits if self.engine == "sequential" else self._run_batches
            found, *counts = run(self._turn[1].part(*part, own=self._own), state, optimizer)
            if not several:
                self.draw_state.copy_(torch.from_numpy(state.view(np.int64)))
            drawn, rejected = self._processes.total(counts)
            loss = self._processes.sum(found) / max(drawn, 1)
            self.log("rejected", rejected / max(drawn, 1), batch_size=1, sync_dist=several)
            self.log("skipped_users", float(self.skipped_users), batch_size=1, sync_dist=several)
        self.end_part(loss)

    def _state(self, number: int) -> NDArray[np.uint64]:
        """Return the state of the draws; of several processes each draws anew in every part, so that any may go on."""
        if self._processes.size > 1:
            return random_state(self.seed, self.current_epoch, 1, number, self._processes.rank)
        state = self.draw_state.cpu().numpy().view(np.uint64)
        if number == 0 or not state.any():  # none was kept by several processes
            state[:] = random_state(self.seed, self.current_epoch, 1)
        return state

    def _run_visits(self, visits: "_Visits", state: NDArray[np.uint64], optimizer: Any) -> tuple[Tensor, int, int]:
        scorer = self.require_scorer()
        how = optimizer, _DRAWS[self.pairs], self.mu, self.offset_mu, state, self.threads, visits.first_user
        with add_moves(self._processes, scorer, average=self.combine == "mean"):
            loss, drawn, rejected = bpr_step(scorer, visits.lists, visits.users, visits.pairs, *how)
        optimizer.step()  # without gradients: it moves nothing, and Lightning counts the step
        return torch.tensor(loss, dtype=torch.float64), drawn, rejected

    def _lay_out(self, epoch: int, place: int) -> "_Visits":
        """Draw whom a turn of the epoch visits."""
        assert self._train_log is not None  # noqa: S101 - for the type checker: set in setup
        turn = take_turn(self._train_log, place, epoch=epoch, seed=self.seed, processes=self._processes)
        lists = PairLists.from_log(turn.log) if self._lists is None else self._lists
        random = np.random.default_rng([self.seed, epoch, 0, *turn.seeds])
        eligible, _ = eligible_users(lists, unobserved=self._unobserved)
        sizes = (lists.middles if self._unobserved else lists.starts[1:]) - lists.starts[:-1]
        if self.users == "each":
            users = random.permutation(eligible)
            return _Visits(lists, turn.first_user, users, sizes[users])
        count = int(sizes[eligible].sum())
        every = np.repeat(eligible, sizes[eligible]) if self._unobserved else eligible
        users = every[random.integers(max(len(every), 1), size=count)]
        return _Visits(lists, turn.first_user, users, np.ones(count, np.int64))

    def _run_batches(self, visits: "_Visits", state: NDArray[np.uint64], optimizer: Any) -> tuple[Tensor, int, int]:
        lists, scorer, loss = visits.lists, self.require_scorer(), self.loss or BPRLoss(reduction="sum")
        places = lists.starts, lists.middles, lists.items, lists.seen_starts, lists.seen
        draw = _DRAWS[self.pairs]
        *drawn, rejected = draw_visits(visits.users, visits.pairs, *places, lists.num_items, draw, state)
        owners, liked, other = (torch.from_numpy(x).to(self.device) for x in drawn)
        owners += visits.first_user
        total = torch.zeros((), device=self.device)
        size = self._processes.share(self.batch_size)
        for first in range(0, self._processes.most(len(owners)), size):  # empty where others have more
            part = slice(first, first + size)
            twice, both = owners[part].repeat(2), torch.cat([liked[part], other[part]])
            positive, negative = scorer(twice, both).chunk(2)
            value = objective = loss(positive, negative)
            if self.mu > 0:
                by_user, by_item = scorer.squared_norms(twice, both)  # type: ignore[operator] # refused in setup
                objective = value + self.mu * (by_user.sum() / 2 + by_item.sum())
            optimizer.zero_grad(set_to_none=False)
            self._processes.backward(self, objective, scorer)
            optimizer.step()
            total += value.detach()
        return total, len(owners), rejected


@dataclass(frozen=True, eq=False)
class _Visits:
    """Whom to draw pairs for, in order, and how many for each; users count from the lists' first."""

    lists: PairLists
    first_user: int
    users: NDArray[np.int32]
    pairs: NDArray[np.int64]

    def part(self, number: int, parts: int, *, own: NDArray[np.bool_] | None) -> "_Visits":
        """Take one of ``parts`` shares, nearly equal in pairs, and of it the users marked as this process's own."""
        done = np.append(0, np.cumsum(self.pairs))
        first, last = np.searchsorted(done, [done[-1] * number / parts, done[-1] * (number + 1) / parts])
        last = len(self.users) if number == parts - 1 else last
        users, pairs = self.users[first:last], self.pairs[first:last]
        keep = slice(None) if own is None else own[users + self.first_user]
        return replace(self, users=users[keep], pairs=pairs[keep])


def each_partition(log: PreparedLog, processes: Processes) -> Iterator[PairLists]:
    """Lay out one partition after the other, each in one of the processes."""
    for number in range(processes.rank, log.num_partitions, processes.size):
        yield PairLists.from_log(log.partition(number))


def skipped_users(parts: Iterable[PairLists], *, unobserved: bool, processes: Processes = ALONE) -> int:
    """Count the users who prefer something but have no pair.

    Args:
        parts: of the training log, of every process other ones.
        unobserved: whether the other item is one never shown, rather than another shown one.
        processes: that call this together.

    Returns:
        how many there are in all parts.

    Raises:
        DataError: nobody has a pair.
    """
    found = [eligible_users(lists, unobserved=unobserved) for lists in parts]
    numbers = sum(len(users) for users, _ in found), sum(skipped for _, skipped in found)
    eligible, skipped = processes.total(numbers)
    if not eligible:
        need = "a preferred item and an item never shown to them" if unobserved else "preferred and other shown items"
        raise DataError(f"no user of the training log has {need}, so there is no pair to learn from")
    return int(skipped)


def eligible_users(lists: PairLists, *, unobserved: bool) -> tuple[NDArray[np.int32], int]:
    """Find the users that pairs can be drawn for.

    Args:
        lists: of the training log, or of a partition of it.
        unobserved: whether the other item is one never shown, rather than another shown one.

    Returns:
        the users, and how many others prefer something but have no pair.
    """
    if unobserved:
        return lists.with_unseen()
    users = lists.with_both_kinds()
    return users, int((lists.starts[:-1] < lists.middles).sum()) - len(users)
