"""What every loss over lists does at its edges: checks, working precision, reduction."""

import torch
from torch import Tensor

from torchrank.errors import ShapeError, check_option
from torchrank.ops.checks import check_list_weights, check_lists, check_relevance, check_tensors, check_weights
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


def reduce_lists(values: Tensor, counted: Tensor, list_weights: Tensor | None, reduction: str) -> Tensor:
    """Reduce one value per list.

    Args:
        values: ``(...)``, exactly 0 where ``counted`` is False.
        counted: ``(...)`` boolean, the lists that a mean is over.
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
    weight = counted.to(values.dtype) if list_weights is None else list_weights * counted
    total = weight.sum()
    return values.sum() / torch.where(total > 0, total, torch.ones_like(total))
