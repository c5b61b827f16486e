"""Compiled projection of points on a cubic curve, one point at a time: what ``project`` runs on a CPU.

The problem of ``quintic.py`` solved in a way that only a loop can take. By Descartes' rule the slope ``g`` has at most
as many roots in an interval as its Bernstein coefficients there have changes of sign: none means none, one means
exactly one, and more mean that the interval is halved. The two are tested against each other.
"""

import math
from typing import Any

import numba
import numpy as np

from torchrank.ops.quintic import GOLDEN, GOLDEN_STEPS, ROUNDING

# Bernstein coefficient k of s^m in degree 5 is C(k, m) / C(5, m).
_BERNSTEIN = np.array([[math.comb(k, m) / math.comb(5, m) for m in range(6)] for k in range(6)])


@numba.njit(cache=True)
def _root(g: Any, low: float, high: float, t: float) -> float:
    """Where ``g`` turns from negative to positive in a bracket: Halley's steps from ``t``, kept inside."""
    for _ in range(100):
        value = g[5]
        slope = 0.0
        bend = 0.0
        for m in range(4, -1, -1):
            bend = bend * t + slope
            slope = slope * t + value
            value = value * t + g[m]
        if value < 0.0:
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
def _minima(g: Any, stack: Any, points: Any, count: int) -> int:
    """Append to ``points`` where ``g`` turns from negative to positive in (0, 1], in order; return the new count.

    Rows of ``stack`` are intervals: six Bernstein coefficients, then the two ends. A coefficient 0 counts as positive.
    """
    for k in range(6):
        stack[0, k] = 0.0
        for m in range(6):
            stack[0, k] += _BERNSTEIN[k, m] * g[m]
    stack[0, 6], stack[0, 7] = 0.0, 1.0
    top = 0
    while top >= 0:
        row = stack[top]
        low, high = row[6], row[7]
        changes = 0
        place = 0.0
        for k in range(1, 6):
            if (row[k - 1] < 0.0) != (row[k] < 0.0):
                changes += 1
                place = k - row[k] / (row[k] - row[k - 1])
        rising = row[0] < 0.0 <= row[5]
        if changes > 1 and high - low > 1e-9:
            # De Casteljau: the right half stays on the stack, the left half goes on top of it.
            left = stack[top + 1]
            for k in range(6):
                left[k] = row[0]
                for m in range(5 - k):
                    row[m] = 0.5 * (row[m] + row[m + 1])
            left[6], left[7] = low, 0.5 * (low + high)
            row[6] = left[7]
            top += 1
            continue
        top -= 1
        if rising:
            points[count] = _root(g, low, high, low + 0.2 * place * (high - low))
            count += 1
    return count


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
def _search(g: Any, before: float, after: float, golden: bool, stack: Any, points: Any) -> float:
    """Nearest place on the curve; the last of several equal ones.

    Args:
        g: ``(6,)``, half the slope of the squared distance.
        before: how far the curve goes on before 0, for a point beyond that end.
        after: likewise after 1.
        golden: golden-section search finds the inner minimum.
        stack: ``(40, 8)`` to work in.
        points: ``(8,)`` likewise.

    Returns:
        the place.
    """
    start = g[0]
    end = g[0] + g[1] + g[2] + g[3] + g[4] + g[5]
    if not (math.isfinite(start) and math.isfinite(end)):
        return math.nan
    count = 0
    if start >= 0.0:
        points[0] = -before
        count = 1
    if golden:
        points[count] = _golden(g)
        count += 1
    else:
        count = _minima(g, stack, points, count)
    if end < 0.0 or count == 0:
        points[count] = 1.0 + after
        count += 1
    if count == 1:
        return float(points[0])
    noise = 0.0
    for m in range(6):
        noise += 1e-14 * abs(g[m])
    least = math.inf
    best = points[0]
    for k in range(count):
        inside = min(max(points[k], 0.0), 1.0)
        # Along an end tangent the slope falls to 0 from that at the end.
        value = _sextic(g, inside) + (points[k] - inside) * (start if inside == 0.0 else end)
        if value <= least + noise:
            best = points[k]
        least = min(least, value)
    return float(best)


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
    stack = np.empty((40, 8))
    candidates = np.empty(8)
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
        end = g[0] + g[1] + g[2] + g[3] + g[4] + g[5]
        rounding = 0.0
        for m in range(6):
            rounding += ROUNDING * abs(g[m])
        before = g[0] / speed0 if extend and g[0] > rounding and speed0 > still else 0.0
        after = -end / speed1 if extend and end < -rounding and speed1 > still else 0.0
        s = _search(g, before, after, golden, stack, candidates)
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
