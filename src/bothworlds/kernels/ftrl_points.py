"""The FTRL point of equation (4): argmin over the simplex of <L, q> + psi(q)/eta, for Tsallis and Shannon.

With p = 1/(1 - alpha) and s_a = eta (L_a - min L), the Tsallis point is q_a = (s_a + y)^(-p) for the unique y
with W(y) = sum_a q_a = 1; it lies in 1 <= y <= K^(1 - alpha). Newton's method runs on G(y) = W^(-1/p) - 1, which is
concave, increasing, and exactly linear for equal losses and for one dominant arm: from any start in the
bracket the next iterate is at most the root, and from there the iterates increase to it.

An infinite loss means that the arm is not offered: it gets probability zero.
"""

import math

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import (
    Number,
    absolute,
    either,
    every,
    exponential,
    exponential_less_one,
    larger,
    logarithm,
    smaller,
    value,
    where,
)
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.status import NOT_CONVERGED, OK
from bothworlds.kernels.tsallis_half import root_point

EPSILON = 2.220446049250313e-16
MAX_NEWTON = 60


@kernel
def smallest(losses: Floats) -> Number:
    """Return the smallest entry."""
    least = value(losses[0])
    for a in range(1, losses.shape[0]):
        least = smaller(least, losses[a])
    return least


@kernel
def newton_sums(q: Floats, y: Number, alpha: float, powers: Floats) -> tuple[Number, Number]:
    """Return W(y) = sum_a (s_a + y)^(-p) and sum_a (s_a + y)^(-p-1), and write the powers; q holds the s_a."""
    p = 1.0 / (1.0 - alpha)
    total = 0.0 * y
    slope = 0.0 * y
    for a in range(q.shape[0]):
        base = q[a] + y
        w = exponential(-p * logarithm(base))
        powers[a] = w
        total = total + w
        slope = slope + w / base
    return total, slope


@kernel
def newton_step(total: Number, slope: Number, alpha: float) -> Number:
    """Return the Newton step on G(y) = W^(-1/p) - 1, that is W (W^(1/p) - 1) / sum_a (s_a + y)^(-p-1)."""
    return total * exponential_less_one(logarithm(total) * (1.0 - alpha)) / slope


@kernel
def power_point(q: Floats, alpha: float, start: Number, highest: float, powers: Floats) -> tuple[int, Number, int]:
    """Replace the s_a in q by the FTRL point for any alpha; return (status, y, evaluations)."""
    p = 1.0 / (1.0 - alpha)
    y = smaller(larger(start, 1.0), highest)
    close_enough = 8.0 * EPSILON * (p + math.sqrt(q.shape[0]))
    for count in range(1, MAX_NEWTON + 1):
        total, slope = newton_sums(q, y, alpha, powers)
        following = smaller(larger(y + newton_step(total, slope, alpha), 1.0), highest)
        converged = either(absolute(total - 1.0) <= close_enough, absolute(following - y) <= 2.0 * EPSILON * y)
        if every(converged):
            scale = 1.0 / total
            for a in range(q.shape[0]):
                q[a] = powers[a] * scale
            return OK, y, count
        y = where(converged, y, following)
    return NOT_CONVERGED, y, MAX_NEWTON


@kernel
def solved_point(
    losses: Floats, eta: Number, alpha: float, start: Number, powers: Floats, q: Floats
) -> tuple[int, Number, int]:
    """Write the FTRL point into q; return (status, y, number of evaluations of the sum).

    ``start`` is a guess of y: that of the previous round, or 1. Any number is safe, because it is clipped to the
    bracket. ``losses`` and ``q`` may be the same array; ``powers`` is scratch space. Points that are computed
    together stop at the same iterates as alone.
    """
    K = q.shape[0]
    least = smallest(losses)
    for a in range(K):
        q[a] = eta * (losses[a] - least)
    if alpha == 0.5:
        return root_point(q, start, math.sqrt(K), powers)
    return power_point(q, alpha, start, math.exp(math.log(K) * (1.0 - alpha)), powers)


@kernel
def tsallis_point(
    losses: Floats, eta: Number, alpha: float, start: Number, powers: Floats, q: Floats
) -> tuple[int, Number]:
    """Write the FTRL point into q; return (status, y) as `solved_point` does."""
    status, y, _ = solved_point(losses, eta, alpha, start, powers, q)
    return status, y


@kernel
def shannon_point(losses: Floats, eta: Number, q: Floats) -> None:
    """Write q_a proportional to exp(-eta L_a) into q: the limit alpha = 1 in its own parametrisation."""
    least = smallest(losses)
    total = 0.0 * least
    for a in range(q.shape[0]):
        q[a] = exponential(eta * (least - losses[a]))
        total = total + q[a]
    for a in range(q.shape[0]):
        q[a] = q[a] / total
