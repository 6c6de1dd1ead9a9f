"""The theorems of Appendix D for BoBW-RealFTRL, constants explicit, with the cap eta_t <= lambda/2 that they need.

|eta_t l_hat| <= 1 gives stability at most (e - 2) eta_t sum q l_hat^2 (the paper: 3), whose mean is at most
2 (e - 2) d eta_t; exploration costs 2 gamma_t = 2 eta_t/lambda. With h_t = E H(q_t(X_0))/log K <= 1 and S_t = h_1 +
... + h_t, 1/eta_t = max(B_t, 2/lambda) and B_t = B_1 (1 + sum_{u<t} 1/sqrt(1 + S_u)) >= B_1 t/sqrt(1 + S_{t-1}),

    sum eta_t <= min{T lambda/2, (1 + log T) sqrt(1 + S_T)/B_1}
    sum penalty <= log K (2 B_1 sqrt(S_T) + 2 max{0, 1/lambda - B_1})

S_T <= T gives the adversarial regime: R_T = O(sqrt((1/lambda + d) T log T log K)), with log K where the paper prints
log^2(KT). In the other regimes S_T log K <= Q log(e (K-1) T/Q), where Q = E sum_t (1 - q_t(rho*)) satisfies
R_T + C >= (Delta_*/2) T M(Q/T). (The paper omits the 1/2, which comes from pi_t >= q_t/2.) Together they turn an upper
bound on R_T into a smaller one; we start from the adversarial bound and iterate.
"""

import math
from dataclasses import dataclass

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.theory.lemmas.margin import margin_mean
from bothworlds.theory.lemmas.penalty import entropy_sum_bound
from bothworlds.theory.lemmas.stability import SHANNON_FACTOR

ITERATIONS = 100


@dataclass(frozen=True, kw_only=True)
class ShannonRates:
    """Inputs of the theorems: K, d, lambda, and the T to which B_1 = sqrt((1/lambda + d) log T/log K) is tuned."""

    n_arms: int
    dimension: int
    coverage: float
    tuned_to: float

    @property
    def beta_1(self) -> float:
        """B_1 = 1/eta_1 before the cap; log T is at least log 2, as in the algorithm."""
        scale = (1.0 / self.coverage + self.dimension) * math.log(max(self.tuned_to, 2.0))
        return math.sqrt(scale / math.log(self.n_arms))

    @property
    def t0(self) -> float:
        """A round from which B_t >= 2/lambda: at most up to it, half of the rounds are exploration.

        B_t >= B_1 (2 sqrt(t + 1) - 2 sqrt 2 + 1), since S_u <= u.
        """
        needed = 2.0 / (self.coverage * self.beta_1)
        return max(1.0, ((needed + 2.0 * math.sqrt(2.0) - 1.0) / 2.0) ** 2 - 1.0)

    def given_entropy(self, horizons: Floats, entropy: Floats) -> Floats:
        """Return the bound of Theorem D.1 for a given S_T = E sum_t H(q_t)/log K, at most T."""
        lam, beta, log_arms = self.coverage, self.beta_1, math.log(self.n_arms)
        steps = np.minimum(0.5 * lam * horizons, (1.0 + np.log(horizons)) * np.sqrt(1.0 + entropy) / beta)
        cost = 2.0 / lam + 2.0 * SHANNON_FACTOR * self.dimension  # q <= 2 pi
        penalty = log_arms * (2.0 * beta * np.sqrt(np.maximum(entropy, 1.0)) + 2.0 * max(0.0, 1.0 / lam - beta))
        return np.asarray(cost * steps + penalty)


def adversarial(rates: ShannonRates, horizons: Floats) -> Floats:
    """Return the bound of Theorem D.2, with log K under the root."""
    return rates.given_entropy(horizons, horizons)


def self_bounding(
    rates: ShannonRates, horizons: Floats, *, gap: float, margin: float = math.inf, corruption: float = 0.0
) -> Floats:
    """Return the bounds of Theorems D.3 (corruption = 0) and D.4 (margin = infinity)."""
    regret = adversarial(rates, horizons)
    for _ in range(ITERATIONS):
        needed = 2.0 * (regret + corruption) / (gap * horizons)
        misses = horizons * np.minimum(margin_mean(needed, margin), 1.0)
        entropy = entropy_sum_bound(misses, rates.n_arms, horizons) / math.log(rates.n_arms)
        regret = rates.given_entropy(horizons, np.minimum(entropy, horizons))
    return regret
