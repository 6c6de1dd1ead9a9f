"""The FTRL point for the log-determinant barrier: argmin over the simplex of <L, p> - (1/eta) log det Cov(p).

Cov(p) = sum_a p_a psi_a psi_a^T. By Cauchy and Binet its determinant, with u = log p, is a sum of exponentials of sums
of u_a, so its logarithm is convex in u, and

    log det Cov(p) >= log det Cov(p0) + sum_a p0_a lev0_a log(p_a/p0_a),     lev_a = psi_a^T Cov^-1 psi_a.

The objective with the right-hand side lies above the true one and touches it at p0; its minimum is p_a = p0_a lev0_a /
(eta (L_a + nu)), with nu such that they sum to one. So this fixed-point iteration never increases the objective, and
since that is convex, it converges to the minimum. Where psi are linearly independent lev_a = 1/p_a, and it takes one
step.
"""

import math
from typing import Any

from bothworlds.arrays import Floats
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.linalg import cholesky, invert_lower, leverage
from bothworlds.kernels.status import NOT_CONVERGED, NOT_POSITIVE, OK

GAP = 1e-4  # of eta times the objective: the regulariser itself is of the order of the rank
MOST_STEPS = 20_000
MOST_NEWTON = 60
FRESH = 0.1


@kernel
def leverages(p: Floats, psi: Floats, rank: int, work: Any, lev: Floats) -> int:
    """Write lev_a of Cov(p); coordinates from ``rank`` on are empty and have an identity in Cov. Return a status."""
    d = psi.shape[1]
    for i in range(d):
        for j in range(i + 1):
            work.moment[i, j] = 1.0 if i == j and i >= rank else 0.0
    for a in range(p.shape[0]):
        for i in range(rank):
            for j in range(i + 1):
                work.moment[i, j] += p[a] * psi[a, i] * psi[a, j]
    if not cholesky(work.moment, work.factor):
        return NOT_POSITIVE
    invert_lower(work.factor)
    for a in range(p.shape[0]):
        lev[a] = leverage(work.factor, psi[a])
    return OK


@kernel
def duality_gap(losses: Floats, eta: float, p: Floats, lev: Floats) -> float:
    """Return max over q of <p - q, gradient> with the gradient eta L_a - lev_a: a bound on the remaining gain."""
    least = math.inf
    mean = 0.0
    for a in range(p.shape[0]):
        if losses[a] < math.inf:
            slope = eta * losses[a] - lev[a]
            least = min(least, slope)
            mean += p[a] * slope
    return mean - least


@kernel
def normaliser(losses: Floats, eta: float, least: float, p: Floats, lev: Floats) -> float:
    """Return nu with sum_a p_a lev_a/(eta (L_a - min L) + nu) = 1: Newton from below, where no term exceeds one."""
    nu = 0.0
    for a in range(p.shape[0]):
        if p[a] > 0.0:
            nu = max(nu, p[a] * lev[a] - eta * (losses[a] - least))
    for _ in range(MOST_NEWTON):
        total = 0.0
        slope = 0.0
        for a in range(p.shape[0]):
            if p[a] > 0.0:
                base = eta * (losses[a] - least) + nu
                total += p[a] * lev[a] / base
                slope += p[a] * lev[a] / (base * base)
        step = (total - 1.0) / slope
        nu += step
        if step <= 4e-16 * nu:
            break
    return nu


@kernel
def logdet_point(eta: float, psi: Floats, rank: int, p: Floats, work: Any) -> int:
    """Write the point for work.losses into p, which holds a guess; keep the guess if its duality gap is small enough.

    Infinite losses mean "not offered". An insufficient guess is mixed with uniform play first, because the iteration
    never raises a probability of zero. Return a status.
    """
    losses, lev = work.losses, work.lev
    least = math.inf
    count = 0
    for a in range(p.shape[0]):
        least = min(least, losses[a])
        count += 1 if losses[a] < math.inf else 0
    for number in range(MOST_STEPS):
        status = leverages(p, psi, rank, work, lev)
        if status == OK and duality_gap(losses, eta, p, lev) <= GAP:
            return OK
        if number == 0:
            for a in range(p.shape[0]):
                even = 1.0 / count if losses[a] < math.inf else 0.0
                p[a] = (1.0 - FRESH) * p[a] + FRESH * even if status == OK else even
            continue
        if status != OK:
            return status
        nu = normaliser(losses, eta, least, p, lev)
        total = 0.0
        for a in range(p.shape[0]):
            if p[a] > 0.0:
                p[a] = p[a] * lev[a] / (eta * (losses[a] - least) + nu)
                total += p[a]
        for a in range(p.shape[0]):
            p[a] /= total
    return NOT_CONVERGED
