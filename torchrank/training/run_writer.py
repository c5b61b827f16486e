"""Predicted scores as a TREC run file and as Parquet."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytorch_lightning
from pytorch_lightning.callbacks import BasePredictionWriter
from torch import Tensor

from torchrank.data import QueryDataset, collect_scores, write_run
from torchrank.data.files import whole_file
from torchrank.errors import DataError
from torchrank.training.listwise import ListScores
from torchrank.training.query_data import QueryDataModule


class RunWriter(BasePredictionWriter):
    """Write what ``Trainer.predict`` scored: ``run.txt``, as trec_eval reads it, and ``scores.parquet``.

    Args:
        folder: where the two files go; each appears whole or not at all.
        tag: the run's name in the TREC file, one word.

    Example:
        >>> RunWriter("predictions").interval.name
        'EPOCH'
    """

    def __init__(self, folder: str | Path, *, tag: str = "torchrank") -> None:
        super().__init__(write_interval="epoch")
        self.folder = Path(folder)
        self.tag = tag

    def write_on_epoch_end(
        self,
        trainer: pytorch_lightning.Trainer,
        pl_module: pytorch_lightning.LightningModule,
        predictions: Sequence[Any],
        batch_indices: Sequence[Any],
    ) -> None:
        """Gather the scores of all batches and write them.

        Raises:
            DataError: the module or the data is not of lists, or several processes share the work.
        """
        data = trainer.datamodule  # type: ignore[attr-defined] # Lightning sets it
        if not isinstance(data, QueryDataModule) or not all(isinstance(p, ListScores) for p in predictions):
            raise DataError(f"{type(pl_module).__name__} on {type(data).__name__} does not score lists of documents")
        if trainer.world_size > 1:
            raise DataError("predict with devices=1: each process sees only its share of the lists")
        dataset = data.dataset("predict")
        scores = collect_scores(dataset, predictions)
        write_run(self.folder / "run.txt", dataset, scores, tag=self.tag)
        write_scores(self.folder / "scores.parquet", dataset, scores)


def write_scores(path: str | Path, dataset: QueryDataset, scores: Tensor) -> None:
    """Write one row a document, in the dataset's order: ``query_id``, ``document_id``, ``score``.

    Args:
        path: the Parquet file; it appears whole or not at all.
        dataset: the queries that were scored.
        scores: ``(N,)``, one a document.
    """
    owner = np.repeat(dataset.query_ids.cpu().numpy(), dataset.lengths.cpu().numpy())
    table = pl.DataFrame(
        {"query_id": owner, "document_id": dataset.document_ids.tolist(), "score": scores.detach().cpu().numpy()}
    )
    with whole_file(path) as place:
        table.write_parquet(place)
