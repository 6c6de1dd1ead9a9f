"""Small statistics of a report: Student intervals, growth exponents. Pure functions."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.theory.confidence.student import factor

FEWEST_POINTS = 5


class Estimate(NamedTuple):
    """A number and the half width of its interval; NaN where there is none."""

    value: float
    half: float


def mean_of(values: Floats) -> Estimate:
    """Return the mean of independent values with its 95 % interval.

    >>> mean_of(np.array([1.0, 3.0])).value
    2.0
    """
    R = len(values)
    error = float(values.std(ddof=1)) / math.sqrt(R) if R > 1 else math.nan
    return Estimate(float(values.mean()), factor(R) * error)


def interval_of(paths: Floats) -> Floats:
    """Return the half width of the 95 % interval of the mean over replications (n,); zero for one replication."""
    R = len(paths)
    return np.asarray(factor(R) * paths.std(axis=0, ddof=1) / math.sqrt(R)) if R > 1 else np.zeros(paths.shape[1])


def sum_between(rounds: Ints, values: Floats) -> float:
    """Return the sum over all rounds of values known at some rounds, interpolated linearly between them.

    >>> sum_between(np.array([1, 2, 5]), np.array([3.0, 4.0, 1.0])), 3 + 4 + 3 + 2 + 1
    (13.0, 13)
    """
    steps = np.diff(rounds)
    after = steps * (values[:-1] + values[1:]) / 2.0 + np.diff(values) / 2.0
    return float(rounds[0] * values[0] + after.sum())


def growth_exponent(rounds: Ints, paths: Floats, *, since: float | None = None) -> Estimate:
    """Return the slope of log R_t against log t over the last decade, with a jackknife interval over replications.

    About 0 for logarithmic regret, 1/2 for sqrt(T), 1 for linear. NaN where the regret is not positive throughout the
    decade, also with any single replication left out, because its logarithm does not exist. ``since`` replaces the
    first round of the decade.

    >>> t = np.arange(1, 1001)
    >>> round(growth_exponent(t, np.sqrt(t)[None, :]).value, 6)
    0.5
    """
    last = rounds >= (rounds[-1] / 10.0 if since is None else since)
    if last.sum() < FEWEST_POINTS:
        return Estimate(math.nan, math.nan)
    x, y = np.log(rounds[last]), paths[:, last]
    slope = log_slope(x, y.mean(axis=0))
    if len(y) == 1 or math.isnan(slope):
        return Estimate(slope, math.nan)
    others = [log_slope(x, mean) for mean in means_without_one(y)]
    return Estimate(math.nan, math.nan) if np.isnan(others).any() else jackknife(slope, others)


def means_without_one(paths: Floats) -> Floats:
    """Return the mean curve with each replication left out in turn, shape (R, n)."""
    return np.asarray((paths.sum(axis=0) - paths) / (len(paths) - 1))


def jackknife(value: float, others: Sequence[float]) -> Estimate:
    """Return a statistic with its 95 % interval, from its values with each replication left out."""
    R, apart = len(others), np.asarray(others) - np.mean(others)
    return Estimate(value, factor(R) * math.sqrt((R - 1) / R * float(apart @ apart)))


def local_exponents(rounds: Ints, paths: Floats, *, count: int = 40) -> tuple[Floats, Floats]:
    """Return rounds, evenly spaced in log t, and the growth exponent up to each with its half width (count, 2)."""
    first = int(np.searchsorted(rounds, min(100, rounds[-1])))
    ends = np.unique(np.linspace(first, len(rounds) - 1, count).astype(np.int64))
    exponents = [growth_exponent(rounds[: end + 1], paths[:, : end + 1]) for end in ends]
    return rounds[ends].astype(np.float64), np.array(exponents)


def log_slope(x: Floats, y: Floats) -> float:
    """Return the least-squares slope of log y on x; NaN if some y is not positive."""
    if (y <= 0.0).any():
        return math.nan
    centred = x - x.mean()
    return float(centred @ np.log(y) / (centred @ centred))
