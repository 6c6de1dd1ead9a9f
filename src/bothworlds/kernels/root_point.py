"""The FTRL point of equation (4) for alpha = 1/2, the paper's own choice, with few divisions.

With losses l_a = L_a - min L it is q_a = r_a^2, r_a = 1/(eta l_a + y), for the one y with sum_a r_a^2 = 1. Powers of
the same r_a give the derivatives of that sum, so a step of fourth order costs no division more than Newton's, and the
last step is taken in the r_a themselves: two evaluations are enough from a y of the round before, and after a short
step the r_a of the second follow from those of the first without a division. So do those of another rate, k times eta:
at k y they are r_a/k.
"""

import math
from typing import NamedTuple

from bothworlds.kernels.arithmetic import Number, absolute, every, fused, larger, root, smaller, where
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.inverses import reciprocal
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.status import NOT_CONVERGED, OK

Sums = tuple[Number, Number, Number, Number]
MAX_STEPS = 60
SERIES = 0.125  # steps up to this share of y are taken by the series: beyond, its terms need not fall
SHORT = 2.0**-6  # steps up to this share of y move reciprocals by products alone: what is left out, v^9, is rounding
CLOSE = 2.0**-7  # from here on what a step of the series leaves out is below 2e-8 of y
LAST = 2.0**-14  # from here on the terms left out, 5 v^4, are below the rounding


class Solved(NamedTuple):
    """A status, a y near the solution, the step that is left, sums of powers of the r_a at y, and evaluations."""

    status: int
    y: Number
    step: Number
    sums: Sums
    evaluations: int


@kernel
def moved_by(r: Number, x: Number) -> Number:
    """Return r/(1 - v), v = -x r: from 1/(eta l + y) to 1/(eta l + y + x), for |v| <= SHORT.

    That is r + r v (1 + v) (1 + v^2) (1 + v^4).
    """
    v = (0.0 - x) * r
    square = v * v
    even = fused(square, square, 1.0)
    even = fused(square, even, even)
    return fused(r, v * fused(v, even, even), r)


@kernel
def with_powers(sums: Sums, r: Number) -> Sums:
    """Return the sums of r^2, r^3, r^4 and r^5 with those of one more r."""
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
        sums = with_powers(sums, r)
    return sums


@kernel
def moved_sums(losses: Floats, eta: Number, y: Number, following: Number, reciprocals: Floats) -> Sums:
    """Turn the r_a of y into those of the y that follows, and return the sums of their powers."""
    x = following - y
    short = absolute(x) <= SHORT * y
    all_short = every(short)
    zero = 0.0 * y
    sums = zero, zero, zero, zero
    for a in range(losses.shape[0]):
        r = moved_by(reciprocals[a], x)
        if not all_short:
            r = where(short, r, reciprocal(fused(eta, losses[a], following)))
        reciprocals[a] = r
        sums = with_powers(sums, r)
    return sums


@kernel
def series_step(excess: Number, third: Number, fourth: Number, fifth: Number) -> tuple[Number, Number]:
    """Return Newton's step v, and the step that solves excess = 2 B x - 3 C x^2 + 4 D x^3 up to v^4.

    With B, C, D the sums of r^3, r^4, r^5 the right side is what the sum of r^2 loses when y grows by x.
    """
    inverse = 0.5 * reciprocal(third)
    v = excess * inverse
    bend = 3.0 * fourth * inverse
    twist = 4.0 * fifth * inverse
    return v, v * (1.0 + v * (bend + v * (2.0 * bend * bend - twist)))


@kernel
def concave_step(total: Number, third: Number) -> Number:
    """Return Newton's step on W^(-1/2) - 1, which is concave and increasing: safe from anywhere."""
    return total * ((total - 1.0) / (root(total) + 1.0)) / third


@kernel
def step_from(y: Number, sums: Sums) -> Number:
    """Return how far to go from y: by the series where it is safe, else by Newton."""
    total, third, fourth, fifth = sums
    v, step = series_step(total - 1.0, third, fourth, fifth)
    safe = absolute(v) <= SERIES * y
    if every(safe):
        return step
    return where(safe, step, concave_step(total, third))


@kernel
def solve_from(losses: Floats, eta: Number, begun: Solved, highest: float, left: float, reciprocals: Floats) -> Solved:
    """Turn the r_a of a y into those of one near the solution, to which at most ``left`` times y is left to go.

    Of several points at once, each stops where it would alone.
    """
    y, step, sums, count = begun.y, begun.step, begun.sums, 1
    while count <= MAX_STEPS:
        near = absolute(step) <= left * y
        if every(near):
            break
        following = where(near, y, smaller(larger(y + step, 1.0), highest))
        sums = moved_sums(losses, eta, y, following, reciprocals)
        step = where(near, step, step_from(following, sums))
        y = following
        count += 1
    return Solved(OK if count <= MAX_STEPS else NOT_CONVERGED, y, step, sums, min(count, MAX_STEPS))


@kernel
def solve_roots(losses: Floats, eta: Number, start: Number, highest: float, left: float, reciprocals: Floats) -> Solved:
    """Write the r_a of a y near the solution, to which at most ``left`` times y is left to go."""
    y = smaller(larger(start, 1.0), highest)
    sums = power_sums(losses, eta, y, reciprocals)
    return solve_from(losses, eta, Solved(OK, y, step_from(y, sums), sums, 1), highest, left, reciprocals)


@kernel
def last_square(r: Number, v: Number) -> Number:
    """Return r^2/(1 - v)^2 for |v| <= LAST: from r itself, whose rounding v makes up for."""
    return r * r * fused(v, fused(v, fused(4.0, v, 3.0), 2.0), 1.0)


@kernel
def last_rise(v: Number) -> Number:
    """Return 1/(1 - v) - 1 for |v| <= LAST: by which share r becomes larger."""
    return v * fused(v, 1.0 + v, 1.0)


@kernel
def root_point(q: Floats, start: Number, highest: float, reciprocals: Floats) -> tuple[int, Number, int]:
    """Replace the eta l_a in q by the FTRL point; return (status, y, evaluations)."""
    found = solve_roots(q, 1.0, start, highest, LAST, reciprocals)
    back = 0.0 - found.step
    for a in range(q.shape[0]):
        q[a] = last_square(reciprocals[a], back * reciprocals[a])
    return found.status, found.y + found.step, found.evaluations


@kernel
def near_point(losses: Floats, eta: Number, start: Number, roots: Floats) -> Solved:
    """Write the r_a of a y near the FTRL point, so near that `sum_of_roots` is good to 2e-8."""
    return solve_roots(losses, eta, start, math.sqrt(losses.shape[0]), CLOSE, roots)


@kernel
def sum_of_roots(found: Solved, roots: Floats) -> Number:
    """Return the sum of the r_a at the solution, from those at y, by its series: up to 5 v^4, v = step/y."""
    total = 0.0 * found.y
    for a in range(roots.shape[0]):
        total = total + roots[a]
    second, third, fourth, fifth = found.sums
    x = found.step
    return total - x * (second - x * (third - x * (fourth - x * fifth)))


@kernel
def last_step(found: Solved, q: Floats, roots: Floats) -> tuple[int, Number, Number]:
    """Write the FTRL point, and its roots in the place of those at y; return (status, y, the sum of the roots)."""
    total, left = 0.0 * found.y, 0.0 - found.step
    for a in range(roots.shape[0]):
        r = roots[a]
        square, rise = r * r, last_rise(left * r)
        q[a] = fused(square, fused(rise, rise, rise + rise), square)
        near = fused(r, rise, r)
        roots[a] = near
        total = total + near
    return found.status, found.y + found.step, total


@kernel
def point_at_rate(
    losses: Floats, eta: Number, k: Number, begun: Solved, q: Floats, roots: Floats
) -> tuple[int, Number, Number]:
    """Write the FTRL point at the rate eta, begun at eta/k with the roots that are there, and its own roots.

    Return (status, y, the sum of the roots). A GPU has its own.
    """
    back = 1.0 / k
    square = back * back
    second, third, fourth, fifth = begun.sums
    sums = second * square, third * (square * back), fourth * (square * square), fifth * (square * square * back)
    y = k * begun.y
    for a in range(roots.shape[0]):
        roots[a] = back * roots[a]
    highest = math.sqrt(losses.shape[0])
    found = solve_from(losses, eta, Solved(OK, y, step_from(y, sums), sums, 1), highest, LAST, roots)
    return last_step(found, q, roots)
