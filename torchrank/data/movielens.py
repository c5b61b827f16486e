"""MovieLens logs in the formats GroupLens publishes, and where to fetch them."""

from pathlib import Path

from torchrank.data.download import Archive
from torchrank.data.files import as_path
from torchrank.data.log import InteractionLog
from torchrank.errors import DataError

_BASE = "https://files.grouplens.org/datasets/movielens/"

#: data set to its archive; GroupLens publishes the MD5 sums itself
MOVIELENS = {
    "movielens-100k": Archive(
        _BASE + "ml-100k.zip",
        folder="ml-100k",
        checksum="sha256:50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
    ),
    "movielens-10m": Archive(
        _BASE + "ml-10m.zip", folder="ml-10M100K", checksum="md5:ce571fd55effeba0271552578f2648bd"
    ),
    "movielens-1m": Archive(
        _BASE + "ml-1m.zip",
        folder="ml-1m",
        checksum="sha256:a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
    ),
    "movielens-20m": Archive(
        _BASE + "ml-20m.zip",
        folder="ml-20m",
        checksum="sha256:96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
    ),
    "movielens-25m": Archive(
        _BASE + "ml-25m.zip",
        folder="ml-25m",
        checksum="sha256:8b21cfb7eb1706b4ec0aac894368d90acf26ebdfb6aced3ebd4ad5bd1eb9c6aa",
    ),
    "movielens-32m": Archive(_BASE + "ml-32m.zip", folder="ml-32m", checksum="md5:d472be332d4daa821edc399621853b57"),
}
_RATINGS = ("u.data", "ratings.dat", "ratings.csv")


def read_movielens(path: str | Path, *, positive_at: float = 4, duplicates: str = "keep") -> InteractionLog:
    r"""Read a MovieLens data set as it is published.

    The suffix tells the format: ``.data`` is 100K's (tabs), ``.dat`` 1M's and 10M's (``::``), ``.csv`` that of 20M and
    later (a header line ``userId,movieId,rating,timestamp``); each may be gzipped.

    Args:
        path: the unpacked folder, or its file of ratings.
        positive_at: a film is preferred where its rating is at least this.
        duplicates: see :meth:`InteractionLog.from_frame`.

    Returns:
        the log, with integer ids and times in seconds since 1970.

    Raises:
        DataError: the folder holds no file of ratings, or the file is not in the format its name says.

    Source: Harper & Konstan, "The MovieLens Datasets", ACM TiiS 5(4), 2015.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = (Path(folder) / "ratings.dat").write_text("1::1193::5::978300760\n1::661::3::978302109\n")
        ...     log = read_movielens(folder)
        >>> log.item_ids.tolist(), log.preferred.tolist()
        ([1193, 661], [True, False])
    """
    from torchrank.data.csv_tables import csv_table  # polars, which a light import does without

    path = as_path(path)
    file = _ratings(path) if path.is_dir() else path
    kind = Path(file.stem if file.suffix == ".gz" else file.name).suffix
    if kind == ".data":
        table = csv_table(file, separator="\t", names=["userId", "movieId", "rating", "timestamp"])
    elif kind == ".dat":  # a two-character separator is one character with nothing between
        table = csv_table(file, separator=":", names=["userId", "_", "movieId", "_1", "rating", "_2", "timestamp"])
    elif kind == ".csv":
        table = csv_table(file)
    else:
        raise DataError(
            f"{file} is not named like a MovieLens file: u.data, ratings.dat or ratings.csv, gzipped or not"
        )
    columns = {"user": "userId", "item": "movieId", "feedback": "rating", "time": "timestamp"}
    return InteractionLog.from_table(table, columns, positive_at=positive_at, duplicates=duplicates)


def is_movielens(path: Path) -> bool:
    """Say whether a path is named like MovieLens' own ratings, or is a folder that holds them."""
    names = {f"{name}{packed}" for name in _RATINGS for packed in ("", ".gz")}
    if path.is_dir():
        return any((path / name).is_file() for name in names)
    return path.name in names or path.name.removesuffix(".gz").endswith(".dat")


def _ratings(folder: Path) -> Path:
    for name in _RATINGS:
        for file in (folder / name, folder / f"{name}.gz"):
            if file.is_file():
                return file
    raise DataError(f"{folder} holds none of {', '.join(_RATINGS)}, gzipped or not")
