"""Objects of a table for training, validation, test and prediction, from a file or from memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor

from torchrank.data.attributes import AttributeTable, read_table
from torchrank.data.row_loading import RowLoader
from torchrank.data.synthetic_objects import make_objects
from torchrank.errors import DataError, TorchRankError, check_share
from torchrank.training.curve_table import CurveTable
from torchrank.training.parts_data import process_place


class TableDataModule(pl.LightningDataModule):
    """A table of objects in batches of rows: a random share validates, the rest trains; all are scored.

    Fitting learns the attributes' scaling from the whole table, in chunks of rows, so a ``.npy`` file, which is mapped
    and not read, may be larger than memory.

    Args:
        table: a CSV, TSV or Parquet file, a ``.npy`` file of an ``(n, d)`` array, such an array or tensor, or a
            :class:`~torchrank.data.AttributeTable`.
        higher: for files with column names, columns of which more is better.
        lower: likewise, columns of which less is better.
        scaling: how attributes are mapped to the unit cube: ``"minmax"``, ``"robust"``, ``"rank"`` or None, as in
            :func:`~torchrank.training.fit_curve`.
        missing: ``"error"`` refuses NaN, ``"observed"`` lets it pass to a curve that measures what is there.
        validation: share of the objects that validates; 0 trains on all and validates nothing.
        batch_size: most objects in a batch, on each device.
        seed: of the split and the shuffling.

    Raises:
        TorchRankError: an option out of its range.

    Example:
        >>> data = TableDataModule(make_objects(1000).points, validation=0.2, batch_size=100)
        >>> data.setup("fit")
        >>> len(data.train_dataloader()), len(data.val_dataloader())
        (8, 2)
    """

    def __init__(
        self,
        table: str | Tensor | np.ndarray[Any, Any] | AttributeTable,
        *,
        higher: list[str] | None = None,
        lower: list[str] | None = None,
        scaling: str | None = "minmax",
        missing: str = "error",
        validation: float = 0.1,
        batch_size: int = 4096,
        seed: int = 0,
    ) -> None:
        super().__init__()
        check_share("validation", validation, zero=True)
        self.table = table
        self.higher, self.lower = higher, lower
        self.scaling = scaling
        self.missing = missing
        self.validation = validation
        self.batch_size = batch_size
        self.seed = seed
        self.names: list[str] | None = None
        self.directions: list[int] | None = None
        self._points: Tensor | np.ndarray[Any, Any] | None = None
        self._maps: tuple[Tensor, Tensor, Tensor] | None = None

    @property
    def points(self) -> Tensor | np.ndarray[Any, Any]:
        """The ``(n, d)`` table, read when first asked for."""
        if self._points is None:
            self._points = self._read()
        return self._points

    def maps(self) -> tuple[Tensor, Tensor, Tensor]:
        """Learn the scaling: knots, levels and which attributes are kept, for ``RankingCurve.set_scaling``."""
        if self._maps is None:
            try:
                table = CurveTable(self.points, names=self.names, missing=self.missing)
            except TorchRankError as error:
                if isinstance(self.table, str):
                    raise DataError(f"{self.table}: {error}") from error
                raise
            self._maps = (*table.scaling(self.scaling), table.kept)
        return self._maps

    def setup(self, stage: str) -> None:
        """Read the table, once.

        Args:
            stage: ``"fit"``, ``"validate"``, ``"test"`` or ``"predict"``.

        Raises:
            DataError: a file that cannot be read, or objects that cannot be ranked.
        """
        n = len(self.points)
        order = torch.randperm(n, generator=torch.Generator().manual_seed(self.seed))
        held = round(self.validation * n)
        self._held, self._trained = order[:held].sort().values, order[held:].sort().values

    def _read(self) -> Tensor | np.ndarray[Any, Any]:
        table = self.table
        if isinstance(table, str):
            if Path(table).suffix == ".npy":
                return _mapped(table)
            table = read_table(table, higher=self.higher or [], lower=self.lower or [])
        if isinstance(table, AttributeTable):
            self.names, self.directions = table.names, table.directions
            return table.values
        return table

    def _loader(self, rows: Tensor | None, *, shuffle: bool = False) -> RowLoader:
        order: dict[str, Any] = {"shuffle": shuffle, "seed": self.seed, **process_place(self.trainer)}
        return RowLoader(self.points, rows, batch_size=self.batch_size, **order)

    def train_dataloader(self) -> RowLoader:
        """Batches of the objects that train, shuffled every epoch."""
        return self._loader(self._trained, shuffle=True)

    def val_dataloader(self) -> RowLoader | list[Any]:
        """Batches of the objects that validate; an empty list where there are none."""
        return self._loader(self._held) if len(self._held) else []

    def test_dataloader(self) -> RowLoader:
        """Batches of all objects."""
        return self._loader(None)

    def predict_dataloader(self) -> RowLoader:
        """Batches of all objects, in the table's order."""
        return self._loader(None)


def synthetic_objects(
    num_objects: int = 10_000,
    *,
    directions: list[int] | None = None,
    noise: float = 0.02,
    validation: float = 0.1,
    batch_size: int = 1024,
    seed: int = 0,
) -> TableDataModule:
    """Make objects around a known curve as a DataModule, so that a config runs before there is data.

    Args:
        num_objects: n.
        directions: +1 or −1 an attribute; ``[1, 1, -1]`` by default.
        noise: standard deviation of the noise, see :func:`torchrank.data.make_objects`.
        validation: share of the objects that validates.
        batch_size: most objects in a batch.
        seed: of the objects, the split and the shuffling.

    Returns:
        the DataModule.

    Raises:
        TorchRankError: an option out of its range.

    Example:
        >>> synthetic_objects(100).points.shape
        torch.Size([100, 3])
    """
    made = make_objects(
        num_objects, directions=[1, 1, -1] if directions is None else directions, noise=noise, seed=seed
    )
    return TableDataModule(made.points, validation=validation, batch_size=batch_size, seed=seed)


def _mapped(path: str) -> np.ndarray[Any, Any]:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return] # numpy's
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except Exception as error:  # numpy raises many kinds on damaged bytes
        raise DataError(f"{path} is not an array of numbers: {error}") from None
