"""Global minima on [0, 1] of squared distances to cubic curves, batched and free of data-dependent branches.

Such a distance is a sextic polynomial of the curve's parameter. Half its slope, the quintic ``g``, comes as a list of
six tensors, constant first, that broadcast against each other. The ends' values say where the curve goes on beyond an
end: they are given relative to the sextic's value at 0, infinite where an end is no local minimum.
"""

import torch
from torch import Tensor

#: bracketed Halley steps that find the roots of g'', g' and g
_STEPS = (10, 12, 16)
GOLDEN = 0.6180339887498949
#: 0.618^40 is 4e-9; comparing values of a smooth function cannot place its minimum better than that
GOLDEN_STEPS = 40
#: error of the slope at an end, as part of the sum of the coefficients' sizes: an object at the end itself is there
ROUNDING = 2e-15


def horner(coefficients: list[Tensor], s: Tensor) -> Tensor:
    """Evaluate a polynomial, constant coefficient first, at ``s``."""
    value = coefficients[-1].expand_as(s)
    for coefficient in coefficients[-2::-1]:
        value = torch.addcmul(coefficient, value, s)
    return value


def integral(g: list[Tensor]) -> list[Tensor]:
    """Coefficients of ``2 ∫ g`` from 0: the squared distance less its value at 0."""
    return [torch.zeros_like(g[0]), *(2 * c / (m + 1) for m, c in enumerate(g))]


def minimize_exact(g: list[Tensor], start: Tensor, end: Tensor) -> Tensor:
    """Find the global minimum.

    ``g'''`` is a quadratic with roots in closed form; they bracket the roots of ``g''``, these those of ``g'``, these
    those of ``g``, each found by Newton's method with Halley's third-order correction, kept inside its bracket, in a
    fixed number of steps. The minimum is the best of the points where ``g`` turns from negative to positive and of the
    ends; of several equal ones, the largest.

    Args:
        g: six tensors ``(n,)`` or scalar.
        start: ``(n,)`` value of the end 0.
        end: ``(n,)`` value of the end 1.

    Returns:
        ``(n,)`` in [0, 1]; 0 or 1 exactly where an end is best; NaN where a coefficient is not finite.
    """
    levels = [g]
    for _ in range(3):
        levels.append(_derivative(levels[-1]))
    zero, one = torch.zeros_like(start)[None], torch.ones_like(start)[None]
    breaks = torch.cat([zero, _quadratic_roots(levels[3]).expand(2, start.shape[0]), one])
    for level, steps in ((2, _STEPS[0]), (1, _STEPS[1])):
        rising = horner(levels[level], breaks[1:]) > 0
        breaks = torch.cat([zero, _root(levels[level], breaks[:-1], breaks[1:], rising, steps), one])
    slopes = horner(g, breaks)
    turns = (slopes[:-1] < 0) & (slopes[1:] >= 0)
    roots = _root(g, breaks[:-1], breaks[1:], torch.ones_like(turns), _STEPS[2])
    values = torch.where(turns, horner(integral(g), roots), torch.inf)
    return _last_least(torch.cat([zero, roots, one]), torch.cat([start[None], values, end[None]]), g)


def minimize_golden(g: list[Tensor], start: Tensor, end: Tensor) -> Tensor:
    """Golden-section search on [0, 1], as Li, Mei & Hu (arXiv 1402.4542) use it: a local minimum, not always the least.

    Args:
        g: six tensors ``(n,)`` or scalar.
        start: ``(n,)`` value of the end 0.
        end: ``(n,)`` value of the end 1.

    Returns:
        ``(n,)``, within 4e-9 of a local minimum, or the better end where that is no worse.
    """
    value = integral(g)
    low, high = torch.zeros_like(start), torch.ones_like(start)
    left, right = high - GOLDEN, low + GOLDEN
    at_left, at_right = horner(value, left), horner(value, right)
    for _ in range(GOLDEN_STEPS):
        go_left = at_left < at_right
        low, high = torch.where(go_left, low, left), torch.where(go_left, right, high)
        reach = GOLDEN * (high - low)
        inner = torch.where(go_left, high - reach, low + reach)
        fresh = horner(value, inner)
        left, right = torch.where(go_left, inner, right), torch.where(go_left, left, inner)
        at_left, at_right = torch.where(go_left, fresh, at_right), torch.where(go_left, at_left, fresh)
    middle = 0.5 * (low + high)
    points = torch.stack([torch.zeros_like(middle), middle, torch.ones_like(middle)])
    return _last_least(points, torch.stack([start, horner(value, middle), end]), g)


def _derivative(coefficients: list[Tensor]) -> list[Tensor]:
    return [m * c for m, c in enumerate(coefficients)][1:]


def _quadratic_roots(coefficients: list[Tensor]) -> Tensor:
    """Two sorted points of [0, 1] that include every root of a quadratic there, its leading coefficient 0 or not."""
    c, b, a = coefficients
    root = (b * b - 4 * a * c).clamp(min=0).sqrt()
    q = -0.5 * (b + torch.where(b >= 0, root, -root))
    # A straight curve has a = b = c = 0: 0/0 must not spread.
    roots = torch.stack([q / a, c / q]).nan_to_num(nan=0.0, posinf=1.0, neginf=0.0)
    return roots.clamp(0, 1).sort(0).values.reshape(2, -1)


def _root(coefficients: list[Tensor], low: Tensor, high: Tensor, rising: Tensor, steps: int) -> Tensor:
    """Root of a function monotone on ``[low, high]``; some point of the bracket where there is none."""
    first = _derivative(coefficients)
    second = [0.5 * c for c in _derivative(first)]
    t = 0.5 * (low + high)
    for _ in range(steps):
        value, slope, bend = horner(coefficients, t), horner(first, t), horner(second, t)
        left = (value < 0) == rising
        low, high = torch.where(left, t, low), torch.where(left, high, t)
        step = t - value * slope / (slope * slope - value * bend)
        inside = (step >= low) & (step <= high) & (slope != 0)
        t = torch.where(inside, step, 0.5 * (low + high))
    return t


def _last_least(points: Tensor, values: Tensor, g: list[Tensor]) -> Tensor:
    """Largest of the points, sorted along the first axis, whose value is least up to rounding."""
    noise = sum((c.abs() for c in g), start=torch.zeros_like(g[0])) * 1e-14
    best = torch.where(values <= values.amin(0) + noise, points, -1.0).amax(0)
    return best + 0 * (g[0] + g[1] + g[2])
