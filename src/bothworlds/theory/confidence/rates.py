"""Any-time interval for a rate, in closed form, from the number and the sum of observations.

For a rate m the mixture of likelihood ratios

    E_n(m) = B(a + s, b + n - s)/B(a, b) / (m^s (1 - m)^(n - s)),        s = X_1 + ... + X_n,

is a martingale of mean 1 where the X_i are 0 or 1, and a supermartingale where they lie in [0, 1] with conditional mean
m: each ratio (p/m)^x ((1 - p)/(1 - m))^(1 - x) is convex in x, so at most x p/m + (1 - x)(1 - p)/(1 - m), whose mean is
1. By Ville's inequality it ever reaches 1/alpha with probability at most alpha, so {m : E_n(m) < 1/alpha} contains the
rate at all times simultaneously, with probability 1 - alpha (Robbins 1970; Howard, Ramdas, McAuliffe and Sekhon 2021,
the beta-binomial mixture). The set is an interval because log E_n is convex in m.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bothworlds.arrays import Bools, Floats
from bothworlds.theory.confidence.bisection import mean_of, outer_ends
from bothworlds.theory.confidence.checks import checked_above, checked_alpha, checked_counts, checked_rates
from bothworlds.theory.confidence.special import log_gamma_excess

JEFFREYS = (0.5, 0.5)
NEAR = 0.5  # smaller relative differences are computed with log1p
ROUNDING = 16.0 * np.finfo(np.float64).eps  # relative rounding error of the sums below


def log_rate_evidence(count: Any, total: Any, rate: Any, *, prior: tuple[float, float] = JEFFREYS) -> Floats:
    """Return log E_n(m), the log evidence against a rate m from n observations in [0, 1] with a given sum.

    >>> log_rate_evidence(2, 2, 0.5).round(4).tolist()  # log of (3/8)/(1/4)
    0.4055
    """
    n, s = checked_counts(count, total)
    yes, no = _log_ratios_of(n, s)(checked_rates(rate, "rate"))
    return _log_mixture(n, s, prior) - (yes + no)


def rate_interval(
    count: Any, total: Any, *, alpha: float = 0.05, prior: tuple[float, float] = JEFFREYS
) -> tuple[Floats, Floats]:
    """Return the ends of an any-time interval for a rate, for numbers or arrays of counts.

    Ends are rounded outwards. Without observations the interval is [0, 1]. Of several intervals, each is wrong with
    probability alpha; divide alpha by their number to make all of them hold together.

    >>> low, high = rate_interval(1000, 100)
    >>> round(float(low), 4), round(float(high), 4)
    (0.0689, 0.1382)
    """
    log_threshold = -math.log(checked_alpha(alpha))
    n, s = checked_counts(count, total)
    mean, room = mean_of(n, s), _log_mixture(n, s, prior) - log_threshold
    least, ratios = 1.0 + np.abs(room), _log_ratios_of(n, s)

    def is_in(rate: Floats) -> Bools:
        yes, no = ratios(rate)
        with np.errstate(invalid="ignore"):  # at 0 and 1 both are infinite
            return np.asarray(yes + no + ROUNDING * (least + np.abs(yes) + np.abs(no)) > room)

    low, high = outer_ends(is_in, mean)
    return np.where(s > 0.0, low, 0.0), np.where(s < n, high, 1.0)


def _log_mixture(n: Floats, s: Floats, prior: tuple[float, float]) -> Floats:
    """Return log B(a + s, b + n - s)/B(a, b) minus the log of the largest likelihood, that of the rate s/n."""
    a, b = (checked_above(part, 0.0, "each number of the prior") for part in prior)
    log_prior = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    return np.asarray(_log_gamma_plus(s, a) + _log_gamma_plus(n - s, b) - _log_gamma_plus(n, a + b) - log_prior)


def _log_gamma_plus(x: Floats, shift: float) -> Floats:
    """Return log Gamma(x + shift) - x log x + x without cancellation for large x."""
    total = x + shift
    divisor = np.maximum(x, 1.0)
    rise = np.where(x >= 1.0, x * np.log1p(shift / divisor), x * np.log(total / np.where(x > 0.0, x, 1.0)))
    return log_gamma_excess(total) + rise + shift * np.log(total) - shift


def _log_ratios_of(n: Floats, s: Floats) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Build the function of m that returns s log(m/p) and (n - s) log((1 - m)/(1 - p)), p = s/n, with 0 log 0 = 0.

    Both are large and nearly cancel.
    """
    p, has_ones, only_ones = mean_of(n, s), s > 0.0, s >= n
    rest, left = 1.0 - p, n - s
    with np.errstate(divide="ignore"):
        log_p, log_rest = np.log(p), np.log1p(-p)

    def ratios(m: Floats) -> tuple[Floats, Floats]:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            off = m - p
            up, down = off / p, -off / rest
            yes = s * np.where(np.abs(up) < NEAR, np.log1p(up), np.log(m) - log_p)
            no = left * np.where(np.abs(down) < NEAR, np.log1p(down), np.log1p(-m) - log_rest)
        return np.where(has_ones, yes, 0.0), np.where(only_ones, 0.0, no)

    return ratios
