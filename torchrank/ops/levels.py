"""Lists sorted by relevance, and what is known of the documents of lower levels.

A level is the set of a list's documents with one relevance. Sorted by level, "the best score among the less relevant"
is a running maximum, so nothing here is larger than the list.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from torchrank.ops.masked import fill_padding


class Levels(NamedTuple):
    """Each list's documents from the least to the most relevant, padding before them all.

    Attributes:
        order: ``(..., L)`` int64, the document at each place.
        relevance: ``(..., L)`` relevance at each place, rising; −inf for padding.
        opens: ``(..., L)`` boolean, True where a place is the first of its level.
    """

    order: Tensor
    relevance: Tensor
    opens: Tensor


@torch.no_grad()
def sort_levels(relevance: Tensor, mask: Tensor | None = None, *, stable: bool = False) -> Levels:
    """Sort every list by relevance.

    Args:
        relevance: ``(..., L)`` floating point.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        stable: read from the most relevant end, documents of one level stand in input order; else in any order.

    Returns:
        the sorted lists; place ``L − p`` holds the document at position p of the best order.

    Example:
        >>> levels = sort_levels(torch.tensor([0.0, 2.0, 0.0, 1.0]), stable=True)
        >>> levels.order, levels.opens
        (tensor([2, 0, 3, 1]), tensor([ True, False,  True,  True]))
    """
    relevance = fill_padding(relevance, mask, -torch.inf)
    if stable:
        ascending, order = torch.sort(relevance.flip(-1), dim=-1, stable=True)
        order = relevance.shape[-1] - 1 - order
    else:
        ascending, order = torch.sort(relevance, dim=-1)
    opens = F.pad(ascending[..., 1:] != ascending[..., :-1], (1, 0), value=True)
    return Levels(order, ascending, opens[..., : relevance.shape[-1]])


def best_below(values: Tensor, opens: Tensor) -> Tensor:
    """Find, for each place, the largest value at a lower level; differentiable in the values.

    Args:
        values: ``(..., L)`` at the places of sorted lists, −inf for padding.
        opens: ``(..., L)`` as in :class:`Levels`.

    Returns:
        ``(..., L)``, −inf where nothing is lower.

    Example:
        >>> best_below(torch.tensor([3.0, 1.0, 2.0, 5.0]), torch.tensor([True, False, True, True]))
        tensor([-inf, -inf, 3., 3.])
    """
    # The running maximum before a level opens is the answer for the whole level, and it never falls: a second running
    # maximum carries it from the opening place to the others, where a search would cost more than the sort.
    before = F.pad(values.cummax(-1).values[..., :-1], (1, 0), value=-torch.inf)
    return before.masked_fill(~opens, -torch.inf).cummax(-1).values


def level_means(values: Tensor, opens: Tensor) -> Tensor:
    """Average values over each level.

    Args:
        values: ``(..., L)`` or ``(L,)`` at the places of sorted lists.
        opens: ``(..., L)`` as in :class:`Levels`.

    Returns:
        ``(..., L)``, the mean of the place's level.

    Example:
        >>> level_means(torch.tensor([1.0, 3.0, 5.0]), torch.tensor([True, False, True]))
        tensor([2., 2., 5.])
    """
    level = opens.cumsum(-1) - 1
    values = values.expand(opens.shape)
    sums = torch.zeros_like(values).scatter_add(-1, level, values)
    sizes = torch.zeros_like(values).scatter_add(-1, level, torch.ones_like(values))
    return (sums / sizes.clamp(min=1)).gather(-1, level)


@torch.no_grad()
def level_bounds(levels: Levels, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Count, for each place, the real documents below its level, and those not above it.

    Args:
        levels: sorted lists.
        mask: the ``(..., L)`` mask they were sorted with.

    Returns:
        two ``(..., L)`` int64 tensors, 0 for padding. The first sums to the number of a list's ordered pairs.

    Example:
        >>> level_bounds(sort_levels(torch.tensor([2.0, 1.0, 1.0])))
        (tensor([0, 0, 2]), tensor([2, 2, 3]))
    """
    length = levels.opens.shape[-1]
    place = torch.arange(length, device=levels.opens.device)
    opening = (place * levels.opens).cummax(-1).values
    closes = F.pad(levels.opens[..., 1:], (0, 1), value=True)[..., :length]
    closing = torch.where(closes, place + 1, length).flip(-1).cummin(-1).values.flip(-1)
    if mask is None:
        return opening, closing
    padding = (~mask).sum(-1, keepdim=True)
    return (opening - padding).clamp(min=0), (closing - padding).clamp(min=0)


@torch.no_grad()
def has_ordered_pair(relevance: Tensor, mask: Tensor | None = None) -> Tensor:
    """Say which lists hold two real documents of different relevance.

    Args:
        relevance: ``(..., L)`` floating point.
        mask: ``(..., L)`` boolean or None.

    Returns:
        ``(...)`` boolean.

    Example:
        >>> has_ordered_pair(torch.tensor([[1.0, 0.0], [1.0, 1.0]]))
        tensor([ True, False])
    """
    if relevance.shape[-1] == 0:
        return torch.zeros(relevance.shape[:-1], dtype=torch.bool, device=relevance.device)
    return fill_padding(relevance, mask, -torch.inf).amax(-1) > fill_padding(relevance, mask, torch.inf).amin(-1)
