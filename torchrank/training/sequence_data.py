"""Labelled sequences for training, validation, test and prediction, from files or from memory."""

from typing import Any, Literal

import pytorch_lightning as pl

from torchrank.data.sequence_files import read_sequences
from torchrank.data.sequence_loading import SequenceLoader
from torchrank.data.sequences import SequenceDataset
from torchrank.errors import DataError, TorchRankError, check_option

Part = Literal["train", "val", "test", "predict"]
PARTS: tuple[Part, ...] = ("train", "val", "test", "predict")
_STAGES: dict[str, tuple[Part, ...]] = {
    "fit": ("train", "val"),
    "validate": ("val",),
    "test": ("test",),
    "predict": ("predict",),
}


class SequenceDataModule(pl.LightningDataModule):
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
        super().__init__()
        for part in folds or {}:
            check_option("folds", part, PARTS)
        self.train, self.val, self.test, self.predict = train, val, test, predict
        self.folds = folds
        self.num_labels = num_labels
        self.batch_size = batch_size
        self.max_padding = max_padding
        self.seed = seed
        self._ready: dict[Part, SequenceDataset] = {}

    def setup(self, stage: str) -> None:
        """Read what a stage needs, once.

        Args:
            stage: ``"fit"``, ``"validate"``, ``"test"`` or ``"predict"``.

        Raises:
            DataError: a file that cannot be read, folds that do not exist, or parts with unequal numbers of features.
        """
        for part in _STAGES[stage]:
            if getattr(self, part) is not None and part not in self._ready:
                self._ready[part] = self._prepare(part)
        widths = {part: data.num_features for part, data in self._ready.items()}
        if len(set(widths.values())) > 1:
            raise DataError(f"the parts have unequal numbers of features: {widths}")

    def _prepare(self, part: Part) -> SequenceDataset:
        given: str | SequenceDataset = getattr(self, part)
        data = given if isinstance(given, SequenceDataset) else read_sequences(given, num_labels=self.num_labels)
        folds = (self.folds or {}).get(part)
        try:
            return data if folds is None else data.in_folds(folds)
        except TorchRankError as error:
            raise DataError(f"{part}: {error}") from error

    def dataset(self, part: Part) -> SequenceDataset:
        """Return a part as it was set up.

        Args:
            part: ``"train"``, ``"val"``, ``"test"`` or ``"predict"``.

        Raises:
            DataError: the part was not given, or its stage has not been set up.
        """
        check_option("part", part, PARTS)
        if part not in self._ready:
            raise DataError(f"there is no {part} part; give SequenceDataModule({part}=…) a file and set its stage up")
        return self._ready[part]

    def _loader(self, part: Part, *, shuffle: bool = False) -> SequenceLoader:
        trainer = self.trainer
        return SequenceLoader(
            self.dataset(part),
            batch_size=self.batch_size,
            shuffle=shuffle,
            max_padding=self.max_padding,
            seed=self.seed,
            rank=0 if trainer is None else trainer.global_rank,
            world_size=1 if trainer is None else trainer.world_size,
        )

    def train_dataloader(self) -> SequenceLoader:
        """Batches of the training part."""
        return self._loader("train", shuffle=True)

    def val_dataloader(self) -> SequenceLoader | list[Any]:
        """Batches of the validation part; an empty list where there is none."""
        return [] if self.val is None else self._loader("val")

    def test_dataloader(self) -> SequenceLoader:
        """Batches of the test part."""
        return self._loader("test")

    def predict_dataloader(self) -> SequenceLoader:
        """Batches of the part to be labelled."""
        return self._loader("predict")
