"""Means of bounded observations by betting: the tightest of the intervals here that hold at any time."""

import math
from functools import lru_cache
from typing import Any

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.jit.compile import compiled
from bothworlds.theory.confidence.betting_text import DEPTH, HIGH, LOW, SEEN, TALLIED, Bets, feed_bets
from bothworlds.theory.confidence.checks import checked_alpha, checked_means, checked_observations

FRACTIONS = tuple(2.0**-j for j in range(1, 13))  # shares of the largest bet, each half of the one before
PLUG_IN_SHARE = 0.5  # of the capital
PLUG_IN_STAKE = 0.5  # at most that share of the largest bet


class BettingSequence:
    """An interval for the mean of bounded observations that holds at any time, after each of them.

    A gambler with 1/2 bets that the mean is larger than m, one with 1/2 that it is smaller, for each candidate m; once
    one of them holds 1/alpha, m is out. If m is the mean the game is fair, so that it is thrown out with probability
    alpha at most, however long one looks (Ville's inequality; Waudby-Smith and Ramdas 2024, Theorem 3). Half of a
    gambler's money bets the predictable plug-in of that paper, the other half is spread over fixed shares 1/2, 1/4, ...
    of the largest bet: on 1,000 clicks at a rate of 0.1 the interval is 9 % narrower than with the plug-in alone, on
    10,000 coins 36 %, and 7 % wider on 1,000 draws of a Beta(10, 30).

    Observations may be weighted, in [low, high] with ends known beforehand, for all or for each (Waudby-Smith, Wu,
    Ramdas, Karampatziakis and Mineiro 2024): 1/propensity times a reward in [0, 1] lies in [0, 1/propensity_min].
    The mean must be the same in every round given the past; where it changes, all candidates are thrown out in the
    end, and ``contradicted`` says so.

    Parameters
    ----------
    means
        (lowest, highest) mean that is possible; candidates lie between.
    alpha
        The probability that the interval is ever wrong.
    candidates
        How many: ends are exact to 1/(candidates + 1) of the range, outwards, so that spacing costs width alone. Memory
        is 30 numbers for each; an observation costs time for those still in only, fewer and fewer.

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
        number: Any = candidates
        if not isinstance(number, int | np.integer) or number < 1:
            raise ValueError(f"there must be a candidate at least, and a whole number of them; got {candidates!r}")
        self.means = checked_means(means)
        tally = np.zeros(TALLIED)
        tally[LOW] = tally[HIGH] = math.nan
        tally[DEPTH] = math.log(2.0 / self.alpha)
        weights = np.array([*((1.0 - PLUG_IN_SHARE) / len(FRACTIONS) for _ in FRACTIONS), PLUG_IN_SHARE])
        up, down = (np.repeat(0.5 * weights[:, None], candidates, axis=1) for _ in range(2))
        self._bets = Bets(
            fractions=np.array([*FRACTIONS, PLUG_IN_STAKE]),
            means=np.linspace(*self.means, candidates + 2)[1:-1].copy(),
            most=np.zeros((2, candidates)),
            up=up,
            down=down,
            window=np.array([0, candidates]),
            tally=tally,
        )
        self._sum = 0.0

    def update(self, values: Any, *, low: Any = None, high: Any = None) -> None:
        """Take in observations, in their order; without ``low`` and ``high`` their range is that of the means."""
        ends = self.means[0] if low is None else low, self.means[1] if high is None else high
        x, lows, highs = checked_observations(values, *ends, self.means)
        _feed()(self._bets, x, lows, highs, 1.0 / self.alpha)
        self._sum += float(x.sum())

    @property
    def count(self) -> int:
        """How many observations there were."""
        return int(self._bets.tally[SEEN])

    @property
    def mean(self) -> float:
        """The mean of the observations; not a number before the first."""
        return self._sum / self.count if self.count else math.nan

    @property
    def contradicted(self) -> bool:
        """Whether no candidate is left: the mean changes with time, or the event of probability alpha has come."""
        return bool(self._bets.window[0] >= self._bets.window[1])

    @property
    def interval(self) -> tuple[float, float]:
        """The interval: the intersection of those after every observation; not numbers where ``contradicted``."""
        if self.contradicted:
            return math.nan, math.nan
        first, last = self._bets.window.tolist()
        low = self._bets.means[first - 1] if first > 0 else self.means[0]
        high = self._bets.means[last] if last < len(self._bets.means) else self.means[1]
        return float(low), float(high)

    @property
    def capital(self) -> tuple[Floats, Floats]:
        """What the gamblers hold who bet on more, and on less, than each candidate; frozen when it is out."""
        return self._bets.up.sum(axis=0), self._bets.down.sum(axis=0)

    def __repr__(self) -> str:
        low, high = self.interval
        return f"BettingSequence({self.count} observations, [{low:.4g}, {high:.4g}] at any time, alpha {self.alpha:g})"


@lru_cache(maxsize=1)
def _feed() -> Any:
    """Return the bets compiled, once in a process."""
    return compiled(feed_bets)
