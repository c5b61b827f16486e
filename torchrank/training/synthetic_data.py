"""Synthetic queries and sequences as DataModules, so that a config runs before there is data."""

from torchrank.data import make_queries, make_sequences
from torchrank.errors import TorchRankError
from torchrank.training.query_data import QueryDataModule
from torchrank.training.sequence_data import SequenceDataModule


def synthetic_queries(
    num_queries: int = 500,
    *,
    num_features: int = 20,
    documents: tuple[int, int] = (5, 40),
    levels: int = 3,
    noise: float = 0.5,
    margin: float | None = None,
    batch_size: int = 32,
    shuffle: bool = True,
    max_padding: float = 0.2,
    seed: int = 0,
) -> QueryDataModule:
    """Make queries with a known best ranker and deal them out: three fifths train, one validates, one tests.

    The test part is also the one to predict.

    Args:
        num_queries: number of lists, at least 5.
        num_features: d.
        documents: shortest and longest list.
        levels: number of grades.
        noise: standard deviation of the noise in utility, see :func:`torchrank.data.make_queries`.
        margin: γ by which w* separates every ordered pair; None for noisy grades.
        batch_size: most lists in a batch.
        shuffle: shuffle the training part every epoch.
        max_padding: largest share of padding in the batches.
        seed: of the queries and of the shuffling.

    Returns:
        the DataModule.

    Raises:
        TorchRankError: an option out of its range.

    Example:
        >>> data = synthetic_queries(50, batch_size=8)
        >>> data.setup("fit")
        >>> len(data.dataset("train")), len(data.dataset("val"))
        (30, 10)
    """
    if num_queries < 5:
        raise TorchRankError(f"num_queries={num_queries} must be at least 5, to be dealt out in fifths")
    made = make_queries(
        num_queries,
        num_features=num_features,
        documents=documents,
        levels=levels,
        noise=noise,
        margin=margin,
        seed=seed,
    )
    fifth = num_queries // 5
    train = made.dataset.select(range(num_queries - 2 * fifth))
    val = made.dataset.select(range(num_queries - 2 * fifth, num_queries - fifth))
    test = made.dataset.select(range(num_queries - fifth, num_queries))
    return QueryDataModule(
        train=train,
        val=val,
        test=test,
        predict=test,
        batch_size=batch_size,
        shuffle=shuffle,
        max_padding=max_padding,
        seed=seed,
    )


def synthetic_sequences(
    num_sequences: int = 500,
    *,
    num_features: int = 8,
    num_labels: int = 6,
    length: tuple[int, int] = (3, 12),
    noise: float = 1.0,
    coupling: float = 2.0,
    batch_size: int = 32,
    max_padding: float = 1.0,
    seed: int = 0,
) -> SequenceDataModule:
    """Make sequences with a known best chain and deal them out: three fifths train, one validates, one tests.

    The test part is also the one to predict.

    Args:
        num_sequences: number of sequences, at least 5.
        num_features: d.
        num_labels: q.
        length: shortest and longest sequence.
        noise: standard deviation of the features' noise, see :func:`torchrank.data.make_sequences`.
        coupling: how much a label says about the next.
        batch_size: most sequences in a batch.
        max_padding: largest share of padding in the batches.
        seed: of the sequences and of the shuffling.

    Returns:
        the DataModule.

    Raises:
        TorchRankError: an option out of its range.

    Example:
        >>> data = synthetic_sequences(50, batch_size=8)
        >>> data.setup("fit")
        >>> len(data.dataset("train")), len(data.dataset("val"))
        (30, 10)
    """
    if num_sequences < 5:
        raise TorchRankError(f"num_sequences={num_sequences} must be at least 5, to be dealt out in fifths")
    made = make_sequences(
        num_sequences,
        num_features=num_features,
        num_labels=num_labels,
        length=length,
        noise=noise,
        coupling=coupling,
        seed=seed,
    )
    fifth = num_sequences // 5
    train = made.dataset.select(range(num_sequences - 2 * fifth))
    val = made.dataset.select(range(num_sequences - 2 * fifth, num_sequences - fifth))
    test = made.dataset.select(range(num_sequences - fifth, num_sequences))
    return SequenceDataModule(
        train=train, val=val, test=test, predict=test, batch_size=batch_size, max_padding=max_padding, seed=seed
    )
