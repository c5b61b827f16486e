"""The compiled mean logistic loss over all pairs of lists."""

import math

import numba
import numpy as np
from numpy.typing import NDArray


@numba.njit(cache=True, nogil=True)
def mean_logistic_loss(
    scores: NDArray[np.float64], preferred: NDArray[np.bool_], offsets: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Average log(1 + exp(−(s_i − s_j))) over each list's pairs of a preferred i and another j.

    Args:
        scores: ``(N,)``.
        preferred: ``(N,)``.
        offsets: ``(Q + 1,)``.

    Returns:
        ``(Q,)``, NaN for a list without such a pair.
    """
    losses = np.full(len(offsets) - 1, np.nan)
    for q in range(len(offsets) - 1):
        total, pairs = 0.0, 0
        for i in range(offsets[q], offsets[q + 1]):
            if not preferred[i]:
                continue
            for j in range(offsets[q], offsets[q + 1]):
                if not preferred[j]:
                    gap = scores[i] - scores[j]
                    total += max(-gap, 0.0) + math.log1p(math.exp(-abs(gap)))
                    pairs += 1
        if pairs:
            losses[q] = total / pairs
    return losses
