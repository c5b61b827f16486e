"""The exact gradient of the mean over users of every pair's loss: batch BPR."""

import math

import numpy as np

from torchrank.ops.sequential.compiled import Floats, Ints, Items, compiled, softplus_product

#: differences of scores up to which exponentials of single scores stand in for exponentials of every difference
_NARROW = 60.0


@compiled
def full_gradient(
    user_vectors: Floats,
    item_vectors: Floats,
    item_offsets: Floats,
    starts: Ints,
    middles: Ints,
    items: Items,
    mu: float,
    gradients: tuple[Floats, Floats, Floats],
) -> float:
    """Differentiate (1/N) Σ_u (1/|I⁺||I⁻|) Σ Σ softplus(s_j − s_i) + μ(‖U_u‖² + ‖V_i‖² + ‖V_j‖²) over users with both.

    One exponential an item rather than a pair: σ(s_j − s_i) = e_j / (e_i + e_j).

    Args:
        user_vectors: ``(num_users, d)``.
        item_vectors: ``(num_items, d)``.
        item_offsets: ``(num_items,)``; empty for a scorer without.
        starts: ``(num_users + 1,)``, user u was shown ``items[starts[u]:starts[u + 1]]``.
        middles: ``(num_users,)``, of these the preferred come first, up to ``middles[u]``.
        items: ``(N,)``.
        mu: μ of the L2 term.
        gradients: by users' vectors, items' vectors and offsets, of the same shapes; overwritten.

    Returns:
        the loss without the L2 term.

    Source: arXiv 1902.08495, equation 1 and the method BPR_b of its tables.
    """
    dim, biased = user_vectors.shape[1], len(item_offsets) > 0
    by_user, by_item, by_offset = gradients
    by_user[:], by_item[:], by_offset[:] = 0, 0, 0
    longest, users = 1, 0
    for user in range(len(middles)):
        longest = max(longest, starts[user + 1] - starts[user])
        users += starts[user] < middles[user] < starts[user + 1]
    scores, powers = np.empty(longest, np.float32), np.empty(longest, np.float32)
    coefficients = np.empty(longest, np.float32)
    total = 0.0
    for user in range(len(middles)):
        first, middle, last = starts[user], middles[user], starts[user + 1]
        if not first < middle < last:
            continue
        preferred, shown = middle - first, last - first
        least, most = np.float32(np.inf), np.float32(-np.inf)
        for entry in range(shown):
            item = items[first + entry]
            score = item_offsets[item] if biased else np.float32(0)
            for f in range(dim):
                score += user_vectors[user, f] * item_vectors[item, f]
            scores[entry] = score
            coefficients[entry] = 0
            least, most = min(least, score), max(most, score)
        narrow = most - least < np.float32(_NARROW)
        centre = np.float32(0.5) * (least + most)
        for entry in range(shown):
            powers[entry] = np.exp(scores[entry] - centre) if narrow else np.float32(0)
        loss, product = 0.0, 1.0
        for i in range(preferred):
            own = np.float32(0)
            if narrow:
                power = powers[i]
                for j in range(preferred, shown):
                    chance = powers[j] / (power + powers[j])
                    own += chance
                    coefficients[j] += chance
                for j in range(preferred, shown):
                    loss, product = softplus_product(powers[j] / power, loss, product)
            else:
                for j in range(preferred, shown):
                    difference = scores[i] - scores[j]
                    odds = np.exp(-abs(difference))
                    chance = odds / (np.float32(1) + odds) if difference > 0 else np.float32(1) / (np.float32(1) + odds)
                    own += chance
                    coefficients[j] += chance
                    loss, product = softplus_product(odds, loss - min(difference, np.float32(0)), product)
            coefficients[i] = -own
        pairs = preferred * (shown - preferred)
        total += (loss + math.log(product)) / pairs
        weight = np.float32(1) / np.float32(np.float64(pairs) * users)
        pull = np.float32(2 * mu / users)
        for entry in range(shown):
            item, coefficient = items[first + entry], weight * coefficients[entry]
            item_pull = pull / np.float32(preferred if entry < preferred else shown - preferred)
            for f in range(dim):
                by_user[user, f] += coefficient * item_vectors[item, f]
                by_item[item, f] += coefficient * user_vectors[user, f] + item_pull * item_vectors[item, f]
            if biased:
                by_offset[item] += coefficient
        for f in range(dim):
            by_user[user, f] += pull * user_vectors[user, f]
    return total / max(users, 1)
