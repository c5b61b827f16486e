"""Labelled sequences in memory: flat tensors and the offsets of the sequences in them."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from torchrank.data.choice import choose
from torchrank.errors import DataError, ShapeError
from torchrank.ops.ragged import ragged_take


class LabelledSequence(NamedTuple):
    """One sequence.

    Attributes:
        features: ``(T, d)``.
        labels: ``(T,)`` int64.

    Example:
        >>> data = SequenceDataset(torch.rand(3, 4), torch.tensor([0, 1, 0]), torch.tensor([0, 1, 3]))
        >>> [sequence.labels.tolist() for sequence in data]
        [[0], [1, 0]]
    """

    features: Tensor
    labels: Tensor


class SequenceDataset:
    """Sequences of feature vectors with a label each, ragged: no padding is stored.

    Args:
        features: ``(N, d)`` floating point, finite.
        labels: ``(N,)`` integers in 0 … q − 1; all zeros for unlabelled data.
        offsets: ``(S + 1,)`` integers from 0 to N; sequence s has positions ``offsets[s]`` to ``offsets[s + 1]``, at
            least one.
        num_labels: q; by default the highest label and one. Give it for parts that may lack a label.
        folds: ``(S,)`` integers, the cross-validation fold of each sequence, or None.

    Raises:
        ShapeError: parts that do not fit each other.
        DataError: values no chain can be trained on; the message names the position.

    Example:
        >>> data = SequenceDataset(torch.rand(5, 3), torch.tensor([0, 1, 1, 2, 0]), torch.tensor([0, 2, 5]))
        >>> len(data), data.num_labels, data[1].labels.tolist()
        (2, 3, [1, 2, 0])
    """

    def __init__(
        self,
        features: Tensor,
        labels: Tensor,
        offsets: Tensor,
        *,
        num_labels: int | None = None,
        folds: Tensor | None = None,
    ) -> None:
        self.features = features
        self.labels = labels.to(torch.int64)
        self.offsets = offsets.to(torch.int64)
        self.num_labels = int(labels.max()) + 1 if num_labels is None and labels.numel() else num_labels or 1
        self.folds = folds
        if features.ndim != 2 or not features.is_floating_point():
            raise ShapeError(f"features must be (N, d) floating point, got {tuple(features.shape)} {features.dtype}")
        count = len(features)
        if len(offsets) < 2 or offsets.ndim != 1 or int(offsets[0]) != 0 or int(offsets[-1]) != count:
            raise ShapeError(f"offsets must run from 0 to the {count} positions, got {offsets.tolist()[:8]}…")
        if labels.shape != (count,) or labels.is_floating_point():
            raise ShapeError(f"labels must be ({count},) integers, got {tuple(labels.shape)} {labels.dtype}")
        if folds is not None and folds.shape != (len(self),):
            raise ShapeError(f"folds must be ({len(self)},), one a sequence, got {tuple(folds.shape)}")
        self._check_values()

    def _check_values(self) -> None:
        if bool((self.lengths < 1).any()):
            row = int((self.lengths < 1).nonzero()[0])
            raise DataError(f"sequence {row} has {int(self.lengths[row])} positions; leave empty sequences out")
        if not bool(self.features.isfinite().all()):
            row, column = self.features.isfinite().logical_not().nonzero()[0].tolist()
            value = self.features[row, column].item()
            raise DataError(f"feature {column} of position {row} is {value}; fill or drop what is missing")
        bad = (self.labels < 0) | (self.labels >= self.num_labels)
        if bool(bad.any()):
            row = int(bad.nonzero()[0])
            raise DataError(
                f"the label of position {row} is {int(self.labels[row])}; with {self.num_labels} labels they run from"
                f" 0 to {self.num_labels - 1}"
            )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, sequence: int) -> LabelledSequence:
        if not -len(self) <= sequence < len(self):
            raise IndexError(f"sequence {sequence} of {len(self)}")
        sequence %= len(self)
        here = slice(int(self.offsets[sequence]), int(self.offsets[sequence + 1]))
        return LabelledSequence(self.features[here], self.labels[here])

    def __repr__(self) -> str:
        return (
            f"SequenceDataset({len(self)} sequences, {len(self.features)} positions, {self.num_features} features,"
            f" {self.num_labels} labels)"
        )

    @property
    def num_features(self) -> int:
        """Number of features d."""
        return self.features.shape[1]

    @property
    def lengths(self) -> Tensor:
        """``(S,)`` positions of each sequence."""
        return self.offsets.diff()

    def select(self, sequences: Sequence[int] | Tensor) -> "SequenceDataset":
        """Return chosen sequences, in the order given; repeats are allowed.

        Args:
            sequences: integers from 0, or a ``(S,)`` boolean tensor.

        Returns:
            a new dataset with the same number of labels.

        Raises:
            DataError: no sequence, or one that does not exist, is chosen.

        Example:
            >>> data = SequenceDataset(torch.rand(3, 1), torch.tensor([1, 0, 2]), torch.tensor([0, 1, 3]))
            >>> data.select([1]).labels.tolist()
            [0, 2]
        """
        chosen = choose(sequences, len(self), self.offsets.device, one="sequence", several="sequences")
        positions, offsets = ragged_take(self.offsets, chosen)
        return SequenceDataset(
            self.features[positions],
            self.labels[positions],
            offsets,
            num_labels=self.num_labels,
            folds=None if self.folds is None else self.folds[chosen],
        )

    def in_folds(self, folds: Sequence[int]) -> "SequenceDataset":
        """Return the sequences of some cross-validation folds.

        Args:
            folds: the folds' numbers.

        Returns:
            a new dataset, in the order of this one.

        Raises:
            DataError: there are no folds, or not these.

        Example:
            >>> labels, offsets = torch.tensor([1, 0, 2]), torch.tensor([0, 1, 3])
            >>> data = SequenceDataset(torch.rand(3, 1), labels, offsets, folds=torch.tensor([0, 1]))
            >>> data.in_folds([1]).labels.tolist()
            [0, 2]
        """
        if self.folds is None:
            raise DataError(f"these sequences have no folds, so none can be taken from {list(folds)}")
        known = torch.unique(self.folds).tolist()
        missing = sorted(set(folds) - set(known))
        if missing or not folds:
            raise DataError(f"there are folds {known}, asked for {missing or 'none'}")
        return self.select(torch.isin(self.folds, torch.tensor(list(folds), dtype=self.folds.dtype)))
