"""The mean of a measure over lists as a ``torchmetrics`` module: exact over batches of any sizes and over processes."""

import itertools
from abc import abstractmethod

import torch
from torch import Tensor
from torchmetrics import Metric

from torchrank.ops.checks import check_list_weights

_NUMBERS = itertools.count()


class MeanOverLists(Metric):
    """Weighted mean over lists of a value per list: what every module of ``torchrank.metrics`` is.

    For a measure of your own, write ``per_list`` and, in ``__init__``, call this class's and keep each option as an
    attribute of its name.

    The state is two sums, the weighted values and the weights, each beside what rounding has left out of it, so that a
    million updates lose no digits and no float64 is needed, which some accelerators lack.

    Example:
        >>> class Length(MeanOverLists):
        ...     def per_list(self, scores, relevance, mask=None):
        ...         return torch.ones_like(scores).sum(-1)
        >>> length = Length()
        >>> length.update(torch.zeros(2, 5), torch.zeros(2, 5))
        >>> length.compute()
        tensor(5.)
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    number: Tensor
    sums: Tensor
    residues: Tensor

    def __init__(self) -> None:
        super().__init__()
        # MetricCollection takes metrics of nearly equal state for one and updates only the first. NDCG@1 and NDCG@10
        # can agree on a first batch: a number of its own tells each from all others.
        self.add_state("number", torch.tensor(divmod(next(_NUMBERS), 1000)), dist_reduce_fx="max")
        self.add_state("sums", torch.zeros(2), dist_reduce_fx="sum")
        self.add_state("residues", torch.zeros(2), dist_reduce_fx="sum")

    @abstractmethod
    def per_list(self, scores: Tensor, relevance: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the value ``(...)`` of every list ``(..., L)``, NaN for one that is not to be counted."""

    def update(
        self, scores: Tensor, relevance: Tensor, mask: Tensor | None = None, list_weights: Tensor | None = None
    ) -> None:
        """Add lists.

        Args:
            scores: ``(..., L)``.
            relevance: ``(..., L)``.
            mask: ``(..., L)`` boolean, True where a document is real; None when all are.
            list_weights: ``(...)`` weight of each list in the mean, at least 0; None for equal ones.

        Raises:
            ShapeError: shapes that do not fit.
            DataError: values or weights that cannot be measured (eager CPU tensors only).
        """
        values = self.per_list(scores, relevance, mask)
        if list_weights is not None:
            check_list_weights(list_weights, values)
        weights = torch.ones_like(values) if list_weights is None else list_weights.to(values)
        weights = torch.where(values.isnan(), 0, weights)
        more = torch.stack([(values.nan_to_num() * weights).sum(), weights.sum()]).to(self.sums)
        # Knuth's two-sum: what the rounded total misses, exactly
        total = self.sums + more
        added = total - self.sums
        self.residues = self.residues + (self.sums - (total - added)) + (more - added)
        self.sums = total

    def compute(self) -> Tensor:
        """Return the weighted mean over all lists; NaN when there was none to count."""
        values, weights = (self.sums + self.residues).unbind()
        return values / weights


def check_options(metric: MeanOverLists) -> None:
    """Measure one list, so that an option with a bad value fails where it was given and not in the first batch."""
    metric.per_list(torch.zeros(1, 1), torch.zeros(1, 1))
