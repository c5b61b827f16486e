"""Logs from files whose format their name tells."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from torchrank.data.files import as_path, log_format
from torchrank.data.log import InteractionLog
from torchrank.data.movielens import is_movielens, read_movielens
from torchrank.data.prepared import PreparedLog, is_prepared
from torchrank.errors import DataError, check_number


def read_log(
    path: str | Path,
    *,
    positive_at: float,
    user: str = "user",
    item: str = "item",
    feedback: str = "feedback",
    time: str = "time",
    duplicates: str = "keep",
) -> InteractionLog:
    """Read a log from Parquet (a file or folder), CSV (``.tsv`` with tabs; gzipped or not) or MovieLens' own files.

    The folder of a :class:`~torchrank.data.PreparedLog` is read into memory too, with that log's numbers of users and
    items.

    Args:
        path: the file or folder.
        positive_at: an item is preferred where its feedback is at least this.
        user: column of user ids; MovieLens' own files and prepared logs have their columns by format, and ignore this
            and the next three.
        item: column of item ids.
        feedback: column of numbers.
        time: column of numbers, dates or moments.
        duplicates: ``"keep"``, ``"last"`` or ``"error"``; see :meth:`InteractionLog.from_frame`.

    Returns:
        the log.

    Raises:
        DataError: nothing is there, the name tells no format, or the content is not a log.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "log.csv"
        ...     _ = path.write_text("user,item,clicked,at" + chr(10) + "a,x,1,2020-01-01" + chr(10))
        ...     log = read_log(path, feedback="clicked", time="at", positive_at=1)
        >>> len(log), log.user_ids.tolist()
        (1, ['a'])
    """
    path = as_path(path)
    if not path.exists():
        raise DataError(f"there is no {path}")
    if is_movielens(path):
        return read_movielens(path, positive_at=positive_at, duplicates=duplicates)
    if is_prepared(path):
        check_number("positive_at", positive_at)
        log = PreparedLog(path).to_log()
        return replace(log, preferred=log.feedback >= positive_at).without_duplicates(duplicates, str(path))
    columns = {"user": user, "item": item, "feedback": feedback, "time": time}
    options: dict[str, Any] = {"positive_at": positive_at, "duplicates": duplicates, **columns}
    kind = log_format(path)
    if kind == ".parquet":
        return InteractionLog.from_parquet(path, **options)
    return InteractionLog.from_csv(path, separator="\t" if kind == ".tsv" else ",", **options)
