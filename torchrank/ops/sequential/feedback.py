"""SAROS on a feedback factorisation: the vectors behind one user move together, so they move once a user."""

import math
from typing import Any

import numpy as np

from torchrank.ops.sequential.compiled import Floats, Ints, Items, Slices, compiled, inlined, pair_coefficients
from torchrank.ops.sequential.saros import Sums, add_gradient, count_row, longest_block, score_rows


@inlined
def sum_feedback(user: int, feedback_vectors: Floats, feedback_starts: Ints, feedbacks: Items, own: Floats) -> Any:
    """Write a user's vector, the sum of the feedback vectors over √n, into ``own``; return 1/√n, 0 for n = 0."""
    first, last = feedback_starts[user], feedback_starts[user + 1]
    share = np.float32(1) / np.sqrt(np.float32(last - first)) if last > first else np.float32(0)
    for f in range(len(own)):
        own[f] = 0
    for place in range(first, last):
        row = feedbacks[place]
        for f in range(len(own)):
            own[f] += feedback_vectors[row, f]
    for f in range(len(own)):
        own[f] *= share
    return share


@inlined
def move_feedback(
    user: int,
    feedback_vectors: Floats,
    feedback_starts: Ints,
    feedbacks: Items,
    kept: float,
    moved: Floats,
) -> None:
    """Apply what a user's steps add up to: every vector shrinks to ``kept`` of itself and moves by the same."""
    for place in range(feedback_starts[user], feedback_starts[user + 1]):
        row = feedbacks[place]
        for f in range(len(moved)):
            feedback_vectors[row, f] = kept * feedback_vectors[row, f] + moved[f]


@compiled
def saros_feedback_users(
    feedback_vectors: Floats,
    feedback_starts: Ints,
    feedbacks: Items,
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
    """Step through the blocks of some users, in place, as :func:`~torchrank.ops.sequential.saros.saros_users` does.

    A block's gradient by each of the n feedback vectors Y_j of its user is the gradient g by the user's vector over √n,
    plus 2μ/n·Y_j. So with r = 1 − 2ημ/n all steps of a user turn Y_j into r^k·Y_j + c with one c, and the user's vector
    p into r·p − ηg a block: exact, at the price of two passes over the feedback a user.

    Args:
        feedback_vectors: ``(2·num_items, d)``, changed.
        feedback_starts: ``(num_users + 1,)``, user u's feedback is ``feedback_starts[u]:feedback_starts[u + 1]``.
        feedbacks: rows of ``feedback_vectors``.
        item_vectors: ``(num_items, d)``, changed.
        item_offsets: ``(num_items,)``, changed; empty for a scorer without.
        order: the users, in training order.
        block_starts: ``(num_users + 1,)``, user u's blocks are ``block_starts[u]:block_starts[u + 1]``.
        slices: of the preferred and the other part of each block in ``items``.
        items: ``(N,)``.
        eta: step size η.
        mu: μ of the L2 term.
        sums: for averaging, the sums over user starts of feedback vectors, items' vectors and offsets; of no rows
            without averaging.
        counted: for averaging, how many starts each feedback vector's and item's row of ``sums`` holds.
        starts: how many users with blocks came before these.

    Returns:
        the sum of the pair losses, each before its block's step and without the μ term, the number of pairs, and
        ``starts`` with these users added.
    """
    dim = item_vectors.shape[1]
    averaging, biased = len(counted[0]) > 0, len(item_offsets) > 0
    offset_table = item_offsets.reshape(-1, 1)
    preferred_start, preferred_stop, other_start, other_stop = slices
    longest = longest_block(order, block_starts, slices)
    scores, coefficients = np.empty(longest, np.float32), np.empty(longest, np.float32)
    gradient, own, moved = np.empty(dim, np.float32), np.empty(dim, np.float32), np.empty(dim, np.float32)
    one, rate = np.float32(1), np.float32(eta)
    shrink = np.float32(2) * rate * np.float32(mu)
    loss, product, pairs = 0.0, 1.0, 0
    for user in order:
        if block_starts[user] == block_starts[user + 1]:
            continue
        starts += 1
        share = sum_feedback(user, feedback_vectors, feedback_starts, feedbacks, own)
        keep, kept = one - shrink * share * share, one
        felt = rate if share > 0 else np.float32(0)  # n·(1/√n)² = 1: how much the user's vector moves
        for f in range(dim):
            moved[f] = 0
        for block in range(block_starts[user], block_starts[user + 1]):
            a, b, c, d = preferred_start[block], preferred_stop[block], other_start[block], other_stop[block]
            preferred, others = b - a, d - c
            score_rows(own, item_vectors, item_offsets, items, a, b, scores, 0)
            score_rows(own, item_vectors, item_offsets, items, c, d, scores, preferred)
            loss, product = pair_coefficients(scores, preferred, others, coefficients, loss, product)
            pairs += preferred * others
            for f in range(dim):
                gradient[f] = 0
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
            kept *= keep
            for f in range(dim):
                own[f] = keep * own[f] + felt * gradient[f]
                moved[f] = keep * moved[f] + rate * share * gradient[f]
        if averaging:
            for place in range(feedback_starts[user], feedback_starts[user + 1]):
                row = feedbacks[place]
                count_row(row, starts, feedback_vectors, sums[0], counted[0])
                counted[0][row] = starts
        move_feedback(user, feedback_vectors, feedback_starts, feedbacks, kept, moved)
    return loss + math.log(product), pairs, starts
