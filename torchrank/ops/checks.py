"""Checks of tensors at the boundary of the public functions."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from torchrank.errors import DataError, ShapeError, TorchRankError
from torchrank.ops.masked import fill_padding

_DTYPES = frozenset(
    {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
    | {torch.float16, torch.bfloat16, torch.float32, torch.float64}
)
_MOST_RANKS = 2**31 - 1


def check_tensors(required: Mapping[str, object], **optional: object) -> None:
    """Refuse what is no dense tensor of real numbers, and tensors on several devices.

    Args:
        required: values by the names that callers know them by.
        optional: values that may be None.

    Raises:
        ShapeError: another type, layout, dtype or device.

    Example:
        >>> check_tensors({"scores": [0.5, 0.1]})
        Traceback (most recent call last):
        torchrank.errors.ShapeError: scores is a list; give a tensor, as torch.as_tensor makes one
    """
    first: tuple[str, Tensor] | None = None
    for name, value in (*required.items(), *((name, x) for name, x in optional.items() if x is not None)):
        if not isinstance(value, Tensor):
            raise ShapeError(f"{name} is a {type(value).__name__}; give a tensor, as torch.as_tensor makes one")
        if value.layout != torch.strided or value.dtype not in _DTYPES:
            raise ShapeError(
                f"{name} has layout {value.layout} and dtype {value.dtype};"
                " give a dense tensor of booleans, signed integers or floating-point numbers"
            )
        if first is None:
            first = name, value
        elif value.device != first[1].device:
            raise ShapeError(f"{name} is on {value.device}, {first[0]} on {first[1].device}; move both to one device")


def check_cutoff(k: int | None, name: str = "k") -> None:
    """Refuse a cut-off that is not a positive integer or None.

    Raises:
        TorchRankError: it is not.
    """
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= _MOST_RANKS):
        raise TorchRankError(f"{name}={k!r}; give an int from 1 to {_MOST_RANKS}, or None for the whole list")


def check_list_weights(weights: Tensor, values: Tensor) -> None:
    """Refuse weights of lists that do not fit the lists' values, and values no mean can be weighted by.

    Args:
        weights: ``(...)``.
        values: ``(...)``, one per list.

    Raises:
        ShapeError: no tensor, or another shape.
        DataError: a weight is negative or not finite (eager CPU tensors).
    """
    check_tensors({"values": values, "list_weights": weights})
    if weights.shape != values.shape:
        raise ShapeError(
            f"list_weights have shape {tuple(weights.shape)}, the lists {tuple(values.shape)}; give one a list"
        )
    check_weights(weights, "list_weights")


def check_weights(weights: Tensor, name: str) -> None:
    """Refuse weights that are negative or not finite.

    Raises:
        DataError: one is (eager CPU tensors).
    """
    if not values_can_be_read(weights):
        return
    bad = ~((weights >= 0) & (weights < torch.inf))
    if bool(bad.any()):
        raise DataError(f"{name} must be finite and at least 0, found {weights[bad][0].item()}")


def check_lists(scores: Tensor, relevance: Tensor, mask: Tensor | None) -> None:
    """Refuse scores, relevance and mask that do not describe the same lists.

    Args:
        scores: ``(..., L)``.
        relevance: ``(..., L)``.
        mask: ``(..., L)`` boolean or None.

    Raises:
        ShapeError: the shapes differ, the mask is not boolean, or one is no dense tensor of real numbers.
    """
    check_tensors({"scores": scores, "relevance": relevance}, mask=mask)
    if scores.ndim == 0 or scores.shape != relevance.shape:
        raise ShapeError(
            f"scores have shape {tuple(scores.shape)} and relevance {tuple(relevance.shape)}; both must be (..., L)"
        )
    if mask is None:
        return
    if mask.shape != scores.shape:
        raise ShapeError(f"mask has shape {tuple(mask.shape)}, scores have {tuple(scores.shape)}; they must be equal")
    if mask.dtype != torch.bool:
        raise ShapeError(f"mask has dtype {mask.dtype}; give a boolean mask, True where a document is real")


def values_can_be_read(*tensors: Tensor) -> bool:
    """Say whether looking at values costs no synchronisation: eager tensors on the CPU, none of them transformed."""
    return not torch.compiler.is_compiling() and not in_transform() and all(t.device.type == "cpu" for t in tensors)


def in_transform() -> bool:
    """Say whether ``torch.vmap`` or ``torch.func`` is at work: what they hand over has no values to look at."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def refuse_transforms(what: str) -> None:
    """Refuse ``torch.vmap`` and ``torch.func`` where a gradient is computed beside the value, out of their sight.

    Args:
        what: what cannot be transformed.

    Raises:
        TorchRankError: one of them is at work.
    """
    if not torch.compiler.is_compiling() and in_transform():
        raise TorchRankError(
            f"{what} computes its gradient beside its value, which torch.vmap and torch.func cannot see; it takes whole"
            " batches, (..., L), and torch.autograd.grad or backward()"
        )


def sizes_are_symbols() -> bool:
    """Say whether torch.export is tracing: then a loop over pieces of open size must not be unrolled."""
    # torch 2.4 to 2.6 tell exporting from compiling by nothing.
    return bool(getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)())


def check_relevance(relevance: Tensor, mask: Tensor | None, *, most: float = torch.inf) -> None:
    """Refuse relevance that is negative, infinite, NaN or above ``most`` where a document is real.

    Looks at eager CPU tensors only.

    Raises:
        DataError: it is.
    """
    if not values_can_be_read(relevance) or relevance.numel() == 0:
        return
    filled = fill_padding(relevance, mask, 0)
    low, high = (x.item() for x in filled.aminmax())  # both are NaN when any value is: one pass where all is well
    if low >= 0 and high <= most and high < torch.inf:
        return
    bad = ~((filled >= 0) & (filled <= most) & (filled < torch.inf))
    limits = "finite and at least 0" if most == torch.inf else f"from 0 to {most:g}"
    raise DataError(f"relevance must be {limits}, found {filled[bad][0].item()}; shift or clip the labels")


def check_scores(scores: Tensor, mask: Tensor | None) -> None:
    """Refuse NaN scores where a document is real (eager CPU tensors only).

    Raises:
        DataError: a real document's score is NaN.
    """
    if not values_can_be_read(scores) or scores.numel() == 0:
        return
    filled = fill_padding(scores, mask, 0)
    if not math.isnan(filled.amin().item()):  # the least of values with a NaN among them is NaN
        return
    where = tuple(int(i) for i in filled.isnan().nonzero()[0])
    raise DataError(f"the score at index {where} is NaN; a ranking needs comparable scores")


def check_indices(name: str, index: Tensor, size: int) -> None:
    """Refuse what numbers nothing in a table: other types than integers, and numbers below 0 or beyond the table.

    Args:
        name: what is numbered, such as ``"user"``.
        index: ``(...)`` int32 or int64.
        size: rows of the table.

    Raises:
        ShapeError: no tensor, or another dtype.
        DataError: a number that does not exist (eager CPU tensors).
    """
    check_tensors({f"{name}s": index})
    if index.dtype not in (torch.int32, torch.int64):
        raise ShapeError(f"{name}s have dtype {index.dtype}; give int64 numbers")
    if not values_can_be_read(index) or index.numel() == 0:
        return
    low, high = (int(x) for x in index.aminmax())
    if low < 0 or high >= size:
        bad = low if low < 0 else high
        raise DataError(f"there is no {name} {bad}; this scorer has {size}, numbered from 0")
