"""Labelled sequences for training, validation, test and prediction, from files or from memory."""

from typing import Any

from torchrank.data.sequence_files import read_sequences
from torchrank.data.sequence_loading import SequenceLoader
from torchrank.data.sequences import SequenceDataset
from torchrank.errors import DataError, TorchRankError, check_option
from torchrank.training.parts_data import PARTS, Part, PartsDataModule


class SequenceDataModule(PartsDataModule[SequenceDataset, SequenceLoader]):
    """Sequences in padded batches for every stage of a Lightning ``Trainer``.

    A part is the path of an ``.npz`` file (see :func:`~torchrank.data.read_sequences`) or a
    :class:`~torchrank.data.SequenceDataset`, and may be restricted to some of its cross-validation folds. Files are
    read when their stage begins.

    Args:
        train: the training part; shuffled every epoch.
        val: the validation part.
        test: the test part.
        predict: the part to be labelled; its labels are not looked at.
        folds: part to the folds it takes; a part that is not named takes all its sequences.
        num_labels: q; by default the highest label of each part and one.
        batch_size: most sequences in a batch, on each device.
        max_padding: largest share of padding in the batches; 1 batches sequences whatever their lengths, which costs
            little on a CPU, where padding is not computed.
        seed: of the shuffling.

    Raises:
        TorchRankError: a key of ``folds`` that is no part.

    Example:
        >>> from torchrank.data import make_sequences
        >>> data = SequenceDataModule(train=make_sequences(100).dataset, val=make_sequences(20).dataset)
        >>> data.setup("fit")
        >>> sum(len(batch.sequences) for batch in data.train_dataloader())
        100
    """

    def __init__(
        self,
        *,
        train: str | SequenceDataset | None = None,
        val: str | SequenceDataset | None = None,
        test: str | SequenceDataset | None = None,
        predict: str | SequenceDataset | None = None,
        folds: dict[str, list[int]] | None = None,
        num_labels: int | None = None,
        batch_size: int = 32,
        max_padding: float = 1.0,
        seed: int = 0,
    ) -> None:
        parts: dict[Part, Any] = {"train": train, "val": val, "test": test, "predict": predict}
        super().__init__(parts, batch_size=batch_size, max_padding=max_padding, seed=seed)
        for part in folds or {}:
            check_option("folds", part, PARTS)
        self.folds = folds
        self.num_labels = num_labels

    def read_part(self, part: Part) -> SequenceDataset:
        """Read a part's file, where it is no dataset, and keep its folds.

        Raises:
            DataError: a file that cannot be read, or folds that do not exist.
        """
        given: str | SequenceDataset = getattr(self, part)
        data = given if isinstance(given, SequenceDataset) else read_sequences(given, num_labels=self.num_labels)
        folds = (self.folds or {}).get(part)
        try:
            return data if folds is None else data.in_folds(folds)
        except TorchRankError as error:
            raise DataError(f"{part}: {error}") from error

    def batches_of(self, data: SequenceDataset, **options: Any) -> SequenceLoader:
        """Make the loader of a part."""
        return SequenceLoader(data, **options)
