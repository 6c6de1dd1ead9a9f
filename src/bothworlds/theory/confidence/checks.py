"""Validation of the arguments of intervals and tests."""

from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.problem.checks import is_number


def checked_alpha(alpha: Any) -> float:
    """Return alpha, the probability of ever being wrong; raise ValueError unless it lies inside (0, 1).

    >>> checked_alpha(95)
    Traceback (most recent call last):
    ValueError: alpha is the probability that the interval is wrong, say 0.05; got 95
    """
    if not is_number(alpha) or not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha is the probability that the interval is wrong, say 0.05; got {alpha!r}")
    return float(alpha)


def level_of(alpha: float) -> str:
    """Return the confidence level 1 - alpha as a percentage with all its digits.

    >>> level_of(0.05), level_of(0.025), level_of(0.001)
    ('95%', '97.5%', '99.9%')
    """
    return f"{100.0 - 100.0 * alpha:.10g}%"


def checked_above(value: Any, least: float, name: str) -> float:
    """Return a finite number above ``least``; raise ValueError otherwise.

    >>> checked_above(0.0, 0.0, "begins_at")
    Traceback (most recent call last):
    ValueError: begins_at must be a number above 0; got 0.0
    """
    if not is_number(value) or not least < value < np.inf:
        raise ValueError(f"{name} must be a number above {least:g}; got {value!r}")
    return float(value)


def checked_variance(variance: Any) -> float:
    """Return a variance, or a sum of variances; raise ValueError unless it is finite and at least 0.

    >>> checked_variance(-1)
    Traceback (most recent call last):
    ValueError: variance must be a number of at least 0; got -1
    """
    if not is_number(variance) or not 0.0 <= variance < np.inf:
        raise ValueError(f"variance must be a number of at least 0; got {variance!r}")
    return float(variance)


def checked_rates(rates: Any, name: str) -> Floats:
    """Return one or more numbers in [0, 1] as an array; raise ValueError for others.

    >>> checked_rates(1.5, "rate")
    Traceback (most recent call last):
    ValueError: rate must lie in [0, 1]; got 1.5
    """
    values = np.asarray(rates, dtype=np.float64)
    wrong = ~((values >= 0.0) & (values <= 1.0))
    if wrong.any():
        raise ValueError(f"{name} must lie in [0, 1]; got {values[wrong][0]:g}")
    return values


def checked_means(means: Any) -> tuple[float, float]:
    """Return the lowest and the highest possible mean; raise ValueError unless they are two numbers in this order."""
    try:
        low, high = (float(end) for end in means)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not -np.inf < low < high < np.inf:
        raise ValueError(f"means must be (lowest, highest), finite, with lowest < highest; got {means}")
    return low, high


def checked_counts(count: Any, total: Any) -> tuple[Floats, Floats]:
    """Return the number of observations in [0, 1] and their sum, as arrays of one shape.

    >>> checked_counts(3, 4)
    Traceback (most recent call last):
    ValueError: 3 observations in [0, 1] cannot sum to 4
    """
    n, s = np.broadcast_arrays(np.asarray(count, dtype=np.float64), np.asarray(total, dtype=np.float64))
    wrong = ~(np.isfinite(n) & (n >= 0.0) & (s >= 0.0) & (s <= n * (1.0 + 1e-12)))
    if wrong.any():
        raise ValueError(f"{n[wrong][0]:g} observations in [0, 1] cannot sum to {s[wrong][0]:g}")
    return n, np.minimum(s, n)


def checked_observations(values: Any, low: Any, high: Any, means: tuple[float, float]) -> tuple[Floats, Floats, Floats]:
    """Return observations and the ends of their ranges as arrays; raise ValueError for invalid ranges.

    There is one range for all observations, or one for each. It must be known before the observation, and it must
    contain every possible mean.
    """
    x = np.atleast_1d(np.ascontiguousarray(values, dtype=np.float64))
    ends = [np.atleast_1d(np.ascontiguousarray(end, dtype=np.float64)) for end in (low, high)]
    if x.ndim != 1 or any(end.shape not in ((1,), x.shape) for end in ends):
        shapes = f"{x.shape}, {ends[0].shape} and {ends[1].shape}"
        raise ValueError(
            f"observations must be one-dimensional, low and high one number or one per observation; got {shapes}"
        )
    if not all(np.isfinite(end).all() for end in ends):
        raise ValueError("the range of every observation must be finite; an infinite range does not bound the mean")
    narrow = ~((ends[0] <= means[0]) & (ends[1] >= means[1]))
    if narrow.any():
        raise ValueError(
            f"the range of every observation must contain all possible means, [{means[0]:g}, {means[1]:g}]; "
            "widen low and high, or narrow means"
        )
    outside = np.flatnonzero(~((x >= ends[0]) & (x <= ends[1])))
    if len(outside):
        raise ValueError(
            f"observation {int(outside[0])} is {x[outside[0]]:g}, outside its range; give the true low and high"
        )
    return x, ends[0], ends[1]
