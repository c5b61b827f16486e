"""BPR on a factorisation or a feedback factorisation: random pairs of users' items, one gradient step a pair."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchrank.ops.sequential.compiled import (
    LINEAR_BELOW,
    Floats,
    Ints,
    Items,
    compiled,
    draw_below,
    inlined,
    softplus_product,
)
from torchrank.ops.sequential.feedback import move_feedback, sum_feedback

#: where a pair's other item comes from, and how the two are drawn
SHOWN, REJECT, UNSEEN = 0, 1, 2


@inlined
def draw_pair(
    user: int,
    starts: Ints,
    middles: Ints,
    items: Items,
    seen_starts: Ints,
    seen: Items,
    num_items: int,
    draws: int,
    state: NDArray[np.uint64],
) -> Any:
    """Return a preferred item, another item, and how many draws were rejected."""
    first, middle, last = starts[user], middles[user], starts[user + 1]
    rejected = 0
    if draws == REJECT:
        while True:  # ends: the caller leaves out users without both kinds
            one, other = draw_below(state, last - first), draw_below(state, last - first)
            if (one < middle - first) != (other < middle - first):
                break
            rejected += 1
        return items[first + min(one, other)], items[first + max(one, other)], rejected
    preferred = items[first + draw_below(state, middle - first)]
    if draws == SHOWN:
        return preferred, items[middle + draw_below(state, last - middle)], rejected
    # the r-th of the items not in the sorted list of seen ones, without a rejection
    low, high = seen_starts[user], seen_starts[user + 1]
    place = draw_below(state, num_items - (high - low))
    begin = low
    while low < high:
        half = (low + high) // 2
        if seen[half] - (half - begin) > place:
            high = half
        else:
            low = half + 1
    return preferred, np.int32(place + low - begin), rejected


@inlined
def pair_step(difference: Any, loss: float, product: float) -> tuple[Any, float, float]:
    """Return σ(−difference), the size of a pair's step, and the sum of pair losses with this pair's added."""
    if difference < np.float32(LINEAR_BELOW):
        return np.float32(1), loss - difference, product
    odds = np.exp(-difference)
    loss, product = softplus_product(odds, loss, product)
    return odds / (np.float32(1) + odds), loss, product


@compiled
def bpr_visits(
    user_vectors: Floats,
    item_vectors: Floats,
    item_offsets: Floats,
    users: Items,
    pairs: Ints,
    starts: Ints,
    middles: Ints,
    items: Items,
    seen_starts: Ints,
    seen: Items,
    draws: int,
    eta: float,
    mu: float,
    offset_mu: float,
    state: NDArray[np.uint64],
) -> tuple[float, int, int]:
    """Draw pairs for one user after the other and step on each, in place.

    Args:
        user_vectors: ``(num_users, d)``, changed.
        item_vectors: ``(num_items, d)``, changed.
        item_offsets: ``(num_items,)``, changed; empty for a scorer without.
        users: ``(V,)`` the users to draw for; each has a pair to draw.
        pairs: ``(V,)`` how many pairs to draw for each.
        starts: ``(num_users + 1,)``, user u was shown ``items[starts[u]:starts[u + 1]]``.
        middles: ``(num_users,)``, of these the preferred come first, up to ``middles[u]``.
        items: ``(N,)``.
        seen_starts: with ``draws=UNSEEN``, the same for ``seen``.
        seen: the different items each user was shown, ascending.
        draws: ``SHOWN`` (a preferred and another shown item), ``REJECT`` (two shown items until they differ in kind) or
            ``UNSEEN`` (a preferred item and one never shown).
        eta: step size η.
        mu: μ of the L2 term on the three vectors.
        offset_mu: the same on the two offsets.
        state: of the draws, changed.

    Returns:
        the sum of the pair losses, each before its step and without the L2 term, the number of pairs, and of rejected
        draws.

    Source: Rendle et al. (arXiv 1205.2618), LearnBPR.
    """
    dim, biased, num_items = user_vectors.shape[1], len(item_offsets) > 0, len(item_vectors)
    one, rate = np.float32(1), np.float32(eta)
    keep = one - np.float32(2) * rate * np.float32(mu)
    keep_offset = one - np.float32(2) * rate * np.float32(offset_mu)
    loss, product, drawn, rejected = 0.0, 1.0, 0, 0
    for visit in range(len(users)):
        user = users[visit]
        for _ in range(pairs[visit]):
            i, j, more = draw_pair(user, starts, middles, items, seen_starts, seen, num_items, draws, state)
            rejected += more
            difference = item_offsets[i] - item_offsets[j] if biased else np.float32(0)
            for f in range(dim):
                difference += user_vectors[user, f] * (item_vectors[i, f] - item_vectors[j, f])
            chance, loss, product = pair_step(difference, loss, product)
            step = rate * chance
            for f in range(dim):
                own, liked, other = user_vectors[user, f], item_vectors[i, f], item_vectors[j, f]
                user_vectors[user, f] = keep * own + step * (liked - other)
                item_vectors[i, f] = keep * liked + step * own
                item_vectors[j, f] = keep * other - step * own
            if biased:
                item_offsets[i] = keep_offset * item_offsets[i] + step
                item_offsets[j] = keep_offset * item_offsets[j] - step
        drawn += pairs[visit]
    return loss + math.log(product), drawn, rejected


@compiled
def bpr_feedback_visits(
    feedback_vectors: Floats,
    feedback_starts: Ints,
    feedbacks: Items,
    item_vectors: Floats,
    item_offsets: Floats,
    users: Items,
    pairs: Ints,
    starts: Ints,
    middles: Ints,
    items: Items,
    seen_starts: Ints,
    seen: Items,
    draws: int,
    eta: float,
    mu: float,
    offset_mu: float,
    state: NDArray[np.uint64],
) -> tuple[float, int, int]:
    """Draw pairs for one user after the other and step on each, in place, as :func:`bpr_visits` does.

    The feedback vectors of a user move once a visit, by what its steps add up to
    (:func:`~torchrank.ops.sequential.feedback.saros_feedback_users` says why that is exact): a visit should draw many
    pairs.

    Args:
        feedback_vectors: ``(2·num_items, d)``, changed.
        feedback_starts: ``(num_users + 1,)``, user u's feedback is ``feedback_starts[u]:feedback_starts[u + 1]``.
        feedbacks: rows of ``feedback_vectors``.
        item_vectors: ``(num_items, d)``, changed.
        item_offsets: ``(num_items,)``, changed; empty for a scorer without.
        users: see :func:`bpr_visits`, like everything that follows.
        pairs: ``(V,)``.
        starts: ``(num_users + 1,)``.
        middles: ``(num_users,)``.
        items: ``(N,)``.
        seen_starts: ``(num_users + 1,)``.
        seen: ascending inside a user.
        draws: ``SHOWN``, ``REJECT`` or ``UNSEEN``.
        eta: step size η.
        mu: μ of the L2 term.
        offset_mu: the same on the two offsets.
        state: of the draws, changed.

    Returns:
        the sum of the pair losses, the number of pairs, and of rejected draws.
    """
    dim, biased, num_items = item_vectors.shape[1], len(item_offsets) > 0, len(item_vectors)
    own, moved = np.empty(dim, np.float32), np.empty(dim, np.float32)
    one, rate = np.float32(1), np.float32(eta)
    shrink = np.float32(2) * rate * np.float32(mu)
    keep_offset = one - np.float32(2) * rate * np.float32(offset_mu)
    loss, product, drawn, rejected = 0.0, 1.0, 0, 0
    for visit in range(len(users)):
        user = users[visit]
        share = sum_feedback(user, feedback_vectors, feedback_starts, feedbacks, own)
        keep, kept = one - shrink * share * share, one
        for f in range(dim):
            moved[f] = 0
        for _ in range(pairs[visit]):
            i, j, more = draw_pair(user, starts, middles, items, seen_starts, seen, num_items, draws, state)
            rejected += more
            difference = item_offsets[i] - item_offsets[j] if biased else np.float32(0)
            for f in range(dim):
                difference += own[f] * (item_vectors[i, f] - item_vectors[j, f])
            chance, loss, product = pair_step(difference, loss, product)
            step = rate * chance
            for f in range(dim):
                liked, other = item_vectors[i, f], item_vectors[j, f]
                change = step * (liked - other)
                item_vectors[i, f] = (one - shrink) * liked + step * own[f]
                item_vectors[j, f] = (one - shrink) * other - step * own[f]
                own[f] = keep * own[f] + change
                moved[f] = keep * moved[f] + share * change
            kept *= keep
            if biased:
                item_offsets[i] = keep_offset * item_offsets[i] + step
                item_offsets[j] = keep_offset * item_offsets[j] - step
        move_feedback(user, feedback_vectors, feedback_starts, feedbacks, kept, moved)
        drawn += pairs[visit]
    return loss + math.log(product), drawn, rejected


@compiled
def draw_visits(
    users: Items,
    pairs: Ints,
    starts: Ints,
    middles: Ints,
    items: Items,
    seen_starts: Ints,
    seen: Items,
    num_items: int,
    draws: int,
    state: NDArray[np.uint64],
) -> tuple[Ints, Ints, Ints, int]:
    """Draw the pairs that :func:`bpr_visits` would step on.

    Args:
        users: see :func:`bpr_visits`, like everything that follows.
        pairs: ``(V,)``.
        starts: ``(num_users + 1,)``.
        middles: ``(num_users,)``.
        items: ``(N,)``.
        seen_starts: ``(num_users + 1,)``.
        seen: ascending inside a user.
        num_items: how many items there are.
        draws: ``SHOWN``, ``REJECT`` or ``UNSEEN``.
        state: of the draws, changed.

    Returns:
        ``(P,)`` users, preferred items and other items, and the number of rejected draws.
    """
    total = pairs.sum()
    owners, liked, other = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    at, rejected = 0, 0
    for visit in range(len(users)):
        for _ in range(pairs[visit]):
            i, j, more = draw_pair(users[visit], starts, middles, items, seen_starts, seen, num_items, draws, state)
            owners[at], liked[at], other[at] = users[visit], i, j
            rejected += more
            at += 1
    return owners, liked, other, rejected
