"""The five folds of LETOR's MQ2008 and its own measures."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from torchrank.data import QueryDataset, concat_queries, read_letor
from torchrank.errors import DataError
from torchrank.metrics import average_precision, mean_ndcg, ndcg
from torchrank.ops import ragged_to_padded

PARTS = 5


class Fold(NamedTuple):
    """A fold's three parts, no query in two of them."""

    train: QueryDataset
    val: QueryDataset
    test: QueryDataset


class Measures(NamedTuple):
    """Means over queries; one with nothing relevant counts 0, as in LETOR's evaluation script."""

    map: float
    mean_ndcg: float
    ndcg_at_10: float


def read_parts(folder: Path) -> list[QueryDataset]:
    """Read S1 to S5, plain or gzipped, from the folder or from ``mq2008`` in it."""
    parts = []
    for number in range(1, PARTS + 1):
        names = [f"S{number}.txt", f"S{number}.txt.gz"]
        found = [path for place in (folder, folder / "mq2008") for name in names if (path := place / name).is_file()]
        if not found:
            raise DataError(f"there is no {names[0]} or {names[1]} in {folder}; give the folder of MQ2008's S1 to S5")
        parts.append(read_letor(found[0]))
    if len({part.num_features for part in parts}) > 1:
        raise DataError(
            f"S1 to S5 in {folder} have {[part.num_features for part in parts]} features; give one data set"
        )
    return parts


def fold_of(parts: list[QueryDataset], number: int) -> Fold:
    """Put fold 0 … 4 together: three parts to train on, the next to choose by, the one after to test on."""
    train = concat_queries([parts[(number + i) % PARTS] for i in range(3)])
    return Fold(train, parts[(number + 3) % PARTS], parts[(number + 4) % PARTS])


def measure(dataset: QueryDataset, scores: NDArray[np.float32]) -> Measures:
    """Measure ``(N,)`` scores: MAP and MeanNDCG by LETOR's conventions, NDCG@10 with discount 1/log2(1 + i)."""
    padded, mask = ragged_to_padded(torch.from_numpy(scores), dataset.offsets)
    relevance, _ = ragged_to_padded(dataset.relevance, dataset.offsets)
    values = (
        average_precision(padded, relevance, mask),
        mean_ndcg(padded, relevance, mask),
        ndcg(padded, relevance, mask, k=10),
    )
    return Measures(*(float(value.mean()) for value in values))
