"""Rates of exponential weights with a known horizon: RealLinExp3 and RobustLinExp3 (Neu & Olkhovskaya 2020).

Losses lie in [-1, 1]. With D the sum of the ranks (K d for arm-independent features) and 1/lambda the largest leverage
under exploration, the regret of exponential weights with an exact covariance is at most

    2 gamma T + eta D T + log K/eta,     as long as eta |l_hat| <= eta/(gamma lambda) <= 1.

Matrix Geometric Resampling with step 1/(2 sigma^2) and M draws has 3 D in place of D, adds a bias of 2 T sigma R
exp(-gamma M /(2 W)) with W = K sigma^2/lambda_min, and has eta |l_hat| <= eta (M + 1)/2, so it needs eta <= 2/(M + 1).
"""

import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

from bothworlds.theory.armwise import Scales


class TuningWarning(UserWarning):
    """The rates are valid, but the guarantee stated for them is empty."""


class Rates(NamedTuple):
    """eta, gamma, the number of draws M (0 with an exact covariance), and gamma before clipping to 1."""

    eta: float
    gamma: float
    samples: int
    unclipped_gamma: float


def exact_rates(horizon: int, *, n_arms: int, scales: Scales) -> Rates:
    """Return eta = sqrt(log K/(T (D + 2/lambda))) and gamma = eta/lambda: regret 2 sqrt(T (D + 2/lambda) log K).

    Where gamma would exceed 1, eta is lambda: play is uniform, and eta |l_hat| <= 1 still holds.

    >>> exact_rates(300, n_arms=2, scales=Scales(2, 2, 1, 0.5, 1)).gamma == 2 * math.sqrt(math.log(2) / 1800)
    True
    """
    best_eta = math.sqrt(math.log(n_arms) / (horizon * (scales.dimension + 2.0 * scales.leverage)))
    eta = min(best_eta, 1.0 / scales.leverage)
    return Rates(eta, min(1.0, eta * scales.leverage), 0, best_eta * scales.leverage)


def log_bias(horizon: int, scales: Scales) -> float:
    """Return l = log(T sigma^2 R^2), at least 1: with M = W l/gamma the bias of resampling costs 2 sqrt(T)."""
    return max(1.0, math.log(horizon * scales.norm * scales.radius))


def resampled_rates(horizon: int, *, n_arms: int, scales: Scales) -> Rates:
    """Return the rates that minimise the general bound under its condition; M is about 1/eta.

    eta = sqrt(log K/(T (3 D + 2 W l))), gamma = eta W l and M = W l/gamma, rounded up, with l = log(T sigma^2 R^2):
    regret 2 sqrt(T (3 D + 2 W l) log K) + 2 sqrt(T). Where gamma would exceed 1, eta is 1/(W l).
    """
    ell = log_bias(horizon, scales)
    best_eta = math.sqrt(math.log(n_arms) / (horizon * (3.0 * scales.dimension + 2.0 * scales.resampling * ell)))
    eta = min(best_eta, 1.0 / (scales.resampling * ell))
    return Rates(eta, min(1.0, eta * scales.resampling * ell), math.ceil(1.0 / eta), best_eta * scales.resampling * ell)


def printed_rates(horizon: int, *, n_arms: int, scales: Scales) -> Rates:
    """Return the rates as printed in Theorem 2 of the paper.

    gamma = sqrt(l/T), M = W l/gamma, rounded up, eta = sqrt(log K/(D T l)). Then eta M = W sqrt(log K/D), the same for
    all T, and since W >= D it is at least sqrt(D log K): the theorem's own condition eta <= 2/(M + 1) fails, whatever
    T, as soon as D log K >= 4.
    """
    ell = log_bias(horizon, scales)
    unclipped_gamma = math.sqrt(ell / horizon)
    gamma = min(1.0, unclipped_gamma)
    samples = math.ceil(scales.resampling * ell / gamma)
    return Rates(math.sqrt(math.log(n_arms) / (scales.dimension * horizon * ell)), gamma, samples, unclipped_gamma)


def robust_rates(horizon: int, *, n_arms: int, scales: Scales) -> Rates:
    """Return gamma = (D log K/T)^(1/3) and eta = (log K/T)^(2/3) D^(-1/3): regret 4 T^(2/3) (D log K)^(1/3).

    The condition eta <= gamma lambda, which the paper assumes by taking T large enough, is enforced. Here 1/lambda is
    the largest product of importance weight and leverage, K sigma^2/lambda_min where all arms are offered.
    """
    unclipped_gamma = (scales.dimension * math.log(n_arms) / horizon) ** (1.0 / 3.0)
    gamma = min(1.0, unclipped_gamma)
    eta = (math.log(n_arms) / horizon) ** (2.0 / 3.0) * scales.dimension ** (-1.0 / 3.0)
    return Rates(min(eta, gamma / scales.leverage), gamma, 0, unclipped_gamma)


def enough_horizon(rates_of: Callable[[int], Rates]) -> int:
    """Return the smallest horizon, to 1 %, from which gamma is not clipped."""
    high = 2
    while rates_of(high).unclipped_gamma > 1.0:
        high *= 2
    low = high // 2
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        low, high = (middle, high) if rates_of(middle).unclipped_gamma > 1.0 else (low, middle)
    return high


def warn_of(rates: Rates, rates_of: Callable[[int], Rates], remedy: str = "") -> None:
    """Warn if gamma was clipped, and if resampling violates its condition eta (M + 1) <= 2; show the numbers."""
    if rates.unclipped_gamma > 1.0:
        warnings.warn(
            f"the horizon is too short to learn anything: gamma = {rates.unclipped_gamma:.3g} is clipped to 1, and "
            f"every arm is played equally often. Use a horizon of at least {enough_horizon(rates_of):,}",
            TuningWarning,
            stacklevel=4,
        )
    if rates.samples and rates.eta * (rates.samples + 1) > 2.0:
        warnings.warn(
            f"eta (M + 1) = {rates.eta:.3g} x {rates.samples + 1:,} = {rates.eta * (rates.samples + 1):.3g} > 2: the "
            f"theorem needs at most 2, so nothing is proved for this run. {remedy}",
            TuningWarning,
            stacklevel=4,
        )
