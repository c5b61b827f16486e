"""Checks of chains at the boundary: shapes always, values where looking costs nothing (eager, on the CPU)."""

import torch
from torch import Tensor

from torchrank.errors import DataError, ShapeError
from torchrank.ops.checks import check_tensors, values_can_be_read


def check_chain(emissions: Tensor, transitions: Tensor, mask: Tensor | None, start: Tensor | None) -> None:
    """Refuse tensors that do not describe one batch of chains.

    Args:
        emissions: ``(B, T, q)`` floating point.
        transitions: ``(q, q)`` or ``(B, T − 1, q, q)``, indexed [to, from].
        mask: ``(B, T)`` boolean, True on the first positions of each chain, or None.
        start: ``(q,)`` or None.

    Raises:
        ShapeError: shapes or types that do not fit each other.
        DataError: a chain of length 0, a mask with holes, a score that is NaN or +inf where the mask is True.
    """
    check_tensors({"emissions": emissions, "transitions": transitions}, mask=mask, start=start)
    if emissions.ndim != 3 or not emissions.is_floating_point() or emissions.shape[2] == 0:
        raise ShapeError(
            f"emissions have shape {tuple(emissions.shape)} and dtype {emissions.dtype};"
            " they must be floating point, (B, T, q), with q at least 1"
        )
    batch, length, q = emissions.shape
    per_position = (batch, max(length - 1, 0), q, q)
    if tuple(transitions.shape) not in ((q, q), per_position):
        raise ShapeError(
            f"transitions have shape {tuple(transitions.shape)}; for emissions {tuple(emissions.shape)} give"
            f" {(q, q)} or {per_position}, indexed [to, from]"
        )
    if start is not None and start.shape != (q,):
        raise ShapeError(f"start has shape {tuple(start.shape)}; give one score a label, {(q,)}")
    if mask is not None and (mask.shape != emissions.shape[:2] or mask.dtype != torch.bool):
        raise ShapeError(
            f"mask has shape {tuple(mask.shape)} and dtype {mask.dtype}; give a boolean {(batch, length)},"
            " True where a position is real"
        )
    if values_can_be_read(emissions, transitions) and batch > 0:
        _check_lengths(length, mask)
        _check_scores(emissions, transitions, mask, start)


def _check_lengths(length: int, mask: Tensor | None) -> None:
    if length == 0:
        raise DataError("the chains have length 0; leave empty sequences out")
    if mask is None:
        return
    if not bool(mask[:, 0].all()):
        row = int((~mask[:, 0]).nonzero()[0])
        what = "has a hole at position 0" if bool(mask[row].any()) else "has length 0"
        raise DataError(f"the mask of sequence {row} {what}; a mask is True from the first position to the last")
    holes = mask[:, 1:] & ~mask[:, :-1]
    if bool(holes.any()):
        row, position = (int(i) for i in holes.nonzero()[0])
        raise DataError(
            f"the mask of sequence {row} has a hole before position {position + 1};"
            " a mask is True from the first position to the last, then False"
        )


def _check_scores(emissions: Tensor, transitions: Tensor, mask: Tensor | None, start: Tensor | None) -> None:
    # One pass settles the usual case: amax hands a NaN on, and a finite maximum rules out +inf.
    if not bool(emissions.amax() < torch.inf):
        bad = ~(emissions < torch.inf)
        if mask is not None:
            bad = bad & mask[..., None]
        _refuse("the emission at [sequence, position, label]", bad, emissions)
    if transitions.numel() and not bool(transitions.amax() < torch.inf):
        bad = ~(transitions < torch.inf)
        if mask is not None and transitions.ndim == 4:
            bad = bad & mask[:, 1:, None, None]
        _refuse("the transition score at", bad, transitions)
    if start is not None and not bool(start.amax() < torch.inf):
        _refuse("the start score at", ~(start < torch.inf), start)


def _refuse(what: str, bad: Tensor, values: Tensor) -> None:
    if bool(bad.any()):
        index = [int(i) for i in bad.nonzero()[0]]
        value = values[tuple(index)].item()
        raise DataError(f"{what} {index} is {value}; scores must be numbers (-inf forbids, NaN and inf say nothing)")


def check_labels(labels: Tensor, emissions: Tensor, mask: Tensor | None, *, name: str = "labels") -> None:
    """Refuse labels that are not one label of the chain at every real position.

    Args:
        labels: ``(B, T)`` integers in ``0 … q − 1``; what lies under the mask has no meaning.
        emissions: ``(B, T, q)``.
        mask: ``(B, T)`` boolean or None.
        name: what the caller calls them.

    Raises:
        ShapeError: another shape, or no integers.
        DataError: a label outside ``0 … q − 1``.
    """
    check_tensors({"emissions": emissions, name: labels})
    if labels.shape != emissions.shape[:2] or labels.is_floating_point() or labels.is_complex():
        raise ShapeError(
            f"{name} have shape {tuple(labels.shape)} and dtype {labels.dtype};"
            f" give integers {tuple(emissions.shape[:2])}"
        )
    if not values_can_be_read(labels):
        return
    q = emissions.shape[2]
    bad = (labels < 0) | (labels >= q)
    if mask is not None:
        bad = bad & mask
    if bool(bad.any()):
        row, position = (int(i) for i in bad.nonzero()[0])
        raise DataError(
            f"{name}[{row}, {position}] is {int(labels[row, position])}; with {q} labels they run from 0 to {q - 1}"
        )
