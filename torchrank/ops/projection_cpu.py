"""Compiled projection of points on a cubic curve, one point at a time: what ``project`` runs on a CPU.

The same problem as in ``quintic.py`` with a shortcut that only a loop can take: Descartes' rule on the Bernstein
coefficients of the slope ``g`` tells most points apart (no sign change: an end is nearest; one: a single root), and the
chain of derivatives is for the rest. The two are tested against each other.
"""

import math
from typing import Any

import numba
import numpy as np

from torchrank.ops.quintic import GOLDEN, GOLDEN_STEPS

# Bernstein coefficient k of s^m in degree 5 is C(k, m) / C(5, m).
_BERNSTEIN = np.array([[math.comb(k, m) / math.comb(5, m) for m in range(6)] for k in range(6)])


@numba.njit(cache=True)
def _root(a: Any, degree: int, low: float, high: float, rising: bool, t: float) -> float:
    """Root of the polynomial ``a`` on a bracket where it changes sign: Halley's steps from ``t``, kept inside."""
    for _ in range(100):
        value = a[degree]
        slope = 0.0
        bend = 0.0
        for m in range(degree - 1, -1, -1):
            bend = bend * t + slope
            slope = slope * t + value
            value = value * t + a[m]
        if (value < 0.0) == rising:
            low = t
        else:
            high = t
        below = slope * slope - value * bend
        step = t - value * slope / below if below != 0.0 else low
        if slope == 0.0 or not (low <= step <= high):
            step = 0.5 * (low + high)
        moved = abs(step - t)
        t = step
        if moved < 1e-7:
            break
    return t


@numba.njit(cache=True)
def _evaluate(a: Any, degree: int, t: float) -> float:
    value = a[degree]
    for m in range(degree - 1, -1, -1):
        value = value * t + a[m]
    return value


@numba.njit(cache=True)
def _breakpoints(g: Any, h: Any, breaks: Any, fresh: Any) -> int:
    """Fill ``breaks`` with 0, the roots of ``g'`` in (0, 1) and 1; return how many there are."""
    a, b, c = 60.0 * g[5], 24.0 * g[4], 6.0 * g[3]
    size = 1
    breaks[0] = 0.0
    inside = b * b - 4.0 * a * c
    if inside > 0.0:
        q = -0.5 * (b + math.copysign(math.sqrt(inside), b))
        first = q / a if a != 0.0 else -1.0
        second = c / q
        for root in (min(first, second), max(first, second)):
            if 0.0 < root < 1.0:
                breaks[size] = root
                size += 1
    breaks[size] = 1.0
    size += 1
    for level in (2, 1):
        degree = 5 - level
        for m in range(degree + 1):
            h[m] = g[m + level] * ((m + 1) if level == 1 else (m + 1) * (m + 2))
        found = 1
        left = h[0]
        for k in range(1, size):
            low, high = breaks[k - 1], breaks[k]
            right = _evaluate(h, degree, high)
            if (left < 0.0 < right) or (right < 0.0 < left):
                fresh[found] = _root(h, degree, low, high, right > 0.0, 0.5 * (low + high))
                found += 1
            left = right
        fresh[0] = 0.0
        fresh[found] = 1.0
        size = found + 1
        breaks[:size] = fresh[:size]
    return size


@numba.njit(cache=True)
def _sextic(g: Any, t: float) -> float:
    """``2 ∫ g`` from 0 to ``t``: the squared distance less its value at 0."""
    value = 0.0
    for m in range(5, -1, -1):
        value = value * t + 2.0 * g[m] / (m + 1)
    return value * t


@numba.njit(cache=True)
def _golden(g: Any) -> float:
    """Middle of the interval that golden-section search ends with."""
    low, high = 0.0, 1.0
    left, right = high - GOLDEN, low + GOLDEN
    at_left, at_right = _sextic(g, left), _sextic(g, right)
    for _ in range(GOLDEN_STEPS):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = _sextic(g, left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = _sextic(g, right)
    return 0.5 * (low + high)


@numba.njit(cache=True)
def _best(g: Any, start: float, end: float, before: float, after: float, golden: bool, work: Any) -> float:
    """Compare all local minima: ``before`` and ``after`` are how far the end tangents reach beyond an end that is one.

    With ``golden``, what golden-section search finds stands for the inner ones.
    """
    h, breaks, fresh, points, values = work[0], work[1], work[2], work[3], work[4]
    count = 0
    if start >= 0.0:
        points[0] = -before
        values[0] = -before * start
        count = 1
    if golden:
        points[count] = _golden(g)
        values[count] = _sextic(g, points[count])
        count += 1
    else:
        size = _breakpoints(g, h, breaks, fresh)
        left = start
        for k in range(1, size):
            low, high = breaks[k - 1], breaks[k]
            right = _evaluate(g, 5, high)
            if left < 0.0 <= right:
                points[count] = _root(g, 5, low, high, True, 0.5 * (low + high))
                values[count] = _sextic(g, points[count])
                count += 1
            left = right
    if end <= 0.0:
        points[count] = 1.0 + after
        values[count] = _sextic(g, 1.0) + after * end
        count += 1
    noise = 0.0
    for m in range(6):
        noise += 1e-14 * abs(g[m])
    least = values[:count].min()
    best = points[0]
    for k in range(count):
        if values[k] <= least + noise:
            best = points[k]
    return best


@numba.njit(cache=True)
def _search(g: Any, speed0: float, speed1: float, standing: float, extend: bool, golden: bool, work: Any) -> float:
    """Global argmin of the squared distance whose half slope is ``g``; the largest where several are least."""
    start = g[0]
    end = _evaluate(g, 5, 1.0)
    if not (math.isfinite(start) and math.isfinite(end)):
        return math.nan
    before = start / speed0 if extend and start > 0.0 and speed0 > standing else 0.0
    after = -end / speed1 if extend and end < 0.0 and speed1 > standing else 0.0
    if golden:
        return _best(g, start, end, before, after, True, work)
    changes = 0
    where = 0.0
    sign = start
    previous = start
    for k in range(1, 6):
        b = 0.0
        for m in range(6):
            b += _BERNSTEIN[k, m] * g[m]
        if (sign < 0.0 < b) or (b < 0.0 < sign):
            changes += 1
            where = k - b / (b - previous)
        if b != 0.0:
            sign = b
        previous = b
    if changes == 0 and start > 0.0:
        return -before
    if changes == 0 and start < 0.0:
        return 1.0 + after
    if changes == 1 and start < 0.0:
        return _root(g, 5, 0.0, 1.0, True, min(max(0.2 * where, 0.0), 1.0))
    return _best(g, start, end, before, after, False, work)


@numba.njit(cache=True, nogil=True)
def project_cubic(
    points: Any,
    observed: Any,
    curve: Any,
    constants: Any,
    extend: bool,
    golden: bool,
    standing: float,
    s_out: Any,
    squared_out: Any,
) -> None:
    """Project every row of ``points``; results go to the last two arguments.

    Args:
        points: ``(n, d)`` float32 or float64.
        observed: ``(n, d)`` boolean, or ``(0, 0)`` when everything is observed.
        curve: ``(d, 4)`` float64, the coefficients of the curve, constant first.
        constants: ``(d, 6)`` float64, those of ``f_j' f_j``.
        extend: go on along the end tangents.
        golden: search as the paper does instead of exactly.
        standing: part of the curve's squared speed at which an end counts as having no tangent.
        s_out: ``(n,)`` float64.
        squared_out: ``(n,)`` float64.
    """
    n, d = points.shape
    partly = observed.size > 0
    slopes = np.empty((d, 3))
    total = np.zeros(6)
    all0 = all1 = still = 0.0
    for j in range(d):
        for m in range(3):
            slopes[j, m] = (m + 1) * curve[j, m + 1]
            still += standing * slopes[j, m] ** 2
        total += constants[j]
        all0 += slopes[j, 0] ** 2
        all1 += (slopes[j, 0] + slopes[j, 1] + slopes[j, 2]) ** 2
    g = np.empty(6)
    work = np.empty((5, 8))
    for i in range(n):
        u0 = u1 = u2 = 0.0
        speed0, speed1 = all0, all1
        if partly:
            speed0 = speed1 = 0.0
            g[:] = 0.0
            for j in range(d):
                if observed[i, j]:
                    g += constants[j]
                    speed0 += slopes[j, 0] ** 2
                    speed1 += (slopes[j, 0] + slopes[j, 1] + slopes[j, 2]) ** 2
                    u0 += points[i, j] * slopes[j, 0]
                    u1 += points[i, j] * slopes[j, 1]
                    u2 += points[i, j] * slopes[j, 2]
        else:
            for j in range(d):
                u0 += points[i, j] * slopes[j, 0]
                u1 += points[i, j] * slopes[j, 1]
                u2 += points[i, j] * slopes[j, 2]
            for m in range(6):
                g[m] = total[m]
        g[0] -= u0
        g[1] -= u1
        g[2] -= u2
        s = _search(g, speed0, speed1, still, extend, golden, work)
        # One Newton step on the curve itself takes out the rounding of the quintic's coefficients.
        inside = min(max(s, 0.0), 1.0)
        over = s - inside
        slope = bend = squared = 0.0
        for j in range(d):
            if partly and not observed[i, j]:
                continue
            c1, c2, c3 = curve[j, 1], curve[j, 2], curve[j, 3]
            first = (3.0 * c3 * inside + 2.0 * c2) * inside + c1
            r = ((c3 * inside + c2) * inside + c1) * inside + curve[j, 0] + over * first - points[i, j]
            slope += r * first
            bend += first * first + r * (6.0 * c3 * inside + 2.0 * c2)
            squared += r * r
        if 0.0 < s < 1.0 and abs(slope) < 1e-6 * bend:
            s = min(max(s - slope / bend, 0.0), 1.0)
        s_out[i] = s
        squared_out[i] = squared
