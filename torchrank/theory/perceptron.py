"""What the ranking perceptron loses at most, over streams of any length.

A round receives a list, predicts w·x for its documents, and counts RML, which is 1 − NDCG or 1 − AP with ties against
the ranker. Where RML > 0 it updates. The proofs are in ``docs/theory-relevance.md``.
"""

import math
from typing import TypeVar

import torch
from torch import Tensor

from torchrank.errors import TorchRankError, check_number, check_option
from torchrank.ops.perceptron import ACTIVE, UPDATES

Number = TypeVar("Number", float, Tensor)


def perceptron_loss_bound(
    radius: Number,
    separation: float,
    *,
    update: str = "slam",
    active: str = "margin",
    margin: float = 1.0,
    eta: float = 1.0,
) -> Number:
    """Bound Σ_t RML_t of the perceptron on a separable stream, whatever its length, the measure and the lists' lengths.

    - ``update="slam", active="margin"`` (published): ``(4 R² + 2 Δ / η) / γ²``;
    - ``update="slam", active="mistakes"``: ``4 R² / γ²`` for every η;
    - ``update="pair"``: ``4 R² / γ²``.

    Assumptions: w_1 = 0; ``‖x‖ ≤ R`` for every document; some unit w* has ``w*·x_i ≥ w*·x_j + γ`` for every ordered
    pair of every list; the weights are v^NDCG or v^MAP; an ungraded margin.

    Args:
        radius: R, in units of the features; a tensor for a running one.
        separation: γ, in the same units.
        update: ``"slam"`` or ``"pair"``.
        active: ``"margin"`` or ``"mistakes"``, for ``"slam"``.
        margin: Δ, for ``active="margin"``.
        eta: η, for ``active="margin"``.

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
    _check_positive(**({} if isinstance(radius, Tensor) else {"radius": radius}))
    _check_positive(separation=separation, margin=margin, eta=eta)
    step = 2 * margin / eta if _depends_on_scale(update, active) else 0.0
    return (4 * radius**2 + step) / separation**2


def perceptron_regret_bound(
    comparator_loss: Number,
    comparator_norm: float,
    squared_steps: Number,
    *,
    update: str = "slam",
    active: str = "margin",
    margin: float = 1.0,
    eta: float = 1.0,
) -> Number:
    """Bound Σ_t RML_t of the perceptron on any stream by what fixed weights u lose on it.

    - ``update="slam", active="margin"``: ``(Σ f_t(u) + ‖u‖² / 2η + (η / 2) Σ ‖z_t‖²) / Δ``, where f_t is the SLAM loss
      of a round with RML_t > 0 and 0 elsewhere; times Δ it bounds Σ f_t(w_t) too;
    - ``active="mistakes"`` and ``update="pair"``: ``(Σ f_t(u) + ‖u‖ √(Σ ‖z_t‖²)) / Δ``, where f_t holds the hinges of
      the documents that moved only: their rankings do not depend on η, so the best η may be put in.

    z_t is the gradient of f_t at w_t, by which the round steps.

    Assumptions: w_1 = 0. Nothing about separability.

    Args:
        comparator_loss: Σ_t f_t(u), in units of the loss; a tensor for running sums.
        comparator_norm: ‖u‖ of the fixed weights that the perceptron is compared with, such as a batch solution.
        squared_steps: Σ_t ‖z_t‖², as ``comparator_loss``.
        update: ``"slam"`` or ``"pair"``.
        active: ``"margin"`` or ``"mistakes"``, for ``"slam"``.
        margin: Δ of f_t.
        eta: η, for ``active="margin"``.

    Returns:
        the bound: a number of lists ranked worst, without unit.

    Raises:
        TorchRankError: an unknown option, a negative norm, or a margin or step size that is not above 0.

    Source:
        online gradient descent (Zinkevich, ICML 2003) on the functions of arXiv 1405.0591, §5.

    Example:
        >>> perceptron_regret_bound(1.5, 2.0, 2.0)
        4.5
    """
    check_option("update", update, UPDATES)
    check_option("active", active, ACTIVE)
    _check_positive(margin=margin, eta=eta)
    if not comparator_norm >= 0:
        raise TorchRankError(f"comparator_norm={comparator_norm} must be at least 0")
    if _depends_on_scale(update, active):
        return (comparator_loss + comparator_norm**2 / (2 * eta) + eta / 2 * squared_steps) / margin
    root = torch.sqrt(squared_steps) if isinstance(squared_steps, Tensor) else math.sqrt(squared_steps)
    return (comparator_loss + comparator_norm * root) / margin


def _depends_on_scale(update: str, active: str) -> bool:
    """Say whether the steps depend on the scale of the weights, and so on η."""
    return update == "slam" and active == "margin"


def _check_positive(**numbers: float) -> None:
    for name, number in numbers.items():
        check_number(name, number, above=0)
