"""What is averaged: the doubly robust summand of a value, of its negative, or of a difference, bounded below.

A *contrast* q(a | x) is pi, -pi, or the difference of two policies; its value is v = E sum_a q(a | x) r(x, a) with
rewards in [0, 1]. For predictions r~(a) that are known before the arm is drawn,

    X = sum_a q(a) r~(a) + q(a_t)/h(a_t) (r - r~(a_t))

has conditional mean v whatever r~ is, h being the logged probabilities. With r~ cut so that

    q(a) r~(a) = min(q(a) r^(a), q(a)^- + k h(a)),        q^- = min(q, 0),

the weighted residual is at least -k however large the weight: for q > 0 it is at least -q r~/h >= -k, for q < 0 at
least -|q| (1 - r~)/h >= -k. So X >= -k - b with b = max sum_a |q^-|: a lower end that is known beforehand, without
any upper end (Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro 2024, section 2.2, there for q = pi and by mirroring
the reward for -pi; written so, a difference is one contrast, too). Where h(a) = 0 the cut leaves the worst case, reward
0 for q > 0 and 1 for q < 0: the mean is then at most v, and a lower bound for it is one for v. With k = 0 nothing is
left of r^, and X is inverse propensity weighting.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from bothworlds.evaluation.logged import Logged
from bothworlds.evaluation.regression import Regression
from bothworlds.evaluation.targets import Target
from bothworlds.kernels.arrays import Floats, Ints

LARGEST = 1e300  # of squares of weights: arms of a smaller probability than any double is exact for have more


@dataclass(frozen=True, kw_only=True, eq=False)
class Contrast:
    """sign (pi - pi_0), or sign pi where there is no second policy."""

    of: Target
    against: Target | None = None
    sign: float = 1.0

    def rows(self, logged: Logged, where: slice) -> Floats:
        """Return q in some rows, shape (arms, rows)."""
        q = self.of.rows(logged, where)
        q = q if self.against is None else q - self.against.rows(logged, where)
        return q if self.sign > 0.0 else -q

    def chosen(self, logged: Logged, where: slice) -> Floats:
        """Return q of the arm logged in some rows, shape (rows,)."""
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
        """The table (contexts, arms) of q, None where it changes."""
        of, off = self.of.table, np.zeros(1) if self.against is None else self.against.table
        return None if of is None or off is None else np.asarray(self.sign * (of - off))

    def negative(self) -> Self:
        """Return the contrast with the other sign."""
        return replace(self, sign=-self.sign)

    @property
    def changes(self) -> bool:
        """Whether q is not the same in all rows."""
        return self.table is None

    @property
    def reach(self) -> tuple[float, float]:
        """(b, a): the value lies in [-b, a], known before any row."""
        if self.against is None:
            return (0.0, 1.0) if self.sign > 0.0 else (1.0, 0.0)
        q = self.table
        if q is None:
            return 1.0, 1.0
        return float(np.maximum(-q, 0.0).sum(axis=1).max()), float(np.maximum(q, 0.0).sum(axis=1).max())


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a log, with what a contrast makes of them; tables have shape (arms, rows).

    ``need`` is the smallest k at which nothing is cut; infinite where an arm without support matters. Where there are
    no predictions, or no whole rows of probabilities, k = 0 and nothing is left to be cut.
    """

    drawn: "Drawn"
    h: Floats | None
    q: Floats
    least: Floats | None  # q^-, None where q is nowhere negative
    predicted: Floats | None  # q r^
    need: Floats
    whole: Floats  # X without a cut; with k = 0 where there is no other

    def cut(self, k: Floats, where: Ints) -> Floats:
        """Return X with r~ cut at k, a number for each of the rows asked for."""
        assert self.predicted is not None
        assert self.h is not None
        parts, most = np.take(self.predicted, where, axis=1), np.take(self.h, where, axis=1)
        most *= k
        if self.least is not None:
            most += np.take(self.least, where, axis=1)
        np.minimum(parts, most, out=parts)
        return self.drawn.some(where).summand(parts)

    def negative(self) -> "Rows":
        """Return what the negative of the contrast makes of the same rows."""
        return _rows(self.drawn.negative(), self.h, -self.q, None if self.predicted is None else -self.predicted)


@dataclass(frozen=True, eq=False)
class Drawn:
    """The arms that were drawn, with their propensities, rewards, and q; shape (rows,)."""

    arm: Ints
    propensity: Floats
    y: Floats
    q: Floats

    def some(self, where: Ints) -> "Drawn":
        """Return some of them."""
        return Drawn(self.arm[where], self.propensity[where], self.y[where], self.q[where])

    def negative(self) -> "Drawn":
        """Return them for the negative of the contrast."""
        return replace(self, q=-self.q)

    def summand(self, parts: Floats) -> Floats:
        """Return X from q r~ of all arms, shape (arms, rows)."""
        n = len(self.arm)
        own = parts.ravel()[self.arm * n + np.arange(n)]
        return np.asarray(parts.sum(axis=0) + (self.q * self.y - own) / self.propensity)


def _rows(drawn: Drawn, h: Floats | None, q: Floats, predicted: Floats | None) -> Rows:
    """Return rows with X, and with the k that X needs."""
    least = np.minimum(q, 0.0) if q.min() < 0.0 else None
    if predicted is None or h is None:
        whole = drawn.summand(np.zeros_like(q) if least is None else least)
        return Rows(drawn, None, q, least, None, np.zeros(len(drawn.arm)), whole)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        above = (predicted if least is None else predicted - least) / h
    need = np.fmax.reduce(above, axis=0)  # 0/0, an arm that neither plays, does not count
    return Rows(drawn, h, q, least, predicted, need, drawn.summand(predicted))


@dataclass(frozen=True, eq=False)
class Question:
    """The value of a contrast, asked of a log, with predictions of rewards or without."""

    logged: Logged
    contrast: Contrast
    regression: Regression | None

    def negative(self) -> "Question":
        """Return the question for the negative of the contrast."""
        return replace(self, contrast=self.contrast.negative())

    def rows(self, where: slice) -> Rows:
        """Return what the contrast makes of some rows."""
        logged, regression = self.logged, self.regression
        q, arm = self.contrast.rows(logged, where), logged.arm[where]
        h = None if regression is None or logged.probabilities is None else logged.probabilities[where].T.copy()
        predicted = None if regression is None or h is None else q * regression.rows(logged, where)
        drawn = Drawn(arm, logged.propensity[where], logged.scaled(where), q[arm, np.arange(len(arm))])
        return _rows(drawn, h, q, predicted)

    def plain(self, where: slice) -> Floats:
        """Return sum_a q(a) r^(a) + q(a_t)/h(a_t) (y - r^(a_t)), with r^ = 0 where there are no predictions."""
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

        Where only propensities are known it is the square of the weight itself.
        """
        if self.logged.probabilities is None:
            return np.asarray(self.weights(where) ** 2)
        q, h = self.contrast.rows(self.logged, where), self.logged.probabilities[where].T
        q *= q
        with np.errstate(over="ignore"):
            squares = np.divide(q, h, out=np.zeros_like(q), where=h > 0.0).sum(axis=0)
        return np.asarray(np.minimum(squares, LARGEST))
