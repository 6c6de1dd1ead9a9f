"""Means of bounded observations by an empirical Bernstein inequality: constant memory, no candidates, any time."""

import math
from functools import lru_cache
from typing import Any

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.jit.compile import compiled, kernel
from bothworlds.theory.confidence.betting_text import DEPTH, SEEN, SUM, TALLIED, plug_in_bet, take_note
from bothworlds.theory.confidence.checks import checked_alpha, checked_means, checked_observations

LARGEST_BET = 0.5
WEIGHTED, WEIGHT, SPENT, LOWER, UPPER = range(5)


@kernel
def feed_bernstein(xs: Floats, lows: Floats, highs: Floats, tally: Floats, sums: Floats) -> None:
    """Add observations to sum l x, sum l and sum v psi(l), and intersect the intervals after each.

    l = min(lambda_t, 1/2)/(high - low), v = 4 (y - mean_{t-1})^2, psi(l) = (-log(1 - l) - l)/4, y scaled to [0, 1].
    """
    for i in range(xs.shape[0]):
        low, high = lows[i % lows.shape[0]], highs[i % highs.shape[0]]
        y = (xs[i] - low) / (high - low)
        bet = min(plug_in_bet(tally), LARGEST_BET)
        off = y - (0.5 + tally[SUM]) / (tally[SEEN] + 1.0)
        sums[WEIGHTED] += bet / (high - low) * xs[i]
        sums[WEIGHT] += bet / (high - low)
        sums[SPENT] += off * off * (-math.log1p(-bet) - bet)
        take_note(tally, y)
        centre, radius = sums[WEIGHTED] / sums[WEIGHT], (tally[DEPTH] + sums[SPENT]) / sums[WEIGHT]
        sums[LOWER], sums[UPPER] = max(sums[LOWER], centre - radius), min(sums[UPPER], centre + radius)


class BernsteinSequence:
    """An interval for the mean of bounded observations that holds at any time: predictable empirical Bernstein.

    sum l_i x_i/sum l_i +- (log(2/alpha) + sum v_i psi(l_i))/sum l_i with bets l_i of the plug-in (Waudby-Smith and
    Ramdas 2024, Theorem 2). Wider than `BettingSequence`, but a handful of numbers is all it keeps. Observations may
    have ranges of their own, as there. The mean must be the same in every round given the past.

    >>> sequence = BernsteinSequence()
    >>> sequence.update([0, 1, 0, 0] * 100)
    >>> low, high = sequence.interval
    >>> round(low, 3), round(high, 3)
    (0.173, 0.33)
    """

    def __init__(self, *, means: tuple[float, float] = (0.0, 1.0), alpha: float = 0.05) -> None:
        self.alpha = checked_alpha(alpha)
        self.means = checked_means(means)
        self._tally = np.zeros(TALLIED)
        self._tally[DEPTH] = math.log(2.0 / self.alpha)
        self._sums = np.array([0.0, 0.0, 0.0, *self.means])

    def update(self, values: Any, *, low: Any = None, high: Any = None) -> None:
        """Take in observations, in their order; without ``low`` and ``high`` their range is that of the means."""
        ends = self.means[0] if low is None else low, self.means[1] if high is None else high
        x, lows, highs = checked_observations(values, *ends, self.means)
        _feed()(x, lows, highs, self._tally, self._sums)

    @property
    def count(self) -> int:
        """How many observations there were."""
        return int(self._tally[SEEN])

    @property
    def contradicted(self) -> bool:
        """Whether nothing is left: the mean changes with time, or the event of probability alpha has come."""
        return bool(self._sums[LOWER] > self._sums[UPPER])

    @property
    def interval(self) -> tuple[float, float]:
        """The interval: the intersection of those after every observation; not numbers where ``contradicted``."""
        if self.contradicted:
            return math.nan, math.nan
        return float(self._sums[LOWER]), float(self._sums[UPPER])

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"BernsteinSequence({self.count} observations, [{low:.4g}, {high:.4g}] at any time, alpha {self.alpha:g})"
        )


@lru_cache(maxsize=1)
def _feed() -> Any:
    """Return the sums compiled, once in a process."""
    return compiled(feed_bernstein)
