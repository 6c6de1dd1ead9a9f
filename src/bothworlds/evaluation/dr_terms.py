"""Doubly robust summands of a value, its negative, or a difference, bounded below.

A *contrast* q(a | x) is pi, -pi, or the difference of two policies; its value is v = E sum_a q(a | x) r(x, a) with
rewards in [0, 1]. For predictions r~(a) that are known before the arm is drawn,

    X = sum_a q(a) r~(a) + q(a_t)/h(a_t) (r - r~(a_t))

has conditional mean v for any r~, h being the logged probabilities. With r~ cut so that

    q(a) r~(a) = min(q(a) r^(a), q(a)^- + k h(a)),        q^- = min(q, 0),

the weighted residual is at least -k for any weight: for q > 0 it is at least -q r~/h >= -k, for q < 0 at least
-|q| (1 - r~)/h >= -k. So X >= -k - b with b = max sum_a |q^-|: a lower end known in advance, without any upper end
(Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro 2024, section 2.2, there for q = pi and by mirroring the reward
for -pi; in this form a difference is one contrast, too). Where h(a) = 0 the cut leaves the worst case, reward 0 for
q > 0 and 1 for q < 0: the mean is then at most v, and a lower bound for it is one for v. With k = 0 X does not depend
on r^ and is inverse propensity weighting.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.evaluation.logged import Logged
from bothworlds.evaluation.regression import Regression
from bothworlds.evaluation.targets import Target

LARGEST_SQUARE = 1e300  # cap of squared weights; only propensities too small for exact doubles exceed it


@dataclass(frozen=True, kw_only=True, eq=False)
class Contrast:
    """sign (pi - pi_0), or sign pi without a second policy."""

    of: Target
    against: Target | None = None
    sign: float = 1.0

    def rows(self, logged: Logged, where: slice) -> Floats:
        """Return q in some rows, shape (arms, rows)."""
        q = self.of.rows(logged, where)
        q = q if self.against is None else q - self.against.rows(logged, where)
        return q if self.sign > 0.0 else -q

    def chosen(self, logged: Logged, where: slice) -> Floats:
        """Return q of the logged arm in some rows, shape (rows,)."""
        q = self.of.chosen(logged, where)
        q = q if self.against is None else q - self.against.chosen(logged, where)
        return q if self.sign > 0.0 else -q

    def predicted(self, logged: Logged, regression: Regression, where: slice) -> Floats:
        """Return sum_a q(a) r^(a) in some rows, shape (rows,)."""
        q = self.table
        if q is not None:
            return regression.under(q, logged, where)
        return np.asarray((self.rows(logged, where) * regression.rows(logged, where)).sum(axis=0))

    @property
    def table(self) -> Floats | None:
        """The table (contexts, arms) of q, or None if q changes from row to row."""
        of, off = self.of.table, np.zeros(1) if self.against is None else self.against.table
        return None if of is None or off is None else np.asarray(self.sign * (of - off))

    def negative(self) -> Self:
        """Return the contrast with the other sign."""
        return replace(self, sign=-self.sign)

    @property
    def changes(self) -> bool:
        """Whether q changes from row to row."""
        return self.table is None

    @property
    def value_bounds(self) -> tuple[float, float]:
        """(b, a): the value lies in [-b, a] whatever the log contains."""
        if self.against is None:
            return (0.0, 1.0) if self.sign > 0.0 else (1.0, 0.0)
        q = self.table
        if q is None:
            return 1.0, 1.0
        return float(np.maximum(-q, 0.0).sum(axis=1).max()), float(np.maximum(q, 0.0).sum(axis=1).max())


@dataclass(frozen=True, eq=False)
class SummandRows:
    """Some rows of a log with the summands of a contrast; tables have shape (arms, rows).

    ``uncut_k`` is the smallest k at which nothing is cut; infinite if an arm without support matters. Without
    predictions, or without whole rows of probabilities, k = 0 and there is nothing to cut.
    """

    drawn: "DrawnArms"
    h: Floats | None
    q: Floats
    q_minus: Floats | None  # q^-, None if q is nowhere negative
    predicted: Floats | None  # q r^
    uncut_k: Floats
    uncut: Floats  # X without a cut; with k = 0 if there are no predictions

    def cut(self, k: Floats, where: Ints) -> Floats:
        """Return X with r~ cut at k, for the rows ``where``; ``k`` has one entry for each of them."""
        assert self.predicted is not None
        assert self.h is not None
        parts, largest = np.take(self.predicted, where, axis=1), np.take(self.h, where, axis=1)
        largest *= k
        if self.q_minus is not None:
            largest += np.take(self.q_minus, where, axis=1)
        np.minimum(parts, largest, out=parts)
        return self.drawn.some(where).summand(parts)

    def negative(self) -> "SummandRows":
        """Return the same rows for the negative of the contrast."""
        return _rows(self.drawn.negative(), self.h, -self.q, None if self.predicted is None else -self.predicted)


@dataclass(frozen=True, eq=False)
class DrawnArms:
    """The drawn arms with their propensities, scaled rewards ``y``, and q; all of shape (rows,)."""

    arm: Ints
    propensity: Floats
    y: Floats
    q: Floats

    def some(self, where: Ints) -> "DrawnArms":
        """Return the rows ``where``."""
        return DrawnArms(self.arm[where], self.propensity[where], self.y[where], self.q[where])

    def negative(self) -> "DrawnArms":
        """Return the same rows for the negative of the contrast."""
        return replace(self, q=-self.q)

    def summand(self, parts: Floats) -> Floats:
        """Return X from q r~ of all arms, shape (arms, rows)."""
        n = len(self.arm)
        drawn = parts.ravel()[self.arm * n + np.arange(n)]
        return np.asarray(parts.sum(axis=0) + (self.q * self.y - drawn) / self.propensity)


def _rows(drawn: DrawnArms, h: Floats | None, q: Floats, predicted: Floats | None) -> SummandRows:
    """Return rows with X uncut, and the smallest k at which it is."""
    q_minus = np.minimum(q, 0.0) if q.min() < 0.0 else None
    if predicted is None or h is None:
        uncut = drawn.summand(np.zeros_like(q) if q_minus is None else q_minus)
        return SummandRows(drawn, None, q, q_minus, None, np.zeros(len(drawn.arm)), uncut)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = (predicted if q_minus is None else predicted - q_minus) / h
    uncut_k = np.fmax.reduce(ratios, axis=0)  # ignores 0/0: an arm that neither policy plays
    return SummandRows(drawn, h, q, q_minus, predicted, uncut_k, drawn.summand(predicted))


@dataclass(frozen=True, eq=False)
class ValueQuery:
    """The value of a contrast on a log, estimated with or without predictions of rewards."""

    logged: Logged
    contrast: Contrast
    regression: Regression | None

    def negative(self) -> "ValueQuery":
        """Return the query for the negative of the contrast."""
        return replace(self, contrast=self.contrast.negative())

    def rows(self, where: slice) -> SummandRows:
        """Return some rows with their summands."""
        logged, regression = self.logged, self.regression
        q, arm = self.contrast.rows(logged, where), logged.arm[where]
        h = None if regression is None or logged.probabilities is None else logged.probabilities[where].T.copy()
        predicted = None if regression is None or h is None else q * regression.rows(logged, where)
        drawn = DrawnArms(arm, logged.propensity[where], logged.scaled(where), q[arm, np.arange(len(arm))])
        return _rows(drawn, h, q, predicted)

    def uncut(self, where: slice) -> Floats:
        """Return sum_a q(a) r^(a) + q(a_t)/h(a_t) (y - r^(a_t)), with r^ = 0 if there are no predictions."""
        logged, regression = self.logged, self.regression
        weight, y = self.weights(where), logged.scaled(where)
        if regression is None:
            return np.asarray(weight * y)
        predicted = self.contrast.predicted(logged, regression, where)
        return np.asarray(predicted + weight * (y - regression.chosen(logged, where)))

    def weights(self, where: slice) -> Floats:
        """Return q(a_t)/h(a_t) in some rows."""
        return self.contrast.chosen(self.logged, where) / self.logged.propensity[where]

    def spread(self, where: slice) -> Floats:
        """Return sum_a q(a)^2/h(a) over arms with support in some rows, which is E[weight^2] given the context.

        If only propensities are known it is the square of the weight itself.
        """
        if self.logged.probabilities is None:
            return np.asarray(self.weights(where) ** 2)
        q, h = self.contrast.rows(self.logged, where), self.logged.probabilities[where].T
        q *= q
        with np.errstate(over="ignore"):
            squares = np.divide(q, h, out=np.zeros_like(q), where=h > 0.0).sum(axis=0)
        return np.asarray(np.minimum(squares, LARGEST_SQUARE))
