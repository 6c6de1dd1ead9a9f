"""Can the log answer the question? Support, weights, and whether arms occurred as often as logged.

Both tests are bets that are fair if the logged probabilities are true; they may be evaluated after every row (Ville
1939). An e-value of 1/alpha or more rejects at level alpha; p = 1/(the largest e-value so far).
"""

import math
from dataclasses import dataclass

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.evaluation.dr_terms import Contrast
from bothworlds.evaluation.logged import Logged, chunks
from bothworlds.evaluation.targets import Target
from bothworlds.theory.confidence import drift_of

BETS = (0.5, 0.1, 0.02, 0.004)  # shares of the largest possible bet, in each direction
ROWS_PER_TEST = 1 << 13  # rows between evaluations of the tests
FACTORS_PER_LOG = 8  # factors, each below 1e38, that are multiplied before one logarithm is taken
FEW_ROWS = 100.0  # effective rows
SMALLEST_RANGE = 1e-6  # of weights: far above rounding error if all weights are equal
REPORTED_P = 0.01  # smaller p-values are reported


@dataclass(frozen=True)
class Diagnostics:
    """Importance weights of a target in a log.

    Attributes
    ----------
    effective_rows
        (sum w)^2/sum w^2: the number of rows logged by the target itself that would carry as much information.
    largest_weight
        The largest weight of a row.
    without_support
        Share of the target's decisions that go to arms the log could not have chosen; not a number without whole rows
        of probabilities.
    mean_weight, weight_p_value
        The mean weight, whose expectation is the share with support (usually 1), and the p-value of a test of that.
    """

    rows: int
    effective_rows: float
    largest_weight: float
    without_support: float
    mean_weight: float
    weight_p_value: float

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a reader should know before using the numbers; empty if there is nothing to report."""
        found = []
        if self.without_support > 0.0:
            found.append(
                f"{self.without_support:.1%} of the target's decisions go to arms that the log could not have chosen: "
                "intervals assume the worst case there, estimates rely on the model or leave those decisions out"
            )
        if self.effective_rows < FEW_ROWS:
            found.append(
                f"{self.rows:,} rows are worth {self.effective_rows:.0f} of the target's own: the log says hardly "
                "anything about this target"
            )
        if self.weight_p_value < REPORTED_P:
            found.append(
                f"weights have mean {self.mean_weight:.3f}, which contradicts the logged probabilities "
                f"(p = {self.weight_p_value:.1g} at any time): they are wrong"
            )
        return tuple(found)


def diagnostics_of(logged: Logged, target: Target) -> Diagnostics:
    """Return the diagnostics of a target's weights."""
    total = squares = largest = missing = 0.0
    logs, best = np.zeros((len(BETS), 2)), 0.0
    for where in chunks(logged.rows, ROWS_PER_TEST):
        arm, pi = logged.arm[where], target.rows(logged, where)
        each = np.arange(len(arm))
        w = pi[arm, each] / logged.propensity[where]
        total, squares, largest = total + w.sum(), squares + (w * w).sum(), max(largest, float(w.max()))
        if logged.probabilities is not None:
            h = _normalized(logged.probabilities[where]).T
            supported = np.where(h > 0.0, pi, 0.0).sum(axis=0)
            missing += _mass_without_support(pi, h)
            with np.errstate(over="ignore"):
                largest_w = np.divide(pi, h, out=np.zeros_like(pi), where=h > 0.0).max(axis=0)
            w_h = pi[arm, each] / h[arm, each]
            logs += _log_capitals(w_h - supported, supported, largest_w - supported)
            best = max(best, _log_evidence(logs))
    n = logged.rows
    return Diagnostics(
        rows=n,
        effective_rows=total * total / squares if squares > 0.0 else 0.0,
        largest_weight=largest,
        without_support=missing / n if logged.probabilities is not None else math.nan,
        mean_weight=total / n,
        weight_p_value=min(1.0, math.exp(-best)) if logged.probabilities is not None else math.nan,
    )


def left_open(logged: Logged, contrast: Contrast) -> float:
    """Return `bothworlds.evaluation.Difference.left_open` of a contrast, in the problem's units."""
    h = logged.probabilities
    if h is None:
        return math.nan
    low, high = logged.reward_range
    parts = (
        _mass_without_support(contrast.rows(logged, where), h[where].T) for where in chunks(logged.rows, ROWS_PER_TEST)
    )
    return (high - low) * sum(parts) / logged.rows


def _mass_without_support(q: Floats, h: Floats) -> float:
    """Return the sum of |q| over arms that could not have been chosen."""
    return float(np.abs(np.where(h > 0.0, 0.0, q)).sum())


def _normalized(h: Floats) -> Floats:
    """Return rows of probabilities that sum to one: otherwise the bets would detect rounding errors."""
    return np.asarray(h / h.sum(axis=1, keepdims=True))


def _log_capitals(x: Floats, down: Floats | float, up: Floats | float) -> Floats:
    """Bet on ``x``, of mean 0 in [-down, up], in both directions; return the logarithms of the capitals.

    ``x`` has shape (rows,) or (rows, arms), in which case each arm is bet on separately; the result has shape
    (bets, 2) or (bets, 2, arms).
    """
    more, less = x / np.maximum(down, SMALLEST_RANGE), x / np.maximum(up, SMALLEST_RANGE)
    return np.array([[_log_product(1.0 + share * more), _log_product(1.0 - share * less)] for share in BETS])


def _log_product(factors: Floats) -> Floats:
    """Return the logarithm of the product over all rows, from products of a few factors that cannot overflow."""
    whole = len(factors) // FACTORS_PER_LOG * FACTORS_PER_LOG
    products = factors[:whole].reshape(FACTORS_PER_LOG, -1, *factors.shape[1:]).prod(axis=0)
    return np.asarray(np.log(products).sum(axis=0) + np.log(factors[whole:]).sum(axis=0))


def _log_evidence(logs: Floats) -> float:
    """Return the logarithm of the average capital, which is fair if each capital is."""
    return float(logs.max() + np.log(np.exp(logs - logs.max()).mean()))


@dataclass(frozen=True, eq=False)
class Calibration:
    """Whether arms occurred as often as the logged probabilities say, and contexts as the problem says.

    ``observed`` and ``expected`` are counts by arm; ``p_value`` is that of the arms, ``context_p_value`` that of the
    contexts; both are valid at any time.
    """

    arms: tuple[str, ...]
    observed: Floats
    expected: Floats
    p_value: float
    context_p_value: float

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is wrong; empty if nothing is."""
        found = []
        if self.p_value < REPORTED_P:
            off = np.abs(self.observed - self.expected) / np.sqrt(np.maximum(self.expected, 1.0))
            a = int(off.argmax())
            found.append(
                f"arms do not occur as often as logged (p = {self.p_value:.1g} at any time): {self.arms[a]!r} occurred "
                f"{self.observed[a]:,.0f} times, {self.expected[a]:,.1f} were expected; no estimate can be trusted"
            )
        if self.context_p_value < REPORTED_P:
            found.append(
                f"contexts do not occur as the problem says (p = {self.context_p_value:.1g} at any time): values "
                "are those for the contexts in the log"
            )
        return tuple(found)


def calibration_of(logged: Logged) -> Calibration | None:
    """Return how often arms and contexts occurred; None if only propensities are known.

    For arm a, 1{a_t = a} - h_t(a) has mean 0 given the past and the context. Bets on it, for every arm, in both
    directions and of several sizes, are averaged: a fair bet if the logged probabilities are true.
    """
    if logged.probabilities is None:
        return None
    K = logged.problem.n_arms
    logs, best = np.zeros((len(BETS), 2, K)), 0.0
    observed, expected = np.zeros(K), np.zeros(K)
    for where in chunks(logged.rows, ROWS_PER_TEST):
        h = _normalized(logged.probabilities[where])
        chosen = logged.arm[where][:, None] == np.arange(K)
        observed, expected = observed + chosen.sum(axis=0), expected + h.sum(axis=0)
        logs += _log_capitals(chosen - h, 1.0, 1.0)
        best = max(best, _log_evidence(logs))
    counts = np.bincount(logged.context, minlength=logged.problem.n_contexts)
    drift = drift_of(counts, logged.problem.probabilities / logged.problem.probabilities.sum())
    return Calibration(logged.problem.arms, observed, expected, min(1.0, math.exp(-best)), drift.p_value)
