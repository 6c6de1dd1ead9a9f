"""How much is bet: a ladder of amounts, each half of the one before, and with each a cut of the predictions.

A component that bets lambda on every row is never ruined while lambda (k + b + a) <= c < 1, b and a being the reach of
the contrast. So a small bet can afford predictions that are hardly cut: on step l, with n = a + b,

    lambda_l = c 2^-l/n,        k_l = n (2^l - 1).

Every X cut at any k has the same conditional mean, so components on different steps bet on the same value, and their
capital may be added. The prior on the steps is a bell with heavy tails around `PEAK`, where rows in the thousands have
their best bet; far steps cost a little width, not validity.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bothworlds.evaluation.logged import pieces
from bothworlds.kernels.arrays import Floats, Ints

COMPONENTS = 16
TAIL = 0.8
HIGHEST = 60  # steps
Steps: TypeAlias = NDArray[np.int8]


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


def steps_down(spread: Callable[[slice], Floats], rows: int, reach: float) -> Steps:
    """Return how many steps lower to bet on each row, from earlier rows only: log2 of the typical size of a weight.

    The typical size is the geometric mean of sqrt(E[weight^2]) over the later half of the rows before. Rows with large
    weights say little, and a bet in proportion to what they say loses least; any choice made from the past is valid.
    ``spread`` returns E[weight^2] of some rows; it is asked for each row about one and a half times, so that nothing
    but a byte for each row is kept.

    >>> sizes = np.array([1.0, 1.0, 16.0, 16.0, 16.0, 16.0])
    >>> steps_down(sizes.__getitem__, 6, 1.0).tolist()
    [0, 0, 0, 1, 2, 2]
    """
    found = np.empty(rows, dtype=np.int8)
    ahead, behind = (RunningSum(spread, reach) for _ in range(2))
    for where in pieces(rows):
        now = np.arange(where.start, where.stop)
        since = now // 2
        upto, before = ahead.over(where), behind.over(slice(int(since[0]), int(since[-1]) + 1))
        means = (upto - before[since - since[0]]) / np.maximum(now - since, 1)
        found[where] = np.clip(np.rint(means), 0, HIGHEST - COMPONENTS)
    return found


class RunningSum:
    """The sum of log2 sqrt(E[weight^2]) over the rows before each row, for one piece after the other."""

    def __init__(self, spread: Callable[[slice], Floats], reach: float) -> None:
        self._spread, self._reach, self._total = spread, reach, 0.0

    def over(self, where: slice) -> Floats:
        """Return it for the next rows."""
        sizes = 0.5 * np.log2(np.maximum(self._spread(where) / self._reach**2, 1.0))
        sums = np.cumsum(np.concatenate([[self._total], sizes]))
        self._total = float(sums[-1])
        return sums[:-1]
