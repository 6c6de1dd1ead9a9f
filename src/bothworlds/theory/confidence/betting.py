"""Any-time interval for the mean of bounded observations by betting, the narrowest one in this package."""

import math
from functools import lru_cache
from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.kernels.jit.compile import compiled
from bothworlds.theory.confidence.betting_kernel import COUNT, HIGH, LOG_THRESHOLD, LOW, N_STATS, Bets, feed_bets
from bothworlds.theory.confidence.checks import checked_alpha, checked_means, checked_observations

FRACTIONS = tuple(2.0**-j for j in range(1, 13))  # shares of the largest bet, each half of the previous one
PLUG_IN_SHARE = 0.5  # share of the capital
PLUG_IN_STAKE = 0.5  # cap of the plug-in bet, as a share of the largest bet


class BettingSequence:
    """An interval for the mean of bounded observations that is valid after every observation.

    For each candidate m, one gambler with capital 1/2 bets that the mean is larger than m, another that it is smaller.
    Once one of them holds 1/alpha, m is rejected. If m is the mean the game is fair, so m is ever rejected with
    probability at most alpha (Ville's inequality; Waudby-Smith and Ramdas 2024, Theorem 3). Half of a gambler's capital
    bets the predictable plug-in of that paper, the other half is spread over fixed shares 1/2, 1/4, ... of the largest
    bet. Compared with the plug-in alone, the interval is 9 % narrower on 1,000 clicks at a rate of 0.1, 36 % narrower
    on 10,000 coins, and 7 % wider on 1,000 draws of a Beta(10, 30).

    Observations may be weighted: they lie in [low, high], known beforehand, for all or for each (Waudby-Smith, Wu,
    Ramdas, Karampatziakis and Mineiro 2024). For example, 1/propensity times a reward in [0, 1] lies in
    [0, 1/propensity_min]. The mean must be the same in every round given the past; if it changes, eventually all
    candidates are rejected and ``contradicted`` is True.

    Parameters
    ----------
    means
        (lowest, highest) possible mean; candidates lie between.
    alpha
        The probability that the interval is ever wrong.
    candidates
        Number of candidates. Ends are rounded outwards to 1/(candidates + 1) of the range: the grid costs width only.
        Each candidate takes 30 numbers of memory; an observation takes time only for candidates not yet rejected.

    Examples
    --------
    >>> sequence = BettingSequence()
    >>> sequence.update([0, 1, 0, 0] * 100)
    >>> low, high = sequence.interval
    >>> round(low, 3), round(high, 3), sequence.count
    (0.179, 0.329, 400)
    """

    def __init__(self, *, means: tuple[float, float] = (0.0, 1.0), alpha: float = 0.05, candidates: int = 2000) -> None:
        self.alpha = checked_alpha(alpha)
        n: Any = candidates
        if not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"candidates must be a whole number of at least 1; got {candidates!r}")
        self.means = checked_means(means)
        stats = np.zeros(N_STATS)
        stats[LOW] = stats[HIGH] = math.nan
        stats[LOG_THRESHOLD] = math.log(2.0 / self.alpha)
        weights = np.array([*((1.0 - PLUG_IN_SHARE) / len(FRACTIONS) for _ in FRACTIONS), PLUG_IN_SHARE])
        up, down = (np.repeat(0.5 * weights[:, None], candidates, axis=1) for _ in range(2))
        self._bets = Bets(
            fractions=np.array([*FRACTIONS, PLUG_IN_STAKE]),
            means=np.linspace(*self.means, candidates + 2)[1:-1].copy(),
            most=np.zeros((2, candidates)),
            up=up,
            down=down,
            window=np.array([0, candidates]),
            stats=stats,
        )
        self._sum = 0.0

    def update(self, values: Any, *, low: Any = None, high: Any = None) -> None:
        """Add observations in their order; ``low`` and ``high``, their range, default to the range of the means."""
        ends = self.means[0] if low is None else low, self.means[1] if high is None else high
        x, lows, highs = checked_observations(values, *ends, self.means)
        _feed()(self._bets, x, lows, highs, 1.0 / self.alpha)
        self._sum += float(x.sum())

    @property
    def count(self) -> int:
        """Number of observations."""
        return int(self._bets.stats[COUNT])

    @property
    def mean(self) -> float:
        """The mean of the observations; NaN without observations."""
        return self._sum / self.count if self.count else math.nan

    @property
    def contradicted(self) -> bool:
        """Whether no candidate is left: the mean changes with time, or the event of probability alpha occurred."""
        return bool(self._bets.window[0] >= self._bets.window[1])

    @property
    def interval(self) -> tuple[float, float]:
        """The intersection of the intervals after every observation; NaN where ``contradicted``."""
        if self.contradicted:
            return math.nan, math.nan
        first, last = self._bets.window.tolist()
        low = self._bets.means[first - 1] if first > 0 else self.means[0]
        high = self._bets.means[last] if last < len(self._bets.means) else self.means[1]
        return float(low), float(high)

    @property
    def capital(self) -> tuple[Floats, Floats]:
        """Capital of the bets that the mean is larger, and smaller, than each candidate; frozen once it is rejected."""
        return self._bets.up.sum(axis=0), self._bets.down.sum(axis=0)

    def __repr__(self) -> str:
        low, high = self.interval
        return f"BettingSequence({self.count} observations, [{low:.4g}, {high:.4g}] at any time, alpha {self.alpha:g})"


@lru_cache(maxsize=1)
def _feed() -> Any:
    """Return the compiled `feed_bets`, once per process."""
    return compiled(feed_bets)
