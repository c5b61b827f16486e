"""What the ranking perceptron loses at most, over streams of any length.

A round receives a list, predicts w·x for its documents, and counts RML, which is 1 − NDCG or 1 − AP with ties against
the ranker. Where RML > 0 it updates. The proofs are in ``docs/theory-relevance.md``.
"""

import math
from collections.abc import Iterable

from torchrank.errors import TorchRankError, check_option

UPDATES = ("slam", "pair")
ACTIVE = ("margin", "mistakes")


def perceptron_loss_bound(
    radius: float,
    separation: float,
    *,
    update: str = "slam",
    active: str = "margin",
    margin: float = 1.0,
    learning_rate: float = 1.0,
) -> float:
    """Bound Σ_t RML_t of the perceptron on a separable stream, whatever its length, the measure and the lists' lengths.

    - ``update="slam", active="margin"`` (published): ``(4 R² + 2 Δ / η) / γ²``;
    - ``update="slam", active="mistakes"``: ``4 R² / γ²`` for every η;
    - ``update="pair"``: ``4 R² / γ²``.

    Assumptions: w_1 = 0; ``‖x‖ ≤ R`` for every document; some unit w* has ``w*·x_i ≥ w*·x_j + γ`` for every ordered
    pair of every list; the weights are v^NDCG or v^MAP; an ungraded margin.

    Args:
        radius: R, in units of the features.
        separation: γ, in the same units.
        update: ``"slam"`` or ``"pair"``.
        active: ``"margin"`` or ``"mistakes"``, for ``"slam"``.
        margin: Δ, for ``active="margin"``.
        learning_rate: η, for ``active="margin"``.

    Returns:
        the bound: a number of lists ranked worst, without unit.

    Raises:
        TorchRankError: an unknown option, or a number that is not above 0.

    Source:
        new; the question is posed in arXiv 1405.0591, §10, and the update in arXiv 1508.00842.

    Example:
        >>> perceptron_loss_bound(1.0, 0.5)
        24.0
        >>> perceptron_loss_bound(1.0, 0.5, active="mistakes")
        16.0
    """
    check_option("update", update, UPDATES)
    check_option("active", active, ACTIVE)
    _check_positive(radius=radius, separation=separation, margin=margin, learning_rate=learning_rate)
    step = 2 * margin / learning_rate if update == "slam" and active == "margin" else 0.0
    return (4 * radius**2 + step) / separation**2


def perceptron_regret_bound(
    comparator_loss: float, comparator_norm: float, gradient_norms: Iterable[float], *, learning_rate: float = 1.0
) -> float:
    """Bound Σ_t f_t(w_t), and with it Σ_t RML_t, on any stream: ``Σ f_t(u) + ‖u‖² / 2η + (η / 2) Σ ‖z_t‖²``.

    f_t is the SLAM loss of round t where RML_t > 0, and 0 elsewhere; z_t is its gradient in w at w_t, the step that the
    update "margin" takes.

    Assumptions: w_1 = 0; a margin of at least 1 (so that f_t ≥ RML_t). Nothing about separability.

    Args:
        comparator_loss: Σ_t f_t(u), in units of the loss.
        comparator_norm: ‖u‖ of the fixed weights that the perceptron is compared with, such as a batch solution.
        gradient_norms: ‖z_t‖ of the rounds (zeros may be left out).
        learning_rate: η.

    Returns:
        the bound, in units of the loss.

    Raises:
        TorchRankError: a negative number, or a rate that is not above 0.

    Source:
        online gradient descent (Zinkevich, ICML 2003) on the functions of arXiv 1405.0591, §5.

    Example:
        >>> perceptron_regret_bound(1.5, 2.0, [1.0, 1.0])
        4.5
    """
    _check_positive(learning_rate=learning_rate)
    if not (comparator_loss >= 0 and comparator_norm >= 0):
        raise TorchRankError(f"comparator_loss={comparator_loss}, comparator_norm={comparator_norm} must be at least 0")
    steps = math.fsum(norm**2 for norm in gradient_norms)
    return comparator_loss + comparator_norm**2 / (2 * learning_rate) + learning_rate / 2 * steps


def _check_positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if not (math.isfinite(number) and number > 0):
            raise TorchRankError(f"{name}={number} must be a finite number above 0")
