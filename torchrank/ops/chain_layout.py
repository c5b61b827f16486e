"""The layout in which chains are computed: time first, sequences last, longest sequence first.

With the sequences last, every step of a recursion is vectorised over them; with the longest first, those that reach a
position are a prefix, and a step takes a slice of them instead of computing under the mask. Sorting needs the lengths
on the host: where reading them would wait for a device, or while compiling, every step takes all sequences and what it
computes under the mask is thrown away.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from torchrank.ops.checks import values_can_be_read


class Layout(NamedTuple):
    """How a batch of ``B`` chains is laid out.

    Attributes:
        order: ``(B,)`` the sequences, longest first; None when they stay as they are.
        last: ``(B,)`` each sequence's last real position, in that order.
        active: how many sequences a step at each position takes: a prefix.
        mask: ``(B, T)`` what must be cleaned before computing; None when no step looks under the mask.
    """

    order: Tensor | None
    last: Tensor
    active: list[int]
    mask: Tensor | None


def lay_out(emissions: Tensor, mask: Tensor | None) -> Layout:
    """Decide the layout of a batch.

    Args:
        emissions: ``(B, T, q)``.
        mask: ``(B, T)`` boolean, True on each sequence's first positions, or None.

    Returns:
        the layout.
    """
    batch, length, _ = emissions.shape
    everyone = [batch] * length
    if mask is None:
        last = torch.full((batch,), length - 1, dtype=torch.int64, device=emissions.device)
        return Layout(None, last, everyone, None)
    lengths = mask.sum(1)
    if not values_can_be_read(emissions, mask):
        return Layout(None, lengths - 1, everyone, mask)
    active = [n for n in mask.sum(0).tolist() if n > 0]
    if active == everyone:
        return Layout(None, lengths - 1, active, None)
    lengths, order = lengths.sort(descending=True, stable=True)
    return Layout(order, lengths - 1, active, None)


def time_major(values: Tensor, layout: Layout) -> Tensor:
    """Lay ``(B, T, q)`` or ``(B, T)`` values out as a new ``(T, q, B)`` or ``(T, B)``, cleaned by ``layout.mask``."""
    values = values[:, : len(layout.active)]
    if layout.mask is not None:
        values = torch.where(layout.mask.view(layout.mask.shape + (1,) * (values.ndim - 2)), values, 0)
    moved = values.permute(*range(1, values.ndim), 0)
    if layout.order is None:
        return moved.clone(memory_format=torch.contiguous_format)
    return moved.index_select(-1, layout.order)


def batch_major(values: Tensor, layout: Layout, length: int) -> Tensor:
    """Undo :func:`time_major`: ``(T, q, B)`` or ``(T, B)`` to ``(B, length, …)``, zeros after the last step."""
    if layout.order is not None:
        values = values.index_select(-1, layout.order.argsort())
    moved = values.movedim(-1, 0)
    if moved.shape[1] == length:
        return moved.contiguous()
    padded = moved.new_zeros((moved.shape[0], length, *moved.shape[2:]))
    padded[:, : moved.shape[1]] = moved
    return padded


def given_order(values: Tensor, layout: Layout) -> Tensor:
    """Bring ``(B,)`` values, one a sequence, back to the order in which the sequences were given."""
    return values if layout.order is None else values.index_select(0, layout.order.argsort())


def at_last(values: Tensor, layout: Layout) -> Tensor:
    """Pick each sequence's values at its last position: ``(T, q, B)`` to ``(q, B)``."""
    return values.gather(0, layout.last.expand(1, *values.shape[1:]))[0]


def upto(values: Tensor, count: int) -> Tensor:
    """Return the first ``count`` sequences of ``(…, B)``, without a slice where that is all of them."""
    return values if values.shape[-1] == count else values[..., :count]


class Steps:
    """The transition scores of each step, laid out as ``(from, to, sequences)``.

    A constant matrix serves all sequences (last axis 1); position-dependent ones are picked for the sequences that
    a step takes.
    """

    def __init__(self, transitions: Tensor, layout: Layout) -> None:
        self._layout = layout
        self._constant = transitions.T.contiguous()[..., None] if transitions.ndim == 2 else None
        self._each = transitions

    def into(self, position: int, count: int) -> Tensor:
        """Scores of moving into ``position``, for the first ``count`` sequences: ``(from, to, count or 1)``."""
        if self._constant is not None:
            return self._constant
        here = self._each[:, position - 1]
        here = here[:count] if self._layout.order is None else here.index_select(0, self._layout.order[:count])
        return here.permute(2, 1, 0)

    def towards(self, labels: Tensor, position: int) -> Tensor:
        """Scores of moving into ``position`` at the given labels ``(n,)``: ``(from, n)``."""
        if self._constant is not None:
            return self._constant[..., 0].index_select(1, labels)
        count = len(labels)
        here = self._each[:, position - 1]
        rows = torch.arange(count, device=labels.device) if self._layout.order is None else self._layout.order[:count]
        return here[rows, labels].T
