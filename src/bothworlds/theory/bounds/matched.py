"""A theorem of our own for LC-Tsallis-INF with the matched tuning, constants explicit; proof in docs/theory.md.

With w_t = eta_t V_t + 2 gamma_t, H = 2 (sqrt K - 1), u = 2L/(c^2 lambda) and A = 1/(1 - 2c) + B(c)

    R_T <= A E[sum_t w_t] + H max{1/cap, 1/eta_1}

    E sum_t w_t <= few + sqrt(16 H d T) + 24 (H/6)^(2/3) (u T)^(1/3)                                        always
    E sum_t w_t <= few + 4 sqrt(J F Q) + 24 (4/36)^(1/3) (4 J^2 u (K-1) Q)^(1/3) + the roots above at T = 1

where Q = E sum_t sum_x g (1 - max q_t), F = 4 f d sqrt((K-1) L) with f the `stability_factor` of small steps, J =
ceil(log2 max{T, 2}), and "few" is for the rounds in which 1/eta_t doubles. On the other side R_T + C >= (Delta_*/2) T
M(Q/T). Each turns an upper bound on R_T into a smaller one; we iterate as for Appendix D.
"""

import math
from dataclasses import dataclass

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.theory.lemmas.margin import margin_mean
from bothworlds.theory.lemmas.matching import SHARE, entropy_growth
from bothworlds.theory.lemmas.stability import stability_factor
from bothworlds.theory.schedules import Schedule

ITERATIONS = 200
SMALL_STEPS = 1e-9


@dataclass(frozen=True, kw_only=True)
class MatchedRates:
    """What the theorem needs: the rules that bound gamma_t by eta_t, the first rate (``gain``), K, d, L and c."""

    schedule: Schedule
    n_arms: int
    dimension: int
    rarity: float
    c: float

    @property
    def most_entropy(self) -> float:
        """H = 2 (sqrt K - 1), -psi of the uniform distribution."""
        return 2.0 * (math.sqrt(self.n_arms) - 1.0)

    @property
    def factor(self) -> float:
        """A: what a round costs for each unit that it is matched to."""
        return 1.0 / (1.0 - 2.0 * self.c) + entropy_growth(self.c)

    @property
    def first_cost(self) -> float:
        """Penalty of the first rate, and of all that it falls until some gamma_t <= 1/2 keeps it stable."""
        return self.most_entropy * max(1.0 / self.schedule.cap, 1.0 / self.schedule.gain)

    @property
    def doublings(self) -> float:
        """Bound the sum of w_t over the rounds in which 1/eta_t doubles: there gamma_t makes up most of it."""
        pace = math.sqrt(2.0 * self.schedule.power_scale) * self.schedule.gain
        rounds = max(0.0, math.ceil(math.log2(pace)))
        return (rounds + 4.0 / 3.0) / (1.0 - 2.0 * self.c**2 / SHARE)

    def undecided(self, rounds: Floats) -> Floats:
        """Bound the sum of w_t over so many other rounds, whatever the plans are."""
        stability = np.sqrt(16.0 * self.most_entropy * self.dimension * rounds)
        explored = 24.0 * (self.most_entropy / 6.0) ** (2.0 / 3.0) * np.cbrt(self.schedule.power_scale * rounds)
        return np.asarray(stability + explored)

    def decided(self, horizons: Floats, misses: Floats) -> Floats:
        """Bound the same for a given Q."""
        levels = np.ceil(np.log2(np.maximum(horizons, 2.0)))
        others = self.n_arms - 1.0
        scale = 4.0 * stability_factor(SMALL_STEPS) * self.dimension * math.sqrt(others * self.rarity)
        stability = 4.0 * np.sqrt(levels * scale * misses)
        explored = 24.0 * np.cbrt(4.0 / 36.0 * 4.0 * levels**2 * self.schedule.power_scale * others * misses)
        return np.asarray(stability + explored + self.undecided(np.ones_like(horizons)))

    def regret(self, matched: Floats) -> Floats:
        """Bound the regret by the sum of w_t over all rounds in which 1/eta_t does not double."""
        return np.asarray(self.factor * (self.doublings + matched) + self.first_cost)


def adversarial(rates: MatchedRates, horizons: Floats) -> Floats:
    """Bound the regret whatever the losses are."""
    return rates.regret(rates.undecided(horizons))


def self_bounding(
    rates: MatchedRates, horizons: Floats, *, gap: float, margin: float = math.inf, corruption: float = 0.0
) -> Floats:
    """Bound it where gaps are at least Delta_*, or have a margin, but for a corruption C."""
    regret = adversarial(rates, horizons)
    for _ in range(ITERATIONS):
        needed = 2.0 * (regret + corruption) / (gap * horizons)
        misses = horizons * np.minimum(margin_mean(needed, margin), 1.0)
        regret = np.minimum(regret, rates.regret(rates.decided(horizons, misses)))
    return regret
