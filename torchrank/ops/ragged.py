"""Ragged lists (flat values and offsets) to padded batches and back."""

import torch
from torch import Tensor

from torchrank.errors import ShapeError
from torchrank.ops.checks import check_tensors


def ragged_to_padded(values: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Lay flat lists side by side.

    Args:
        values: ``(N, ...)``, the lists one after the other.
        offsets: ``(B + 1,)`` integers; list b is ``values[offsets[b]:offsets[b + 1]]``.

    Returns:
        ``(B, L, ...)`` with zeros as padding, L the longest list, and the ``(B, L)`` boolean mask.

    Raises:
        ShapeError: offsets that do not start at 0, fall, or do not end at N.

    Example:
        >>> ragged_to_padded(torch.tensor([1, 2, 3]), torch.tensor([0, 1, 3]))
        (tensor([[1, 0],
                [2, 3]]), tensor([[ True, False],
                [ True,  True]]))
    """
    check_tensors({"values": values})
    check_tensors({"offsets": offsets})
    if values.ndim == 0 or offsets.is_floating_point():
        raise ShapeError(
            f"values have shape {tuple(values.shape)}, offsets dtype {offsets.dtype}; give (N, ...), int64"
        )
    if offsets.ndim != 1 or len(offsets) == 0 or int(offsets[0]) != 0 or int(offsets[-1]) != len(values):
        raise ShapeError(
            f"offsets must run from 0 to the number of values, {len(values)}, got {offsets.flatten()[:8].tolist()}…"
        )
    lengths = offsets.diff()
    if bool((lengths < 0).any()):
        raise ShapeError("offsets must not fall")
    longest = int(lengths.max()) if len(lengths) else 0
    position = torch.arange(longest, device=values.device)
    mask = position < lengths.to(values.device)[:, None]
    padded = values.new_zeros(mask.shape + values.shape[1:])
    padded[mask] = values
    return padded, mask


def padded_to_ragged(padded: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Undo :func:`ragged_to_padded`.

    Args:
        padded: ``(B, L, ...)``.
        mask: ``(B, L)`` boolean.

    Returns:
        ``(N, ...)`` real values and ``(B + 1,)`` int64 offsets.

    Raises:
        ShapeError: the mask does not have the batch's shape.

    Example:
        >>> padded_to_ragged(torch.tensor([[1, 0], [2, 3]]), torch.tensor([[True, False], [True, True]]))
        (tensor([1, 2, 3]), tensor([0, 1, 3]))
    """
    check_tensors({"padded": padded, "mask": mask})
    if mask.dtype != torch.bool:
        raise ShapeError(f"mask has dtype {mask.dtype}; give a boolean mask, True where a value is real")
    if mask.ndim != 2 or padded.shape[:2] != mask.shape:
        raise ShapeError(f"mask has shape {tuple(mask.shape)}, the batch {tuple(padded.shape[:2])}")
    offsets = torch.zeros(len(mask) + 1, dtype=torch.int64, device=mask.device)
    torch.cumsum(mask.sum(-1), 0, out=offsets[1:])
    return padded[mask], offsets


def ragged_index(offsets: Tensor, lists: Tensor, *, longest: int) -> tuple[Tensor, Tensor]:
    """Where the documents of chosen lists lie, laid out as a padded batch.

    Args:
        offsets: ``(Q + 1,)`` int64; list q is documents ``offsets[q]`` to ``offsets[q + 1]``.
        lists: ``(B,)`` int64, the chosen lists, on the device of ``offsets``; repeats are allowed.
        longest: width L of the batch, at least the longest chosen list. The caller gives it, so that nothing waits for
            a device.

    Returns:
        ``(B, L)`` int64 document numbers, the list's first document where there is none left, and the ``(B, L)``
        boolean mask.

    Example:
        >>> ragged_index(torch.tensor([0, 2, 3]), torch.tensor([1, 0]), longest=2)
        (tensor([[2, 2],
                [0, 1]]), tensor([[ True, False],
                [ True,  True]]))
    """
    start = offsets[lists][:, None]
    position = torch.arange(longest, device=offsets.device)
    mask = position < offsets[lists + 1][:, None] - start
    return torch.where(mask, start + position, start), mask


def ragged_take(offsets: Tensor, lists: Tensor) -> tuple[Tensor, Tensor]:
    """Where the documents of chosen lists lie, one list after the other, and the chosen lists' own offsets.

    Args:
        offsets: ``(Q + 1,)`` int64.
        lists: ``(B,)`` int64, the chosen lists in the order wanted; repeats are allowed.

    Returns:
        ``(M,)`` int64 document numbers and ``(B + 1,)`` int64 offsets.

    Example:
        >>> ragged_take(torch.tensor([0, 2, 3]), torch.tensor([1, 0]))
        (tensor([2, 0, 1]), tensor([0, 1, 3]))
    """
    lengths = offsets.diff()[lists]
    taken = torch.zeros(len(lists) + 1, dtype=torch.int64, device=offsets.device)
    torch.cumsum(lengths, 0, out=taken[1:])
    shift = torch.repeat_interleave(offsets[lists] - taken[:-1], lengths)
    return torch.arange(len(shift), device=offsets.device) + shift, taken
