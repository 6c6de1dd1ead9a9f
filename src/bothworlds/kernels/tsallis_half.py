"""The FTRL point of equation (4) for alpha = 1/2, the choice of the paper, with few divisions.

With losses l_a = L_a - min L it is q_a = r_a^2, r_a = 1/(eta l_a + y), for the unique y with sum_a r_a^2 = 1. The
derivatives of that sum are sums of powers of the same r_a, so a step of fourth order needs no more divisions than
Newton's. The last step updates the r_a directly. Starting at the y of the previous round, two evaluations suffice, and
after a short step the second r_a follow from the first without a division. So do those of another rate k eta: at k y
they are r_a/k.
"""

import math
from typing import NamedTuple

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import Number, absolute, every, fused, larger, root, smaller, where
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.linalg import reciprocal
from bothworlds.kernels.status import NOT_CONVERGED, OK

Sums = tuple[Number, Number, Number, Number]
MAX_STEPS = 60
# Steps, as shares of y
SERIES_STEP = 0.125  # the longest by the series: beyond it, terms of the series need not decrease
SHORT_STEP = 2.0**-6  # the longest that updates reciprocals without divisions: the neglected v^9 is below the rounding
CLOSE_STEP = 2.0**-7  # up to here the error of a step of the series is below 2e-8 of y
LAST_STEP = 2.0**-14  # up to here the neglected terms, 5 v^4, are below the rounding


class Solved(NamedTuple):
    """A status, a y near the solution, the remaining step, sums of powers of the r_a at y, and evaluations so far."""

    status: int
    y: Number
    step: Number
    sums: Sums
    evaluations: int


@kernel
def shifted_reciprocal(r: Number, x: Number) -> Number:
    """Return r/(1 - v), v = -x r: from 1/(eta l + y) to 1/(eta l + y + x), for |v| <= SHORT_STEP.

    That is r + r v (1 + v) (1 + v^2) (1 + v^4).
    """
    v = (0.0 - x) * r
    square = v * v
    even = fused(square, square, 1.0)
    even = fused(square, even, even)
    return fused(r, v * fused(v, even, even), r)


@kernel
def add_powers(sums: Sums, r: Number) -> Sums:
    """Add r^2, r^3, r^4 and r^5 to their sums."""
    square = r * r
    cube = square * r
    return fused(r, r, sums[0]), fused(square, r, sums[1]), fused(square, square, sums[2]), fused(square, cube, sums[3])


@kernel
def power_sums(losses: Floats, eta: Number, y: Number, reciprocals: Floats) -> Sums:
    """Write the r_a = 1/(eta l_a + y), and return the sums of their powers."""
    zero = 0.0 * y
    sums = zero, zero, zero, zero
    for a in range(losses.shape[0]):
        r = reciprocal(fused(eta, losses[a], y))
        reciprocals[a] = r
        sums = add_powers(sums, r)
    return sums


@kernel
def shifted_sums(losses: Floats, eta: Number, y: Number, following: Number, reciprocals: Floats) -> Sums:
    """Replace the r_a at y by those at ``following``, and return the sums of their powers."""
    x = following - y
    short = absolute(x) <= SHORT_STEP * y
    all_short = every(short)
    zero = 0.0 * y
    sums = zero, zero, zero, zero
    for a in range(losses.shape[0]):
        r = shifted_reciprocal(reciprocals[a], x)
        if not all_short:
            r = where(short, r, reciprocal(fused(eta, losses[a], following)))
        reciprocals[a] = r
        sums = add_powers(sums, r)
    return sums


@kernel
def series_step(excess: Number, third: Number, fourth: Number, fifth: Number) -> tuple[Number, Number]:
    """Return Newton's step v, and the step x that solves excess = 2 B x - 3 C x^2 + 4 D x^3 up to v^4.

    B, C, D are the sums of r^3, r^4, r^5; the right side is the decrease of the sum of r^2 when y grows by x.
    """
    inverse = 0.5 * reciprocal(third)
    v = excess * inverse
    bend = 3.0 * fourth * inverse
    twist = 4.0 * fifth * inverse
    return v, v * (1.0 + v * (bend + v * (2.0 * bend * bend - twist)))


@kernel
def concave_step(total: Number, third: Number) -> Number:
    """Return Newton's step on W^(-1/2) - 1, which is concave and increasing: safe from any start."""
    return total * ((total - 1.0) / (root(total) + 1.0)) / third


@kernel
def step_from(y: Number, sums: Sums) -> Number:
    """Return the step from y: by the series where that is safe, else by Newton's method."""
    total, third, fourth, fifth = sums
    v, step = series_step(total - 1.0, third, fourth, fifth)
    safe = absolute(v) <= SERIES_STEP * y
    if every(safe):
        return step
    return where(safe, step, concave_step(total, third))


@kernel
def solve_from(losses: Floats, eta: Number, start: Solved, highest: float, share: float, reciprocals: Floats) -> Solved:
    """Move the r_a from ``start`` to a y so near the solution that the remaining step is at most ``share`` times y.

    Points that are computed together stop at the same iterates as alone.
    """
    y, step, sums, count = start.y, start.step, start.sums, 1
    while count <= MAX_STEPS:
        near = absolute(step) <= share * y
        if every(near):
            break
        following = where(near, y, smaller(larger(y + step, 1.0), highest))
        sums = shifted_sums(losses, eta, y, following, reciprocals)
        step = where(near, step, step_from(following, sums))
        y = following
        count += 1
    return Solved(OK if count <= MAX_STEPS else NOT_CONVERGED, y, step, sums, min(count, MAX_STEPS))


@kernel
def solve_roots(
    losses: Floats, eta: Number, start: Number, highest: float, share: float, reciprocals: Floats
) -> Solved:
    """Write the r_a of a y so near the solution that the remaining step is at most ``share`` times y."""
    y = smaller(larger(start, 1.0), highest)
    sums = power_sums(losses, eta, y, reciprocals)
    return solve_from(losses, eta, Solved(OK, y, step_from(y, sums), sums, 1), highest, share, reciprocals)


@kernel
def last_square(r: Number, v: Number) -> Number:
    """Return r^2/(1 - v)^2 for |v| <= LAST_STEP; v also corrects the rounding of r."""
    return r * r * fused(v, fused(v, fused(4.0, v, 3.0), 2.0), 1.0)


@kernel
def last_rise(v: Number) -> Number:
    """Return 1/(1 - v) - 1 for |v| <= LAST_STEP: the relative increase of r."""
    return v * fused(v, 1.0 + v, 1.0)


@kernel
def root_point(q: Floats, start: Number, highest: float, reciprocals: Floats) -> tuple[int, Number, int]:
    """Replace the eta l_a in q by the FTRL point; return (status, y, evaluations)."""
    near = solve_roots(q, 1.0, start, highest, LAST_STEP, reciprocals)
    back = 0.0 - near.step
    for a in range(q.shape[0]):
        q[a] = last_square(reciprocals[a], back * reciprocals[a])
    return near.status, near.y + near.step, near.evaluations


@kernel
def near_point(losses: Floats, eta: Number, start: Number, roots: Floats) -> Solved:
    """Write the r_a of a y so near the solution that the error of `sum_of_roots` is at most 2e-8."""
    return solve_roots(losses, eta, start, math.sqrt(losses.shape[0]), CLOSE_STEP, roots)


@kernel
def sum_of_roots(near: Solved, roots: Floats) -> Number:
    """Return the sum of the r_a at the solution from those at y, by a series with an error of 5 v^4, v = step/y."""
    total = 0.0 * near.y
    for a in range(roots.shape[0]):
        total = total + roots[a]
    second, third, fourth, fifth = near.sums
    x = near.step
    return total - x * (second - x * (third - x * (fourth - x * fifth)))


@kernel
def last_step(near: Solved, q: Floats, roots: Floats) -> tuple[int, Number, Number]:
    """Write the FTRL point, and replace the roots at y by its roots; return (status, y, sum of the roots)."""
    total, back = 0.0 * near.y, 0.0 - near.step
    for a in range(roots.shape[0]):
        r = roots[a]
        square, rise = r * r, last_rise(back * r)
        q[a] = fused(square, fused(rise, rise, rise + rise), square)
        root_of_q = fused(r, rise, r)
        roots[a] = root_of_q
        total = total + root_of_q
    return near.status, near.y + near.step, total


@kernel
def point_at_rate(
    losses: Floats, eta: Number, k: Number, start: Solved, q: Floats, roots: Floats
) -> tuple[int, Number, Number]:
    """Write the FTRL point at the rate eta and its roots, from a solution near that at eta/k and its roots.

    Return (status, y, sum of the roots). GPUs have their own implementation.
    """
    back = 1.0 / k
    square = back * back
    second, third, fourth, fifth = start.sums
    sums = second * square, third * (square * back), fourth * (square * square), fifth * (square * square * back)
    y = k * start.y
    for a in range(roots.shape[0]):
        roots[a] = back * roots[a]
    highest = math.sqrt(losses.shape[0])
    near = solve_from(losses, eta, Solved(OK, y, step_from(y, sums), sums, 1), highest, LAST_STEP, roots)
    return last_step(near, q, roots)
