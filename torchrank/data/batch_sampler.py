"""Which lists make up which batch: of like length, shuffled anew every epoch, resumable inside an epoch."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchrank.errors import DataError, TorchRankError, check_count, check_number, check_seed


class ListBatchSampler:
    """Which lists make up which batch, epoch by epoch.

    Lists are divided once into classes of like length, as few as keep the padding of each class under ``max_padding``
    even if every batch of it were as wide as its longest list. An epoch shuffles the lists inside their classes, cuts
    every class into batches of nearly equal size, and shuffles the batches. The number of batches is the same in every
    epoch. An epoch is a function of the seed and its number alone, so the state is two numbers and resuming inside an
    epoch goes on with exactly the next batch.

    Under DDP every rank takes every ``world_size``-th list of a global batch of ``world_size × batch_size``: all lists
    once, the same number of batches on every rank. Where a global batch holds fewer lists than there are ranks (the
    last one of one-list batches, or a dataset that small) the ranks left over get a batch of no lists.

    Args:
        lengths: ``(Q,)`` documents of each list.
        batch_size: most lists in a batch, on each rank.
        shuffle: shuffle every epoch; otherwise lists keep their order and the longest come first.
        max_padding: largest share of padding, at least 0; 1 puts all lists into one class, so that without shuffling
            the batches follow the dataset's order.
        seed: of the shuffling.
        rank: this process's number.
        world_size: number of processes.

    Raises:
        TorchRankError: an option out of its range.

    Example:
        >>> sampler = ListBatchSampler(torch.tensor([3, 50, 3, 48]), batch_size=2)
        >>> [lists.tolist() for lists in sampler]
        [[1, 3], [0, 2]]
    """

    def __init__(
        self,
        lengths: Tensor,
        *,
        batch_size: int = 32,
        shuffle: bool = False,
        max_padding: float = 0.2,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        check_count("batch_size", batch_size)
        check_seed(seed)
        check_number("max_padding", max_padding, least=0)
        if max_padding > 1:
            raise TorchRankError(f"max_padding={max_padding} must lie in [0, 1]")
        if not 0 <= rank < world_size:
            raise TorchRankError(f"rank={rank} must lie from 0 to world_size − 1 = {world_size - 1}")
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.max_padding = max_padding
        self.seed = seed
        self.rank = rank
        self.world_size = world_size
        self._lengths = lengths.cpu()  # a batch's width must not wait for a device
        self._class = _length_classes(self._lengths.numpy(), max_padding, least=world_size)
        self._bounds = _batch_bounds(np.bincount(self._class), batch_size * world_size)
        self._epoch = 0
        self._position = 0
        self._begun = False

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def __iter__(self) -> Iterator[Tensor]:
        if self._begun:
            self._epoch, self._position = self._epoch + 1, 0
        self._begun = True
        lists, order = self._plan()
        while self._position < len(self):
            batch = order[self._position]
            self._position += 1
            together = lists[self._bounds[batch] : self._bounds[batch + 1]]
            yield torch.from_numpy(together[self.rank :: self.world_size])

    def _plan(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All lists, class after class, and the order in which the batches of them come."""
        if not self.shuffle:
            return np.argsort(self._class, kind="stable"), np.arange(len(self))
        random = np.random.default_rng([self.seed, self._epoch])
        lists = random.permutation(len(self._class))
        return lists[np.argsort(self._class[lists], kind="stable")], random.permutation(len(self))

    def longest(self, lists: Tensor) -> int:
        """Return how wide a batch of lists is; 1 where it has none."""
        return int(self._lengths[lists].max()) if len(lists) else 1

    @property
    def sampler(self) -> "ListBatchSampler":
        """Itself: Lightning announces an epoch's number to ``batch_sampler.sampler.set_epoch``."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch is next; a new number starts it at its first batch, the present one changes nothing.

        Args:
            epoch: the epoch's number, from 0.
        """
        if epoch != self._epoch:
            self._epoch, self._position, self._begun = epoch, 0, False

    def state_dict(self) -> dict[str, int]:
        """Where it stands: the epoch, the batches handed out, and what they depend on."""
        return {"epoch": self._epoch, "position": self._position, **self._identity()}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on where another sampler of the same lists stood; at the end of an epoch, with any number of processes.

        Args:
            state: of :meth:`state_dict`.

        Raises:
            DataError: the state is of other lists, another batch size or seed, or, inside an epoch, another number of
                processes.
        """
        ended = state.get("position", 0) >= state.get("batches", 1)
        free = {"world_size", "batches"} if ended else set()
        own = {k: v for k, v in self._identity().items() if k not in free}
        changed = [f"{k} was {state.get(k)}, is {v}" for k, v in own.items() if state.get(k) != v]
        if changed:
            raise DataError(f"cannot resume inside the epoch, the data loader differs: {'; '.join(changed)}")
        self._epoch, self._position, self._begun = state["epoch"], state["position"], False
        if ended:
            self._epoch, self._position = self._epoch + 1, 0

    def _identity(self) -> dict[str, int]:
        return {
            "lists": len(self._class),
            "batches": len(self),
            "batch_size": self.batch_size,
            "seed": self.seed,
            "shuffle": int(self.shuffle),
            "world_size": self.world_size,
        }


class BatchLoader:
    """Iterates over batches that a sampler chooses; Lightning takes it in place of a ``DataLoader``.

    It needs no worker processes: a batch is a few index operations on tensors in memory. Its ``state_dict`` lets
    Lightning resume inside an epoch with exactly the next batch.

    Args:
        batch_sampler: chooses what makes up a batch.
    """

    def __init__(self, batch_sampler: ListBatchSampler) -> None:
        self.batch_sampler = batch_sampler

    def __len__(self) -> int:
        return len(self.batch_sampler)

    def state_dict(self) -> dict[str, int]:
        """Where the loader stands, see :meth:`ListBatchSampler.state_dict`."""
        return self.batch_sampler.state_dict()

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on where another loader stood, see :meth:`ListBatchSampler.load_state_dict`.

        Args:
            state: of :meth:`state_dict`.

        Raises:
            DataError: the state is of another loader.
        """
        self.batch_sampler.load_state_dict(state)


def _length_classes(lengths: NDArray[np.int64], max_padding: float, *, least: int) -> NDArray[np.int64]:
    """Number the class of each list: 0 the longest.

    From the longest list on, a class takes in ever shorter lists while, all padded to its longest, no more than
    ``max_padding`` of it is padding, and in any case ``least`` lists.
    """
    order = np.argsort(-lengths, kind="stable")
    total = np.concatenate([[0], np.cumsum(lengths[order])])
    starts = [0]
    while starts[-1] < len(lengths):
        start = starts[-1]
        # the share of padding only grows as shorter lists come in, so the first excess ends the class
        full = np.arange(1, len(lengths) - start + 1) * lengths[order[start]]
        fits = total[start + 1 :] - total[start] >= (1 - max_padding) * full
        starts.append(min(len(lengths), start + max(int(fits.sum()), least)))
    if len(starts) > 2 and starts[-1] - starts[-2] < least:
        del starts[-2]
    classes = np.empty(len(lengths), dtype=np.int64)
    classes[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return classes


def _batch_bounds(classes: NDArray[np.int64], batch_size: int) -> NDArray[np.int64]:
    """Where batches start when every class is cut into as few as hold it, nearly equal in size."""
    steps = -(-classes // batch_size)
    first = np.cumsum(classes) - classes
    cuts = [at + np.arange(count) * size // count for at, count, size in zip(first, steps, classes, strict=True)]
    return np.concatenate([*cuts, [classes.sum()]])
