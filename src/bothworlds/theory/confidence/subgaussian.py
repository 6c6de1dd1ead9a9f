"""Any-time boundaries for sums of sub-Gaussian observations.

S_n is a sum of n observations minus their conditional means, each sigma-sub-Gaussian (sigma = (high - low)/2 for
bounded observations, by Hoeffding's lemma). With probability 1 - alpha, |S_n| stays below the boundary for all n
simultaneously. Divided by n, the boundary is the radius of an interval for the running mean, also where the means
change with time.
"""

import math

from bothworlds.theory.confidence.checks import checked_above, checked_alpha, checked_variance
from bothworlds.theory.confidence.special import zeta


def normal_mixture_boundary(variance: float, *, best_at: float, alpha: float = 0.05) -> float:
    """Return sqrt((v + rho) log((v + rho)/(rho alpha^2))), v = sigma^2 n.

    Mixes exp(c S_n - c^2 v/2) over c ~ Normal(0, 1/rho) (Robbins 1970; Howard, Ramdas, McAuliffe and
    Sekhon 2021, the two-sided normal mixture). ``best_at`` is the v at which the interval should be narrowest; rho
    = best_at/(2 log(1/alpha) + log(1 + 2 log(1/alpha))) is close to optimal.

    >>> round(normal_mixture_boundary(25.0, best_at=25.0) / 100, 4)  # 100 observations in [0, 1]
    0.1518
    """
    variance, log_threshold = checked_variance(variance), -2.0 * math.log(checked_alpha(alpha))
    rho = checked_above(best_at, 0.0, "best_at") / (log_threshold + math.log1p(log_threshold))
    return math.sqrt((variance + rho) * (math.log1p(variance / rho) + log_threshold))


def stitched_boundary(
    variance: float, *, begins_at: float, alpha: float = 0.05, growth: float = 2.0, power: float = 1.4
) -> float:
    """Return the boundary stitched from pieces of growing length, which follows the law of the iterated logarithm.

    k sqrt(v l(v)) with l(v) = s log log(eta v/m) + log(zeta(s)/((alpha/2) log(eta)^s)) and
    k = (eta^(1/4) + eta^(-1/4))/sqrt(2), for v >= m = begins_at, and its value at m for v < m (Howard, Ramdas,
    McAuliffe and Sekhon 2021, Theorem 1, with c = 0; both sides by a union bound).

    >>> round(stitched_boundary(25.0, begins_at=25.0) / 100, 4)
    0.1576
    """
    v = max(checked_variance(variance), checked_above(begins_at, 0.0, "begins_at"))
    checked_above(growth, 1.0, "growth")
    factor = (math.pow(growth, 0.25) + math.pow(growth, -0.25)) / math.sqrt(2.0)
    pieces = power * math.log(math.log(growth * v / begins_at))
    log_threshold = math.log(zeta(power) / (checked_alpha(alpha) / 2.0)) - power * math.log(math.log(growth))
    return factor * math.sqrt(v * (pieces + log_threshold))
