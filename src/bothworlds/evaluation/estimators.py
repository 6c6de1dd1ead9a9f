"""Estimates of a policy's value from a log, all computed from sums over the rows.

The weight of a row is w = pi(a_t | x_t)/h(a_t | x_t), r^ the predicted reward, and r^_pi = sum_a pi(a) r^(a).
"""

import math
from dataclasses import dataclass

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.evaluation.logged import Logged, chunks
from bothworlds.evaluation.regression import Regression
from bothworlds.evaluation.targets import Target, target_of
from bothworlds.kernels.random import Seed, key_from

ESTIMATORS: dict[str, str] = {
    "ips": "mean of w r (Horvitz and Thompson 1952): unbiased with full support, heavy tails",
    "clipped": "mean of min(w, sqrt(rows)) r (Ionides 2008): less variance, too low for rewards above 0",
    "snips": "sum w r/sum w (Swaminathan and Joachims 2015): a ratio, hardly biased, shifts with the rewards",
    "dm": "mean of r^_pi, without the rows before the first fit: only as good as the model",
    "dr": "mean of r^_pi + w (r - r^) (Dudik, Langford and Li 2011): unbiased like ips, less variance if r^ is good",
    "sndr": "mean of r^_pi + sum w (r - r^)/sum w (Thomas and Brunskill 2016): dr with weights that sum to 1",
    "switch": "like dr where w <= sqrt(rows), elsewhere r^_pi alone (Wang, Agarwal and Dudik 2017)",
}


@dataclass(frozen=True)
class Estimate:
    """A value in the problem's units and its standard error, which is not a number if it is not known."""

    value: float
    error: float


def estimates(
    logged: Logged, target: Target, regression: Regression | None, *, most_weight: float | None = None
) -> dict[str, Estimate]:
    """Return all estimates of a target's value, by name; those that need predictions only with a regression.

    ``most_weight`` is the threshold of "clipped" and "switch", sqrt(rows) by default.

    >>> from bothworlds import Problem
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["a", "b"], reward_range=(0, 1))
    >>> log = Logged.from_columns(problem, context=[0, 0], arm=["a", "b"], reward=[1, 0], propensity=[0.5, 0.25])
    >>> found = estimates(log, target_of("uniform", log), None)
    >>> found["ips"].value, round(found["snips"].value, 4)
    (0.5, 0.3333)
    """
    if not logged.rows:
        raise ValueError("the log has no rows; there is nothing to evaluate")
    threshold = math.sqrt(logged.rows) if most_weight is None else float(most_weight)
    sums = np.zeros(18)
    for where in chunks(logged.rows):
        sums += _sums(logged, target, regression, where, threshold)
    return _from_sums(sums, _offset(logged), predictions=regression is not None)


def _offset(logged: Logged) -> float:
    """Return the possible reward nearest to 0: subtracting it before summation keeps the digits of standard errors."""
    low, high = logged.reward_range
    return min(max(0.0, low), high)


def _sums(logged: Logged, target: Target, regression: Regression | None, where: slice, threshold: float) -> Floats:
    """Return all sums over a chunk of the log, of rewards less the offset c."""
    c = _offset(logged)
    arm, r = logged.arm[where], logged.reward[where] - c
    each, pi = np.arange(len(arm)), target.rows(logged, where)
    w = pi[arm, each] / logged.propensity[where]
    clipped_w, wr = np.minimum(w, threshold), w * r
    ips, clipped = wr + c * (w - 1.0), clipped_w * r + c * (clipped_w - 1.0)
    sums = [len(w), w.sum(), wr.sum(), (wr * wr).sum(), (w * w).sum(), (w * wr).sum()]
    sums += [ips.sum(), (ips * ips).sum(), clipped.sum(), (clipped * clipped).sum()]
    if regression is None:
        return np.array([*sums, *[0.0] * 8])
    low, high = logged.reward_range
    predicted = (low - c) + (high - low) * regression.rows(logged, where)
    model = (pi * predicted).sum(axis=0) + c * (pi.sum(axis=0) - 1.0)
    residual = w * (r - predicted[arm, each])
    switch = model + np.where(w <= threshold, residual, 0.0)
    fitted = model[max(0, regression.fitted_from - where.start) :]
    dr = model + residual
    sums += [dr.sum(), (dr * dr).sum(), model.sum(), residual.sum(), switch.sum(), (switch * switch).sum()]
    return np.array([*sums, fitted.sum(), len(fitted)])


def _from_sums(s: Floats, c: float, *, predictions: bool) -> dict[str, Estimate]:
    """Return the estimates from sums over all rows; ``c`` is the offset that was subtracted."""
    n, w, wr, wr2, w2, wwr, ips, ips2, clipped, clipped2, dr, dr2, model, residual, switch, switch2, fitted, fits = (
        s.tolist()
    )

    def mean(total: float, squares: float) -> Estimate:
        value = total / n
        spread = math.sqrt(max(squares / n - value * value, 0.0) / (n - 1.0)) if n > 1 else math.nan
        return Estimate(c + value, spread)

    ratio = wr / w if w > 0.0 else math.nan
    spread = math.sqrt(max(wr2 - 2.0 * ratio * wwr + ratio * ratio * w2, 0.0)) / w if w > 0.0 else math.nan
    estimated = {"ips": mean(ips, ips2), "clipped": mean(clipped, clipped2), "snips": Estimate(c + ratio, spread)}
    if predictions:
        estimated["dm"] = Estimate(c + fitted / fits if fits else math.nan, math.nan)
        estimated["dr"] = mean(dr, dr2)
        estimated["sndr"] = Estimate(c + model / n + (residual / w if w > 0.0 else math.nan), math.nan)
        estimated["switch"] = mean(switch, switch2)
    return estimated


@dataclass(frozen=True)
class Replayed:
    """Mean reward of the accepted rows, its standard error, and the number of accepted rows."""

    value: float
    error: float
    kept: int


def replay(logged: Logged, target: object, *, rng: Seed = 0) -> Replayed:
    """Accept each row with probability w/max w, and return the mean reward of the accepted rows (Li et al. 2011).

    Accepted rows are distributed as if the target had decided. With uneven weights few are accepted; averaged over its
    random numbers the estimate has the mean of "snips", which uses all rows. ``rng`` is the seed: an integer, a
    SeedSequence, a Generator, or None for a random seed.

    >>> from bothworlds import Problem
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["a", "b"], reward_range=(0, 1))
    >>> columns = {"context": [0] * 4, "arm": ["a", "b", "a", "b"], "reward": [1, 0, 1, 0], "propensity": [0.5] * 4}
    >>> replay(Logged.from_columns(problem, **columns), "always a")
    Replayed(value=1.0, error=0.0, kept=2)
    """
    pi = target_of(target, logged)
    parts = [pi.rows(logged, w)[logged.arm[w], np.arange(w.stop - w.start)] for w in chunks(logged.rows)]
    weight = np.concatenate([np.zeros(0), *parts]) / logged.propensity
    if not len(weight) or weight.max() == 0.0:
        raise ValueError("the target never plays the logged arm in any row; replay has no rows to use")
    kept = logged.reward[np.random.default_rng(key_from(rng)).random(len(weight)) * weight.max() < weight]
    if not len(kept):
        raise ValueError("replay accepted no row: the weights are too uneven; use 'snips' or 'dr'")
    error = float(kept.std(ddof=1) / math.sqrt(len(kept))) if len(kept) > 1 else math.nan
    return Replayed(float(kept.mean()), error, len(kept))
