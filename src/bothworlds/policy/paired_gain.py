"""What a policy earns above uniform play, from all decisions and not from the held-out ones alone.

Keyed hashes of its id decide whether a decision is held out, and its arm in either case: a decision in context x gets
arm a with probability

    q(a) = (1 - h) p(a) + h u(a),    p the plan, u uniform over the offered arms, h the share held out.        (1)

Decisions whose two would-be arms are the same say nothing about the gain. More is possible: given context and arm, it
does not matter to the reward whether the decision was held out. The average of the difference of means over that is

    Z = (r - c) w,    w = (p(a) - u(a))/q(a),    E[Z | x, plan] = sum_a (p(a) - u(a)) E[r | x, a],             (2)

with rewards r in [0, 1] and any c known before the decision, for the weights have mean 0; here it is the mean of the
earlier rewards. So whatever the plan explores by itself is used as well (Rao and Blackwell). With h = 0.05, four arms
and a plan of 0.85, 0.05, 0.05, 0.05, the variance of Z is an eighth of that of the difference of means.

With D = 1/min(h, 1 - h), |Z| <= D, and for every 0 < c < 1

    exp(c (Z - E Z)/D - psi(c) (Z/D)^2),    psi(c) = -log(1 - c) - c,                                          (3)

has mean 1 at most (Fan, Grama and Liu 2015, lemma 4.1), likewise for -Z. Products over all decisions, mixed over a
grid of c, ever exceed 2/alpha with probability alpha/2 at most (Ville): an interval for the average of E Z, at any
time, also if plans and rewards change.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from bothworlds.theory.confidence.checks import checked_alpha

COMPONENTS = 32
BETS = 0.5 * 2.0 ** (-0.5 * np.arange(COMPONENTS))  # c in (3)
PSI = -np.log1p(-BETS) - BETS
LOG_PRIOR = -np.log((np.arange(COMPONENTS) + 1.0) * (np.arange(COMPONENTS) + 2.0))  # sums to less than 1
BISECTIONS = 50


class Gain(NamedTuple):
    """The gain per decision in the user's units: estimate, any-time interval, and normal interval at a fixed time."""

    value: float
    low: float
    high: float
    once_low: float
    once_high: float


@dataclass
class GainSums:
    """Sums over decisions; ``share`` is that of the held-out ones.

    Decisions come in an order in which the next arm depends on earlier rewards through the plan alone.

    >>> sums = GainSums(share=0.1)
    >>> for i in range(1000):
    ...     sums.add(float(i % 50 < 43), plan=0.9 if i % 50 < 43 else 0.1, uniform=0.5)
    >>> round(sums.total / 1000, 2), [round(end, 2) for end in sums.interval(alpha=0.05)]
    (0.4, [0.28, 0.52])
    """

    share: float
    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    weights: float = 0.0
    rewards: float = 0.0

    def add(self, reward: float, *, plan: float, uniform: float) -> None:
        """Add a decision: its reward in [0, 1], and the probabilities of its arm in the plan and in uniform play."""
        weight = (plan - uniform) / ((1.0 - self.share) * plan + self.share * uniform)
        value = (reward - (self.rewards + 0.5) / (self.count + 1.0)) * weight
        self.count += 1
        self.rewards += reward
        self.total += value
        self.squares += value * value
        self.weights += weight * weight

    def interval(self, *, alpha: float) -> tuple[float, float]:
        """Return an any-time interval for the average gain, for rewards in [0, 1]."""
        return self._lower(self.total, alpha), -self._lower(-self.total, alpha)

    def _lower(self, total: float, alpha: float) -> float:
        """Return the largest average that the mixture rejects, or -1."""
        bound, threshold = 1.0 / min(self.share, 1.0 - self.share), math.log(2.0 / checked_alpha(alpha))
        fixed = LOG_PRIOR + BETS * total / bound - PSI * self.squares / bound**2
        low, high = -1.0, 1.0
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            rejected = np.logaddexp.reduce(fixed - BETS * self.count * middle / bound) >= threshold
            low, high = (middle, high) if rejected else (low, middle)
        return low

    def gain(self, limits: tuple[float, float], *, variance: float, level: float, alpha: float) -> Gain:
        """Return the gain for rewards within limits, if there are decisions.

        ``variance`` is that of single rewards, in the user's units; the any-time interval has error ``level``, and the
        one at a fixed time ``alpha``.
        """
        width, count = limits[1] - limits[0], max(self.count, 1)
        low, high = self.interval(alpha=level)
        value = self.total / count
        spread = max(self.squares, self.weights * variance / width**2) / count
        radius = NormalDist().inv_cdf(1.0 - alpha / 2.0) * math.sqrt(spread / count)
        return Gain(*(width * end for end in (value, low, high, value - radius, value + radius)))
