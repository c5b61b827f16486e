"""SAROS on a factorisation with momentum: every parameter keeps moving between the blocks that touch it."""

import math

import numpy as np

from torchrank.ops.sequential.compiled import Floats, Ints, Items, Slices, compiled, inlined, pair_coefficients
from torchrank.ops.sequential.saros import add_gradient, longest_block, score_rows


@inlined
def _drift(row: int, now: int, table: Floats, velocities: Floats, moved: Ints, eta: float, momentum: float) -> None:
    """Let a row coast through the steps that did not touch it: a geometric sum in place of the steps."""
    steps = now - moved[row]
    if steps > 0:
        kept = momentum**steps
        glide = np.float32(eta * momentum * (1 - kept) / (1 - momentum))
        for f in range(table.shape[1]):
            table[row, f] -= glide * velocities[row, f]
            velocities[row, f] *= np.float32(kept)
        moved[row] = now


@compiled
def saros_momentum_users(
    user_vectors: Floats,
    item_vectors: Floats,
    item_offsets: Floats,
    velocities: tuple[Floats, Floats, Floats],
    order: Items,
    block_starts: Ints,
    slices: Slices,
    items: Items,
    eta: float,
    mu: float,
    momentum: float,
) -> tuple[float, int]:
    """Step through the blocks of some users, in place: v ← m·v + g, ω ← ω − η·v for every parameter at every block.

    The published form v ← m·v + (1 − m)·g, ω ← ω − α·v takes the same steps with η = (1 − m)·α.

    Args:
        user_vectors: ``(num_users, d)``, changed.
        item_vectors: ``(num_items, d)``, changed.
        item_offsets: ``(num_items,)``, changed; empty for a scorer without.
        velocities: v of users' vectors, items' vectors and offsets ``(num_items, 1)``, changed.
        order: the users, in training order.
        block_starts: ``(num_users + 1,)``, user u's blocks are ``block_starts[u]:block_starts[u + 1]``.
        slices: of the preferred and the other part of each block in ``items``.
        items: ``(N,)``.
        eta: step size η.
        mu: μ of the L2 term.
        momentum: m, below 1.

    Returns:
        the sum of the pair losses, each before its block's step and without the μ term, and the number of pairs.
    """
    dim, biased = user_vectors.shape[1], len(item_offsets) > 0
    offset_table = item_offsets.reshape(-1, 1)
    preferred_start, preferred_stop, other_start, other_stop = slices
    longest = longest_block(order, block_starts, slices)
    scores, coefficients = np.empty(longest, np.float32), np.empty(longest, np.float32)
    gradient, own, own_velocity = np.empty(dim, np.float32), np.empty(dim, np.float32), np.empty(dim, np.float32)
    user_moved, item_moved = np.zeros(len(user_vectors), np.int64), np.zeros(len(item_vectors), np.int64)
    offset_moved = np.zeros(len(item_offsets), np.int64)
    step_size, kept = np.float32(eta), np.float32(momentum)
    loss, product, pairs, step = 0.0, 1.0, 0, 0
    for user in order:
        _drift(user, step, user_vectors, velocities[0], user_moved, eta, momentum)
        for f in range(dim):
            own[f], own_velocity[f] = user_vectors[user, f], velocities[0][user, f]
        for block in range(block_starts[user], block_starts[user + 1]):
            a, b, c, d = preferred_start[block], preferred_stop[block], other_start[block], other_stop[block]
            preferred, others = b - a, d - c
            for entry in range(preferred + others):
                item = items[a + entry] if entry < preferred else items[c + entry - preferred]
                _drift(item, step, item_vectors, velocities[1], item_moved, eta, momentum)
                if biased:
                    _drift(item, step, offset_table, velocities[2], offset_moved, eta, momentum)
            score_rows(own, item_vectors, item_offsets, items, a, b, scores, 0)
            score_rows(own, item_vectors, item_offsets, items, c, d, scores, preferred)
            loss, product = pair_coefficients(scores, preferred, others, coefficients, loss, product)
            pairs += preferred * others
            for f in range(dim):
                gradient[f] = 0
            add_gradient(gradient, item_vectors, items, a, b, coefficients, 0)
            add_gradient(gradient, item_vectors, items, c, d, coefficients, preferred)
            step += 1
            for entry in range(preferred + others):
                item = items[a + entry] if entry < preferred else items[c + entry - preferred]
                # the second entry of an item that is in the block twice adds its gradient and nothing else
                keep = kept if item_moved[item] < step else np.float32(1)
                again = step_size if item_moved[item] < step else np.float32(0)
                pull = np.float32(2 * mu) / np.float32(preferred if entry < preferred else others)
                for f in range(dim):
                    change = pull * item_vectors[item, f] - coefficients[entry] * own[f]
                    coasting = keep * velocities[1][item, f]
                    velocities[1][item, f] = coasting + change
                    item_vectors[item, f] -= again * coasting + step_size * change
                if biased:
                    coasting = keep * velocities[2][item, 0]
                    velocities[2][item, 0] = coasting - coefficients[entry]
                    item_offsets[item] -= again * coasting - step_size * coefficients[entry]
                    offset_moved[item] = step
                item_moved[item] = step
            for f in range(dim):
                own_velocity[f] = kept * own_velocity[f] + np.float32(2 * mu) * own[f] - gradient[f]
                own[f] -= step_size * own_velocity[f]
        for f in range(dim):
            user_vectors[user, f], velocities[0][user, f] = own[f], own_velocity[f]
        user_moved[user] = step
    for user in range(len(user_vectors)):
        _drift(user, step, user_vectors, velocities[0], user_moved, eta, momentum)
    for item in range(len(item_vectors)):
        _drift(item, step, item_vectors, velocities[1], item_moved, eta, momentum)
        if biased:
            _drift(item, step, offset_table, velocities[2], offset_moved, eta, momentum)
    return loss + math.log(product), pairs
