"""What intervals are given, checked at the border."""

from typing import Any

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.problem.checks import is_number


def checked_alpha(alpha: Any) -> float:
    """Return alpha, the probability of ever being wrong; refuse what is not inside (0, 1).

    >>> checked_alpha(95)
    Traceback (most recent call last):
    ValueError: alpha is the probability that the interval is wrong, say 0.05; got 95
    """
    if not is_number(alpha) or not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha is the probability that the interval is wrong, say 0.05; got {alpha!r}")
    return float(alpha)


def level_of(alpha: float) -> str:
    """Return how often an interval is right, as a percentage with all the digits that it has.

    >>> level_of(0.05), level_of(0.025), level_of(0.001)
    ('95%', '97.5%', '99.9%')
    """
    return f"{100.0 - 100.0 * alpha:.10g}%"


def checked_above(value: Any, least: float, name: str) -> float:
    """Return a number that must be above another, and finite.

    >>> checked_above(0.0, 0.0, "begins_at")
    Traceback (most recent call last):
    ValueError: begins_at must be a number above 0; got 0.0
    """
    if not is_number(value) or not least < value < np.inf:
        raise ValueError(f"{name} must be a number above {least:g}; got {value!r}")
    return float(value)


def checked_variance(variance: Any) -> float:
    """Return a variance, or a sum of them; refuse what is none.

    >>> checked_variance(-1)
    Traceback (most recent call last):
    ValueError: variance must be a number of at least 0; got -1
    """
    if not is_number(variance) or not 0.0 <= variance < np.inf:
        raise ValueError(f"variance must be a number of at least 0; got {variance!r}")
    return float(variance)


def checked_rates(rates: Any, name: str) -> Floats:
    """Return one or more numbers in [0, 1] as an array.

    >>> checked_rates(1.5, "rate")
    Traceback (most recent call last):
    ValueError: rate must lie in [0, 1]; got 1.5
    """
    found = np.asarray(rates, dtype=np.float64)
    wrong = ~((found >= 0.0) & (found <= 1.0))
    if wrong.any():
        raise ValueError(f"{name} must lie in [0, 1]; got {found[wrong][0]:g}")
    return found


def checked_means(means: Any) -> tuple[float, float]:
    """Return the lowest and the highest mean that is possible; refuse what is not two numbers in this order."""
    try:
        low, high = (float(end) for end in means)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not -np.inf < low < high < np.inf:
        raise ValueError(f"means must be (lowest, highest), finite, with lowest < highest; got {means}")
    return low, high


def checked_counts(count: Any, total: Any) -> tuple[Floats, Floats]:
    """Return how many observations in [0, 1] there were and their sum, as arrays of one shape.

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
    """Return observations and the ends of their ranges as arrays; ranges that do not fit are refused.

    A range holds for one observation, or for all. It must have been known before the observation, and it must contain
    every mean that is thought possible.
    """
    x = np.atleast_1d(np.ascontiguousarray(values, dtype=np.float64))
    ends = [np.atleast_1d(np.ascontiguousarray(end, dtype=np.float64)) for end in (low, high)]
    if x.ndim != 1 or any(end.shape not in ((1,), x.shape) for end in ends):
        shapes = f"{x.shape}, {ends[0].shape} and {ends[1].shape}"
        raise ValueError(
            f"observations come as one row of numbers, low and high as one number or as many; got {shapes}"
        )
    if not all(np.isfinite(end).all() for end in ends):
        raise ValueError("the range of every observation must be finite: without one nothing is known of its mean")
    narrow = ~((ends[0] <= means[0]) & (ends[1] >= means[1]))
    if narrow.any():
        raise ValueError(
            f"the range of every observation must contain all possible means, [{means[0]:g}, {means[1]:g}]; "
            "widen low and high, or narrow means"
        )
    outside = np.flatnonzero(~((x >= ends[0]) & (x <= ends[1])))
    if len(outside):
        raise ValueError(
            f"observation {int(outside[0])} is {x[outside[0]]:g}, outside its range; the interval needs a true one"
        )
    return x, ends[0], ends[1]
