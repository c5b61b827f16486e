"""The Netflix Prize's ratings, as they were published."""

from pathlib import Path
from typing import NoReturn

import polars as pl

from torchrank.data.log import InteractionLog
from torchrank.errors import DataError

#: bytes of text read at once
_TOGETHER = 1 << 29


def read_netflix(path: str | Path, *, positive_at: float = 4, duplicates: str = "keep") -> InteractionLog:
    r"""Read the training set of the Netflix Prize.

    A line ``MovieID:`` and, below it, a line ``CustomerID,Rating,Date`` for each of the film's ratings, from 1 to 5,
    the date as ``YYYY-MM-DD``. The Prize has 17,770 files ``training_set/mv_0000001.txt`` and on, a film each; Kaggle
    has the same lines in ``combined_data_1.txt`` to ``combined_data_4.txt``. The layout is that of the data set's own
    README.

    Args:
        path: one such file, or a folder that holds such files or a folder ``training_set`` of them.
        positive_at: a film is preferred where its rating is at least this.
        duplicates: see :meth:`InteractionLog.from_frame`.

    Returns:
        the log, with integer ids and dates as times.

    Raises:
        DataError: nothing of this kind is there, or a line is none of the two kinds; the message names file and line.

    Source: Bennett & Lanning, "The Netflix Prize", KDD Cup 2007, and the README of the data set.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = (Path(folder) / "mv_0000001.txt").write_text("1:\n1488844,3,2005-09-06\n822109,5,2005-05-13\n")
        ...     log = read_netflix(folder)
        >>> log.user_ids.tolist(), log.item_ids.tolist(), log.preferred.tolist()
        ([1488844, 822109], [1], [False, True])
    """
    parts = [_read(group) for group in _groups(_files(Path(path)))]
    columns = {"user": "customer", "item": "film", "feedback": "rating", "time": "date"}
    return InteractionLog.from_frame(pl.concat(parts), positive_at=positive_at, duplicates=duplicates, **columns)


def _read(paths: list[Path]) -> pl.DataFrame:
    """Read some files; text is held for one group at a time."""
    try:
        # no line holds the separator
        text = pl.scan_csv(
            paths,
            has_header=False,
            schema={"line": pl.String()},
            separator="\x01",
            quote_char=None,
            include_file_paths="file",
        ).collect(engine="streaming")
    except (pl.exceptions.PolarsError, OSError) as error:
        told = str(error).splitlines()[0]
        raise DataError(f"{paths[0].parent} does not read as lines of the Netflix Prize: {told}") from None
    values = pl.col("line").str.splitn(",", 3).struct.rename_fields(["customer", "rating", "date"])
    lines = text.select(values, "file").unnest("line")
    head = (pl.col("customer").str.ends_with(":") & pl.col("rating").is_null()).fill_null(False)
    film = pl.when(head).then(pl.col("customer").str.strip_suffix(":").cast(pl.Int32, strict=False))
    opens = (pl.col("file") != pl.col("file").shift(1)).fill_null(True)
    rows = lines.select(
        pl.col("customer").cast(pl.Int32, strict=False),
        film.forward_fill().alias("film"),
        pl.col("rating").cast(pl.Float32, strict=False),
        pl.col("date").str.to_date("%Y-%m-%d", strict=False),
        head=head,
        bad=pl.when(head).then(film.is_null()).otherwise(opens),
    )
    whole = pl.col("customer").is_not_null() & pl.col("rating").is_between(1, 5) & pl.col("date").is_not_null()
    bad = rows.select(pl.col("bad") | ~(pl.col("head") | whole.fill_null(False))).to_series()
    if bad.any():
        _refuse(text, int(bad.arg_max() or 0))
    return rows.filter(~pl.col("head")).select("customer", "film", "rating", "date")


def _refuse(text: pl.DataFrame, row: int) -> NoReturn:
    """Say which line is wrong."""
    line, file = text.row(row)
    number = int((text["file"].head(row + 1) == file).sum())
    raise DataError(
        f"line {number} of {file}: {line!r} is neither MovieID: nor CustomerID,Rating,Date with a rating from 1 to 5"
        + (", and the first line must be MovieID:" if number == 1 else "")
    )


def _groups(paths: list[Path]) -> list[list[Path]]:
    groups: list[list[Path]] = [[]]
    size = 0
    for path in paths:
        if groups[-1] and size + path.stat().st_size > _TOGETHER:
            groups.append([])
            size = 0
        groups[-1].append(path)
        size += path.stat().st_size
    return groups


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError(f"there is no {path}")
    for folder, pattern in ((path / "training_set", "mv_*.txt"), (path, "mv_*.txt"), (path, "combined_data_*.txt")):
        found = sorted(folder.glob(pattern))
        if found:
            return found
    raise DataError(f"{path} holds neither training_set/mv_*.txt, mv_*.txt nor combined_data_*.txt")
