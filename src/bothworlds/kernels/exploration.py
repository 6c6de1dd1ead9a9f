"""The smallest exploration rate that keeps a stability condition, computed exactly each round.

In coordinates where Sigma(e) is the identity, Sigma_t = (1 - gamma) Sigma(q) + gamma I, and with the leverages
lev(a, x) = z^T Sigma_t^-1 z, by Cauchy-Schwarz, eta |l_hat(a, x)| <= c q(a|x)^(alpha-1) holds for all arms,
contexts and plays as soon as

    eta^2 max[q^(2 (1-alpha)) lev] max[lev] <= c^2.

A weaker condition, for the adaptive tuning: r^2 max[lev] <= c^2, where r is eta times the root mean square of the
residuals. Since sum_x g sum_a pi (eta l_hat)^2 = eta^2 residual^2 lev for the cell played, it keeps the mean square of
a typical step below c^2.

The logarithm of either left side is convex in gamma (1/lev is concave in Sigma), so the feasible rates form an
interval. It contains the rate of the schedule; its lower end is what we are after. The search starts at the rate of
the round before, which is nearly always within a few percent, so that two trials are the rule.
"""

import math
from typing import NamedTuple

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.matrix import cholesky, invert_lower, leverages

WIDTH = 0.95  # the rate found is at most 1/WIDTH times the smallest feasible one
NEGLIGIBLE = 1e-3  # below this share of the schedule's rate, zero is tried
ROUNDING = 1e-12
MAX_TRIALS = 200


@kernel
def weigh(q: Floats, alpha: float, ratio: Floats) -> None:
    """Write q^(2 (1-alpha)) into ratio, cell by cell."""
    for n in range(ratio.shape[0]):
        if alpha == 0.5:
            ratio[n] = q[n]
        elif q[n] > 0.0:
            ratio[n] = math.exp(2.0 * (1.0 - alpha) * math.log(q[n]))
        else:
            ratio[n] = 0.0


class Trial(NamedTuple):
    """What a trial of gamma reads (Sigma(q), features, q^(2 (1-alpha))) and the space it writes to.

    An empty ratio stands for the weaker condition.
    """

    sigma: Floats
    z: Floats
    ratio: Floats
    mixed: Floats
    factor: Floats
    lev: Floats


@kernel
def condition(trial: Trial, gamma: float) -> float:
    """Return max[q^(2 (1-alpha)) lev] max[lev], or max[lev]; infinity where Sigma_t is not positive definite."""
    d = trial.sigma.shape[0]
    for i in range(d):
        for j in range(d):
            trial.mixed[i, j] = (1.0 - gamma) * trial.sigma[i, j]
        trial.mixed[i, i] += gamma
    if not cholesky(trial.mixed, trial.factor):
        return math.inf
    invert_lower(trial.factor)
    leverages(trial.factor, trial.z, trial.lev)
    highest = 0.0
    for n in range(trial.lev.shape[0]):
        highest = max(highest, trial.lev[n])
    if trial.ratio.shape[0] == 0:
        return highest
    highest_weighted = 0.0
    for n in range(trial.lev.shape[0]):
        highest_weighted = max(highest_weighted, trial.ratio[n] * trial.lev[n])
    return highest * highest_weighted


@kernel
def smallest_rate(trial: Trial, limit: float, start: float, upper: float) -> float:
    """Return the smallest gamma in [0, upper] with condition(gamma) <= limit, to 5 % from above.

    ``start`` is a guess. ``upper`` is feasible by Lemma A.3, or the most that may be explored; it is what comes back
    if nothing smaller is feasible.
    """
    low, high = 0.0, upper
    try_zero = True
    if start <= 0.0:
        if condition(trial, 0.0) <= limit:
            return 0.0
        try_zero = False
    elif start < upper:
        if condition(trial, start) <= limit:
            high = start
            neighbour = WIDTH * start
        else:
            low = start
            neighbour = min(start / WIDTH, upper)
        if condition(trial, neighbour) <= limit:
            high = neighbour
        else:
            low = max(low, neighbour)
    for _ in range(MAX_TRIALS):
        if low >= WIDTH * high * (1.0 - ROUNDING):
            break
        if try_zero and high < NEGLIGIBLE * upper:
            if condition(trial, 0.0) <= limit:
                return 0.0
            try_zero = False
        middle = 0.5 * (low + high)
        if condition(trial, middle) <= limit:
            high = middle
        else:
            low = middle
    return high
