"""How much is bet: a ladder of amounts, each half of the one before, and with each a cut of the predictions.

A component that bets lambda on every row is never ruined while lambda (k + b + a) <= c < 1, b and a being the reach of
the contrast. So a small bet can afford predictions that are hardly cut: on step l, with n = a + b,

    lambda_l = c 2^-l/n,        k_l = n (2^l - 1).

Every X cut at any k has the same conditional mean, so components on different steps bet on the same value, and their
capital may be added. The prior on the steps is a bell with heavy tails around `PEAK`, where rows in the thousands have
their best bet; far steps cost a little width, not validity.
"""

from dataclasses import dataclass

import numpy as np

from bothworlds.kernels.arrays import Floats, Ints

COMPONENTS = 16
TAIL = 0.8
HIGHEST = 60  # steps


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """Bets and cuts for a contrast whose value lies in [-b, a]; ``share`` is c, ``peak`` the likeliest step."""

    b: float
    a: float
    share: float
    peak: float

    @property
    def reach(self) -> float:
        """Return n = a + b."""
        return self.a + self.b

    def bet(self, step: Ints | int) -> Floats:
        """Return lambda of steps."""
        return np.asarray(np.ldexp(self.share / self.reach, -np.asarray(step)))

    def cut(self, step: Ints | int) -> Floats:
        """Return k of steps."""
        return np.asarray(np.ldexp(self.reach, np.asarray(step)) - self.reach)

    def step_without_cut(self, need: Floats) -> Ints:
        """Return the lowest step at which nothing is cut, given the smallest k at which that is so."""
        return np.asarray(np.minimum(np.ceil(np.log2(1.0 + need / self.reach)), HIGHEST), dtype=np.int64)

    @property
    def log_prior(self) -> Floats:
        """Logarithms of what each component begins with; together they have 1.

        >>> float(np.exp(Ladder(b=0.0, a=1.0, share=0.9, peak=3.0).log_prior).sum().round(12))
        1.0
        """
        weight = 1.0 / (1.0 + ((np.arange(COMPONENTS) - self.peak) / TAIL) ** 2)
        return np.asarray(np.log(weight / weight.sum()))


def steps_down(spread: Floats, reach: float) -> Ints:
    """Return how many steps lower to bet on each row, from earlier rows only: log2 of the typical size of a weight.

    The typical size is the geometric mean of sqrt(E[weight^2]) over the later half of the rows before. Rows with large
    weights say little, and a bet in proportion to what they say loses least; any choice made from the past is valid.

    >>> steps_down(np.array([1.0, 1.0, 16.0, 16.0, 16.0, 16.0]), 1.0).tolist()
    [0, 0, 0, 1, 2, 2]
    """
    sizes = 0.5 * np.log2(np.maximum(spread / reach**2, 1.0))
    sums = np.concatenate([[0.0], np.cumsum(sizes)])
    now = np.arange(len(sizes))
    since = now // 2
    means = (sums[now] - sums[since]) / np.maximum(now - since, 1)
    return np.asarray(np.clip(np.rint(means), 0, HIGHEST - COMPONENTS), dtype=np.int64)
