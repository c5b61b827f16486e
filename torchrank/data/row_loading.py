"""Batches of a table's rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchrank.data.batch_sampler import BatchLoader, ListBatchSampler
from torchrank.types import ObjectBatch


class RowLoader(BatchLoader):
    """Iterates over some rows of a table in batches; Lightning takes it in place of a ``DataLoader``.

    A batch is one index operation, on a tensor or on an array that may be mapped from a file. The order of the batches,
    resuming and DDP are those of :class:`~torchrank.data.ListBatchSampler` with rows in place of lists.

    Args:
        points: ``(n, d)`` tensor or array.
        rows: ``(m,)`` int64, the rows to iterate over; None for all.
        batch_size: most rows in a batch.
        shuffle: shuffle every epoch.
        seed: of the shuffling.
        rank: this process's number.
        world_size: number of processes.

    Raises:
        TorchRankError: an option out of its range.

    Example:
        >>> batches = list(RowLoader(torch.arange(10.0).reshape(5, 2), batch_size=3))
        >>> [batch.rows.tolist() for batch in batches], batches[1].points.tolist()
        ([[0, 1], [2, 3, 4]], [[4.0, 5.0], [6.0, 7.0], [8.0, 9.0]])
    """

    def __init__(
        self,
        points: Tensor | np.ndarray[Any, Any],
        rows: Tensor | None = None,
        *,
        batch_size: int = 4096,
        shuffle: bool = False,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self.points = points
        self.rows = torch.arange(len(points)) if rows is None else rows
        lengths = torch.ones(len(self.rows), dtype=torch.int64)
        order: dict[str, Any] = {"shuffle": shuffle, "seed": seed, "rank": rank, "world_size": world_size}
        super().__init__(ListBatchSampler(lengths, batch_size=batch_size, max_padding=1, **order))

    def __iter__(self) -> Iterator[ObjectBatch]:
        for chosen in self.batch_sampler:
            rows = self.rows[chosen]
            if isinstance(self.points, Tensor):
                yield ObjectBatch(self.points[rows.to(self.points.device)], rows)
            else:
                yield ObjectBatch(torch.from_numpy(np.array(self.points[rows.numpy()], dtype=np.float64)), rows)
