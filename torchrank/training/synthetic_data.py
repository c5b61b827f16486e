"""Synthetic queries, sequences and logs as DataModules, so that a config runs before there is data."""

from torchrank.data import make_interactions, make_queries, make_sequences
from torchrank.errors import TorchRankError
from torchrank.training.interaction_data import InteractionDataModule
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


def synthetic_interactions(
    *,
    num_users: int = 2000,
    num_items: int = 800,
    num_interactions: int = 100_000,
    train: float = 0.8,
    validation: float = 0.1,
    steps_per_epoch: int = 20,
    seed: int = 0,
) -> InteractionDataModule:
    """Make a log with known preferences, as :func:`torchrank.data.make_interactions` does, and split it in time.

    Args:
        num_users: users.
        num_items: items.
        num_interactions: rows.
        train: share of each user's interactions that is not test.
        validation: share of each user's training interactions, the last of them, that validates.
        steps_per_epoch: steps an epoch is cut into.
        seed: of the log.

    Returns:
        the DataModule.

    Example:
        >>> data = synthetic_interactions(num_users=50, num_items=80, num_interactions=1000)
        >>> data.setup("fit")
        >>> len(data.train_log) + len(data.val_log) + len(data.test_log)
        1000
    """
    log, _ = make_interactions(num_users=num_users, num_items=num_items, num_interactions=num_interactions, seed=seed)
    return InteractionDataModule(log, train=train, validation=validation, steps_per_epoch=steps_per_epoch)
