"""Any-time interval for the average of rates that may change with time, from counts.

Observations X_i lie in [0, 1] with conditional means m_i given the past, which may change at any time and depend on
the past. With M = m_1 + ... + m_n and s = X_1 + ... + X_n, exp(c s - (e^c - 1) M) is a supermartingale for every
c, because E[e^(cX)] <= 1 + m (e^c - 1) <= exp(m (e^c - 1)). Mixed over e^c ~ Gamma(a, a) it has the closed form

    E_n(M) = e^M a^a Gamma(a + s)/(Gamma(a) (a + M)^(a + s)),

and likewise for 1 - X with n - s and n - M. At the true M, their mean ever reaches 1/alpha with probability at most
alpha (Ville's inequality), so {M/n : mean of both < 1/alpha} contains the average rate at all times simultaneously.
It is an interval, because the logarithm of each is convex in M. The mixture is that of Howard, Ramdas, McAuliffe and
Sekhon 2021 for gamma-exponential and Poisson tails, here with both sides combined.
"""

import math
from typing import Any

import numpy as np

from bothworlds.arrays import Bools, Floats
from bothworlds.theory.confidence.bisection import mean_of, outer_ends
from bothworlds.theory.confidence.checks import checked_alpha, checked_counts, checked_rates
from bothworlds.theory.confidence.special import log_gamma_excess

SHAPE = 0.5
ROUNDING = 16.0 * np.finfo(np.float64).eps  # relative rounding error of the sums below


def log_average_evidence(count: Any, total: Any, average: Any) -> Floats:
    """Return the log evidence against the hypothesis that the conditional means have this average.

    >>> round(float(log_average_evidence(1000, 100, 0.2)), 2)
    27.09
    """
    n, s = checked_counts(count, total)
    return _log_evidence(n, s, _fixed_part(n, s), _offset(n, s, checked_rates(average, "average")))


def average_rate_interval(count: Any, total: Any, *, alpha: float = 0.05) -> tuple[Floats, Floats]:
    """Return the ends of an any-time interval for the average of rates that may change; for numbers or arrays.

    Ends are rounded outwards; without observations the interval is [0, 1]. Where the rate is the same in all rounds,
    `rate_interval` is narrower for rates near 1/2, and hardly narrower for small rates.

    >>> low, high = average_rate_interval(1000, 100)
    >>> round(float(low), 4), round(float(high), 4)
    (0.0681, 0.1406)
    """
    log_threshold = -math.log(checked_alpha(alpha))
    n, s = checked_counts(count, total)
    mean, fixed = mean_of(n, s), _fixed_part(n, s)

    def is_in(average: Floats) -> Bools:
        off = _offset(n, s, average)
        rounding = ROUNDING * (1.0 + log_threshold + np.abs(off))
        return np.asarray(_log_evidence(n, s, fixed, off) < log_threshold + rounding)

    return outer_ends(is_in, mean)


def _fixed_part(n: Floats, s: Floats) -> tuple[Floats, Floats]:
    """Return log(a^a Gamma(u)/(2 Gamma(a))) - u log u + s, u = a + s, for the observations X and for 1 - X.

    The 1/2 is the weight of each in the mixture.
    """
    constant = SHAPE * math.log(SHAPE) - math.lgamma(SHAPE) - math.log(2.0) - SHAPE
    return log_gamma_excess(SHAPE + s) + constant, log_gamma_excess(SHAPE + n - s) + constant


def _log_evidence(n: Floats, s: Floats, fixed: tuple[Floats, Floats], off: Floats) -> Floats:
    """Return the log of the mean of E_n(M) for X and for 1 - X, where M = n times the average = s + ``off``."""
    return np.asarray(np.logaddexp(fixed[0] + _tail(SHAPE + s, off), fixed[1] + _tail(SHAPE + n - s, -off)))


def _offset(n: Floats, s: Floats, average: Floats) -> Floats:
    """Return M - s, computed from the nearer end: near 1, n times the average minus s would lose all digits."""
    return np.where(average > 0.5, (n - s) - n * (1.0 - average), n * average - s)


def _tail(u: Floats, off: Floats) -> Floats:
    """Return off - u log(1 + off/u), about off^2/(2u) for small off."""
    return np.asarray(off - u * np.log1p(off / u))
