"""``torchrank export``: a checkpoint's model as a graph for serving, and its vectors for nearest-neighbour search."""

from pathlib import Path

import numpy as np
import polars as pl
import torch
from torch import Tensor

from torchrank.commands.recommend import read_catalogue
from torchrank.data.files import whole_file
from torchrank.errors import TorchRankError
from torchrank.models.serving import OF_VECTORS
from torchrank.training.checkpoint import load
from torchrank.training.export import check_ending, core_of, export_model
from torchrank.training.vectors import vector_tables


def export(
    *,
    ckpt: str,
    out: str | None = None,
    items: str | None = None,
    users: str | None = None,
    k: int = 10,
    by: str = "id",
    trust: list[str] = [],  # noqa: B006 - read only; the command line reads the default off the signature
) -> None:
    """Write a trained model as ONNX or for torch.export.load, and vectors of items and users as Parquet.

    Args:
        ckpt: checkpoint of a torchrank module; nothing else is needed.
        out: the file to write, .onnx or, for torch.export.load, .pt2; it is compared with the model before it appears.
        items: of a model trained on a log, the Parquet file of the items' vectors, with columns item, number and
            vector.
        users: the same of the users, with a column user; inner products of the two are the scores.
        k: of a model trained on a log, items a user is given by what is exported.
        by: what such a graph is asked by, the user's number (id) or vector (vector).
        trust: further packages whose classes the checkpoint may name; may be repeated.
    """
    if out is None and items is None and users is None:
        raise TorchRankError("there is nothing to write; give --out model.onnx, --items items.parquet or --users")
    if out is not None:
        check_ending(Path(out))
    for name, path in (("items", items), ("users", users)):
        if path is not None and Path(path).suffix != ".parquet":
            raise TorchRankError(f"{name}={path!r}; name the file .parquet")
    model = core_of(load(ckpt, trust=trust))
    if out is not None:
        done = export_model(model, out, k=k, by=by, candidates=_candidates(model, ckpt))
        for name, values in (("takes", done.inputs), ("gives", done.outputs)):
            print(f"{name} {', '.join(values)}")
        print(f"{out}: as far as {done.difference:.1e} from the model's own outputs")
    if items is None and users is None:
        return
    for name, path, table in zip(("users", "items"), (users, items), _tables(model, ckpt), strict=True):
        if path is not None:
            with whole_file(path) as place:
                table.write_parquet(place)
            print(f"{path}: {len(table):,} {name}, vectors of {table['vector'].dtype.shape[0]} numbers")  # type: ignore[attr-defined]


def _tables(model: torch.nn.Module, ckpt: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    return vector_tables(model, read_catalogue(ckpt))


def _candidates(model: torch.nn.Module, ckpt: str) -> Tensor | None:
    """Internal numbers of the items that the training log has shown; None for a model that is no recommender."""
    if not isinstance(model, OF_VECTORS):
        return None
    return torch.from_numpy(np.flatnonzero(read_catalogue(ckpt).shown))
