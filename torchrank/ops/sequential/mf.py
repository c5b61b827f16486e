"""Regularised matrix factorisation of observed feedback: one gradient step an interaction."""

import numpy as np
from numpy.typing import NDArray

from torchrank.ops.sequential.compiled import Floats, Ints, Items, compiled


@compiled
def mf_rows(
    user_vectors: Floats,
    item_vectors: Floats,
    item_offsets: Floats,
    rows: Ints,
    users: Items,
    items: Items,
    preferred: NDArray[np.bool_],
    eta: float,
    mu: float,
) -> float:
    """Step on (y − s)² + μ(‖U_u‖² + ‖V_i‖²) for some interactions, in place; y is 1 where preferred, else 0.

    Args:
        user_vectors: ``(num_users, d)``, changed.
        item_vectors: ``(num_items, d)``, changed.
        item_offsets: ``(num_items,)``, changed; empty for a scorer without.
        rows: the interactions, in training order.
        users: ``(N,)``.
        items: ``(N,)``.
        preferred: ``(N,)``.
        eta: step size η.
        mu: μ.

    Returns:
        the sum of the squared errors, each before its step.
    """
    dim, biased = user_vectors.shape[1], len(item_offsets) > 0
    twice = np.float32(2 * eta)
    keep = np.float32(1) - twice * np.float32(mu)
    loss = 0.0
    for row in rows:
        user, item = users[row], items[row]
        error = np.float32(1) if preferred[row] else np.float32(0)
        if biased:
            error -= item_offsets[item]
        for f in range(dim):
            error -= user_vectors[user, f] * item_vectors[item, f]
        loss += np.float64(error) * error
        step = twice * error
        for f in range(dim):
            own, other = user_vectors[user, f], item_vectors[item, f]
            user_vectors[user, f] = keep * own + step * other
            item_vectors[item, f] = keep * other + step * own
        if biased:
            item_offsets[item] += step
    return loss
