"""Padded batches of lists of like length, shuffled anew every epoch, resumable inside an epoch."""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchrank.data.queries import QueryDataset
from torchrank.errors import DataError, TorchRankError, check_count, check_type
from torchrank.ops.ragged import ragged_index
from torchrank.types import ListBatch


def collate_lists(dataset: QueryDataset, lists: Tensor, *, longest: int | None = None) -> ListBatch:
    """Lay chosen lists side by side; every document is copied once.

    Args:
        dataset: the queries, on any device.
        lists: ``(B,)`` int64 numbers of the lists, on the dataset's device.
        longest: width of the batch; found from the lists by default.

    Returns:
        the batch, zeros as padding.

    Example:
        >>> data = QueryDataset(torch.ones(3, 2), torch.tensor([1.0, 0, 2]), torch.tensor([0, 2, 3]))
        >>> batch = collate_lists(data, torch.tensor([1, 0]))
        >>> batch.relevance.tolist(), batch.mask.tolist(), batch.features.shape
        ([[2.0, 0.0], [1.0, 0.0]], [[True, False], [True, True]], torch.Size([2, 2, 2]))
    """
    width = (int(dataset.lengths[lists].max()) if len(lists) else 1) if longest is None else longest
    documents, mask = ragged_index(dataset.offsets, lists, longest=width)
    padding = ~mask
    return ListBatch(
        dataset.features[documents].masked_fill_(padding[..., None], 0),
        dataset.relevance[documents].masked_fill_(padding, 0),
        mask,
        lists,
        dataset.list_weights[lists],
    )


def collect_scores(dataset: QueryDataset, predictions: Iterable[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
    """Undo the batching: scores of batches, in any order, to one score a document.

    Args:
        dataset: the queries.
        predictions: ``(B, L)`` scores, ``(B, L)`` mask and ``(B,)`` list numbers of every batch.

    Returns:
        ``(N,)`` in the dataset's order.

    Raises:
        DataError: some list was not scored.

    Example:
        >>> data = QueryDataset(torch.ones(3, 2), torch.zeros(3), torch.tensor([0, 2, 3]))
        >>> scored = [(batch.relevance + batch.lists[:, None], batch.mask, batch.lists) for batch in ListLoader(data)]
        >>> collect_scores(data, scored)
        tensor([0., 0., 1.])
    """
    offsets = dataset.offsets.cpu()
    parts, places, seen = [], [], torch.zeros(len(dataset), dtype=torch.bool)
    for scores, mask, lists in predictions:
        documents, found = ragged_index(offsets, lists.cpu(), longest=mask.shape[-1])
        if not torch.equal(found, mask.cpu()):
            raise DataError(f"the mask of lists {lists.tolist()[:8]} does not fit the dataset's lengths")
        parts.append(scores.detach().cpu()[found])
        places.append(documents[found])
        seen[lists.cpu()] = True
    if not bool(seen.all()):
        raise DataError(
            f"{int((~seen).sum())} of {len(seen)} lists were not scored, such as {int((~seen).nonzero()[0])}"
        )
    flat = torch.cat(parts)
    return flat.new_empty(len(dataset.features)).index_put((torch.cat(places),), flat)


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
        if not 0 <= max_padding <= 1:
            raise TorchRankError(f"max_padding={max_padding} must lie in [0, 1]")
        if not 0 <= rank < world_size:
            raise TorchRankError(f"rank={rank} must lie from 0 to world_size − 1 = {world_size - 1}")
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.max_padding = max_padding
        self.seed = seed
        self.rank = rank
        self.world_size = world_size
        sizes = lengths.cpu().numpy()
        self._class = _length_classes(sizes, max_padding, least=world_size)
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


class ListLoader:
    """Iterates over a dataset in padded batches; Lightning takes it in place of a ``DataLoader``.

    It needs no worker processes: a batch is a few index operations on tensors in memory. Its ``state_dict`` lets
    Lightning resume inside an epoch with exactly the next batch. See :class:`ListBatchSampler` for the order of the
    batches, the options and what happens under DDP.

    Args:
        dataset: the queries, on any device.
        batch_size: most lists in a batch.
        shuffle: shuffle every epoch.
        max_padding: largest share of padding.
        seed: of the shuffling.
        rank: this process's number.
        world_size: number of processes.

    Raises:
        TorchRankError: an option out of its range.

    Example:
        >>> from torchrank.data.synthetic_queries import make_queries
        >>> loader = ListLoader(make_queries(100).dataset, batch_size=16, shuffle=True)
        >>> sum(len(batch.lists) for batch in loader)
        100
    """

    def __init__(
        self,
        dataset: QueryDataset,
        *,
        batch_size: int = 32,
        shuffle: bool = False,
        max_padding: float = 0.2,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        check_type("dataset", dataset, QueryDataset, "a QueryDataset, as read_letor makes one")
        self.dataset = dataset
        self.batch_sampler = ListBatchSampler(
            dataset.lengths,
            batch_size=batch_size,
            shuffle=shuffle,
            max_padding=max_padding,
            seed=seed,
            rank=rank,
            world_size=world_size,
        )
        self._lengths = dataset.lengths.cpu()  # a batch's width must not wait for a device

    def __len__(self) -> int:
        return len(self.batch_sampler)

    def __iter__(self) -> Iterator[ListBatch]:
        for lists in self.batch_sampler:
            longest = int(self._lengths[lists].max()) if len(lists) else 1
            yield collate_lists(self.dataset, lists.to(self.dataset.offsets.device), longest=longest)

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
