"""Padded batches of sequences."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from torchrank.data.batch_sampler import BatchLoader, ListBatchSampler
from torchrank.data.sequences import SequenceDataset
from torchrank.ops.ragged import ragged_index
from torchrank.types import SequenceBatch


def collate_sequences(dataset: SequenceDataset, sequences: Tensor, *, longest: int | None = None) -> SequenceBatch:
    """Lay chosen sequences side by side.

    Args:
        dataset: the sequences, on any device.
        sequences: ``(B,)`` int64 numbers of the sequences, on the dataset's device.
        longest: width of the batch; found from the sequences by default.

    Returns:
        the batch, zeros as padding.

    Example:
        >>> import torch
        >>> data = SequenceDataset(torch.ones(3, 2), torch.tensor([1, 0, 2]), torch.tensor([0, 2, 3]))
        >>> batch = collate_sequences(data, torch.tensor([1, 0]))
        >>> batch.labels.tolist(), batch.mask.tolist(), batch.features.shape
        ([[2, 0], [1, 0]], [[True, False], [True, True]], torch.Size([2, 2, 2]))
    """
    width = (int(dataset.lengths[sequences].max()) if len(sequences) else 1) if longest is None else longest
    positions, mask = ragged_index(dataset.offsets, sequences, longest=width)
    padding = ~mask
    return SequenceBatch(
        dataset.features[positions].masked_fill_(padding[..., None], 0),
        dataset.labels[positions].masked_fill_(padding, 0),
        mask,
        sequences,
    )


class SequenceLoader(BatchLoader):
    """Iterates over sequences in padded batches; Lightning takes it in place of a ``DataLoader``.

    The order of the batches, resuming and DDP are those of :class:`~torchrank.data.ListBatchSampler`.

    Args:
        dataset: the sequences, on any device.
        batch_size: most sequences in a batch.
        shuffle: shuffle every epoch.
        max_padding: largest share of padding; 1 batches sequences whatever their lengths.
        seed: of the shuffling.
        rank: this process's number.
        world_size: number of processes.

    Raises:
        TorchRankError: an option out of its range.

    Example:
        >>> from torchrank.data.synthetic_sequences import make_sequences
        >>> loader = SequenceLoader(make_sequences(100).dataset, batch_size=16, shuffle=True)
        >>> sum(len(batch.sequences) for batch in loader)
        100
    """

    def __init__(
        self,
        dataset: SequenceDataset,
        *,
        batch_size: int = 32,
        shuffle: bool = False,
        max_padding: float = 1.0,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        order: dict[str, Any] = {"shuffle": shuffle, "seed": seed, "rank": rank, "world_size": world_size}
        super().__init__(ListBatchSampler(dataset.lengths, batch_size=batch_size, max_padding=max_padding, **order))
        self.dataset = dataset

    def __iter__(self) -> Iterator[SequenceBatch]:
        for sequences in self.batch_sampler:
            there = sequences.to(self.dataset.offsets.device)
            yield collate_sequences(self.dataset, there, longest=self.batch_sampler.longest(sequences))
