"""The two-point master of the reduction by Dann, Wei and Zimmert (2023), "LSB via Corral" with alpha = 1/2.

Option 1 is a candidate, option 2 a base algorithm. With C the estimated losses of the two, that of the base less its
bonus, the master plays argmin <q, C> - (2/eta) sum sqrt(q_i) + (1/beta) sum log(1/q_i), mixed slightly with 1/2.
"""

import math

from bothworlds.kernels.jit.compile import kernel

STEPS = 64
FARTHEST = 60.0


@kernel
def slope_at(difference: float, inverse_rate: float, barrier: float, v: float, w: float) -> float:
    """Return the slope of the objective in v = q_2, with w = q_1 = 1 - v; inverse_rate = 1/eta, barrier = 1/beta."""
    return difference - inverse_rate * (1.0 / math.sqrt(v) - 1.0 / math.sqrt(w)) - barrier * (1.0 / v - 1.0 / w)


@kernel
def corral_point(difference: float, inverse_rate: float, barrier: float) -> tuple[float, float]:
    """Return (q_1, q_2) for C_2 - C_1 = difference: the slope increases in q_2, so bisect its logit.

    >>> corral_point(0.0, 1.0, 0.0)
    (0.5, 0.5)
    """
    low, high = 0.0 - FARTHEST, FARTHEST
    middle = 0.0
    for _ in range(STEPS):
        v, w = 1.0 / (1.0 + math.exp(0.0 - middle)), 1.0 / (1.0 + math.exp(middle))
        slope = slope_at(difference, inverse_rate, barrier, v, w)
        if slope == 0.0:
            break
        if slope > 0.0:
            high = middle
        else:
            low = middle
        middle = 0.5 * (low + high)
    return 1.0 / (1.0 + math.exp(middle)), 1.0 / (1.0 + math.exp(0.0 - middle))


@kernel
def mixed(clock: float, candidate_share: float, base_share: float) -> tuple[float, float]:
    """Return the two shares mixed with 1/2, with weight 1/(2 t^2)."""
    weight = 0.5 / (clock * clock)
    return (1.0 - weight) * candidate_share + 0.5 * weight, (1.0 - weight) * base_share + 0.5 * weight


@kernel
def master_point(clock: float, difference: float, c1: float, c2: float) -> tuple[float, float]:
    """Return (q_1, q_2) of round t of an epoch: 1/eta = sqrt(t) + 8 sqrt(c1), 1/beta = 8 c2, mixed by 1/(2 t^2)."""
    candidate_share, base_share = corral_point(difference, math.sqrt(clock) + 8.0 * math.sqrt(c1), 8.0 * c2)
    return mixed(clock, candidate_share, base_share)


@kernel
def data_master_point(clock: float, difference: float, inverse_rate: float) -> tuple[float, float]:
    """Return (q_1, q_2) of the data-dependent master, "dd-LSB Corral": only a log barrier, 1/eta = inverse_rate.

    The slope D - 1/q_2 + 1/q_1, D = difference/inverse_rate, is zero at q_2 = 2/(2 + D + (D^2 + 4)^(1/2)); q_1 is the
    same with -D for D. (D^2 + 4)^(1/2) - |D| is computed as a quotient. An inverse rate of 0, after losses of 0 only,
    gives 1/2.
    """
    ratio = difference / inverse_rate if inverse_rate > 0.0 else 0.0
    longer = math.sqrt(ratio * ratio + 4.0) + abs(ratio)
    smaller_share, larger_share = 2.0 / (2.0 + longer), 2.0 / (2.0 + 4.0 / longer)
    return mixed(clock, larger_share, smaller_share) if ratio > 0.0 else mixed(clock, smaller_share, larger_share)
