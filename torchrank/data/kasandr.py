"""KASANDR and PANDOR: offers shown to users and clicked or not, in the tables their authors publish."""

from collections.abc import Sequence
from pathlib import Path

from torchrank.data.csv_tables import join_tables
from torchrank.data.log import InteractionLog
from torchrank.data.tables import Table
from torchrank.errors import DataError

_KASANDR = ("train_de.csv", "test_de.csv")


def read_kasandr(path: str | Path, *, duplicates: str = "keep") -> InteractionLog:
    r"""Read KASANDR's German part as it is published: Kelkoo's offers, shown and clicked or not.

    The archive ``de.tar.bz2`` unpacks to a folder ``de`` of ``train_de.csv`` and ``test_de.csv``, whose names say
    CSV and whose values are separated by tabs, under a header line ``userid offerid countrycode category merchant
    utcdate rating``: ids are hashes, ``utcdate`` such as ``2016-06-14 17:28:47.0``, ``rating`` 1 for a click. The
    layout is that of programs that read these files; the page of the UCI repository and the files themselves could not
    be opened when this was written.

    Args:
        path: the folder of the two files, which are read as one log, or one of them; gzipped or not.
        duplicates: see :meth:`InteractionLog.from_frame`.

    Returns:
        the log; an offer is preferred where it was clicked.

    Raises:
        DataError: a file is missing, lacks a column, or holds a value that is none; the message names file and row.

    Source: Sidana, Laclau, Amini, Vandelle & Bois-Crettez, "KASANDR: A Large-Scale Dataset with Implicit Feedback for
    Recommendation", SIGIR 2017; https://archive.ics.uci.edu/ml/datasets/KASANDR.

    Example:
        >>> import tempfile
        >>> head = "userid\tofferid\tcountrycode\tcategory\tmerchant\tutcdate\trating\n"
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name, row in (("train_de.csv", "f3\tc5\tde\t100\tm\t2016-06-14 17:28:47.0\t0\n"),
        ...                       ("test_de.csv", "f3\ta7\tde\t100\tm\t2016-06-15 08:00:00.0\t1\n")):
        ...         _ = (Path(folder) / name).write_text(head + row)
        ...     log = read_kasandr(folder)
        >>> log.item_ids.tolist(), log.preferred.tolist()
        (['c5', 'a7'], [False, True])
    """
    columns = {"user": "userid", "item": "offerid", "feedback": "rating", "time": "utcdate"}
    table = join_tables(_files(Path(path), _KASANDR, "KASANDR"), separator="\t", columns=columns)
    return _clicks(table, columns, duplicates)


def read_pandor(
    path: str | Path,
    *,
    user: str = "userid",
    item: str = "offerid",
    feedback: str = "rating",
    time: str = "utcdate",
    separator: str = "\t",
    duplicates: str = "keep",
) -> InteractionLog:
    r"""Read PANDOR, Purch's offers shown and clicked or not, from one table or a folder of tables.

    The layout of PANDOR's files could not be verified: neither its page nor a program that reads them was found. The
    names here are KASANDR's, which has the same authors; where a file's header line differs, name its columns. A table
    of clicks alone is no log of what was shown: join it with the offers first.

    Args:
        path: a file, or a folder whose ``.csv``, ``.tsv`` and ``.txt`` files, gzipped or not, are one log.
        user: column of user ids.
        item: column of offers.
        feedback: column of 1 for a click and 0.
        time: column of numbers, or of moments by ISO 8601.
        separator: one character between values.
        duplicates: see :meth:`InteractionLog.from_frame`.

    Returns:
        the log; an offer is preferred where it was clicked.

    Raises:
        DataError: nothing is there, a column is missing, or a value is none; the message names file and row.

    Source: Sidana, Laclau & Amini, "Learning to Recommend Diverse Items over Implicit Feedback on PANDOR", RecSys 2018;
    https://archive.ics.uci.edu/ml/datasets/PANDOR.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "shown.csv"
        ...     _ = file.write_text("uid,offer,click,at\n3,8,0,2018-03-01 10:00:00\n3,9,1,2018-03-01 10:00:05\n")
        ...     log = read_pandor(file, user="uid", item="offer", feedback="click", time="at", separator=",")
        >>> log.item_ids.tolist(), log.preferred.tolist()
        ([8, 9], [False, True])
    """
    path = Path(path)
    if path.is_dir():
        kinds = {f".{kind}{packed}" for kind in ("csv", "tsv", "txt") for packed in ("", ".gz")}
        paths = sorted(file for file in path.iterdir() if "".join(file.suffixes) in kinds)
        if not paths:
            raise DataError(f"{path} holds no .csv, .tsv or .txt file of PANDOR")
    else:
        paths = [path]
    columns = {"user": user, "item": item, "feedback": feedback, "time": time}
    return _clicks(join_tables(paths, separator=separator, columns=columns), columns, duplicates)


def _clicks(table: Table, columns: dict[str, str], duplicates: str) -> InteractionLog:
    return InteractionLog.from_table(table, columns, positive_at=1, duplicates=duplicates)


def _files(path: Path, names: Sequence[str], what: str) -> list[Path]:
    """Find each file of a folder, gzipped or not."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError(f"there is no {path}")
    found = []
    for name in names:
        there = [file for file in (path / name, path / f"{name}.gz") if file.is_file()]
        if not there:
            raise DataError(f"{path} holds no {name}, gzipped or not; {what} is {' and '.join(names)}")
        found.append(there[0])
    return found
