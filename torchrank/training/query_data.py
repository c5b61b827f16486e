"""Queries for training, validation, test and prediction, from files or from memory."""

from pathlib import Path
from typing import Any

from torchrank.data.letor import read_letor
from torchrank.data.list_loading import ListLoader
from torchrank.data.normalization import METHODS
from torchrank.data.queries import QueryDataset, concat_queries
from torchrank.errors import DataError, check_option
from torchrank.training.parts_data import PARTS, Part, PartsDataModule


class QueryDataModule(PartsDataModule[QueryDataset, ListLoader]):
    """Queries in padded batches for every stage of a Lightning ``Trainer``.

    A part is the path of a LETOR file, a list of paths that are put together (the parts of a fold), or a
    :class:`~torchrank.data.QueryDataset`. Files are read when their stage begins.

    Args:
        train: the training part; shuffled every epoch.
        val: the validation part.
        test: the test part.
        predict: the part to be scored; its labels may be absent and are not looked at.
        groups: part to its side file of group sizes, or its list of side files, for files without qid.
        num_features: number of features; by default the highest that a part's files name, which must then be the same
            in every part.
        zero_based: the files number their features from 0.
        missing: the number that the files hold where a feature is not known, see
            :func:`~torchrank.data.read_letor`.
        normalize: ``"minmax"``, ``"rank"`` or ``"zscore"`` to rescale the features inside every query, or a list of
            them to have several side by side; None to take the features as they are.
        batch_size: most lists in a batch, on each device.
        shuffle: shuffle the training part every epoch; False streams it in its order, as an online learner wants.
        max_padding: largest share of padding in the batches; 1 batches lists whatever their lengths.
        seed: of the shuffling.

    Raises:
        TorchRankError: an unknown normalisation.
        DataError: a key of ``groups`` that is no part.

    Example:
        >>> from torchrank.data import make_queries
        >>> data = QueryDataModule(train=make_queries(100).dataset, val=make_queries(20, seed=1).dataset)
        >>> data.setup("fit")
        >>> sum(len(batch.lists) for batch in data.train_dataloader())
        100
    """

    def __init__(
        self,
        *,
        train: str | list[str] | QueryDataset | None = None,
        val: str | list[str] | QueryDataset | None = None,
        test: str | list[str] | QueryDataset | None = None,
        predict: str | list[str] | QueryDataset | None = None,
        groups: dict[str, str | list[str]] | None = None,
        num_features: int | None = None,
        zero_based: bool = False,
        missing: float | None = None,
        normalize: str | list[str] | None = None,
        batch_size: int = 32,
        shuffle: bool = True,
        max_padding: float = 0.2,
        seed: int = 0,
    ) -> None:
        parts: dict[Part, Any] = {"train": train, "val": val, "test": test, "predict": predict}
        super().__init__(parts, batch_size=batch_size, shuffle=shuffle, max_padding=max_padding, seed=seed)
        methods = [normalize] if isinstance(normalize, str) else normalize or []
        for method in methods:
            check_option("normalize", method, METHODS)
        for part in groups or {}:
            check_option("groups", part, PARTS)
        self.groups = groups
        self.num_features = num_features
        self.zero_based = zero_based
        self.missing = missing
        self.normalize = normalize
        self._methods = methods

    def read_part(self, part: Part) -> QueryDataset:
        """Read a part's files, where it is no dataset, and rescale it.

        Raises:
            DataError: a file that cannot be read, or another number of features than was asked for.
        """
        given: str | Path | list[str] | QueryDataset = getattr(self, part)
        if isinstance(given, QueryDataset):
            data = given
            if self.num_features is not None and data.num_features != self.num_features:
                raise DataError(f"{part} has {data.num_features} features, but num_features={self.num_features}")
        else:
            paths = given if isinstance(given, list) else [given]
            beside = (self.groups or {}).get(part, [None] * len(paths))
            sides = [beside] if isinstance(beside, str) else beside
            if len(sides) != len(paths):
                raise DataError(f"{part} has {len(paths)} files, but groups names {len(sides)} side files for it")
            data = concat_queries([self._read(path, side, part) for path, side in zip(paths, sides, strict=True)])
        return data.normalized(*self._methods) if self._methods else data

    def _read(self, path: str | Path, side: str | None, part: Part) -> QueryDataset:
        return read_letor(
            path,
            num_features=self.num_features,
            groups=side,
            labelled=part != "predict",
            zero_based=self.zero_based,
            missing=self.missing,
        )

    def batches_of(self, data: QueryDataset, **options: Any) -> ListLoader:
        """Make the loader of a part."""
        return ListLoader(data, **options)

    def hint(self, most: int) -> str:
        """Return what may help where parts have unequal numbers of features."""
        return f"; if a file leaves out features that are always 0, say num_features={most}"
