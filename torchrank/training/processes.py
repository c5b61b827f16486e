"""What the modules that learn preferences do together with other processes: users are dealt out, tables are shared."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pytorch_lightning as pl
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from pytorch_lightning.strategies import DDPStrategy, ModelParallelStrategy
from torch import Tensor, nn

from torchrank.data.log import InteractionLog
from torchrank.data.prepared import PreparedLog
from torchrank.errors import DataError, TorchRankError
from torchrank.ops.shares import partition_rounds, user_shares


@dataclass(frozen=True)
class Processes:
    """This process among those that share the users of a log; every method is called by all of them.

    Attributes:
        rank: this process's number.
        size: how many there are; with 1 nothing is sent.

    Example:
        >>> alone = Processes(0, 1)
        >>> alone.share(4096), alone.total([2, 5])
        (4096, [2.0, 5.0])
    """

    rank: int
    size: int

    @classmethod
    def of(cls, trainer: pl.Trainer | None) -> Self:
        """Return the place of a trainer's process; processes that share tables by their rows work as one.

        Raises:
            TorchRankError: a strategy that deals out parameters in a way of its own.
        """
        if trainer is None or trainer.world_size == 1:
            return cls(0, 1)
        if not isinstance(trainer.strategy, DDPStrategy | ModelParallelStrategy):
            raise TorchRankError(
                f'preferences are learned in several processes with strategy="ddp" or ModelParallelStrategy, not with'
                f" {type(trainer.strategy).__name__}"
            )
        place = trainer.strategy.distributed_sampler_kwargs
        return cls(place["rank"], place["num_replicas"])

    def own(self, log: InteractionLog | PreparedLog) -> NDArray[np.bool_]:
        """Mark the users of this process: ``(num_users,)``, of a log on disk by partition where these go round."""
        starts = log.user_starts if isinstance(log, PreparedLog) else None
        own: NDArray[np.bool_] = user_shares(log.num_users, self.size, starts) == self.rank
        return own

    def rounds(self, log: PreparedLog) -> NDArray[np.int64]:
        """Return the partition that each process reads in each round of an epoch: ``(rounds, size)``."""
        return partition_rounds(log.num_partitions, self.size)

    def share(self, number: int) -> int:
        """Divide a number of things done at once among the processes; at least 1 each."""
        return max(1, number // self.size)

    def sum(self, tensor: Tensor) -> Tensor:
        """Add a tensor up over the processes, in place where they are several, and return it."""
        if self.size > 1:
            dist.all_reduce(tensor)
        return tensor

    def total(self, values: Sequence[float]) -> list[float]:
        """Add numbers up over the processes."""
        numbers: list[float] = self._host(values, torch.float64, dist.ReduceOp.SUM)
        return numbers

    def most(self, value: int) -> int:
        """Return the largest of the processes' values."""
        return int(self._host([value], torch.int64, dist.ReduceOp.MAX)[0])

    def totals(self, values: Sequence[int], length: int) -> list[int]:
        """Add up lists of whole numbers, each filled up with zeros to ``length``."""
        return self._host([*values, *[0] * (length - len(values))], torch.int64, dist.ReduceOp.SUM)

    def _host(self, values: Sequence[Any], dtype: torch.dtype, how: Any) -> list[Any]:
        tensor = torch.tensor(values, dtype=dtype)
        if self.size > 1:
            tensor = tensor.to("cuda" if dist.get_backend() == "nccl" else "cpu")
            dist.all_reduce(tensor, how)
        return tensor.tolist()

    def backward(self, module: pl.LightningModule, objective: Tensor, scorer: nn.Module) -> None:
        """Differentiate, and add the gradients of what the processes share up over all that they worked on."""
        if self.size == 1:
            module.manual_backward(objective)
            return
        with module.trainer.strategy.block_backward_sync():  # type: ignore[attr-defined] # strategies of many processes
            module.manual_backward(objective)
        for parameter in shared_parameters(scorer):
            if parameter.grad is not None and parameter.grad.is_sparse:
                parameter.grad = self._sum_sparse(parameter.grad)
            elif parameter.grad is not None:
                dist.all_reduce(parameter.grad)

    def _sum_sparse(self, gradient: Tensor) -> Tensor:
        """Add sparse tensors up: those of all processes, padded to the longest, end to end."""
        own = gradient.coalesce()
        longest = self.most(own._nnz())
        rows = own.indices()[0].new_zeros(longest)
        rows[: own._nnz()] = own.indices()[0]
        values = own.values().new_zeros(longest, *own.values().shape[1:])
        values[: own._nnz()] = own.values()
        every_row, every_value = ([torch.empty_like(x) for _ in range(self.size)] for x in (rows, values))
        dist.all_gather(every_row, rows)
        dist.all_gather(every_value, values)
        return torch.sparse_coo_tensor(torch.cat(every_row)[None], torch.cat(every_value), gradient.shape).coalesce()

    @torch.no_grad()
    def merge_users(self, tables: Iterable[Tensor], own: NDArray[np.bool_] | None) -> None:
        """Give every process the rows of all users, each from the process that the user belongs to.

        Args:
            tables: with a row for every user.
            own: what :meth:`own` told of the log; None where nothing was learned, or in one process.
        """
        if own is None or not (dist.is_available() and dist.is_initialized()):
            return
        for table in tables:
            table.detach()[torch.from_numpy(~own).to(table.device)] = 0
            dist.all_reduce(table.detach())


@contextmanager
def add_moves(processes: Processes, scorer: nn.Module, *, average: bool) -> Iterator[None]:
    """Let every process step through its own users, then put together how far they moved what they share.

    Args:
        processes: of the trainer.
        scorer: whose parameters are moved inside; rows of users stay as they are.
        average: take the mean of the parameters (local SGD) rather than the sum of their moves.
    """
    if processes.size == 1:
        yield
        return
    shared = shared_parameters(scorer)
    before = [parameter.detach().clone() for parameter in shared]
    yield
    with torch.no_grad():
        for parameter, start in zip(shared, before, strict=True):
            moved = processes.sum(parameter.detach() - start)
            parameter.copy_(start).add_(moved, alpha=1 / processes.size if average else 1)


def shared_parameters(scorer: nn.Module) -> list[nn.Parameter]:
    """Return what all users move; the rest, ``scorer.user_tables``, has a row for every user."""
    private = getattr(scorer, "user_tables", ())
    return [parameter for name, parameter in scorer.named_parameters() if name not in private]


def user_tables(module: Any) -> list[Tensor]:
    """Return everything of a module in training that has a row for every user, optimisers' states included."""
    average = getattr(module, "average", None)
    scorers = [module.scorer] if average is None else [module.scorer, average.scorer]
    tables: list[Tensor] = [getattr(s, name) for s in scorers for name in getattr(s, "user_tables", ())]
    states = [optimizer.state.get(table, {}) for optimizer in module.trainer.optimizers for table in tables]
    tables += [x for state in states for x in state.values() if isinstance(x, Tensor) and x.ndim == 2]
    if average is not None:
        names = [name for name, _ in average.scorer.named_parameters()]
        private = getattr(average.scorer, "user_tables", ())
        tables += [total for name, (total, _) in zip(names, average.sums(), strict=True) if name in private]
    return tables


def keep_apart(module: nn.Module) -> None:
    """Have DistributedDataParallel leave alone what differs between processes, and what the steps send themselves.

    It would send every buffer of the first process to the others before each step, and a user's row to processes that
    the user does not belong to.
    """
    scorer: Any = module.scorer
    names = {name for name, _ in module.named_buffers()}
    names |= {f"scorer.{name}" for name in getattr(scorer, "user_tables", ())}
    module._ddp_params_and_buffers_to_ignore = names  # type: ignore[assignment] # the name torch looks for


def check_place(number: int, what: str, *, before: int | None, now: int) -> None:
    """Refuse to go on inside an epoch that another number of processes divides otherwise.

    Args:
        number: of the part of the epoch that is next.
        what: has been divided.
        before: the number of processes of the checkpoint that the run goes on from, None where it began anew.
        now: the number there are.

    Raises:
        DataError: the number of processes is another, and the epoch has begun.
    """
    if number > 0 and before is not None and before != now:
        raise DataError(
            f"the checkpoint is from inside an epoch whose {what} were divided among {before} processes, not {now}; go"
            f" on with {before}, or from a checkpoint of the end of an epoch"
        )
