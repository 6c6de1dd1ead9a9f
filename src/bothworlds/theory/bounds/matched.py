"""Our regret bound for LC-Tsallis-INF with the matched tuning, constants explicit; proof in research/default-rule.md.

Let z_t be the stability of covered steps, C_t <= caution d/beta_t, P_t the price of exploration and of uncovered
plays, J_t the penalty of jumps (only uncovered plays while beta < b cause them), and H = 2 (sqrt K - 1). Then

    R_T <= (1 + drift_cap) (H beta_1 + E sum_t [(1 + gain_t) z_t + C_t + (1 + price) P_t + J_t]).

Whatever the plans are,

    E sum z_t                <=   sqrt(V (2 f/kappa + M) (T + X) H),   V = 4 d/(1 - c)
    penalties but for prices <=   sqrt((max{2 gain, 2 least + least^2 M} V + (2 + least M) caution d) (T + X) H)
    X = E sum P_t            <=   early + 3 l^(2/3) (H/(3 price))^(2/3) (2 u T)^(1/3)

with l = 1 + 3 price/(H b). ``early`` are the prices while beta < b. The bound is that of paths without a restart
(`algorithms.lc_tsallis.change_evidence`).

With gaps, rounds are sorted into J <= ceil(log2 T) classes by the entropy of their plans, and sums are bounded by
Q = E sum_t sum_x g (1 - max q_t); on the other side R_T + C >= (Delta_*/2) T M(Q/T). Together they turn an upper bound
on R_T into a smaller one; we iterate as for Appendix D.
"""

import math
from dataclasses import dataclass

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.theory.lemmas.margin import margin_mean
from bothworlds.theory.lemmas.matching import entropy_growth, stability_share
from bothworlds.theory.lemmas.stability import stability_factor
from bothworlds.theory.schedules import SURE, Covering, Matching

ITERATIONS = 60  # every iteration gives a valid bound; more iterations make it slightly smaller
INNER = 4
SMALL_STEPS = 1e-9
RESIDUAL = 4.0  # the largest square: losses and predictions lie in [-1, 1]
IN_CLASS = 12.0 ** (1.0 / 3.0)  # 3 (2/3)^(2/3): prices of a class of rounds in which beta^3 at most doubles
DEPTHS = np.linspace(0.1, 1.0, 10)  # entropies below H T^-depth are one class; every depth gives a valid bound
DOUBLING = 1.0 / (1.0 - 2.0 ** (-2.0 / 3.0))  # sum of 1/beta^2 while beta^3 doubles, from 1 on


@dataclass(frozen=True, kw_only=True)
class MatchedRates:
    """Inputs of the theorem: K, d, L, lambda, the hyperparameters, and the entropy below which values are rounding."""

    n_arms: int
    dimension: int
    rarity: float
    coverage: float
    matching: Matching
    entropy_floor: float = SURE

    @property
    def most_entropy(self) -> float:
        """H = 2 (sqrt K - 1), -psi of the uniform distribution."""
        return 2.0 * (math.sqrt(self.n_arms) - 1.0)

    @property
    def beta_1(self) -> float:
        """beta_1 = sqrt(d) K^(-1/4)."""
        return float(math.sqrt(self.dimension) * self.n_arms**-0.25)

    @property
    def covering(self) -> Covering:
        """The exploration rate that covers every play."""
        return Covering.of(rarity=self.rarity, coverage=self.coverage, c=self.matching.c)

    @property
    def variance(self) -> float:
        """V = 4 d/(1 - c): E beta_t z_t is at most V (1 + P_t)."""
        return RESIDUAL * self.dimension / (1.0 - self.matching.c)

    @property
    def covered_from(self) -> float:
        """b: from beta_t = b on, prices are at most 2 u/beta_t^2 <= 1/4, u = curved."""
        return self.covering.sure_from

    def growth(self, c: float) -> float:
        """Return the largest ratio h'/h_t after steps with |y| <= c, including the next prediction."""
        return (1.0 + 2.0 / self.beta_1) * entropy_growth(c)

    @property
    def drift_factor(self) -> float:
        """1 + drift_cap: all other costs times this bound them and the cost of the regression drift."""
        return 1.0 + self.matching.drift_cap

    @property
    def _early_scale(self) -> float:
        """The scale b H/price: payments while beta < b, divided by this, are about the growth of log beta."""
        return self.covered_from * self.most_entropy / self.matching.price

    @property
    def _has_early_rounds(self) -> bool:
        """Whether there are rounds with beta < b."""
        return self.most_entropy > 0.0 and self.covered_from > self.beta_1

    @property
    def _jump(self) -> float:
        """The largest factor by which an uncovered play multiplies a beta below b."""
        return 1.0 + self.covering.largest / self._early_scale

    @property
    def _step(self) -> float:
        """The largest factor f by which exploration multiplies beta, from f (f - 1) = price/(b H)."""
        return _factor(1.0 / self._early_scale)

    @property
    def early_prices(self) -> float:
        """Bound on the sum of P_t over rounds with beta < b: each payment raises log beta."""
        if not self._has_early_rounds:
            return 0.0
        scale, largest = self._early_scale, self.covering.largest
        slowest = max(1.0 / math.log1p(1.0 / (scale * self._step)), largest / math.log(self._jump))
        growth = math.log(self._step * self._jump * self.covered_from / self.beta_1)
        return slowest * growth + largest + 1.0

    @property
    def early_penalties(self) -> float:
        """Bound on the penalties of these prices: H times the growth of beta, up to its value after the last one."""
        if not self._has_early_rounds:
            return 0.0
        return self.most_entropy * self.covered_from * self._jump * self._step**2

    def late_prices(self, horizons: Floats) -> Floats:
        """Bound the prices from beta = b on, for any plans: each of them raises beta^3."""
        H, price = self.most_entropy, self.matching.price
        if H == 0.0:
            return np.zeros_like(horizons)
        last = 1.0 + 3.0 * price / (H * self.covered_from)  # largest factor of beta^3 in one round
        scale = 3.0 * (last * H / (3.0 * price)) ** (2.0 / 3.0)
        return np.asarray(scale * np.cbrt(2.0 * self.covering.curved * horizons))

    def prices(self, horizons: Floats) -> Floats:
        """Bound X = E sum P_t, for any plans."""
        return self.early_prices + self.late_prices(horizons)

    @property
    def _reach(self) -> float:
        """f/kappa: the sum of z_t before round t is at most H beta_t times this, kappa the least gain_t H/h."""
        m = self.matching
        kappa = math.sqrt(m.least * max(m.gain, m.least))
        return _factor(stability_share(m.c) * kappa) / kappa

    @property
    def stability_scale(self) -> float:
        """V (2 f/kappa + M): E sum z_t is at most sqrt of (T + X) H times this."""
        return self.variance * (2.0 * self._reach + stability_share(self.matching.c))

    @property
    def penalty_scale(self) -> float:
        """The same scale for the penalties caused by stability and caution."""
        m, share = self.matching, stability_share(self.matching.c)
        most = max(2.0 * m.gain, 2.0 * m.least + m.least * m.least * share)
        return self.variance * most + (2.0 + m.least * share) * m.caution * self.dimension

    def worst_case_costs(self, horizons: Floats) -> Floats:
        """Bound the sum of stability, penalties and later prices, for any plans."""
        scale = math.sqrt(self.stability_scale) + math.sqrt(self.penalty_scale)
        costs = scale * np.sqrt((horizons + self.prices(horizons)) * self.most_entropy)
        return np.asarray(costs + (1.0 + self.matching.price) * self.late_prices(horizons))

    def costs_given_misses(self, horizons: Floats, misses: Floats) -> Floats:
        """Bound the same costs plus early prices, for a given Q = ``misses``."""
        prices = self.prices_of(horizons, misses)
        weighted = np.minimum(2.0 * misses, misses + prices)
        stability = np.min([self._stability_of(horizons, weighted, depth) for depth in DEPTHS], axis=0)
        paid = (1.0 + self.matching.price) * prices + self.early_penalties
        return np.asarray(stability + self._caution_of(horizons, misses) + paid)

    def _caution_of(self, horizons: Floats, misses: Floats) -> Floats:
        """Bound E sum C_t for a given Q: (h_t/H)^8 is at most 4 (K - 1) omega'_t/H^2."""
        H, most = self.most_entropy, self.matching.caution * self.dimension
        if H == 0.0:
            return np.zeros_like(horizons)
        steepest = most / (H * self.beta_1**2)  # largest C_t/(h' beta)
        slope = 2.0 * _factor(steepest) + steepest
        entropies = 4.0 * (self.n_arms - 1.0) / H * misses
        return np.asarray(np.sqrt(slope * most * entropies))

    def _stability_of(self, horizons: Floats, weighted: Floats, depth: float) -> Floats:
        """Bound E sum (1 + gain_t) z_t for a given E sum_t sum_x g (1 - max q_t) (1 + P_t) = ``weighted``."""
        m, share, growth = self.matching, stability_share(self.matching.c), self.growth(self.matching.c)
        slope = 2.0 * _factor(m.least * share / growth) * growth / m.least + share
        levels, lowest = self.classes(horizons, depth)
        half = self.variance * stability_factor(SMALL_STEPS) * math.sqrt(self.rarity) * 2.0 * math.sqrt(self.n_arms - 1)
        squares = np.cumsum(self._weights(np.arange(levels.max())) ** 2)[levels.astype(int) - 1]
        in_classes = np.sqrt(squares * slope * 2.0 * half * weighted)
        rest = self._weights(levels) * np.sqrt(slope * lowest * 2.0 * self.variance * horizons)
        return np.asarray(in_classes + rest)

    def _weights(self, classes: Floats) -> Floats:
        """Return the largest 1 + gain_t after a covered step in rounds with h_t <= H 2^-j."""
        m = self.matching
        return 1.0 + np.maximum(m.gain * np.minimum(1.0, self.growth(m.c) * 2.0**-classes) ** 2, m.least)

    def classes(self, horizons: Floats, depth: float) -> tuple[Floats, Floats]:
        """Return J, and the entropy below which all rounds form one class: H T^-depth, at least `entropy_floor`."""
        lowest = np.maximum(self.most_entropy * horizons**-depth, self.entropy_floor)
        return np.ceil(np.log2(np.maximum(self.most_entropy / lowest, 2.0))), lowest

    def prices_of(self, horizons: Floats, misses: Floats) -> Floats:
        """Bound X for a given Q. The effect of uncovered plays on entropy is itself bounded by X."""
        H, u, price = self.most_entropy, self.covering.curved, self.matching.price
        bound = self.prices(horizons)
        scale = IN_CLASS * np.cbrt(2.0 * u / price**2)
        fixed = self.early_prices + DOUBLING
        calm = 2.0 * self.matching.c
        for _ in range(INNER):
            after = 8.0 * self.growth(calm) ** 2 * (self.n_arms - 1.0) * misses
            after = after + 4.0 * H * H / (calm * self.covered_from) * bound
            for levels, lowest in (self.classes(horizons, depth) for depth in DEPTHS):
                late = np.cbrt(lowest**2 * horizons) + np.cbrt(4.0 * levels**2 * after)
                bound = np.minimum(bound, fixed + scale * late)
        return bound


def _factor(x: float) -> float:
    """Return f with f (f - 1) = x, the factor by which beta grows to pay x beta h."""
    return 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * x))


def adversarial(rates: MatchedRates, horizons: Floats) -> Floats:
    """Bound the regret for any losses."""
    early = rates.early_prices + rates.early_penalties
    start = rates.most_entropy * rates.beta_1
    return np.asarray(rates.drift_factor * (start + rates.worst_case_costs(horizons) + early))


def self_bounding(
    rates: MatchedRates, horizons: Floats, *, gap: float, margin: float = math.inf, corruption: float = 0.0
) -> Floats:
    """Bound the regret under a gap Delta_* or a margin condition, with corruption C."""
    T = np.asarray(horizons, dtype=float)
    regret = adversarial(rates, T)
    start = rates.most_entropy * rates.beta_1
    for _ in range(ITERATIONS):
        needed = 2.0 * (regret + corruption) / (gap * T)
        misses = T * np.minimum(margin_mean(needed, margin), 1.0)
        regret = np.minimum(regret, rates.drift_factor * (rates.costs_given_misses(T, misses) + start))
    return regret
