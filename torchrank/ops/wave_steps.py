"""One step of the batched engine: a wave's loss for autograd, and the same step written out for a factorisation."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchrank.ops.waves import Waves


class Wave(NamedTuple):
    """One wave's part of :class:`~torchrank.ops.waves.Waves`."""

    users: Tensor
    items: Tensor
    item_weights: Tensor
    user_weights: Tensor
    preferred: Tensor
    others: Tensor
    pair_weights: Tensor


def take_wave(waves: Waves, number: int) -> Wave:
    """Slice one wave out; nothing waits for the device."""
    a, b = waves.entry_bounds[number : number + 2]
    c, d = waves.pair_bounds[number : number + 2]
    return Wave(
        waves.users[a:b],
        waves.items[a:b],
        waves.item_weights[a:b],
        waves.user_weights[a:b],
        waves.preferred[c:d],
        waves.others[c:d],
        waves.pair_weights[c:d],
    )


def wave_loss(
    scorer: Callable[..., Tensor], loss: Callable[..., Tensor], wave: Wave, *, mu: float
) -> tuple[Tensor, Tensor]:
    """Sum a wave's block losses; each entry is scored once.

    Args:
        scorer: ``(E,)`` users and items to ``(E,)`` scores; for μ > 0 with ``squared_norms(users, items)``, ‖·‖² of
            what each user and each item is described by.
        loss: ``(P,)`` scores of preferred and other items and ``(P,)`` weights to the weighted sum of pair losses.
        wave: the blocks.
        mu: μ of the L2 term, a block's mean over its pairs of μ(‖U_u‖² + ‖V_i‖² + ‖V_j‖²).

    Returns:
        the loss, and the same with the L2 term, which is to be differentiated.
    """
    users, items = wave.users.long(), wave.items.long()
    scores = scorer(users, items)
    pairs: Tensor = loss(
        scores.index_select(0, wave.preferred), scores.index_select(0, wave.others), wave.pair_weights.to(scores.dtype)
    )
    if mu == 0:
        return pairs.detach(), pairs
    by_user, by_item = scorer.squared_norms(users, items)  # type: ignore[attr-defined] # the caller has checked it
    return pairs.detach(), pairs + mu * ((wave.user_weights * by_user).sum() + (wave.item_weights * by_item).sum())


@torch.no_grad()
def factorization_step(
    user_vectors: Tensor,
    item_vectors: Tensor,
    item_offsets: Tensor | None,
    wave: Wave,
    *,
    eta: Any,
    mu: float,
    together: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Take the plain gradient step of a wave for ``U_u·V_i + b_i`` and the logistic loss, in place.

    Args:
        user_vectors: ``(num_users, d)``, changed.
        item_vectors: ``(num_items, d)``, changed.
        item_offsets: ``(num_items, 1)``, changed; None for a scorer without.
        wave: the blocks.
        eta: step size η.
        mu: μ of the L2 term.
        together: adds what items move by, ``(num_items, d)`` and ``(num_items, 1)``, up over the processes that work on
            the wave; users are theirs alone.

    Returns:
        the wave's loss before the step, without the L2 term.
    """
    users, items = wave.users, wave.items
    own, item = user_vectors.index_select(0, users), item_vectors.index_select(0, items)
    scores = (own * item).sum(1)
    if item_offsets is not None:
        scores = scores + item_offsets.index_select(0, items).squeeze(1)
    difference = scores.index_select(0, wave.preferred) - scores.index_select(0, wave.others)
    pull = wave.pair_weights * torch.sigmoid(-difference)
    steps = torch.zeros_like(scores).index_add_(0, wave.preferred, pull).index_add_(0, wave.others, -pull)
    by_user = steps[:, None] * item - (2 * mu * wave.user_weights)[:, None] * own
    by_item = steps[:, None] * own - (2 * mu * wave.item_weights)[:, None] * item
    user_vectors.index_add_(0, users, by_user, alpha=eta)
    moves = (
        [(item_vectors, by_item)] if item_offsets is None else [(item_vectors, by_item), (item_offsets, steps[:, None])]
    )
    for table, by_entry in moves:
        if together is None:
            table.index_add_(0, items, by_entry, alpha=eta)
        else:
            table.add_(together(torch.zeros_like(table).index_add_(0, items, by_entry)), alpha=eta)
    return (wave.pair_weights * torch.nn.functional.softplus(-difference)).sum()
