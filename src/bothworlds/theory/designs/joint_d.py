"""The joint D-optimal design: it maximises log det Σ(e) over all contexts together."""

import numpy as np

from bothworlds.arrays import Bools, Floats
from bothworlds.theory.designs.leverage import whitener
from bothworlds.theory.designs.pairs import Pairs, flatten, unflatten
from bothworlds.theory.designs.symmetric_basis import basis, scatter_within

WARM_UP = 10
MIXING = 0.1
CENTRING = 0.1
STEP = 0.9
# Above this many multiplications, a Newton step costs more than hundreds of multiplicative steps.
NEWTON_WORK = 4e10


def joint_d_optimal(
    z: Floats, g: Floats, offered: Bools, *, tolerance: float = 1e-4, max_iterations: int = 5000
) -> Floats:
    """Maximise the determinant of the covariance: optimal on average over contexts, nearly optimal in the worst.

    e = argmax log det Σ(e);  optimal when max_a lev(a,x) = Σ_a e(a|x) lev(a,x) in every context, so that
    Σ_x g(x) max_a lev(a,x) = d   (a choice for e* in the paper's Assumption 2.4).
    Reaches Σ_x g(x) max_a lev(a,x) ≤ d (1 + tolerance), or raises ValueError. log det is then within
    d·tolerance of its maximum.

    >>> joint_d_optimal(np.eye(2)[None], np.ones(1), np.ones((1, 2), dtype=bool))
    array([[0.5, 0.5]])
    """
    pairs = flatten(z, g, offered)
    e, s, weight = pairs.uniform(), np.zeros(len(pairs.mass)), np.zeros(len(pairs.mass))
    d = z.shape[2]
    newton = _work(len(e), d) <= NEWTON_WORK
    excess = np.inf
    for iteration in range(max_iterations):
        white = pairs._replace(z=pairs.z @ whitener(pairs.moment(pairs.mass * e)).T)
        lev = np.einsum("ij,ij->i", white.z, white.z)
        excess = float(pairs.g @ pairs.maxima(lev)) / d - 1.0
        if excess <= tolerance:
            return unflatten(e, offered)
        if not newton or iteration < WARM_UP:
            e = pairs.normalised(e * lev)
        elif iteration == WARM_UP:
            e = weight = (1.0 - MIXING) * e + MIXING * pairs.uniform()
        else:
            if iteration == WARM_UP + 1:
                s = (pairs.maxima(lev) + d * excess)[pairs.context] - lev
            e, s = _newton(white, lev, e, s, weight)
    raise ValueError(
        f"The joint D-optimal design is off by {excess:.2g} (tolerance {tolerance:.2g}) after {max_iterations} "
        "iterations: raise max_iterations or the tolerance."
    )


def _work(n: int, d: int) -> float:
    return float(n) * min(n, d * (d + 1) // 2) ** 2


def _newton(white: Pairs, lev: Floats, e: Floats, s: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Take one primal-dual Newton step towards e s ∝ weight, s = ν_x - lev, Σ_a e = 1, where Σ(e) = I."""
    target = CENTRING * float(white.mass @ (e * s)) * weight
    curvature = e / s
    share = curvature / white.sums(curvature)[white.context]
    free = target / s + curvature * lev
    free -= share * white.sums(free)[white.context]
    de = _solve(white, curvature, share, free)
    ds = (target - s * (e + de)) / e
    return white.normalised(e + reach(e, de) * de), s + reach(s, ds) * ds


def _solve(white: Pairs, curvature: Floats, share: Floats, free: Floats) -> Floats:
    """Solve de = free - D̃ qᵀJ, J = Σ g q de, in the smaller of the spaces of pairs and symmetric matrices."""
    n, d = white.z.shape
    if n <= d * (d + 1) // 2:
        matrix = curvature[:, None] * np.square(white.z @ white.z.T) * white.mass
        matrix -= share[:, None] * np.add.reduceat(matrix, white.start)[white.context]
        return np.asarray(np.linalg.solve(matrix + np.eye(n), free))
    base = basis(d)
    scatter = scatter_within(white, base, curvature)
    move = np.linalg.solve(scatter + np.eye(len(scatter)), base.vector(white.moment(white.mass * free)))
    fall = curvature * white.forms(base.matrix(np.asarray(move, dtype=np.float64)))
    return np.asarray(free - fall + share * white.sums(fall)[white.context])


def reach(value: Floats, change: Floats) -> float:
    """Return the largest step up to 1 that keeps a tenth of every positive number."""
    return STEP / max(STEP, float((-change / value).max()))
