"""The two-point master of the reduction by Dann, Wei and Zimmert (2023), "LSB via Corral" with alpha = 1/2.

Option 1 is a candidate, option 2 a base algorithm. With C the estimated losses of the two, that of the base less its
bonus, the master plays argmin <q, C> - (2/eta) sum sqrt(q_i) + (1/beta) sum log(1/q_i), a little mixed with 1/2.
"""

import math

from bothworlds.kernels.jit.compile import kernel

STEPS = 64
FARTHEST = 60.0


@kernel
def slope_at(difference: float, pace: float, barrier: float, v: float, w: float) -> float:
    """Return the slope of the objective in v = q_2, with w = q_1 = 1 - v; pace = 1/eta, barrier = 1/beta."""
    return difference - pace * (1.0 / math.sqrt(v) - 1.0 / math.sqrt(w)) - barrier * (1.0 / v - 1.0 / w)


@kernel
def corral_point(difference: float, pace: float, barrier: float) -> tuple[float, float]:
    """Return (q_1, q_2) for C_2 - C_1 = difference: the slope increases in q_2, so bisect its logit.

    >>> corral_point(0.0, 1.0, 0.0)
    (0.5, 0.5)
    """
    low, high = 0.0 - FARTHEST, FARTHEST
    middle = 0.0
    for _ in range(STEPS):
        v, w = 1.0 / (1.0 + math.exp(0.0 - middle)), 1.0 / (1.0 + math.exp(middle))
        slope = slope_at(difference, pace, barrier, v, w)
        if slope == 0.0:
            break
        if slope > 0.0:
            high = middle
        else:
            low = middle
        middle = 0.5 * (low + high)
    return 1.0 / (1.0 + math.exp(middle)), 1.0 / (1.0 + math.exp(0.0 - middle))


@kernel
def mixed(clock: float, one: float, two: float) -> tuple[float, float]:
    """Return the two shares mixed with 1/2, by 1/(2 t^2)."""
    rest = 0.5 / (clock * clock)
    return (1.0 - rest) * one + 0.5 * rest, (1.0 - rest) * two + 0.5 * rest


@kernel
def master_point(clock: float, difference: float, c1: float, c2: float) -> tuple[float, float]:
    """Return (q_1, q_2) of round t of an epoch: 1/eta = sqrt(t) + 8 sqrt(c1), 1/beta = 8 c2, mixed by 1/(2 t^2)."""
    one, two = corral_point(difference, math.sqrt(clock) + 8.0 * math.sqrt(c1), 8.0 * c2)
    return mixed(clock, one, two)


@kernel
def data_master_point(clock: float, difference: float, pace: float) -> tuple[float, float]:
    """Return (q_1, q_2) of the data-dependent master, "dd-LSB Corral": a log barrier alone, 1/eta = pace.

    The slope D - 1/q_2 + 1/q_1, D = difference/pace, is zero at q_2 = 2/(2 + D + (D^2 + 4)^(1/2)), and q_1 has -D for
    D; (D^2 + 4)^(1/2) - |D| is written as a quotient. A pace of 0, where nothing but losses of 0 was seen, means 1/2.
    """
    ratio = difference / pace if pace > 0.0 else 0.0
    long = math.sqrt(ratio * ratio + 4.0) + abs(ratio)
    less, more = 2.0 / (2.0 + long), 2.0 / (2.0 + 4.0 / long)
    return mixed(clock, more, less) if ratio > 0.0 else mixed(clock, less, more)
