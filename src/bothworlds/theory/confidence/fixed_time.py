"""Intervals for the mean of bounded observations at one time that is chosen before looking at the data.

If they are checked repeatedly, they are wrong far more often than alpha; use the any-time intervals of the other
modules instead.
"""

import math

from bothworlds.theory.confidence.checks import checked_alpha, checked_counts, checked_variance
from bothworlds.theory.confidence.special import beta_quantile


def hoeffding_interval(count: int, mean: float, *, alpha: float = 0.05) -> tuple[float, float]:
    """Return mean +- sqrt(log(2/alpha)/(2 n)) within [0, 1] (Hoeffding 1963, Theorem 1).

    >>> [round(end, 4) for end in hoeffding_interval(100, 0.5)]
    [0.3642, 0.6358]
    """
    checked_counts(count, count * mean)
    radius = math.sqrt(math.log(2.0 / checked_alpha(alpha)) / (2.0 * count)) if count else math.inf
    return max(0.0, mean - radius), min(1.0, mean + radius)


def empirical_bernstein_interval(
    count: int, mean: float, variance: float, *, alpha: float = 0.05
) -> tuple[float, float]:
    """Return mean +- (sqrt(2 V log(4/alpha)/n) + 7 log(4/alpha)/(3 (n - 1))) within [0, 1].

    Maurer and Pontil 2009, Theorem 4, for both sides. ``variance`` is the sample variance V, with divisor n - 1.

    >>> [round(end, 4) for end in empirical_bernstein_interval(1000, 0.02, 0.0196)]
    [0.0, 0.0433]
    """
    checked_counts(count, count * mean)
    log_term = math.log(4.0 / checked_alpha(alpha))
    if count < 2:
        return 0.0, 1.0
    radius = math.sqrt(2.0 * checked_variance(variance) * log_term / count) + 7.0 * log_term / (3.0 * (count - 1))
    return max(0.0, mean - radius), min(1.0, mean + radius)


def clopper_pearson(count: int, successes: int, *, alpha: float = 0.05) -> tuple[float, float]:
    """Return the exact interval for the rate of successes among independent trials (Clopper and Pearson 1934).

    Its ends are quantiles of Beta(s, n - s + 1) and Beta(s + 1, n - s).

    >>> [round(end, 4) for end in clopper_pearson(20, 0)]
    [0.0, 0.1684]
    """
    checked_counts(count, successes)
    tail, s, rest = checked_alpha(alpha) / 2.0, successes, count - successes
    low = beta_quantile(tail, s, rest + 1) if s > 0 else 0.0
    return low, 1.0 - beta_quantile(tail, rest, s + 1) if rest > 0 else 1.0
