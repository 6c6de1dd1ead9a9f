"""The smallest exploration rate that keeps the stability condition, computed exactly each round.

With z = phi(a, x) in coordinates where Sigma(e) is the identity, and Sigma(q) = U diag(mu) U^T,

    lev(a, x) = z^T Sigma_t^-1 z = sum_i (U^T z)_i^2 / ((1 - gamma) mu_i + gamma),

so one diagonalisation serves every trial of gamma. By Cauchy-Schwarz eta |l_hat(a, x)| <= c q(a|x)^(alpha-1) holds
for all arms, contexts and plays as soon as

    eta^2 max[q^(2 (1-alpha)) lev] max[lev] <= c^2.

The logarithm of the left side is convex in gamma, so the feasible rates form an interval; it contains the
rate of the schedule, and bisection between 0 and that rate finds its lower end.
"""

import math

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.matrix import combine, jacobi_eigen

RELATIVE_WIDTH = 0.05
MAX_TRIALS = 40


@kernel
def prepare(
    z: Floats,
    q: Floats,
    alpha: float,
    sigma: Floats,
    mu: Floats,
    vectors: Floats,
    squares: Floats,
    ratio: Floats,
) -> bool:
    """Fill mu (d, d; eigenvalues on its diagonal), squares (d, cells) and ratio = q^(2 (1-alpha)) (cells)."""
    d = sigma.shape[0]
    for i in range(d):
        for j in range(d):
            mu[i, j] = sigma[i, j]
    if not jacobi_eigen(mu, vectors):
        return False
    for i in range(d):
        combine(vectors[i], z, squares[i])
        for n in range(ratio.shape[0]):
            squares[i, n] = squares[i, n] * squares[i, n]
    for n in range(ratio.shape[0]):
        if alpha == 0.5:
            ratio[n] = q[n]
        elif q[n] > 0.0:
            ratio[n] = math.exp(2.0 * (1.0 - alpha) * math.log(q[n]))
        else:
            ratio[n] = 0.0
    return True


@kernel
def condition(
    gamma: float, mu: Floats, squares: Floats, ratio: Floats, coefficients: Floats, leverages: Floats
) -> float:
    """Return max[q^(2 (1-alpha)) lev] max[lev] at gamma; infinity where Sigma_t is not positive definite."""
    for i in range(coefficients.shape[0]):
        pivot = (1.0 - gamma) * mu[i, i] + gamma
        if not pivot > 0.0:
            return math.inf
        coefficients[i] = 1.0 / pivot
    combine(coefficients, squares, leverages)
    highest = 0.0
    highest_weighted = 0.0
    for n in range(leverages.shape[0]):
        if leverages[n] > highest:
            highest = leverages[n]
        weighted = ratio[n] * leverages[n]
        if weighted > highest_weighted:
            highest_weighted = weighted
    return highest * highest_weighted


@kernel
def smallest_rate(
    limit: float,
    upper: float,
    mu: Floats,
    squares: Floats,
    ratio: Floats,
    coefficients: Floats,
    leverages: Floats,
) -> float:
    """Return the smallest gamma in [0, upper] with condition(gamma) <= limit, to 5 % from above.

    ``upper`` is feasible by Lemma A.3 and is what comes back if nothing smaller is.
    """
    if condition(0.0, mu, squares, ratio, coefficients, leverages) <= limit:
        return 0.0
    low = 0.0
    high = upper
    for _ in range(MAX_TRIALS):
        if high - low <= RELATIVE_WIDTH * high:
            break
        middle = 0.5 * (low + high)
        if condition(middle, mu, squares, ratio, coefficients, leverages) <= limit:
            high = middle
        else:
            low = middle
    return high
