"""The five meta-rules that a ranking by several attributes should keep, checked by looking for counter-examples."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from torchrank.errors import ShapeError, TorchRankError

#: share of the scores' range up to which two scores are not told apart: solvers stop somewhere
_TOLERANCE = 1e-6
#: largest share of the cube's diagonal between objects on a curve and f, up to which f has the curve's shape
_SHAPE = 0.02
#: least correlation of scores with places along a curve, where there is no f to look at
_PLACES = 0.999
#: distance, in the cube, at which a difference of scores counts as a jump, and the least such difference
_NEAR, _JUMP = 1e-9, 1e-4


class FittedRanking(NamedTuple):
    """What a ranking method makes of a table.

    Attributes:
        score: ``(m, d)`` points, in the table's units, to ``(m,)`` scores, higher is better: the meta-rules' φ.
        curve: ``(m,)`` parameters in [0, 1] to ``(m, d)`` points, in the table's units: their f; None without one.
        size: how many numbers scoring a new object takes; None where all objects are kept.

    Example:
        >>> ranking = FittedRanking(lambda points: points.sum(-1), size=2)
        >>> ranking.score(torch.tensor([[1.0, 2.0]])), ranking.curve
        (tensor([3.]), None)
    """

    score: Callable[[Tensor], Tensor]
    curve: Callable[[Tensor], Tensor] | None = None
    size: int | None = None


Fit = Callable[[Tensor, Sequence[int]], FittedRanking]


class RuleCheck(NamedTuple):
    """What was found of one rule.

    Attributes:
        rule: its name.
        subject: what it was checked of: ``"f"``, the curve, or ``"φ"``, the score.
        holds: whether no counter-example was found.
        evidence: what was looked at, in words; the counter-example in words where one was found.
        counter_example: points ``(k, d)`` in the table's units that show it; None where none was found, or where points
            do not show it.

    Example:
        >>> RuleCheck("explicit size", "f", True, "16 numbers").holds
        True
    """

    rule: str
    subject: str
    holds: bool
    evidence: str
    counter_example: Tensor | None = None


def check_meta_rules(
    fit: Fit, points: Tensor, directions: Sequence[int], *, trials: int = 2000, seed: int = 0
) -> list[RuleCheck]:
    """Look for counter-examples to the five meta-rules.

    That a rule holds means that none was found. Invariance, monotonicity, continuity and size are checked on the
    table; capacity on objects along a straight line and along a bent curve, both from the worst corner to the best.
    The paper asks for smoothness of f; whether φ is continuous is a question of its own, and so has a line of its own.

    Args:
        fit: the ranking method: ``(n, d)`` points and directions to what it makes of them. It does its own scaling.
        points: ``(n, d)`` in any units, nothing missing.
        directions: ``d`` numbers, +1 where more is better, −1 where less is.
        trials: random pairs and segments that are tried.
        seed: of the trials.

    Returns:
        one line a rule; capacity has two, and smoothness has a second for φ.

    Raises:
        ShapeError: points and directions that do not fit.
        TorchRankError: no trial.

    Source:
        Li, Mei & Hu (arXiv 1402.4542), section III.

    Example:
        >>> def total(points, directions):
        ...     low, high = points.aminmax(dim=0)
        ...     weights = torch.tensor(directions, dtype=points.dtype) / (high - low)
        ...     return FittedRanking(lambda x: x @ weights, size=2 * points.shape[1])
        >>> points = torch.rand(50, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        >>> {check.rule: check.holds for check in check_meta_rules(total, points, [1, 1, -1])}["strict monotonicity"]
        True
    """
    if points.ndim != 2 or len(points) < 4 or len(directions) != points.shape[1]:
        raise ShapeError(
            f"points have shape {tuple(points.shape)} and there are {len(directions)} directions; give (n, d) with n at"
            " least 4, and d"
        )
    if trials < 1:
        raise TorchRankError(f"trials={trials} must be at least 1")
    points = points.detach().double()
    generator = torch.Generator().manual_seed(seed)
    low, high = points.aminmax(dim=0)
    width = torch.where(high > low, high - low, torch.ones_like(high))
    fitted = fit(points, directions)
    return [
        _invariance(fit, fitted, points, directions, generator),
        _monotonicity(fitted, low, width, directions, trials, generator),
        _capacity(fit, directions, bent=False),
        _capacity(fit, directions, bent=True),
        _smoothness(fitted, low, width),
        _continuity(fitted, low, width, trials, generator),
        _size(fit, fitted, points, directions),
    ]


def _invariance(
    fit: Fit, fitted: FittedRanking, points: Tensor, directions: Sequence[int], generator: torch.Generator
) -> RuleCheck:
    rule, d = "scale and translation invariance", points.shape[1]
    before = fitted.score(points)
    for _ in range(3):
        scale = torch.exp(6 * torch.rand(d, dtype=points.dtype, generator=generator) - 3)
        shift = points.std(0) * scale * (20 * torch.rand(d, dtype=points.dtype, generator=generator) - 10)
        after = fit(points * scale + shift, directions).score(points * scale + shift)
        swapped = _swapped(before, after)
        if swapped is not None:
            i, j = swapped
            return RuleCheck(rule, "φ", False, f"rows {i} and {j} change places in other units", points[[i, j]])
    return RuleCheck(
        rule, "φ", True, "same order of all rows after 3 random changes of every attribute's unit and zero"
    )


def _swapped(before: Tensor, after: Tensor) -> tuple[int, int] | None:
    """Two rows that both rankings tell apart, and order differently; None where there are none."""
    order = before.argsort()
    first, second = before[order], after[order]
    apart = _TOLERANCE * (first[-1] - first[0]), _TOLERANCE * (second.max() - second.min())
    highest, at = second.cummax(0)
    # The last row that scores clearly less than row j before; the highest of those after.
    last = torch.searchsorted(first, first - apart[0]) - 1
    fell = (last >= 0) & (highest[last.clamp(min=0)] > second + apart[1])
    if not bool(fell.any()):
        return None
    j = int(fell.nonzero()[0])
    return int(order[at[last[j]]]), int(order[j])


def _monotonicity(
    fitted: FittedRanking,
    low: Tensor,
    width: Tensor,
    directions: Sequence[int],
    trials: int,
    generator: torch.Generator,
) -> RuleCheck:
    d = len(low)
    # Half of the pairs differ in one attribute only, the rest in each with probability one half; a part lies outside.
    worse = torch.rand(trials, d, dtype=low.dtype, generator=generator) * 1.4 - 0.2
    moved = torch.rand(trials, d, generator=generator) < 0.5
    one = torch.randint(d, (trials,), generator=generator)
    moved[: trials // 2] = False
    moved[torch.arange(trials), one] = True
    step = 0.3 * torch.rand(trials, d, dtype=low.dtype, generator=generator) + 1e-3
    way = torch.tensor(list(directions), dtype=low.dtype)
    better = low + width * (worse + way * torch.where(moved, step, 0))
    worse = low + width * worse
    gain = fitted.score(better) - fitted.score(worse)
    wrong, tied = int((gain < 0).sum()), int((gain == 0).sum())
    if wrong + tied == 0:
        return RuleCheck(
            "strict monotonicity", "φ", True, f"{trials} pairs, one better, a part of them outside the table's box"
        )
    i = int(gain.argmin())
    return RuleCheck(
        "strict monotonicity",
        "φ",
        False,
        f"of {trials} pairs, one better, {wrong} are ranked the wrong way round and {tied} tie",
        torch.stack([worse[i], better[i]]),
    )


def _capacity(fit: Fit, directions: Sequence[int], *, bent: bool) -> RuleCheck:
    """Give a method objects that lie on a curve, and look whether it finds the curve."""
    rule = "nonlinear capacity" if bent else "linear capacity"
    d = len(directions)
    way = torch.tensor(list(directions), dtype=torch.float64)
    # Unevenly spaced, so that counting objects does not do for measuring.
    place = torch.linspace(0, 1, 101, dtype=torch.float64).square()
    toward = place[:, None].expand(-1, d)
    if bent:
        corner = (torch.arange(d) % 2).double()
        toward = 2 * place[:, None] * (1 - place[:, None]) * corner + place[:, None].square()
    if bent and d == 1:
        return RuleCheck(rule, "f", True, "one attribute has no other shape than a line")
    objects = (1 - way) / 2 + way * toward
    step = objects.diff(dim=0).norm(dim=1)
    place = torch.cat([step.new_zeros(1), step.cumsum(0)]) / step.sum()
    fitted = fit(objects, directions)
    shape = "a parabola" if bent else "a straight line"
    if fitted.curve is not None:
        dense = fitted.curve(torch.linspace(0, 1, 4001, dtype=torch.float64))
        away = torch.cdist(objects, dense).amin(1) / d**0.5
        farthest = int(away.argmax())
        text = f"objects on {shape} from worst to best lie up to {float(away[farthest]):.1%} of the diagonal from f"
        holds = float(away[farthest]) <= _SHAPE
        return RuleCheck(rule, "f", holds, text, None if holds else objects[farthest : farthest + 1])
    scores = fitted.score(objects)
    alike = float(torch.corrcoef(torch.stack([scores, place]))[0, 1])
    text = f"no f; scores of objects on {shape} from worst to best correlate {alike:.4f} with their places on it"
    holds = alike >= _PLACES
    worst = int((scores - place * (scores[-1] - scores[0]) - scores[0]).abs().argmax())
    return RuleCheck(rule, "φ", holds, text, None if holds else objects[worst : worst + 1])


def _smoothness(fitted: FittedRanking, low: Tensor, width: Tensor) -> RuleCheck:
    """Look at the sharpest turn between neighbouring chords: on a smooth curve it falls with their length."""
    if fitted.curve is None:
        return RuleCheck("smoothness", "f", False, "no f")
    curve = fitted.curve
    turns = []
    for count in (1 << 12, 1 << 15):
        s = torch.linspace(0, 1, count + 1, dtype=torch.float64)
        chord = ((curve(s) - low) / width).diff(dim=0)
        chord = chord / chord.norm(dim=1, keepdim=True)
        turn = 2 * torch.asin((chord.diff(dim=0).norm(dim=1) / 2).clamp(max=1))
        turns.append((float(turn.max()), s[1:-1][turn.argmax()]))
    (coarse, _), (fine, where) = turns
    if fine <= max(coarse / 2, 1e-4):
        return RuleCheck("smoothness", "f", True, f"the sharpest turn falls with the chords, to {fine:.1e} rad")
    return RuleCheck("smoothness", "f", False, f"f turns by {fine:.2f} rad at a point", curve(where[None]))


def _continuity(
    fitted: FittedRanking, low: Tensor, width: Tensor, trials: int, generator: torch.Generator
) -> RuleCheck:
    """Halve random segments, keeping the half in which the score changes more; a jump stays."""
    count, d = trials, len(low)
    a = torch.rand(count, d, dtype=low.dtype, generator=generator)
    b = torch.rand(count, d, dtype=low.dtype, generator=generator)
    score_a, score_b = (fitted.score(low + width * each) for each in (a, b))
    spread = float((score_b - score_a).abs().max())
    length = d**0.5
    while length > _NEAR:
        middle = (a + b) / 2
        score = fitted.score(low + width * middle)
        left = (score - score_a).abs() > (score_b - score).abs()
        a, b = torch.where(left[:, None], a, middle), torch.where(left[:, None], middle, b)
        score_a, score_b = torch.where(left, score_a, score), torch.where(left, score, score_b)
        length /= 2
    jump = (score_b - score_a).abs()
    jumps = int((jump > _JUMP * spread).sum())
    if not jumps:
        return RuleCheck("continuity", "φ", True, f"no jump on {count} segments inside the box")
    i = int(jump.argmax())
    text = f"φ jumps on {jumps} of {count} segments inside the box, from {score_a[i]:.4f} to {score_b[i]:.4f} at most"
    return RuleCheck("continuity", "φ", False, text, low + width * torch.stack([a[i], b[i]]))


def _size(fit: Fit, fitted: FittedRanking, points: Tensor, directions: Sequence[int]) -> RuleCheck:
    if fitted.size is None:
        return RuleCheck("explicit size", "f", False, "a new object is compared with all of the table")
    half = fit(points[::2], directions).size
    text = f"{fitted.size} numbers with {len(points)} rows, {half} with {len(points[::2])}"
    return RuleCheck("explicit size", "f", half == fitted.size, text)
