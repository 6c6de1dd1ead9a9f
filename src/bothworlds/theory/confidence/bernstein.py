"""Any-time interval for the mean of bounded observations by an empirical Bernstein inequality, in constant memory."""

import math
from functools import lru_cache
from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.kernels.jit.compile import compiled, kernel
from bothworlds.theory.confidence.betting_kernel import (
    COUNT,
    LOG_THRESHOLD,
    N_STATS,
    SUM,
    plug_in_bet,
    record_observation,
)
from bothworlds.theory.confidence.checks import checked_alpha, checked_means, checked_observations

LARGEST_BET = 0.5
WEIGHTED, WEIGHT, VARIANCE_TERM, LOWER, UPPER = range(5)


@kernel
def feed_bernstein(xs: Floats, lows: Floats, highs: Floats, stats: Floats, sums: Floats) -> None:
    """Add observations to sum l x, sum l and sum v psi(l), and intersect the intervals after each observation.

    l = min(lambda_t, 1/2)/(high - low), v = 4 (y - mean_{t-1})^2, psi(l) = (-log(1 - l) - l)/4, y scaled to [0, 1].
    """
    for i in range(xs.shape[0]):
        low, high = lows[i % lows.shape[0]], highs[i % highs.shape[0]]
        y = (xs[i] - low) / (high - low)
        bet = min(plug_in_bet(stats), LARGEST_BET)
        off = y - (0.5 + stats[SUM]) / (stats[COUNT] + 1.0)
        sums[WEIGHTED] += bet / (high - low) * xs[i]
        sums[WEIGHT] += bet / (high - low)
        sums[VARIANCE_TERM] += off * off * (-math.log1p(-bet) - bet)
        record_observation(stats, y)
        centre, radius = sums[WEIGHTED] / sums[WEIGHT], (stats[LOG_THRESHOLD] + sums[VARIANCE_TERM]) / sums[WEIGHT]
        sums[LOWER], sums[UPPER] = max(sums[LOWER], centre - radius), min(sums[UPPER], centre + radius)


class BernsteinSequence:
    """Any-time interval for the mean of bounded observations: predictable empirical Bernstein.

    sum l_i x_i/sum l_i +- (log(2/alpha) + sum v_i psi(l_i))/sum l_i with plug-in bets l_i (Waudby-Smith and
    Ramdas 2024, Theorem 2). Wider than `BettingSequence`, but stores only a few numbers. As there, each observation may
    have its own range. The mean must be the same in every round given the past.

    >>> sequence = BernsteinSequence()
    >>> sequence.update([0, 1, 0, 0] * 100)
    >>> low, high = sequence.interval
    >>> round(low, 3), round(high, 3)
    (0.173, 0.33)
    """

    def __init__(self, *, means: tuple[float, float] = (0.0, 1.0), alpha: float = 0.05) -> None:
        self.alpha = checked_alpha(alpha)
        self.means = checked_means(means)
        self._stats = np.zeros(N_STATS)
        self._stats[LOG_THRESHOLD] = math.log(2.0 / self.alpha)
        self._sums = np.array([0.0, 0.0, 0.0, *self.means])

    def update(self, values: Any, *, low: Any = None, high: Any = None) -> None:
        """Add observations in their order; ``low`` and ``high``, their range, default to the range of the means."""
        ends = self.means[0] if low is None else low, self.means[1] if high is None else high
        x, lows, highs = checked_observations(values, *ends, self.means)
        _feed()(x, lows, highs, self._stats, self._sums)

    @property
    def count(self) -> int:
        """Number of observations."""
        return int(self._stats[COUNT])

    @property
    def contradicted(self) -> bool:
        """Whether the interval is empty: the mean changes with time, or the event of probability alpha occurred."""
        return bool(self._sums[LOWER] > self._sums[UPPER])

    @property
    def interval(self) -> tuple[float, float]:
        """The intersection of the intervals after every observation; NaN where ``contradicted``."""
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
    """Return the compiled `feed_bernstein`, once per process."""
    return compiled(feed_bernstein)
