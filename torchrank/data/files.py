"""Paths, the format that a name tells, and files that appear whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

from torchrank.errors import DataError, check_type


def as_path(path: object, name: str = "path") -> Path:
    """Return a path given as text or as a ``Path``.

    Args:
        path: what the caller gave.
        name: the argument's name as the caller wrote it.

    Returns:
        the path.

    Raises:
        DataError: it is neither.

    Example:
        >>> as_path(5)
        Traceback (most recent call last):
        torchrank.errors.DataError: path is a int, 5; give a path, as a str or a pathlib.Path
    """
    check_type(name, path, (str, PathLike), "a path, as a str or a pathlib.Path", error=DataError)
    return Path(path)  # type: ignore[arg-type] # checked above


def log_format(path: Path) -> str:
    """Tell the format of a log's file or folder by its name.

    Args:
        path: of a file, gzipped or not, or of a folder of Parquet files.

    Returns:
        ``".parquet"``, ``".csv"`` or ``".tsv"``.

    Raises:
        DataError: nothing is there, or the name tells no format.
    """
    if not path.exists():
        raise DataError(f"there is no {path}")
    ending = Path(path.stem if path.suffix == ".gz" else path.name).suffix.lower()
    if path.is_dir() or ending in (".parquet", ".pq"):
        return ".parquet"
    if ending in (".csv", ".tsv"):
        return ending
    raise DataError(f"the name of {path} tells no format; give .parquet, .csv, .tsv, or a folder of Parquet files")


def check_replaceable(path: Path) -> None:
    """Refuse to write in place of what is no file: a folder, a device, a pipe.

    Args:
        path: the file to write.

    Raises:
        DataError: something else stands there.

    Example:
        >>> check_replaceable(Path("/dev/null"))
        Traceback (most recent call last):
        torchrank.errors.DataError: /dev/null is no file that could be written anew; give another name
    """
    if path.exists() and not path.is_file():
        raise DataError(f"{path} is no file that could be written anew; give another name")


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Give a place to write to; what is there in the end takes the path's place, and nothing does after an error.

    Args:
        path: the file to write; its folder is made.

    Yields:
        a path with the same ending in a folder of its own beside it.

    Raises:
        DataError: a folder, a device or a pipe stands there.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp()) / "new"
        >>> with whole_file(folder / "a.txt") as place:
        ...     _ = place.write_text("whole")
        >>> [(p.name, p.read_text()) for p in folder.iterdir()]
        [('a.txt', 'whole')]
    """
    path = Path(path)
    check_replaceable(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=".unfinished-") as folder:
        place = Path(folder) / path.name
        yield place
        place.replace(path)
