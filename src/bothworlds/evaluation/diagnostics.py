"""Can the log answer the question? Support, weights, and whether arms came as often as was logged.

Both tests are bets that are fair if the log tells the truth; they may be looked at again and again (Ville 1939). An
e-value of 1/alpha or more refutes at level alpha; p = 1/(the largest so far).
"""

import math
from dataclasses import dataclass

import numpy as np

from bothworlds.evaluation.logged import Logged, pieces
from bothworlds.evaluation.summands import Contrast
from bothworlds.evaluation.targets import Target
from bothworlds.kernels.arrays import Floats
from bothworlds.theory.confidence import drift_of

BETS = (0.5, 0.1, 0.02, 0.004)  # shares of what may be bet, on more and on less
LOOK = 1 << 13  # rows between looks at the tests
AT_ONCE = 8  # factors, each below 1e38, whose product has one logarithm
FEW = 100.0  # effective rows
TINY = 1e-6  # of weights: far above what rounding leaves where all are the same
SURE = 0.01  # p-values below are told


@dataclass(frozen=True)
class Diagnostics:
    """Weights of a target in a log.

    Attributes
    ----------
    effective_rows
        (sum w)^2/sum w^2: as many rows of the target's own would say as much.
    largest_weight
        The weight of the row that counts most.
    without_support
        Share of the target's decisions that go to arms the log could not have chosen; not a number without whole rows
        of probabilities.
    mean_weight, weight_p_value
        Its expectation is the share with support, 1 as a rule; and a test of that.
    """

    rows: int
    effective_rows: float
    largest_weight: float
    without_support: float
    mean_weight: float
    weight_p_value: float

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a reader should know before using the numbers; nothing if all is well."""
        found = []
        if self.without_support > 0.0:
            found.append(
                f"{self.without_support:.1%} of the target's decisions go to arms that the log could not have chosen: "
                "intervals take the worst case there, estimates trust the model or take nothing"
            )
        if self.effective_rows < FEW:
            found.append(
                f"{self.rows:,} rows are worth {self.effective_rows:.0f} of the target's own: the log hardly says "
                "anything of this target"
            )
        if self.weight_p_value < SURE:
            found.append(
                f"weights have mean {self.mean_weight:.3f}, which true propensities do not allow "
                f"(p = {self.weight_p_value:.1g} at any time): the logged probabilities are wrong"
            )
        return tuple(found)


def diagnostics_of(logged: Logged, target: Target) -> Diagnostics:
    """Return what the weights of a target look like."""
    total = squares = largest = missing = 0.0
    logs, best = np.zeros((len(BETS), 2)), 0.0
    for where in pieces(logged.rows, LOOK):
        arm, pi = logged.arm[where], target.rows(logged, where)
        each = np.arange(len(arm))
        w = pi[arm, each] / logged.propensity[where]
        total, squares, largest = total + w.sum(), squares + (w * w).sum(), max(largest, float(w.max()))
        if logged.probabilities is not None:
            h = _whole(logged.probabilities[where]).T
            supported = np.where(h > 0.0, pi, 0.0).sum(axis=0)
            missing += _without_support(pi, h)
            with np.errstate(over="ignore"):
                most = np.divide(pi, h, out=np.zeros_like(pi), where=h > 0.0).max(axis=0)
            own = pi[arm, each] / h[arm, each]
            logs += _bet_on(own - supported, supported, most - supported)
            best = max(best, _evidence(logs))
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
    """Return how wide an interval of a contrast has to stay, as `bothworlds.evaluation.Difference` has it."""
    h = logged.probabilities
    if h is None:
        return math.nan
    low, high = logged.reward_range
    parts = (_without_support(contrast.rows(logged, where), h[where].T) for where in pieces(logged.rows, LOOK))
    return (high - low) * sum(parts) / logged.rows


def _without_support(q: Floats, h: Floats) -> float:
    """Return the sum of |q| over arms that could not have been chosen."""
    return float(np.abs(np.where(h > 0.0, 0.0, q)).sum())


def _whole(h: Floats) -> Floats:
    """Return rows of probabilities that sum to one: bets would find out what rounding has left of another sum."""
    return np.asarray(h / h.sum(axis=1, keepdims=True))


def _bet_on(off: Floats, down: Floats | float, up: Floats | float) -> Floats:
    """Bet on ``off``, of mean 0 in [-down, up], in both directions; return the logarithms of what each bet is worth.

    Rows come first; where ``off`` has columns each is bet on by itself, and they come last in what is returned.
    """
    more, less = off / np.maximum(down, TINY), off / np.maximum(up, TINY)
    return np.array([[_log_product(1.0 + share * more), _log_product(1.0 - share * less)] for share in BETS])


def _log_product(factors: Floats) -> Floats:
    """Return the logarithm of the product of all rows; few are multiplied before one is taken, so none overflows."""
    whole = len(factors) // AT_ONCE * AT_ONCE
    some = factors[:whole].reshape(AT_ONCE, -1, *factors.shape[1:]).prod(axis=0)
    return np.asarray(np.log(some).sum(axis=0) + np.log(factors[whole:]).sum(axis=0))


def _evidence(logs: Floats) -> float:
    """Return the logarithm of the average of capitals: fair if each is."""
    return float(logs.max() + np.log(np.exp(logs - logs.max()).mean()))


@dataclass(frozen=True, eq=False)
class Calibration:
    """Whether arms came as often as the logged probabilities say, and contexts as the problem says.

    ``observed`` and ``expected`` are counts of arms; ``p_value`` is that of the arms, ``context_p_value`` of the
    contexts; both hold at any time.
    """

    arms: tuple[str, ...]
    observed: Floats
    expected: Floats
    p_value: float
    context_p_value: float

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is wrong, if anything is."""
        found = []
        if self.p_value < SURE:
            off = np.abs(self.observed - self.expected) / np.sqrt(np.maximum(self.expected, 1.0))
            a = int(off.argmax())
            found.append(
                f"arms do not come as often as logged (p = {self.p_value:.1g} at any time): {self.arms[a]!r} came "
                f"{self.observed[a]:,.0f} times for {self.expected[a]:,.1f} expected; no estimate can be trusted"
            )
        if self.context_p_value < SURE:
            found.append(
                f"contexts do not come as the problem says (p = {self.context_p_value:.1g} at any time): values are "
                "those for the contexts in the log"
            )
        return tuple(found)


def calibration_of(logged: Logged) -> Calibration | None:
    """Return how arms and contexts came; None where only propensities are known.

    For arm a, 1{a_t = a} - h_t(a) has mean 0 given the past and the context. Bets on it, for every arm, in both
    directions and of several sizes, are averaged: fair if the log tells the truth.
    """
    if logged.probabilities is None:
        return None
    K = logged.problem.n_arms
    logs, best = np.zeros((len(BETS), 2, K)), 0.0
    observed, expected = np.zeros(K), np.zeros(K)
    for where in pieces(logged.rows, LOOK):
        h = _whole(logged.probabilities[where])
        came = logged.arm[where][:, None] == np.arange(K)
        observed, expected = observed + came.sum(axis=0), expected + h.sum(axis=0)
        logs += _bet_on(came - h, 1.0, 1.0)
        best = max(best, _evidence(logs))
    counts = np.bincount(logged.context, minlength=logged.problem.n_contexts)
    drift = drift_of(counts, logged.problem.probabilities / logged.problem.probabilities.sum())
    return Calibration(logged.problem.arms, observed, expected, min(1.0, math.exp(-best)), drift.p_value)
