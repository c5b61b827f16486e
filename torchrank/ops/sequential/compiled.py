"""What the compiled loops share: how they are compiled, the pair loss, and draws that a checkpoint can repeat."""

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Items = NDArray[np.int32]
Slices = tuple[Ints, Ints, Ints, Ints]

#: sums may be reordered and fused, so that they run in vector registers; NaN and infinity keep their meaning
_FAST = {"reassoc", "contract", "arcp", "nsz"}

#: below this score difference exp overflows float32's precision: the loss is the difference itself
LINEAR_BELOW = -30.0


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a loop once and keep it on disk."""
    return numba.njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a part of a loop into the loop."""
    return numba.njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy", inline="always")(function)


@inlined
def softplus_product(odds: Any, loss: float, product: float) -> tuple[float, float]:
    """Add log(1 + odds) to a sum of logarithms kept as ``loss + log(product)``: few logarithms are ever taken."""
    product *= 1.0 + odds
    if product > 1e250:
        loss += math.log(product)
        product = 1.0
    return loss, product


@inlined
def pair_coefficients(
    scores: Floats, preferred: int, others: int, coefficients: Floats, loss: float, product: float
) -> tuple[float, float]:
    """Differentiate a block's mean logistic pair loss by its scores.

    Args:
        scores: the block's scores: ``preferred`` of them, then ``others``.
        preferred: how many preferred items there are, at least 1.
        others: how many others, at least 1.
        coefficients: minus the derivative by each score, written here.
        loss: with ``product``, the sum so far of pair losses, as :func:`softplus_product` keeps it.
        product: see ``loss``.

    Returns:
        the two with the block's pairs added.
    """
    one = np.float32(1)
    weight = one / np.float32(preferred * others)
    for entry in range(preferred, preferred + others):
        coefficients[entry] = 0
    for i in range(preferred):
        own = np.float32(0)
        for j in range(preferred, preferred + others):
            difference = scores[i] - scores[j]
            if difference < np.float32(LINEAR_BELOW):
                chance = one
                loss -= difference
            else:
                odds = np.exp(-difference)
                chance = odds / (one + odds)
                loss, product = softplus_product(odds, loss, product)
            own += chance
            coefficients[j] -= weight * chance
        coefficients[i] = weight * own
    return loss, product


@inlined
def next_word(state: NDArray[np.uint64]) -> Any:
    """Return 64 random bits and advance the state (SplitMix64: the state is a counter)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    word = state[0]
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@inlined
def draw_below(state: NDArray[np.uint64], limit: int) -> Any:
    """Return a random int64 from 0 to ``limit`` − 1, ``limit`` below 2³²."""
    return np.int64(((next_word(state) >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))


def random_state(*words: int) -> NDArray[np.uint64]:
    """Return the state of the draws that belong to a seed, an epoch, a step, …: equal words, equal draws."""
    return np.random.SeedSequence(words).generate_state(1, np.uint64).astype(np.uint64)
