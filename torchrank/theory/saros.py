"""How far SAROS stays from the best weights, and what its blocks' gradients vary."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from torchrank.errors import TorchRankError, check_number, check_option


def saros_convergence_bound(
    distance: float,
    block_counts: Sequence[int] | NDArray[np.integer],
    *,
    smoothness: float,
    gradient_bound: float,
    variance: float,
    eta: float | None = None,
) -> float:
    """Bound the loss of SAROS' mean weights above the least loss, or how flat the loss becomes.

    With U users in turn, user u taking |B_u| steps, b ≤ |B_u| ≤ B, and V = σ² + 3γ²/b:

    - with the step size of :func:`saros_step_size` (``eta=None``): ``βBΔ²/U + 2Δ√(BV/U)``;
    - with any η ≤ 1/(βB): ``(Δ² + V Σ η̂_u²) / Σ η̂_u``, η̂_u = η|B_u|. As η → 0 it grows, as it must: the printed form
      of the theorem does not.

    For convex L, Δ = ‖ω_0 − ω*‖ bounds ``E L(ω̄) − L(ω*)``, ω̄ the mean of the weights at the users' starts weighted by
    η̂_u (the plain mean where users have equally many blocks). Without convexity, Δ = √((2/β)(L(ω_0) − L(ω*))) bounds
    the mean of ``E‖∇L(ω_u^0)‖² / β`` over the users.

    Assumptions: L is β-smooth; ‖∇ℓ‖ ≤ γ for every pair; E‖∇L̂_u − ∇L‖² ≤ σ² over users drawn at random; the mean of a
    user's block gradients is unbiased for ∇L̂_u with error at most 3γ²/|B_u| (Lemma 1: items in random order, rules
    ``"run"``, ``"single"`` and ``"eager"``; ``"positive"`` escapes it, see :func:`block_variance_ratio`); gradients
    inside a user are taken as at its start. A product U·V of learned factors is not convex; U fixed, V's loss is.

    Args:
        distance: Δ, in units of the weights.
        block_counts: ``(U,)`` steps of each user in turn, each at least 1; a user of several epochs counts several
            times.
        smoothness: β, in units of the loss over squared weights; at most ½‖U_u‖² for the logistic loss of
            U_u·V_i − U_u·V_j as a function of V.
        gradient_bound: γ, in units of the loss over weights; √2‖U_u‖ for the same loss.
        variance: σ², in units of a squared gradient.
        eta: η; None for the theorem's own.

    Returns:
        the bound, in units of the loss.

    Raises:
        TorchRankError: a number that cannot be, no users, or η above 1/(βB).

    Source: Burashnikova, Maximov & Amini (arXiv 1902.08495), Theorem 1, with the constants of its proof.

    Example:
        >>> options = {"smoothness": 1.0, "gradient_bound": 1.0, "variance": 1.0}
        >>> round(saros_convergence_bound(1.0, [1] * 10_000, **options), 4)  # 1/U + 2√(4/U)
        0.0401
        >>> round(saros_convergence_bound(1.0, [1] * 10_000, eta=0.01, **options), 4)
        0.05
    """
    counts = _check(distance, block_counts, smoothness, gradient_bound, variance)
    spread = variance + 3 * gradient_bound**2 / float(counts.min())
    most = float(counts.max())
    if eta is None:
        users = len(counts)
        return smoothness * most * distance**2 / users + 2 * distance * math.sqrt(most * spread / users)
    if not 0 < eta <= 1 / (smoothness * most) * (1 + 1e-12):
        raise TorchRankError(f"eta={eta!r}; the bound needs 0 < η ≤ 1/(βB) = {1 / (smoothness * most):g}")
    steps = eta * counts
    return float((distance**2 + spread * np.square(steps).sum()) / steps.sum())


def saros_step_size(
    distance: float,
    block_counts: Sequence[int] | NDArray[np.integer],
    *,
    smoothness: float,
    gradient_bound: float,
    variance: float,
) -> float:
    """Return the step size of the theorem's proof, min{1/(βB), Δ/√(UB(σ² + 3γ²/b))}.

    Args:
        distance: Δ, see :func:`saros_convergence_bound`, like everything that follows.
        block_counts: ``(U,)``.
        smoothness: β.
        gradient_bound: γ.
        variance: σ².

    Returns:
        η.

    Raises:
        TorchRankError: a number that cannot be, or no users.

    Source: arXiv 1902.08495, proof of Theorem 1.

    Example:
        >>> saros_step_size(1.0, [1] * 10_000, smoothness=1.0, gradient_bound=1.0, variance=1.0)
        0.005
    """
    counts = _check(distance, block_counts, smoothness, gradient_bound, variance)
    spread = variance + 3 * gradient_bound**2 / float(counts.min())
    most = float(counts.max())
    second = math.inf if spread == 0 else distance / math.sqrt(len(counts) * most * spread)
    return min(1 / (smoothness * most), second)


def _check(
    distance: float,
    block_counts: Sequence[int] | NDArray[np.integer],
    smoothness: float,
    gradient_bound: float,
    variance: float,
) -> NDArray[np.float64]:
    for name, value in (("distance", distance), ("gradient_bound", gradient_bound), ("variance", variance)):
        check_number(name, value, least=0)
    check_number("smoothness", smoothness, above=0)
    counts = np.asarray(block_counts, np.float64)
    if counts.ndim != 1 or not len(counts) or not (counts >= 1).all():
        raise TorchRankError("block_counts must be one number a user, each at least 1; leave users without blocks out")
    return counts


def block_variance_ratio(
    rule: str, *, preferred_share: float = 0.5, shown: int = 400, users: int = 1000, dim: int = 5, seed: int = 0
) -> float:
    """Measure how much the mean of a user's k block gradients varies, against k independent ones: k·Var / V².

    Lemma 1 bounds it by 3, since a block shares items with its neighbours at most. True of the rules ``"run"``,
    ``"single"`` and ``"eager"``, whose blocks share nothing: about 1. With ``"positive"`` every preferred item of a run
    meets the same other items, so the ratio grows with the run, without limit as the preferred share goes to 1.

    Users are shown independent random items, liked or not at random; the gradients are those of the logistic loss of
    differences of linear scores.

    Args:
        rule: of the blocks, see :func:`torchrank.data.build_blocks`.
        preferred_share: chance that an item is preferred, between 0 and 1.
        shown: items each user is shown.
        users: how many users are drawn.
        dim: features of an item.
        seed: of the draws.

    Returns:
        the ratio, without unit.

    Raises:
        TorchRankError: an unknown rule or a share that is not between 0 and 1.

    Source: arXiv 1902.08495, Lemma 1; that ``"positive"`` escapes it is new.

    Example:
        >>> options = {"preferred_share": 0.9, "users": 300}
        >>> block_variance_ratio("run", **options) < 1.5, block_variance_ratio("positive", **options) > 3
        (True, True)
    """
    from torchrank.ops.blocks import RULES, find_blocks  # compiled: only who measures waits for it

    check_option("rule", rule, RULES)
    if not 0 < preferred_share < 1:
        raise TorchRankError(f"preferred_share={preferred_share!r} must be between 0 and 1")
    random = np.random.default_rng(seed)
    weights, offsets = random.normal(size=dim), np.array([0, shown])
    means, blocks, counts = [], [], []
    for _ in range(users):
        features = random.normal(size=(shown, dim))
        scores, preferred = features @ weights, random.random(shown) < preferred_share
        _, slices = find_blocks(preferred, offsets, rule)
        own = [_block_gradient(features, scores, *bounds) for bounds in zip(*slices, strict=True)]
        if own:
            blocks.extend(own)
            means.append(np.mean(own, 0))
            counts.append(len(own))
    expected = np.mean(blocks, 0)
    single = np.square(np.array(blocks) - expected).sum(1).mean()
    together = np.square(np.array(means) - expected).sum(1)
    return float((np.array(counts) * together).mean() / single)


def _block_gradient(
    features: NDArray[np.float64], scores: NDArray[np.float64], a: int, b: int, c: int, d: int
) -> NDArray[np.float64]:
    chance = 1 / (1 + np.exp(scores[a:b, None] - scores[None, c:d]))
    pairs = chance[:, :, None] * (features[None, c:d] - features[a:b, None])
    gradient: NDArray[np.float64] = pairs.mean((0, 1))
    return gradient
