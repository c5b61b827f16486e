"""Padded batches of lists of documents, and their scores back in the dataset's order."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from torchrank.data.batch_sampler import BatchLoader, ListBatchSampler
from torchrank.data.queries import QueryDataset
from torchrank.errors import DataError, check_type
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


class ListLoader(BatchLoader):
    """Iterates over a dataset in padded batches; Lightning takes it in place of a ``DataLoader``.

    See :class:`~torchrank.data.ListBatchSampler` for the order of the batches, the options and what happens under DDP.

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
        order: dict[str, Any] = {"shuffle": shuffle, "seed": seed, "rank": rank, "world_size": world_size}
        super().__init__(ListBatchSampler(dataset.lengths, batch_size=batch_size, max_padding=max_padding, **order))
        self.dataset = dataset

    def __iter__(self) -> Iterator[ListBatch]:
        for lists in self.batch_sampler:
            there = lists.to(self.dataset.offsets.device)
            yield collate_lists(self.dataset, there, longest=self.batch_sampler.longest(lists))
