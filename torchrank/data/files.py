"""Files that appear whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Give a place to write to; what is there in the end takes the path's place, and nothing does after an error.

    Args:
        path: the file to write; its folder is made.

    Yields:
        a path with the same ending in a folder of its own beside it.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp()) / "new"
        >>> with whole_file(folder / "a.txt") as place:
        ...     _ = place.write_text("whole")
        >>> [(p.name, p.read_text()) for p in folder.iterdir()]
        [('a.txt', 'whole')]
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=".unfinished-") as folder:
        place = Path(folder) / path.name
        yield place
        place.replace(path)
