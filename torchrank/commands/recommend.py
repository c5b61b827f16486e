"""``torchrank recommend``: the best unseen items of many users, from a checkpoint alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from rich.progress import Progress

from torchrank.data.attributes import parquet_series
from torchrank.data.catalogue import Catalogue
from torchrank.data.files import check_replaceable
from torchrank.data.tables import parquet_table
from torchrank.errors import DataError
from torchrank.training.checkpoint import load
from torchrank.training.recommendation import recommend_batches


def recommend(
    *,
    ckpt: str,
    out: str,
    users: str | None = None,
    k: int = 10,
    unknown: str = "error",
    keep_seen: bool = False,
    trust: list[str] = [],  # noqa: B006 - read only; the command line reads the default off the signature
) -> None:
    """Write each user's best items to Parquet, with columns user, item, rank, score and by.

    Args:
        ckpt: checkpoint of a module trained on a log; nothing else is needed.
        out: the Parquet file to write.
        users: whom to answer: a text file with one id a line, or a Parquet or CSV file with a column user; everybody in
            the training log by default.
        k: items a user; users with fewer unseen items get fewer rows.
        unknown: what a user without an interaction in the training log gets: error, or item_rate for the items of the
            largest share of positive feedback.
        keep_seen: recommend items the user has seen too.
        trust: further packages whose scorers the checkpoint may name; may be repeated.
    """
    path = Path(out)
    check_replaceable(path)
    module = load(ckpt, trust=trust)
    catalogue = read_catalogue(ckpt)
    scorer = getattr(module, "scorer", None)
    if scorer is None:
        raise DataError(f"{ckpt} holds a {type(module).__name__}, which does not score users and items")
    wanted = None if users is None else read_users(users, like=catalogue.user_ids)
    total = int((np.diff(catalogue.offsets) > 0).sum()) if wanted is None else len(wanted)
    parts = recommend_batches(scorer, catalogue, wanted, k=k, unknown=unknown, exclude_seen=not keep_seen)
    part = path.with_name(path.name + ".part")  # one a killed run left is written over
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = _write(parts, part, total)
        part.replace(path)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error}") from error
    finally:
        part.unlink(missing_ok=True)
    print(f"{rows:,} recommendations for {total:,} users are in {path}")


def read_users(path: str | Path, *, like: NDArray[Any]) -> pl.Series:
    """Read user ids from a file.

    Args:
        path: Parquet or CSV with a column ``user``, or text with one id a line.
        like: ids of the type wanted; text is turned into integers where these are.

    Returns:
        the ids.

    Raises:
        DataError: nothing is there, there is no column ``user``, or an id is not of the type.
    """
    path = Path(path)
    if path.suffix == ".parquet":
        table = parquet_table(path)
        names = table.names
    else:
        frame = _read_text(path)
        names = frame.columns
    if "user" not in names:
        raise DataError(f"{path} has no column 'user'; its columns are {', '.join(map(repr, names))}")
    ids = parquet_series(table, "user") if path.suffix == ".parquet" else frame["user"]
    if ids.dtype == pl.String and like.dtype.kind in "iu":
        whole = ids.cast(pl.Int64, strict=False)
        if whole.null_count():
            raise DataError(f"{path}: user {ids.filter(whole.is_null())[0]!r} is no integer, as the log's user ids are")
        return whole
    return ids


def _read_text(path: Path) -> pl.DataFrame:
    try:
        if path.suffix == ".csv":
            return pl.read_csv(path, infer_schema=False)
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path} does not read as a list of users: {str(error).splitlines()[0]}") from error
    return pl.DataFrame({"user": [line.strip() for line in lines if line.strip()]}, schema={"user": pl.String})


def read_catalogue(ckpt: str | Path) -> Catalogue:
    """Read the catalogue of users and items that a checkpoint holds.

    Raises:
        DataError: it holds none.
    """
    saved = torch.load(ckpt, map_location="cpu", weights_only=True)
    if "catalogue" not in saved:
        raise DataError(f"{ckpt} was not trained on an interaction log: it holds no catalogue of users and items")
    return Catalogue.from_state(saved["catalogue"])


def _write(parts: Iterator[pl.DataFrame], path: Path, total: int) -> int:
    """Write parts one after the other; return the number of rows."""
    first = next(parts).to_arrow()
    rows: int = first.num_rows
    with Progress() as bar, pq.ParquetWriter(path, first.schema) as writer:
        task = bar.add_task("users", total=total)
        writer.write_table(first)
        for frame in parts:
            bar.update(task, advance=frame["user"].n_unique())
            writer.write_table(frame.to_arrow())
            rows += len(frame)
        bar.update(task, completed=total)
    return rows
