"""What every loss over lists does at its edges, checks, working precision and reduction, and the modules' base."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from torchrank.errors import ShapeError, check_option
from torchrank.ops.checks import check_list_weights, check_lists, check_relevance, check_tensors, check_weights
from torchrank.ops.levels import has_ordered_pair
from torchrank.ops.masked import fill_padding
from torchrank.ops.precision import at_least_float32

REDUCTIONS = ("mean", "sum", "none")


def prepare(scores: Tensor, relevance: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Check lists, then return scores and relevance in working precision with zeros as padding.

    Raises:
        ShapeError: the shapes differ, or the mask is not boolean.
        DataError: a real document's relevance is below 0 or NaN (eager CPU tensors).
    """
    check_lists(scores, relevance, mask)
    check_relevance(relevance, mask)
    scores = at_least_float32(fill_padding(scores, mask, 0))
    return scores, fill_padding(relevance, mask, 0).to(scores.dtype)


def prepare_weights(weights: Tensor, like: Tensor, mask: Tensor | None, name: str) -> Tensor:
    """Check weights of documents, then return them in the precision of ``like`` with zeros as padding.

    Raises:
        ShapeError: they are no tensor of the shape of ``like``.
        DataError: a real document's weight is negative or not finite (eager CPU tensors).
    """
    check_tensors({"scores": like, name: weights})
    if weights.shape != like.shape:
        raise ShapeError(f"{name} have shape {tuple(weights.shape)}, the scores {tuple(like.shape)}; one a document")
    weights = fill_padding(weights, mask, 0).to(like.dtype)
    check_weights(weights, name)
    return weights


def reduce_lists(values: Tensor, counted: Tensor | None, list_weights: Tensor | None, reduction: str) -> Tensor:
    """Reduce one value per list.

    Args:
        values: ``(...)``, exactly 0 where ``counted`` is False.
        counted: ``(...)`` boolean, the lists that a mean is over; None for all.
        list_weights: ``(...)`` at least 0, or None for ones.
        reduction: ``"mean"`` (Σ wℓ / Σ w over counted lists, 0 when there are none), ``"sum"`` (Σ wℓ) or ``"none"``
            (wℓ).

    Returns:
        a scalar, or ``(...)`` for ``"none"``.

    Raises:
        ShapeError: the weights are no tensor of the values' shape.
        DataError: a weight is negative or not finite (eager CPU tensors).

    Example:
        >>> reduce_lists(torch.tensor([2.0, 4.0, 0.0]), torch.tensor([True, True, False]), None, "mean")
        tensor(3.)
    """
    check_option("reduction", reduction, REDUCTIONS)
    if list_weights is not None:
        check_list_weights(list_weights, values)
        list_weights = list_weights.to(values.dtype)
        values = values * list_weights
    if reduction == "none":
        return values
    if reduction == "sum":
        return values.sum()
    if counted is None:
        counted = torch.ones_like(values, dtype=torch.bool)
    weight = counted.to(values.dtype) if list_weights is None else list_weights * counted
    total = weight.sum()
    return values.sum() / torch.where(total > 0, total, torch.ones_like(total))


class ReducedLoss(nn.Module):
    """A loss of a batch, one value a list, row, pair or sequence, reduced.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an unknown reduction.
    """

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__()
        check_option("reduction", reduction, REDUCTIONS)
        self.reduction = reduction


class ListwiseLoss(ReducedLoss, ABC):
    """A loss of a batch of lists; the subclass says which in :meth:`each`, and which lists count in :meth:`counted`.

    Args:
        reduction: ``"mean"`` (over the lists that count), ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an unknown reduction.
    """

    @abstractmethod
    def each(self, scores: Tensor, relevance: Tensor, mask: Tensor | None, document_weights: Tensor | None) -> Tensor:
        """Return the loss of each list: ``(...)``."""

    def counted(self, relevance: Tensor, mask: Tensor | None) -> Tensor:
        """Return the lists that a mean is over: ``(...)`` boolean, those with an ordered pair."""
        return has_ordered_pair(at_least_float32(relevance), mask)

    def forward(
        self,
        scores: Tensor,
        relevance: Tensor,
        mask: Tensor | None = None,
        list_weights: Tensor | None = None,
        *,
        document_weights: Tensor | None = None,
    ) -> Tensor:
        """Reduce the loss of each list.

        Args:
            scores: ``(..., L)``.
            relevance: ``(..., L)``.
            mask: ``(..., L)`` boolean or None.
            list_weights: ``(...)`` weight of each list, or None for ones.
            document_weights: ``(..., L)``, as in the function of the loss.

        Returns:
            a scalar, or ``(...)`` for ``reduction="none"``.
        """
        each = self.each(scores, relevance, mask, document_weights)
        return reduce_lists(each, self.counted(relevance, mask), list_weights, self.reduction)
