"""Estimates of a policy's value from a log: each in one formula, all from sums over the rows.

The weight of a row is w = pi(a_t | x_t)/h(a_t | x_t), r^ the predicted reward, and r^_pi = sum_a pi(a) r^(a).
"""

import math
from dataclasses import dataclass

import numpy as np

from bothworlds.evaluation.logged import Logged, pieces
from bothworlds.evaluation.regression import Regression
from bothworlds.evaluation.targets import Target, target_of
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.random import Seed, key_from

ESTIMATORS: dict[str, str] = {
    "ips": "mean of w r (Horvitz and Thompson 1952): unbiased where there is support, heavy tails",
    "clipped": "mean of min(w, sqrt(rows)) r (Ionides 2008): less variance, too low for rewards above 0",
    "snips": "sum w r/sum w (Swaminathan and Joachims 2015): a ratio, hardly biased, shifts with the rewards",
    "dm": "mean of r^_pi, rows before the first fit left out: as good as the model, no more",
    "dr": "mean of r^_pi + w (r - r^) (Dudik, Langford and Li 2011): unbiased like ips, less variance if r^ is good",
    "sndr": "mean of r^_pi + sum w (r - r^)/sum w (Thomas and Brunskill 2016): dr with weights that sum to 1",
    "switch": "as dr where w <= sqrt(rows), else r^_pi alone (Wang, Agarwal and Dudik 2017)",
}


@dataclass(frozen=True)
class Estimate:
    """A value in the problem's units, and its standard error; not a number where none is known."""

    value: float
    error: float


def estimates(
    logged: Logged, target: Target, regression: Regression | None, *, most_weight: float | None = None
) -> dict[str, Estimate]:
    """Return all estimates of a target; those that need predictions only with a regression.

    ``most_weight`` is where "clipped" and "switch" draw the line, sqrt(rows) if left out.

    >>> from bothworlds import Problem
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["a", "b"], reward_range=(0, 1))
    >>> log = Logged.from_columns(problem, context=[0, 0], arm=["a", "b"], reward=[1, 0], propensity=[0.5, 0.25])
    >>> found = estimates(log, target_of("uniform", log), None)
    >>> found["ips"].value, round(found["snips"].value, 4)
    (0.5, 0.3333)
    """
    if not logged.rows:
        raise ValueError("the log has no rows; there is nothing to evaluate")
    line = math.sqrt(logged.rows) if most_weight is None else float(most_weight)
    found = np.zeros(18)
    for where in pieces(logged.rows):
        found += _sums(logged, target, regression, where, line)
    return _from_sums(found, _nearest(logged), predictions=regression is not None)


def _nearest(logged: Logged) -> float:
    """Return the possible reward that is nearest to 0: sums of what is beyond it keep the digits of standard errors."""
    low, high = logged.reward_range
    return min(max(0.0, low), high)


def _sums(logged: Logged, target: Target, regression: Regression | None, where: slice, line: float) -> Floats:
    """Return all sums over a piece of the log, of rewards less c, the one that is nearest to 0."""
    c = _nearest(logged)
    arm, r = logged.arm[where], logged.reward[where] - c
    each, pi = np.arange(len(arm)), target.rows(logged, where)
    w = pi[arm, each] / logged.propensity[where]
    cut, wr = np.minimum(w, line), w * r
    ips, kept = wr + c * (w - 1.0), cut * r + c * (cut - 1.0)
    found = [len(w), w.sum(), wr.sum(), (wr * wr).sum(), (w * w).sum(), (w * wr).sum()]
    found += [ips.sum(), (ips * ips).sum(), kept.sum(), (kept * kept).sum()]
    if regression is None:
        return np.array([*found, *[0.0] * 8])
    low, high = logged.reward_range
    predicted = (low - c) + (high - low) * regression.rows(logged, where)
    model = (pi * predicted).sum(axis=0) + c * (pi.sum(axis=0) - 1.0)
    rest = w * (r - predicted[arm, each])
    small = model + np.where(w <= line, rest, 0.0)
    fitted = model[max(0, regression.fitted_from - where.start) :]
    both = model + rest
    found += [both.sum(), (both * both).sum(), model.sum(), rest.sum(), small.sum(), (small * small).sum()]
    return np.array([*found, fitted.sum(), len(fitted)])


def _from_sums(s: Floats, c: float, *, predictions: bool) -> dict[str, Estimate]:
    """Return the estimates that sums over all rows make."""
    n, w, wr, wr2, w2, wwr, ips, ips2, kept, kept2, both, both2, model, rest, small, small2, fitted, fits = s.tolist()

    def mean(total: float, squares: float) -> Estimate:
        value = total / n
        spread = math.sqrt(max(squares / n - value * value, 0.0) / (n - 1.0)) if n > 1 else math.nan
        return Estimate(c + value, spread)

    ratio = wr / w if w > 0.0 else math.nan
    spread = math.sqrt(max(wr2 - 2.0 * ratio * wwr + ratio * ratio * w2, 0.0)) / w if w > 0.0 else math.nan
    found = {"ips": mean(ips, ips2), "clipped": mean(kept, kept2), "snips": Estimate(c + ratio, spread)}
    if predictions:
        found["dm"] = Estimate(c + fitted / fits if fits else math.nan, math.nan)
        found["dr"] = mean(both, both2)
        found["sndr"] = Estimate(c + model / n + (rest / w if w > 0.0 else math.nan), math.nan)
        found["switch"] = mean(small, small2)
    return found


@dataclass(frozen=True)
class Replayed:
    """Mean reward of the rows that were kept, its standard error, and how many were kept."""

    value: float
    error: float
    kept: int


def replay(logged: Logged, target: object, *, rng: Seed = 0) -> Replayed:
    """Keep each row with probability w/max w, and return the mean reward of those kept (Li et al. 2011).

    Rows that are kept are distributed as if the target had decided. Where weights are uneven few are kept; over its
    random numbers the estimate has the mean of "snips", which throws nothing away. ``rng`` is their seed: an integer, a
    SeedSequence, a Generator, or None for a random one.

    >>> from bothworlds import Problem
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["a", "b"], reward_range=(0, 1))
    >>> columns = {"context": [0] * 4, "arm": ["a", "b", "a", "b"], "reward": [1, 0, 1, 0], "propensity": [0.5] * 4}
    >>> replay(Logged.from_columns(problem, **columns), "always a")
    Replayed(value=1.0, error=0.0, kept=2)
    """
    pi = target_of(target, logged)
    parts = [pi.rows(logged, w)[logged.arm[w], np.arange(w.stop - w.start)] for w in pieces(logged.rows)]
    weight = np.concatenate([np.zeros(0), *parts]) / logged.propensity
    if not len(weight) or weight.max() == 0.0:
        raise ValueError("no row of the log could be the target's; replay has nothing to keep")
    kept = logged.reward[np.random.default_rng(key_from(rng)).random(len(weight)) * weight.max() < weight]
    if not len(kept):
        raise ValueError("no row was kept; with weights so uneven use 'snips' or 'dr'")
    error = float(kept.std(ddof=1) / math.sqrt(len(kept))) if len(kept) > 1 else math.nan
    return Replayed(float(kept.mean()), error, len(kept))
