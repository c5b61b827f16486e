"""How much worse than the best the ranker trained on n lists can be on new ones, as a function of the lists' length."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from torchrank.errors import check_number
from torchrank.theory.lipschitz import score_lipschitz


class GeneralizationBound(NamedTuple):
    """Two bounds on the excess loss, one entry a list length.

    Attributes:
        lengths: the lengths.
        one_norm: ``L̃_1 R B √(8 / n)``, for losses convex in the scores.
        two_norm: ``L̃_2 R B √(8 m / n)``, of the order of the rival bound, which needs no convexity.
    """

    lengths: list[int]
    one_norm: list[float]
    two_norm: list[float]


def generalization_bound(
    loss: object, lengths: Iterable[int], *, num_lists: int, radius: float, weight_norm: float
) -> GeneralizationBound:
    """Bound ``E L(ŵ) − min_{‖w‖ ≤ B} L(w)`` for linear scorers, over list lengths: two curves.

    ŵ minimises the mean loss of n lists plus ``λ‖w‖²`` with the λ of :func:`regularization_strength`. The first curve
    is flat for a loss whose L̃_1 is free of the length (SLAM, the averaged pairwise losses, softmax); the second grows
    as √m even then. The first is never above the second, since ``L̃_1 ≤ √m L̃_2``.

    Assumptions: lists drawn independently from one distribution; ``‖x‖ ≤ R`` for every document; for the first curve a
    loss convex in the scores (not ApproxNDCG, not LambdaLoss).

    Args:
        loss: a loss module, as :func:`score_lipschitz` takes it.
        lengths: m, the numbers of documents to draw the curves over.
        num_lists: n.
        radius: R, in units of the features.
        weight_norm: B, the norm of the best linear scorer the result is compared with.

    Returns:
        the two curves, in units of the loss. Constants of the second are those of the first's proof; its source gives
        the order only.

    Raises:
        TorchRankError: a number out of range, or a loss that does not know its constants.

    Source:
        arXiv 1405.0591, theorem 8 and corollary 9; the rival is Chapelle & Wu, Information Retrieval 13 (2010).

    Example:
        >>> from torchrank.losses import SLAMLoss
        >>> generalization_bound(SLAMLoss(), [10, 1000], num_lists=800, radius=1.0, weight_norm=1.0).one_norm
        [0.2, 0.2]
    """
    _check(num_lists, radius, weight_norm)
    lengths = list(lengths)
    constants = [score_lipschitz(loss, length) for length in lengths]
    scale = radius * weight_norm * math.sqrt(8 / num_lists)
    one_norm = [c.one * scale for c in constants]
    two_norm = [c.two * math.sqrt(length) * scale for c, length in zip(constants, lengths, strict=True)]
    return GeneralizationBound(lengths, one_norm, two_norm)


def regularization_strength(loss: object, length: int, *, num_lists: int, radius: float, weight_norm: float) -> float:
    """The λ of ``λ‖w‖²`` for which :func:`generalization_bound` holds: ``√2 L̃_1 R / (B √n)``.

    Args:
        loss: a loss module, as :func:`score_lipschitz` takes it.
        length: m, the largest number of documents of a list.
        num_lists: n.
        radius: R, in units of the features.
        weight_norm: B.

    Returns:
        λ, in units of the loss over squared units of the weights.

    Raises:
        TorchRankError: a number out of range, or a loss that does not know its constants.

    Source:
        Shalev-Shwartz et al., "Stochastic Convex Optimization" (COLT 2009), as used in arXiv 1405.0591, theorem 8.

    Example:
        >>> from torchrank.losses import SLAMLoss
        >>> round(regularization_strength(SLAMLoss(), 10, num_lists=800, radius=1.0, weight_norm=1.0), 3)
        0.1
    """
    _check(num_lists, radius, weight_norm)
    return math.sqrt(2) * score_lipschitz(loss, length).one * radius / (weight_norm * math.sqrt(num_lists))


def _check(num_lists: int, radius: float, weight_norm: float) -> None:
    for name, number in (("num_lists", num_lists), ("radius", radius), ("weight_norm", weight_norm)):
        check_number(name, number, above=0)
