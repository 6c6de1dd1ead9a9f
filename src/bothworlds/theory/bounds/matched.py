"""A theorem of our own for LC-Tsallis-INF with the matched tuning, constants explicit; proof in docs/theory.md.

With z_t the stability of covered steps, P_t the price of exploration, H = 2 (sqrt K - 1), and without fading

    R_T <= E sum_t [(1 + gain_t) z_t + (1 + price) P_t] + 2 H beta_1

    E sum z_t <= sqrt(V (T + X) (2 f h~ + M H)),       V = 4 d/(1 - c),       h~ = H/sqrt(least gain)           always
    X = E sum P_t <= first + 3 l (H/(3 price))^(2/3) (2 u T)^(1/3)

and the same for sum gain_t z_t with other constants. Where there are gaps, rounds are sorted into J = ceil(log2 T)
classes by the entropy of their plans, and sums are bounded by Q = E sum_t sum_x g (1 - max q_t); on the other side
R_T + C >= (Delta_*/2) T M(Q/T). Each turns an upper bound on R_T into a smaller one; we iterate as for Appendix D.

Fading, weights W_t of the order of t^a, bounds the weighted regret by W_T times the same; summation by parts makes of
it R_T <= Psi(T) + sum_{t < T} a/(t + a) Psi(t), Psi the bound without fading.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.theory.lemmas.margin import margin_mean
from bothworlds.theory.lemmas.matching import SHARE, entropy_fall, entropy_growth, stability_share
from bothworlds.theory.lemmas.stability import stability_factor
from bothworlds.theory.schedules import Covering, Matching

ITERATIONS = 60  # each gives a bound; more make it a little smaller
INNER = 12
SMALL_STEPS = 1e-9
RESIDUAL = 4.0  # the largest square: losses and predictions lie in [-1, 1]
RATIO = 1.25  # of the rounds at which the sum over t is taken
Bounding = Callable[["MatchedRates", Floats], Floats]


@dataclass(frozen=True, kw_only=True)
class MatchedRates:
    """What the theorem needs: K, d, L, lambda and the hyper-parameters."""

    n_arms: int
    dimension: int
    rarity: float
    coverage: float
    matching: Matching

    @property
    def most_entropy(self) -> float:
        """H = 2 (sqrt K - 1), -psi of the uniform distribution."""
        return 2.0 * (math.sqrt(self.n_arms) - 1.0)

    @property
    def first(self) -> float:
        """beta_1 = sqrt(d) K^(-1/4)."""
        return float(math.sqrt(self.dimension) * self.n_arms**-0.25)

    @property
    def covering(self) -> Covering:
        """The exploration that leaves no play uncovered."""
        sizes = {"n_arms": self.n_arms, "dimension": self.dimension}
        return Covering.of(rarity=self.rarity, coverage=self.coverage, c=self.matching.c, **sizes)

    @property
    def variance(self) -> float:
        """V = 4 d/(1 - c): beta_t z_t is at most V (1 + P_t) in the mean."""
        return RESIDUAL * self.dimension / (1.0 - self.matching.c)

    @property
    def covered_from(self) -> float:
        """b: from beta_t = b on the price is at most 2 u/beta_t^2, u = curved."""
        return math.sqrt(2.0 * self.covering.curved)

    @property
    def early_prices(self) -> float:
        """Bound the sum of P_t over rounds with beta_t < b: each raises beta."""
        if self.most_entropy == 0.0:
            return 0.0
        jump = self.matching.price * self.covering.dearest / self.most_entropy
        widest = 1.0 + math.sqrt(jump / self.first)
        top = self.covered_from * (1.0 + math.sqrt(jump / self.covered_from))
        return self.most_entropy / self.matching.price * (top + 2.0 * math.sqrt(widest * jump * top))

    def prices(self, horizons: Floats) -> Floats:
        """Bound X = E sum P_t whatever the plans are."""
        H, price = self.most_entropy, self.matching.price
        step = price / max(H * self.covered_from, price)
        late = (1.0 + 3.0 * step) ** (2.0 / 3.0) * ((1.0 + math.sqrt(step)) * H / (3.0 * price)) ** (2.0 / 3.0)
        return np.asarray(self.early_prices + 3.0 * late * np.cbrt(2.0 * self.covering.curved * horizons))

    def undecided(self, horizons: Floats) -> Floats:
        """Bound E sum [(1 + gain_t) z_t + (1 + price) P_t] whatever the plans are."""
        m, H, share = self.matching, self.most_entropy, stability_share(self.matching.c)
        most, middle = max(m.gain, m.least), math.sqrt(m.least * max(m.gain, m.least))
        prices = self.prices(horizons)
        plain = 2.0 * _factor(share * middle) * H / middle + share * H
        matched = 2.0 * most * _factor(share * most) * H + most * most * share * H
        spent = np.sqrt(self.variance * (horizons + prices))
        return np.asarray((math.sqrt(plain) + math.sqrt(matched)) * spent + (1.0 + m.price) * prices)

    def decided(self, horizons: Floats, misses: Floats) -> Floats:
        """Bound the same for a given Q."""
        m, H, others = self.matching, self.most_entropy, self.n_arms - 1.0
        moved = (1.0 + 2.0 / self.first) / SHARE
        growth, fall = moved * entropy_growth(m.c), moved * entropy_fall(m.c)
        levels = np.ceil(np.log2(np.maximum(horizons, 2.0)))
        scale = 2.0 * self.variance * stability_factor(SMALL_STEPS) * math.sqrt(self.rarity) * 2.0 * math.sqrt(others)
        lag = 1.0 + math.sqrt(1.0 + m.least * stability_share(m.c) * fall)
        stability = lag * np.sqrt(growth * scale / m.least * 4.0 * levels * misses)
        rest = lag * math.sqrt(2.0 * self.variance * H / m.least)
        most = 1.0 + max(m.gain, m.least)
        return np.asarray(
            most * (stability + rest) + (1.0 + m.price) * self._prices_of(levels, misses, growth, horizons)
        )

    def _prices_of(self, levels: Floats, misses: Floats, growth: float, horizons: Floats) -> Floats:
        """Bound X for a given Q; what uncovered plays do to entropy is itself bounded by X."""
        H, u, price = self.most_entropy, self.covering.curved, self.matching.price
        doublings = 3.0 * math.log2(max(self.covered_from / self.first, 1.0)) + 1.0
        few = self.covering.dearest * doublings + 1.0 / (1.0 - 2.0 ** (-2.0 / 3.0))
        fixed = self.early_prices + few + 9.6 * (2.0 * u * H * H / price**2) ** (1.0 / 3.0)
        found = self.prices(horizons)
        for _ in range(INNER):
            after = 8.0 * growth**2 * (self.n_arms - 1.0) * misses
            after = after + 4.0 * H * H / (self.matching.c * self.covered_from) * found
            found = np.minimum(found, fixed + 9.6 * np.cbrt(levels**2 * 2.0 * u * after / price**2))
        return found

    def regret(self, spent: Floats) -> Floats:
        """Bound the regret by what was spent."""
        return np.asarray(spent + 2.0 * self.most_entropy * self.first)


def _factor(x: float) -> float:
    """Return f with f (f - 1) = x: by this factor beta grows where x beta h is due."""
    return 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * x))


def adversarial(rates: MatchedRates, horizons: Floats) -> Floats:
    """Bound the regret whatever the losses are."""
    return faded(rates, horizons, lambda plain, T: plain.regret(plain.undecided(T)))


def self_bounding(
    rates: MatchedRates, horizons: Floats, *, gap: float, margin: float = math.inf, corruption: float = 0.0
) -> Floats:
    """Bound it where gaps are at least Delta_*, or have a margin, but for a corruption C."""

    def bound(plain: MatchedRates, T: Floats) -> Floats:
        regret = plain.regret(plain.undecided(T))
        for _ in range(ITERATIONS):
            needed = 2.0 * (regret + corruption) / (gap * T)
            misses = T * np.minimum(margin_mean(needed, margin), 1.0)
            regret = np.minimum(regret, plain.regret(plain.decided(T, misses)))
        return regret

    return faded(rates, horizons, bound)


def faded(rates: MatchedRates, horizons: Floats, bound: Bounding) -> Floats:
    """Return Psi(T) + sum_{t < T} a/(t + a) Psi(t), Psi the bound without fading, which does not fall with t."""
    a = rates.matching.recency
    plain = replace(rates, matching=replace(rates.matching, recency=0.0))
    found = bound(plain, np.asarray(horizons, dtype=float))
    if a == 0.0:
        return found
    rounds = np.unique(np.ceil(RATIO ** np.arange(1.0 + math.ceil(math.log(max(float(np.max(horizons)), 2.0), RATIO)))))
    psi = bound(plain, rounds)
    weights = a * np.log((rounds[1:] - 1.0 + a) / (rounds[:-1] - 1.0 + a))
    sums = np.concatenate([[0.0], np.cumsum(weights * psi[1:])])
    places = np.searchsorted(rounds, horizons, side="right") - 1
    last = a * np.log((np.asarray(horizons) - 1.0 + a) / (rounds[places] - 1.0 + a))
    return np.asarray(found + sums[places] + last * found)
