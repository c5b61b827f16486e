"""Predicted labels of sequences as Parquet."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytorch_lightning
from pytorch_lightning.callbacks import BasePredictionWriter

from torchrank.data.files import whole_file
from torchrank.errors import DataError
from torchrank.training.chain import SequenceLabels


class LabelWriter(BasePredictionWriter):
    """Write what ``Trainer.predict`` labelled: ``labels.parquet``, one row a position, in the dataset's order.

    Its columns are ``sequence`` and ``position``, from 0, and ``label``.

    Args:
        folder: where the file goes; it appears whole or not at all.

    Example:
        >>> LabelWriter("predictions").interval.name
        'EPOCH'
    """

    def __init__(self, folder: str | Path) -> None:
        super().__init__(write_interval="epoch")
        self.folder = Path(folder)

    def write_on_epoch_end(
        self,
        trainer: pytorch_lightning.Trainer,
        pl_module: pytorch_lightning.LightningModule,
        predictions: Sequence[Any],
        batch_indices: Sequence[Any],
    ) -> None:
        """Gather the labels of all batches and write them.

        Raises:
            DataError: the module does not label sequences, or several processes share the work.
        """
        if not all(isinstance(p, SequenceLabels) for p in predictions):
            raise DataError(
                f"{type(pl_module).__name__} does not label sequences; give the checkpoint of a ChainModule"
            )
        if trainer.world_size > 1:
            raise DataError("predict with devices=1: each process sees only its share of the sequences")
        columns: dict[str, list[Any]] = {"sequence": [], "position": [], "label": []}
        for batch in predictions:
            mask = batch.mask.cpu()
            row, position = mask.nonzero().unbind(1)
            columns["sequence"].append(batch.sequences.cpu()[row].numpy())
            columns["position"].append(position.numpy())
            columns["label"].append(batch.labels.cpu()[mask].numpy())
        table = pl.DataFrame({name: np.concatenate(parts) for name, parts in columns.items()})
        with whole_file(self.folder / "labels.parquet") as place:
            table.sort("sequence", "position").write_parquet(place)
