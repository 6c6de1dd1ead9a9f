"""Learning and exploration rates of LC-Tsallis-INF: equation (4), with its errata corrected.

The analysis needs, for all arms and contexts, the stability condition

    eta_t |l_hat_t(a, x)| <= c q_t(a|x)^(alpha - 1),   c = (1 - alpha)/4                       (Lemma B.1)

and gamma_t <= 1/2. From |l_hat| <= min{1/(lambda gamma), sqrt(2 L/(lambda gamma q))} (Lemma A.3) two choices of
gamma are sufficient, each as long as it is at most 1/2:

    (A)  gamma = eta/(c lambda)                                     no finite support needed; 8 eta/lambda
    (B)  gamma = 2 L eta^2/(c^2 lambda)               alpha <= 1/2; 128 L eta^2/lambda
         gamma = (eta (2 L)^(1-alpha)/c)^(1/alpha)/lambda   alpha >= 1/2

with the values for alpha = 1/2 last. The paper prints (B) for both branches of eta_t although L does not exist
in the second; its proof gives (A) there.
"""

import math
from dataclasses import dataclass, replace

from bothworlds.kernels.rates import SAFE, Rates, scheduled_exploration, scheduled_learning
from bothworlds.theory.lemmas.matching import CENTRED


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """eta_t = min(gain/sqrt(t), cap) and gamma_t = min(linear eta_t, power_scale eta_t^power) <= 1/2."""

    gain: float
    cap: float
    linear: float
    power_scale: float
    power: float

    @property
    def rates(self) -> Rates:
        """The constants in the form that the kernels take."""
        return Rates(self.gain, self.cap, self.linear, self.power_scale, self.power)

    def learning_rate(self, t: float) -> float:
        """Return eta_t."""
        return float(scheduled_learning(self.rates, t))

    def exploration_rate(self, t: float) -> float:
        """Return gamma_t, at most 1/2."""
        return float(scheduled_exploration(self.rates, self.learning_rate(t)))

    @property
    def exploration_rounds(self) -> float:
        """t0: up to this round eta_t is at its cap and half of the rounds are exploration.

        With the constants of the paper and (B), t0 = 256 sqrt(K) L/(d lambda).
        """
        ratio = self.gain / self.cap
        return ratio * ratio  # overflows to infinity, where ** raises OverflowError

    def in_batches(self, batch: int) -> "Schedule":
        """Return the rates for sums of ``batch`` estimates whose mean replaces a single estimate.

        The n-th batch, t = n batch, has eta_n for the mean, so eta_n/batch = gain/sqrt(batch t) for the sum, and the
        gamma of eta_n. t0 becomes batch t0 decisions.

        >>> single = Schedule(gain=1.0, cap=0.25, linear=2.0, power_scale=8.0, power=2.0)
        >>> batched = single.in_batches(4)
        >>> batched.learning_rate(4 * 100) == single.learning_rate(100) / 4
        True
        >>> batched.exploration_rate(4 * 100) == single.exploration_rate(100)
        True
        >>> single.exploration_rounds, batched.exploration_rounds
        (16.0, 64.0)
        """
        return replace(
            self,
            gain=self.gain * batch**-0.5,
            cap=self.cap / batch,
            linear=self.linear * batch,
            power_scale=self.power_scale * batch**self.power,
        )


SURE = 1e-13  # smallest entropy: anything below is rounding and is replaced by it


@dataclass(frozen=True, kw_only=True)
class Matching:
    """Hyperparameters of the matched tuning; regret has the same orders for any with c < 1/2. ``caution`` may be 0."""

    gain: float = 1.0
    least: float = 0.25
    caution: float = 16.0
    price: float = 0.6
    c: float = 0.45
    drift_cap: float = 0.1


AMPLE = 2.0  # b in multiples of the beta from which covering has a price of 1; below b, plays are paid for as they come
LARGEST_COST = 4.0 / SAFE  # times 1/lambda: largest cost of a play while beta is below b


@dataclass(frozen=True, kw_only=True)
class Covering:
    """The exploration rate that covers every play: gamma = min(curved/beta^2, linear/beta), if at most 1/2.

    While beta is below b, a play that is not covered may cost up to ``largest``: at the rate SAFE no play costs more.
    Proof in research/default-rule.md.
    """

    curved: float
    linear: float
    largest: float

    @property
    def sure_from(self) -> float:
        """The b = 2 sqrt(2 u), u = curved: from beta = b on the price 2 u/beta^2 of the covering rate is at most 1/4.

        The proof works with any b of at least sqrt(2 u), where the price is at most 1.
        """
        return AMPLE * math.sqrt(2.0 * self.curved)

    @classmethod
    def of(cls, *, rarity: float, coverage: float, c: float) -> "Covering":
        """Compute the constants from L, lambda and c."""
        return cls(
            curved=2.0 * CENTRED**2 * rarity / (c * c * coverage),
            linear=4.0 / (c * coverage),
            largest=LARGEST_COST / coverage,
        )


def stability_constant(alpha: float) -> float:
    """Return c = (1 - alpha)/4, the constant of the stability condition in Lemma B.1.

    >>> stability_constant(0.5)
    0.125
    """
    return (1.0 - alpha) / 4.0


def certified_constant(alpha: float) -> float:
    """Return c = (1 - alpha)/2, the constant of the `Certified` tuning: twice the paper's.

    Exploration is then four times smaller, and stability costs 2.55 d eta_t instead of 1.85 d eta_t
    (`stability_factor`). For alpha = 1/2 the bounds are smallest near this value (research/theory.md).

    >>> certified_constant(0.5)
    0.25
    """
    return (1.0 - alpha) / 2.0


def learning_gain(*, alpha: float, n_arms: int, dimension: int) -> float:
    """Return sqrt(t) times eta~_t = sqrt((1 - alpha) K^(1-alpha)/(alpha d t)); K^(1/4)/sqrt(d t) for alpha = 1/2.

    >>> learning_gain(alpha=0.5, n_arms=16, dimension=4)
    1.0
    """
    return math.sqrt((1.0 - alpha) * n_arms ** (1.0 - alpha) / (alpha * dimension))


def schedule(
    *,
    alpha: float,
    n_arms: int,
    dimension: int,
    coverage: float,
    rarity: float | None,
    constant: float,
    use_linear: bool = True,
) -> Schedule:
    """Build the schedule from (A), (B), or whichever of the two explores less.

    Parameters
    ----------
    alpha, n_arms, dimension
        alpha, K and d.
    coverage
        lambda of the exploration policy (Assumption 2.4).
    rarity
        L = 1/min g (Assumption 2.3), which rule (B) needs; None where the support is not finite.
    constant
        c of the stability condition.
    use_linear
        Whether (A) may be used; the paper's branch for finite support has only (B).

    >>> s = schedule(alpha=0.5, n_arms=4, dimension=2, coverage=0.25, rarity=4, constant=1/8, use_linear=False)
    >>> s.cap == math.sqrt(0.25 / 4) / 16, s.power_scale * s.cap**2
    (True, 0.5)
    >>> s.exploration_rounds == 256 * 2 * 4 / (2 * 0.25)
    True
    """
    linear = 1.0 / (constant * coverage) if use_linear else math.inf
    power_scale, power = math.inf, 2.0
    if rarity is not None:
        power_scale, power = _power_rule(alpha, coverage, rarity, constant)
    cap = max(0.5 / linear, (0.5 / power_scale) ** (1.0 / power))
    gain = learning_gain(alpha=alpha, n_arms=n_arms, dimension=dimension)
    return Schedule(gain=gain, cap=cap, linear=linear, power_scale=power_scale, power=power)


def _power_rule(alpha: float, coverage: float, rarity: float, constant: float) -> tuple[float, float]:
    """Return (scale, power) of rule (B), gamma = scale * eta^power."""
    if alpha <= 0.5:
        return 2.0 * rarity / (constant**2 * coverage), 2.0
    return ((2.0 * rarity) ** (1.0 - alpha) / constant) ** (1.0 / alpha) / coverage, 1.0 / alpha


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Inputs of a tuning from the algorithm and the problem: alpha, K, d, lambda and L."""

    alpha: float
    n_arms: int
    dimension: int
    coverage: float
    rarity: float

    def covering(self, *, c: float) -> Covering:
        """Return the exploration that covers every play, for these facts."""
        return Covering.of(rarity=self.rarity, coverage=self.coverage, c=c)

    def schedule(self, *, rarity: float | None, constant: float, use_linear: bool = True) -> Schedule:
        """Return the schedule for these facts; ``rarity=None`` does not assume finite support."""
        return schedule(
            alpha=self.alpha,
            n_arms=self.n_arms,
            dimension=self.dimension,
            coverage=self.coverage,
            rarity=rarity,
            constant=constant,
            use_linear=use_linear,
        )
