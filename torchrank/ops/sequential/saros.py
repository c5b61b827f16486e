"""SAROS on a factorisation: one gradient step a block, users one after the other."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchrank.ops.sequential.compiled import Floats, Ints, Items, Slices, compiled, inlined, pair_coefficients

Sums = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


@inlined
def longest_block(order: Items, block_starts: Ints, slices: Slices) -> Any:
    """Return the most entries that a block of some users has."""
    preferred_start, preferred_stop, other_start, other_stop = slices
    longest = 1
    for user in order:
        for block in range(block_starts[user], block_starts[user + 1]):
            size = preferred_stop[block] - preferred_start[block] + other_stop[block] - other_start[block]
            longest = max(longest, size)
    return longest


@inlined
def score_rows(
    own: Floats,
    item_vectors: Floats,
    item_offsets: Floats,
    items: Items,
    first: int,
    last: int,
    scores: Floats,
    at: int,
) -> None:
    """Write the scores of the items in rows ``first`` to ``last`` into ``scores[at:]``."""
    for row in range(first, last):
        item = items[row]
        score = item_offsets[item] if len(item_offsets) > 0 else np.float32(0)
        for f in range(len(own)):
            score += own[f] * item_vectors[item, f]
        scores[at + row - first] = score


@inlined
def add_gradient(
    gradient: Floats, item_vectors: Floats, items: Items, first: int, last: int, coefficients: Floats, at: int
) -> None:
    """Add each item's part of minus the gradient by the user's vector."""
    for row in range(first, last):
        coefficient, item = coefficients[at + row - first], items[row]
        for f in range(len(gradient)):
            gradient[f] += coefficient * item_vectors[item, f]


@inlined
def count_row(row: int, now: int, table: Any, sums: NDArray[np.float64], counted: Ints) -> None:
    """Add a row's value to its sum once for every start that passed since it last changed."""
    times = np.float64(now - counted[row])
    if times > 0:
        for f in range(table.shape[1]):
            sums[row, f] += times * np.float64(table[row, f])


@compiled
def saros_users(
    user_vectors: Floats,
    item_vectors: Floats,
    item_offsets: Floats,
    order: Items,
    block_starts: Ints,
    slices: Slices,
    items: Items,
    eta: float,
    mu: float,
    sums: Sums,
    counted: tuple[Ints, Ints],
    starts: int,
) -> tuple[float, int, int]:
    """Step through the blocks of some users, in place.

    Args:
        user_vectors: ``(num_users, d)``, changed.
        item_vectors: ``(num_items, d)``, changed.
        item_offsets: ``(num_items,)``, changed; empty for a scorer without.
        order: the users, in training order.
        block_starts: ``(num_users + 1,)``, user u's blocks are ``block_starts[u]:block_starts[u + 1]``.
        slices: of the preferred and the other part of each block in ``items``.
        items: ``(N,)``.
        eta: step size η.
        mu: μ of the L2 term.
        sums: for averaging, the sums over user starts of users' vectors, items' vectors and offsets ``(num_items, 1)``;
            of no rows without averaging.
        counted: for averaging, how many starts each user's and item's row of ``sums`` holds.
        starts: how many users with blocks came before these.

    Returns:
        the sum of the pair losses, each before its block's step and without the μ term, the number of pairs, and
        ``starts`` with these users added.

    Source: arXiv 1902.08495, Algorithm 1.
    """
    dim = user_vectors.shape[1]
    averaging, biased = len(counted[0]) > 0, len(item_offsets) > 0
    offset_table = item_offsets.reshape(-1, 1)
    preferred_start, preferred_stop, other_start, other_stop = slices
    longest = longest_block(order, block_starts, slices)
    scores, coefficients = np.empty(longest, np.float32), np.empty(longest, np.float32)
    gradient, own = np.empty(dim, np.float32), np.empty(dim, np.float32)
    one, rate = np.float32(1), np.float32(eta)
    shrink = np.float32(2) * rate * np.float32(mu)
    loss, product, pairs = 0.0, 1.0, 0
    for user in order:
        if block_starts[user] == block_starts[user + 1]:
            continue
        starts += 1
        if averaging:
            count_row(user, starts, user_vectors, sums[0], counted[0])
            counted[0][user] = starts
        for f in range(dim):
            own[f] = user_vectors[user, f]
        for block in range(block_starts[user], block_starts[user + 1]):
            a, b, c, d = preferred_start[block], preferred_stop[block], other_start[block], other_stop[block]
            preferred, others = b - a, d - c
            score_rows(own, item_vectors, item_offsets, items, a, b, scores, 0)
            score_rows(own, item_vectors, item_offsets, items, c, d, scores, preferred)
            loss, product = pair_coefficients(scores, preferred, others, coefficients, loss, product)
            pairs += preferred * others
            for f in range(dim):
                gradient[f] = 0
            # the whole gradient before any item moves: an item may be in a block twice
            add_gradient(gradient, item_vectors, items, a, b, coefficients, 0)
            add_gradient(gradient, item_vectors, items, c, d, coefficients, preferred)
            for entry in range(preferred + others):
                item = items[a + entry] if entry < preferred else items[c + entry - preferred]
                if averaging and counted[1][item] < starts:
                    count_row(item, starts, item_vectors, sums[1], counted[1])
                    if biased:
                        count_row(item, starts, offset_table, sums[2], counted[1])
                    counted[1][item] = starts
                step = rate * coefficients[entry]
                decay = one - shrink / np.float32(preferred if entry < preferred else others)
                for f in range(dim):
                    item_vectors[item, f] = decay * item_vectors[item, f] + step * own[f]
                if biased:
                    item_offsets[item] += step
            for f in range(dim):
                own[f] = (one - shrink) * own[f] + rate * gradient[f]
        for f in range(dim):
            user_vectors[user, f] = own[f]
    return loss + math.log(product), pairs, starts
