"""Does a curve grow as a theorem says? Fits, exponents, scalings and bounds, with intervals over replications.

Pure functions of curves: rounds (n,) and the regret of every replication at these rounds (R, n).
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.report.statistics import (
    FEWEST_POINTS,
    Estimate,
    jackknife,
    local_exponents,
    log_slope,
    mean_of,
    means_without_one,
)

SHAPES: dict[str, Callable[[Floats], Floats]] = {
    "log T": np.log,
    "log^2 T": lambda t: np.log(t) ** 2,
    "sqrt T": np.sqrt,
    "T": lambda t: t,
}
NOTHING = Estimate(math.nan, math.nan)


def shape_shares(
    rounds: Ints,
    paths: Floats,
    shapes: Sequence[str] = ("log T", "sqrt T"),
    *,
    since: float = 1.0,
    resamples: int = 400,
    rng: int = 0,
) -> dict[str, float]:
    """Return how often each shape f fits a + b f(t) best, by least squares, over bootstrap samples of the replications.

    Rounds from ``since`` on, evenly in log t, count equally. A share near 1 means that the data prefer this shape to
    the others, not that it is right. Empty where fewer than five rounds are left.

    >>> t = np.arange(1, 1001)
    >>> shape_shares(t, np.log(t)[None, :], since=10)
    {'log T': 1.0, 'sqrt T': 0.0}
    """
    kept = rounds >= since
    if kept.sum() < FEWEST_POINTS:
        return {}
    draws = np.random.default_rng(rng).integers(len(paths), size=(resamples, len(paths)))
    means = paths[:, kept][draws].mean(axis=1)
    misfits = np.stack([_misfit(SHAPES[shape](rounds[kept].astype(np.float64)), means) for shape in shapes])
    best = misfits.argmin(axis=0)
    return {shape: float((best == i).mean()) for i, shape in enumerate(shapes)}


def _misfit(f: Floats, curves: Floats) -> Floats:
    """Return the residual sum of squares of a + b f for every curve (.., n)."""
    f = f - f.mean()
    centred = curves - curves.mean(axis=-1, keepdims=True)
    slopes = centred @ f / (f @ f)
    return np.asarray(((centred - slopes[..., None] * f) ** 2).sum(axis=-1))


def decade_ratio(rounds: Ints, paths: Floats) -> Estimate:
    """Return (R_T - R_{T/10})/(R_{T/10} - R_{T/100}): 1 for log T, sqrt(10) for sqrt(T), 10 for T; jackknife interval.

    Whatever happened before T/100, a long exploration say, cancels. NaN if the earlier decade adds no regret.

    >>> t = np.array([10, 100, 1000])
    >>> round(decade_ratio(t, np.array([[5.0, 7.0, 9.0], [6.0, 8.0, 10.0]])).value, 6)
    1.0
    """
    marks = [int(np.abs(np.log(rounds / (rounds[-1] / part))).argmin()) for part in (100.0, 10.0, 1.0)]
    if len(set(marks)) < 3 or rounds[marks[0]] * 50 > rounds[-1]:
        return NOTHING

    def ratio(mean: Floats) -> float:
        before, after = mean[marks[1]] - mean[marks[0]], mean[marks[2]] - mean[marks[1]]
        return float(after / before) if before > 0.0 else math.nan

    value = ratio(paths.mean(axis=0))
    if len(paths) == 1 or math.isnan(value):
        return Estimate(value, math.nan)
    others = [ratio(mean) for mean in means_without_one(paths)]
    return NOTHING if np.isnan(others).any() else jackknife(value, others)


def envelope_exponent(rounds: Ints, paths: Floats, *, since: float) -> Estimate:
    """Return the slope of log max_{s<=t} R_s against log t from ``since`` on, with a jackknife interval.

    For regret that rises and falls, as against an adversary that changes its strategy: a growing bound has to cover the
    highest point so far. NaN where regret was never positive before ``since``.

    >>> t = np.arange(1, 1001)
    >>> round(envelope_exponent(t, (np.sqrt(t) * np.sign(t % 3))[None, :], since=10).value, 2)
    0.5
    """
    kept = rounds >= since
    if kept.sum() < FEWEST_POINTS:
        return NOTHING
    x = np.log(rounds[kept])

    def slope(mean: Floats) -> float:
        return log_slope(x, np.asarray(np.maximum.accumulate(mean)[kept]))

    value = slope(paths.mean(axis=0))
    if len(paths) == 1 or math.isnan(value):
        return Estimate(value, math.nan)
    others = [slope(mean) for mean in means_without_one(paths)]
    return NOTHING if np.isnan(others).any() else jackknife(value, others)


def slow_from(rounds: Ints, paths: Floats, *, below: float = 0.25) -> float:
    """Return the round from which the growth exponent of the decade before stays below a level; infinity if never.

    >>> t = np.unique(np.geomspace(1, 10**6, 200).astype(int))
    >>> slow_from(t, (np.log(t) + 1e-9)[None, :]), slow_from(t, np.sqrt(t)[None, :])
    (209.0, inf)
    """
    at, found = local_exponents(rounds, paths)
    above = ~(found[:, 0] < below)
    if above[-1]:
        return math.inf
    return float(at[0] if not above.any() else at[np.flatnonzero(above)[-1] + 1])


def scaling(sizes: Sequence[float], values: Floats) -> Estimate:
    """Return the slope of log value against log size: the mean over draws of instances (draws, sizes), 95 % interval.

    NaN if some value is not positive.

    >>> round(scaling([1, 2, 4], np.array([[3.0, 6.0, 12.0], [1.0, 2.0, 4.0]])).value, 6)
    1.0
    """
    if not (values > 0.0).all():
        return NOTHING
    x = np.log(np.asarray(sizes, dtype=np.float64))
    x -= x.mean()
    return mean_of(np.log(values) @ x / (x @ x))


def steps(sizes: Sequence[float], values: Sequence[float]) -> list[float]:
    """Return the slopes of log value against log size from each size to the next; NaN where a value is not positive.

    >>> [round(s, 6) for s in steps([1, 10, 100], [2.0, 20.0, 20.0])]
    [1.0, 0.0]
    """
    pairs = zip(zip(sizes, values, strict=True), zip(sizes[1:], values[1:], strict=True), strict=False)
    return [math.log(w / v) / math.log(n / m) if v > 0.0 and w > 0.0 else math.nan for (m, v), (n, w) in pairs]
