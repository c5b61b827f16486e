"""Lists of documents in memory: flat tensors and the offsets of the lists in them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchrank.data.choice import choose
from torchrank.data.normalization import METHODS, normalize_queries
from torchrank.errors import DataError, ShapeError, TorchRankError, check_type
from torchrank.ops.checks import check_tensors
from torchrank.ops.ragged import ragged_take


class QueryList(NamedTuple):
    """One query's documents.

    Attributes:
        features: ``(L, d)``.
        relevance: ``(L,)``.
        query_id: the query's number.
        document_ids: ``(L,)`` strings.

    Example:
        >>> data = QueryDataset(torch.rand(3, 4), torch.tensor([1.0, 0.0, 2.0]), torch.tensor([0, 1, 3]))
        >>> [len(query.relevance) for query in data]
        [1, 2]
    """

    features: Tensor
    relevance: Tensor
    query_id: int
    document_ids: NDArray[np.str_]


class QueryDataset:
    """Queries with their documents, ragged: no padding is stored.

    Args:
        features: ``(N, d)`` floating point, finite.
        relevance: ``(N,)`` graded labels, at least 0; all zeros for unlabelled data.
        offsets: ``(Q + 1,)`` integers from 0 to N; query q has documents ``offsets[q]`` to ``offsets[q + 1]``, at least
            one.
        query_ids: ``(Q,)`` integers; 1 … Q by default.
        document_ids: ``(N,)`` strings; the documents' places 1 … N by default.
        list_weights: ``(Q,)`` weight of each list in a loss, at least 0; 1 by default.

    Raises:
        ShapeError: parts that do not fit each other.
        DataError: values no ranker can be trained on; the message names the document.

    Example:
        >>> data = QueryDataset(torch.rand(5, 3), torch.tensor([1.0, 0, 0, 2, 0]), torch.tensor([0, 2, 5]))
        >>> len(data), data[1].relevance.tolist(), data[1].document_ids.tolist()
        (2, [0.0, 2.0, 0.0], ['3', '4', '5'])
    """

    def __init__(
        self,
        features: Tensor,
        relevance: Tensor,
        offsets: Tensor,
        query_ids: Tensor | None = None,
        document_ids: Sequence[str] | NDArray[np.str_] | None = None,
        list_weights: Tensor | None = None,
    ) -> None:
        tensors = {"features": features, "relevance": relevance, "offsets": offsets}
        check_tensors(tensors, query_ids=query_ids, list_weights=list_weights)
        if offsets.ndim != 1 or len(offsets) == 0:
            raise ShapeError(f"offsets must be (Q + 1,), got {tuple(offsets.shape)}")
        for name, whole in (("offsets", offsets), ("query_ids", query_ids)):
            if whole is not None and (whole.is_floating_point() or whole.dtype == torch.bool):
                raise ShapeError(f"{name} have dtype {whole.dtype}; give integers")
        self.features = features
        self.relevance = relevance.to(features.dtype)
        self.offsets = offsets.to(torch.int64)
        queries = len(offsets) - 1
        self.query_ids = torch.arange(1, queries + 1) if query_ids is None else query_ids.to(torch.int64)
        names = np.arange(1, len(features) + 1).astype(np.str_) if document_ids is None else document_ids
        self.document_ids: NDArray[np.str_] = np.asarray(names, dtype=np.str_)
        weights = torch.ones(queries) if list_weights is None else list_weights
        self.list_weights = weights.to(features.dtype)
        self._check()

    def _check(self) -> None:
        if self.features.ndim != 2 or not self.features.is_floating_point():
            shape, dtype = tuple(self.features.shape), self.features.dtype
            raise ShapeError(f"features must be (N, d) floating point, got {shape} {dtype}")
        documents, queries = len(self.features), len(self.offsets) - 1
        if queries < 1 or int(self.offsets[0]) != 0 or int(self.offsets[-1]) != documents:
            raise ShapeError(f"offsets must run from 0 to the {documents} documents, got {_short(self.offsets)}")
        for name, shape, length in (
            ("relevance", self.relevance.shape, documents),
            ("document_ids", self.document_ids.shape, documents),
            ("query_ids", self.query_ids.shape, queries),
            ("list_weights", self.list_weights.shape, queries),
        ):
            if tuple(shape) != (length,):
                raise ShapeError(f"{name} must be ({length},), got {tuple(shape)}")
        if bool((self.lengths < 1).any()):
            query = int((self.lengths < 1).nonzero()[0])
            raise DataError(f"query {query} has {int(self.lengths[query])} documents; leave empty lists out")
        if not bool(self.features.isfinite().all()):
            row, column = self.features.isfinite().logical_not().nonzero()[0].tolist()
            value = self.features[row, column].item()
            raise DataError(f"feature {column} of document {row} is {value}; fill or drop what is missing")
        bad = ~(self.relevance.isfinite() & (self.relevance >= 0))
        if bool(bad.any()):
            row = int(bad.nonzero()[0])
            raise DataError(f"the relevance of document {row} is {self.relevance[row].item()}; it must be at least 0")
        if not bool((self.list_weights.isfinite() & (self.list_weights >= 0)).all()):
            raise DataError("list_weights must be finite and at least 0")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, query: int) -> QueryList:
        if not -len(self) <= query < len(self):
            raise IndexError(f"query {query} of {len(self)}")
        query %= len(self)
        here = slice(int(self.offsets[query]), int(self.offsets[query + 1]))
        return QueryList(self.features[here], self.relevance[here], int(self.query_ids[query]), self.document_ids[here])

    def __repr__(self) -> str:
        return f"QueryDataset({len(self)} queries, {len(self.features)} documents, {self.num_features} features)"

    @property
    def num_features(self) -> int:
        """Number of features d."""
        return self.features.shape[1]

    @property
    def lengths(self) -> Tensor:
        """``(Q,)`` documents of each query."""
        return self.offsets.diff()

    def select(self, queries: Sequence[int] | Tensor) -> "QueryDataset":
        """Return chosen queries, in the order given; repeats are allowed, as in a bootstrap.

        Args:
            queries: integers from 0, or a ``(Q,)`` boolean tensor.

        Returns:
            a new dataset.

        Raises:
            DataError: no query, or a query that does not exist, is chosen.

        Example:
            >>> data = QueryDataset(torch.rand(3, 1), torch.tensor([1.0, 0, 2]), torch.tensor([0, 1, 3]))
            >>> data.select([1]).relevance.tolist()
            [0.0, 2.0]
        """
        chosen = choose(queries, len(self), self.offsets.device, one="query", several="queries")
        documents, offsets = ragged_take(self.offsets, chosen)
        return QueryDataset(
            self.features[documents],
            self.relevance[documents],
            offsets,
            self.query_ids[chosen],
            self.document_ids[documents.cpu().numpy()],
            self.list_weights[chosen],
        )

    def normalized(self, *methods: str) -> "QueryDataset":
        """Return the dataset with its features rescaled inside every query, see :func:`normalize_queries`.

        Args:
            methods: one or more of ``"minmax"``, ``"rank"`` and ``"zscore"``; the features of several stand side by
                side.

        Returns:
            a new dataset that shares the other parts.

        Raises:
            TorchRankError: no method, or an unknown one.

        Example:
            >>> data = QueryDataset(torch.rand(5, 3), torch.zeros(5), torch.tensor([0, 2, 5]))
            >>> data.normalized("minmax", "rank")
            QueryDataset(2 queries, 5 documents, 6 features)
        """
        if not methods:
            raise TorchRankError(f"name at least one of {', '.join(METHODS)}")
        scaled = [normalize_queries(self.features, self.offsets, method=method) for method in methods]
        return QueryDataset(
            torch.cat(scaled, 1),
            self.relevance,
            self.offsets,
            self.query_ids,
            self.document_ids,
            self.list_weights,
        )

    def describe(self) -> dict[str, Any]:
        """Count what is there.

        Returns:
            ``queries``, ``documents``, ``features``; ``shortest``, ``mean`` and ``longest`` list; ``labels``, how many
            documents have each grade; ``without_relevant``, queries whose labels are all 0; ``without_pairs``, queries
            whose labels are all equal, from which no ranker can learn.

        Example:
            >>> data = QueryDataset(torch.rand(3, 1), torch.tensor([0.0, 1, 2]), torch.tensor([0, 1, 3]))
            >>> data.describe()["labels"], data.describe()["without_relevant"]
            ({0.0: 1, 1.0: 1, 2.0: 1}, 1)
        """
        grades, counts = torch.unique(self.relevance, return_counts=True)
        owner = torch.repeat_interleave(torch.arange(len(self), device=self.offsets.device), self.lengths)
        empty = self.relevance.new_zeros(len(self))
        low = empty.scatter_reduce(0, owner, self.relevance, "amin", include_self=False)
        high = empty.scatter_reduce(0, owner, self.relevance, "amax", include_self=False)
        return {
            "queries": len(self),
            "documents": len(self.features),
            "features": self.num_features,
            "shortest": int(self.lengths.min()),
            "mean": len(self.features) / len(self),
            "longest": int(self.lengths.max()),
            "labels": dict(zip(grades.tolist(), counts.tolist(), strict=True)),
            "without_relevant": int((high == 0).sum()),
            "without_pairs": int((high == low).sum()),
        }


def concat_queries(datasets: Sequence[QueryDataset]) -> QueryDataset:
    """Put datasets one after the other, such as the parts of a training fold.

    Args:
        datasets: at least one, all with the same number of features.

    Returns:
        a new dataset.

    Raises:
        DataError: no dataset, or unequal numbers of features.

    Example:
        >>> one = QueryDataset(torch.rand(2, 3), torch.tensor([1.0, 0.0]), torch.tensor([0, 2]))
        >>> concat_queries([one, one]).offsets
        tensor([0, 2, 4])
    """
    check_type("datasets", datasets, Sequence, "a list of QueryDatasets", error=DataError)
    if not datasets:
        raise DataError("there is no dataset to concatenate")
    for number, data in enumerate(datasets):
        check_type(
            f"datasets[{number}]", data, QueryDataset, "a QueryDataset, as read_letor makes one", error=DataError
        )
    counts = [data.num_features for data in datasets]
    if len(set(counts)) > 1:
        raise DataError(f"datasets with {counts} features do not fit together; read each with the same num_features")
    shifts = np.cumsum([0, *(len(data.features) for data in datasets[:-1])]).tolist()
    starts = [data.offsets[1:] + shift for data, shift in zip(datasets, shifts, strict=True)]
    return QueryDataset(
        torch.cat([data.features for data in datasets]),
        torch.cat([data.relevance for data in datasets]),
        torch.cat([datasets[0].offsets[:1], *starts]),
        torch.cat([data.query_ids for data in datasets]),
        np.concatenate([data.document_ids for data in datasets]),
        torch.cat([data.list_weights for data in datasets]),
    )


def _short(values: Tensor) -> str:
    some = values[:8].tolist()
    return f"{some}{'…' if values.numel() > 8 else ''}"
