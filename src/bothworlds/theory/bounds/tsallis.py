"""Theorems 4.1-4.4 for LC-Tsallis-INF with alpha = 1/2, constants explicit.

Stability (Lemma B.2 with `stability_factor`), Lemma A.4 and q <= pi/(1 - gamma), and Lemma B.3 give

    R_T <= sum_t beta(t) E sqrt(omega_t) + kappa_T                                                  (Theorem 4.1)

    beta(t) = factor(c) d eta_t/(1 - gamma_t) + 2 sqrt(K-1)/(gain (sqrt m + sqrt(m-1))),   m = max(t, t0)
    kappa_T = 2 (sqrt K - 1)/eta_1 + 2 sum_t gamma_t

with eta_t = min(gain/sqrt t, cap) and t0 = (gain/cap)^2. (1/eta_t only grows from t0 on, and gain is K^(1/4)/sqrt d.)
Neither beta nor gamma increases, so block sums bound them from above.

On the other side, gamma <= 1/2 gives R_T >= (1/2) Delta_* sum_t M(E omega_t/L) - C, with M of the margin condition.
For every nu in [0, 1), R = (R - nu R)/(1 - nu) turns both into

    R_T <= [sum_t max_{0 <= y <= 1-1/K} (beta(t) sqrt y - nu (Delta_*/2) M(y/L)) + kappa_T + nu C]/(1 - nu)

nu = 0 is Theorem 4.2, M(u) = u (beta = infinity) is Theorem 4.4, and C = 0 is Theorem 4.3. The maximum is taken round
by round; the paper's Cauchy-Schwarz over all rounds costs the factor log(T)^((1+beta)/(2+beta)) of Theorem 4.3, which
is not needed for a fixed beta.
"""

import math
from dataclasses import dataclass

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.theory.bounds.sums import blocks_until
from bothworlds.theory.lemmas.stability import stability_factor
from bothworlds.theory.schedules import Schedule

NU = 1.0 / (1.0 + np.logspace(6.0, -6.0, 241))  # every nu is a valid choice; the best one is taken


@dataclass(frozen=True, kw_only=True)
class TsallisRates:
    """Inputs of the theorems: the schedule, K, d, L, and c of Lemma B.1."""

    schedule: Schedule
    n_arms: int
    dimension: int
    rarity: float
    c: float

    @property
    def t0(self) -> float:
        """Up to round t0, half of the rounds are exploration."""
        return self.schedule.exploration_rounds

    def learning_rate(self, t: Floats) -> Floats:
        """Return eta_t at several rounds."""
        return np.asarray(np.minimum(self.schedule.gain / np.sqrt(t), self.schedule.cap))

    def exploration_rate(self, t: Floats) -> Floats:
        """Return gamma_t at several rounds; an upper bound for the certified tuning."""
        eta = self.learning_rate(t)
        curved = self.schedule.power_scale * eta**self.schedule.power
        return np.asarray(np.minimum(np.minimum(0.5, self.schedule.linear * eta), curved))

    def weight(self, t: Floats) -> Floats:
        """Return beta(t), the cost of sqrt(omega_t) in round t; it does not increase."""
        m = np.maximum(np.maximum(t, self.t0), 1.0)
        growth = 1.0 / (self.schedule.gain * (np.sqrt(m) + np.sqrt(m - 1.0)))
        stability = stability_factor(self.c) * self.dimension * self.learning_rate(t) / (1.0 - self.exploration_rate(t))
        return np.asarray(stability + 2.0 * math.sqrt(self.n_arms - 1.0) * growth)

    def kappa(self, horizons: Floats) -> Floats:
        """Return kappa_T: the first penalty plus twice the exploration."""
        blocks = blocks_until(horizons)
        first = 2.0 * (math.sqrt(self.n_arms) - 1.0) / self.schedule.learning_rate(1.0)
        return np.asarray(first + 2.0 * blocks.sums(self.exploration_rate(blocks.first)))


def general(rates: TsallisRates, omegas: Floats) -> float:
    """Return the bound of Theorem 4.1 for given E sqrt(omega_t), t = 1, ..., T.

    For omegas of a single path it is an estimate, not a bound.
    """
    t = np.arange(1.0, len(omegas) + 1.0)
    return float((rates.weight(t) * omegas).sum() + rates.kappa(t[-1:])[0])


def adversarial(rates: TsallisRates, horizons: Floats) -> Floats:
    """Return the bound of Theorem 4.2: omega_t <= 1 - 1/K in every round."""
    blocks = blocks_until(horizons)
    most = math.sqrt(1.0 - 1.0 / rates.n_arms)
    return np.asarray(most * blocks.sums(rates.weight(blocks.first)) + rates.kappa(horizons))


def self_bounding(
    rates: TsallisRates, horizons: Floats, *, gap: float, margin: float = math.inf, corruption: float = 0.0
) -> Floats:
    """Return the bounds of Theorems 4.3 (corruption = 0) and 4.4 (margin = infinity), with the best nu per horizon."""
    blocks = blocks_until(horizons)
    most = 1.0 - 1.0 / rates.n_arms
    weight = rates.weight(blocks.first)[:, None]
    power, strength = _lower_bound(rates.rarity, gap, margin)
    slope = NU * strength
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        free = (weight / (2.0 * slope * power)) ** (2.0 / (2.0 * power - 1.0))
        inner = weight * np.sqrt(np.minimum(free, most)) * (1.0 - 0.5 / power)
    value = np.where(free < most, inner, weight * math.sqrt(most) - slope * most**power)
    total = blocks.sums(value) + rates.kappa(horizons)[:, None] + NU * corruption
    return np.asarray(np.minimum((total / (1.0 - NU)).min(axis=1), adversarial(rates, horizons)))


def _lower_bound(rarity: float, gap: float, margin: float) -> tuple[float, float]:
    """Return (power, strength) with (Delta_*/2) M(y/L) >= strength y^power for y in [0, 1].

    Below 1/2, where y/L always is with two contexts or more, M(u) = beta/(1 + beta) 2^(1/beta) u^(1 + 1/beta).
    """
    inverse = 0.0 if math.isinf(margin) else 1.0 / margin
    power = 1.0 + inverse
    base = 2.0 / rarity if rarity >= 2.0 else 1.0 / rarity  # the quotient first: separate powers may overflow
    return power, 0.5 * gap / power * base**inverse / rarity
