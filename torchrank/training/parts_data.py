"""What the DataModules share whose parts, train, val, test and predict, are each given as a file or a dataset."""

from typing import Any, Generic, Literal, TypeVar

import pytorch_lightning as pl

from torchrank.errors import DataError, check_option

Part = Literal["train", "val", "test", "predict"]
PARTS: tuple[Part, ...] = ("train", "val", "test", "predict")
PARTS_OF_STAGES: dict[str, tuple[Part, ...]] = {
    "fit": ("train", "val"),
    "validate": ("val",),
    "test": ("test",),
    "predict": ("predict",),
}

Dataset = TypeVar("Dataset")
Loader = TypeVar("Loader")


def process_place(trainer: pl.Trainer | None) -> dict[str, int]:
    """Return which of how many processes this is, as a loader takes it."""
    if trainer is None:
        return {"rank": 0, "world_size": 1}
    return {"rank": trainer.global_rank, "world_size": trainer.world_size}


class PartsDataModule(pl.LightningDataModule, Generic[Dataset, Loader]):
    """Read the parts that a stage needs, once, and batch them.

    What derives from it reads a part, :meth:`read_part`, and batches it, :meth:`batches_of`.

    Args:
        parts: what each part was given as, None where it was not.
        batch_size: see the loader.
        shuffle: shuffle the training part every epoch.
        max_padding: see the loader.
        seed: of the shuffling.
    """

    def __init__(
        self, parts: dict[Part, Any], *, batch_size: int, shuffle: bool = True, max_padding: float, seed: int
    ) -> None:
        super().__init__()
        self.train, self.val, self.test, self.predict = (parts[part] for part in PARTS)
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.max_padding = max_padding
        self.seed = seed
        self._ready: dict[Part, Any] = {}

    def read_part(self, part: Part) -> Dataset:
        """Read a part that was given, whatever it was given as."""
        raise NotImplementedError

    def batches_of(self, data: Dataset, **options: Any) -> Loader:
        """Make the loader of a part."""
        raise NotImplementedError

    def setup(self, stage: str) -> None:
        """Read what a stage needs, once.

        Args:
            stage: ``"fit"``, ``"validate"``, ``"test"`` or ``"predict"``.

        Raises:
            DataError: a part that cannot be read, or parts with unequal numbers of features.
        """
        for part in PARTS_OF_STAGES[stage]:
            if getattr(self, part) is not None and part not in self._ready:
                self._ready[part] = self.read_part(part)
        widths = {part: data.num_features for part, data in self._ready.items()}
        if len(set(widths.values())) > 1:
            counts = ", ".join(f"{part} ({getattr(self, part)}) has {width}" for part, width in widths.items())
            raise DataError(f"the parts have unequal numbers of features: {counts}{self.hint(max(widths.values()))}")

    def hint(self, most: int) -> str:
        """Return what may help where parts have unequal numbers of features, ``most`` at the most."""
        return ""

    def dataset(self, part: Part) -> Dataset:
        """Return a part as it was set up.

        Args:
            part: ``"train"``, ``"val"``, ``"test"`` or ``"predict"``.

        Raises:
            DataError: the part was not given, or its stage has not been set up.
        """
        check_option("part", part, PARTS)
        if part not in self._ready:
            name = type(self).__name__
            raise DataError(f"there is no {part} part; give {name}({part}=…) a file and set its stage up")
        data: Dataset = self._ready[part]
        return data

    def _loader(self, part: Part, *, shuffle: bool = False) -> Loader:
        sizes = {"batch_size": self.batch_size, "max_padding": self.max_padding}
        order = {"shuffle": shuffle, "seed": self.seed, **process_place(self.trainer)}
        return self.batches_of(self.dataset(part), **sizes, **order)

    def train_dataloader(self) -> Loader:
        """Batches of the training part."""
        return self._loader("train", shuffle=self.shuffle)

    def val_dataloader(self) -> Loader | list[Any]:
        """Batches of the validation part; an empty list where there is none."""
        return [] if self.val is None else self._loader("val")

    def test_dataloader(self) -> Loader:
        """Batches of the test part."""
        return self._loader("test")

    def predict_dataloader(self) -> Loader:
        """Batches of the part to be predicted."""
        return self._loader("predict")
