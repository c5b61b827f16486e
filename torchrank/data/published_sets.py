"""The five data sets of the published comparison of SAROS: how to get, read and prepare each."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from torchrank.data.kasandr import read_kasandr, read_pandor
from torchrank.data.log import InteractionLog
from torchrank.data.movielens import read_movielens
from torchrank.data.netflix import read_netflix
from torchrank.data.outbrain import read_outbrain
from torchrank.errors import DataError, TorchRankError, check_option


class PublishedSet(NamedTuple):
    """A data set of the published comparison.

    Attributes:
        printed: its name in the published tables.
        read: reads the folder of its files.
        get: how to get them; ``torchrank data`` says so, or fetches them itself where their checksum is known.
        preferred: what counts as preferred.
        two_sided: whether users without a preferred item, or with nothing else, are left out. All printed counts but
            MovieLens' fit that.
        subset: what the text does not say of which part was taken.
    """

    printed: str
    read: Callable[[Path], InteractionLog]
    get: str
    preferred: str
    two_sided: bool = True
    subset: str = ""


DATASETS: dict[str, PublishedSet] = {
    "kasandr": PublishedSet(
        "Kasandr",
        read_kasandr,
        "Download https://archive.ics.uci.edu/ml/machine-learning-databases/00385/de.tar.bz2 (the page of it is"
        " https://archive.ics.uci.edu/ml/datasets/KASANDR) and unpack it with tar xjf de.tar.bz2: its folder de holds"
        " train_de.csv and test_de.csv.",
        "clicked offers",
    ),
    "movielens-1m": PublishedSet(
        "ML-1M", read_movielens, "torchrank data movielens-1m", "ratings of at least 4", two_sided=False
    ),
    "netflix": PublishedSet(
        "Netflix",
        read_netflix,
        "Download nf_prize_dataset.tar.gz from https://archive.org/details/nf_prize_dataset.tar, unpack it and the"
        " training_set.tar in it: a folder training_set of 17,770 files; or the four files combined_data_1.txt and on"
        " from https://www.kaggle.com/datasets/netflix-inc/netflix-prize-data.",
        "ratings of at least 4",
        subset="90,137 of 480,189 users and 3,560 of 17,770 films; the text does not say which",
    ),
    "outbrain": PublishedSet(
        "Outbrain",
        read_outbrain,
        "Accept the rules at https://www.kaggle.com/c/outbrain-click-prediction, then download and unzip"
        " clicks_train.csv and events.csv into one folder.",
        "clicked contents",
        subset="49,615 users; the text does not say which",
    ),
    "pandor": PublishedSet(
        "Pandor",
        read_pandor,
        "Download the files from https://archive.ics.uci.edu/ml/datasets/PANDOR. Their layout could not be verified:"
        " compare their header line with torchrank.data.read_pandor's columns.",
        "clicked offers",
    ),
}


def read_published(name: str, root: str | Path, *, users: int | None = None, seed: int = 0) -> InteractionLog:
    """Read a data set of the published comparison and leave out the users it leaves out.

    Args:
        name: ``"kasandr"``, ``"movielens-1m"``, ``"netflix"``, ``"outbrain"`` or ``"pandor"``.
        root: the folder of its files as they were published.
        users: how many users to keep, drawn at random; all by default.
        seed: which ones.

    Returns:
        the log: ratings of at least 4, or clicks, are preferred.

    Raises:
        TorchRankError: another name, or fewer than one user to keep.
        DataError: the files are missing or not as published; the message says how to get them where the folder is not
            there.

    Source: arXiv 1902.08495, section 5.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = (Path(folder) / "combined_data_1.txt").write_text(
        ...         "1:" + chr(10) + "7,3,2005-09-06" + chr(10) + "8,5,2005-05-13" + chr(10) + "2:" + chr(10)
        ...         + "7,4,2005-10-19" + chr(10)
        ...     )
        ...     log = read_published("netflix", folder)
        >>> log.user_ids[log.users].tolist()
        [7, 7]
    """
    check_option("name", name, DATASETS)
    if users is not None and users < 1:
        raise TorchRankError(f"users={users!r} must be at least 1")
    chosen, root = DATASETS[name], Path(root)
    if not root.exists():
        raise TorchRankError(f"there is no {root}. To get {name}: {chosen.get}")
    log = chosen.read(root)
    preferred = np.bincount(log.users[log.preferred], minlength=log.num_users)
    keep = np.ones(log.num_users, np.bool_)
    if chosen.two_sided:
        keep = (preferred > 0) & (preferred < np.diff(log.offsets))
    if users is not None and users < keep.sum():
        drawn = np.random.default_rng(seed).choice(np.flatnonzero(keep), users, replace=False)
        keep = np.isin(np.arange(log.num_users), drawn)
    return log if keep.all() else _only(log, keep, name)


def _only(log: InteractionLog, keep: NDArray[np.bool_], name: str) -> InteractionLog:
    """Take some users, and number them and their items anew in the order they had."""
    part = log.where(keep[log.users])
    if not len(part):
        raise DataError(f"{name} has no user with a preferred item and another")
    items = np.unique(part.items)
    return replace(
        part,
        users=(np.cumsum(keep, dtype=np.int32) - 1)[part.users],
        items=np.searchsorted(items, part.items).astype(np.int32),
        offsets=np.append(part.offsets[:-1][keep], len(part)),
        user_ids=log.user_ids[keep],
        item_ids=log.item_ids[items],
    )
