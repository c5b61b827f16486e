"""Scores as TREC run files, which ``trec_eval`` and its kin read."""

from pathlib import Path

import numpy as np
from torch import Tensor

from torchrank.data.files import whole_file
from torchrank.data.queries import QueryDataset
from torchrank.errors import DataError, ShapeError


def write_run(path: str | Path, dataset: QueryDataset, scores: Tensor, *, tag: str = "torchrank") -> None:
    """Write a run: ``query Q0 document rank score tag``, best first, equal scores in the dataset's order.

    Args:
        path: the file; it appears whole or not at all.
        dataset: the queries that were scored.
        scores: ``(N,)``, one a document in the dataset's order, see :func:`collect_scores`.
        tag: the run's name, one word.

    Raises:
        ShapeError: another number of scores than documents.
        DataError: a score that is not finite, or a tag that is not one word.

    Example:
        >>> import tempfile, torch
        >>> data = QueryDataset(torch.ones(3, 1), torch.zeros(3), torch.tensor([0, 2, 3]), torch.tensor([7, 8]))
        >>> path = Path(tempfile.mkdtemp()) / "run.txt"
        >>> write_run(path, data, torch.tensor([0.5, 2.0, -1.0]), tag="mine")
        >>> print(path.read_text())
        7 Q0 2 1 2 mine
        7 Q0 1 2 0.5 mine
        8 Q0 3 1 -1 mine
        <BLANKLINE>
    """
    documents = len(dataset.features)
    if scores.shape != (documents,):
        raise ShapeError(f"scores have shape {tuple(scores.shape)}, the dataset holds {documents} documents")
    if tag.split() != [tag]:
        raise DataError(f"tag={tag!r} must be one word")
    value = scores.detach().cpu().double().numpy()
    if not np.isfinite(value).all():
        raise DataError(f"the score of document {int((~np.isfinite(value)).argmax())} is not finite")
    lengths = dataset.lengths.cpu().numpy()
    owner = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((-value, owner))
    rank = np.arange(documents) - np.repeat(np.cumsum(lengths) - lengths, lengths) + 1
    digits = 17 if scores.element_size() > 4 else 9  # enough to tell any two scores apart
    columns = (
        dataset.query_ids.cpu().numpy()[owner].tolist(),  # lists are whole blocks, sorting moves nothing between them
        dataset.document_ids[order].tolist(),
        rank.tolist(),
        value[order].tolist(),
    )
    with whole_file(path) as place, place.open("w", encoding="utf-8") as out:
        for query, document, place_in_list, score in zip(*columns, strict=True):
            out.write(f"{query} Q0 {document} {place_in_list} {score:.{digits}g} {tag}\n")
