"""The FTRL point of equation (4): argmin over the simplex of <L, q> + psi(q)/eta, for Tsallis and Shannon.

With p = 1/(1 - alpha) and s_a = eta (L_a - min L) the Tsallis point is q_a = (s_a + y)^(-p) for the one y
at which the sum W(y) is 1, and 1 <= y <= K^(1 - alpha) always. Newton runs on G(y) = W^(-1/p) - 1, which is
concave, increasing, and exactly linear for equal losses and for one dominant arm: from any start in the
bracket the next iterate is at most the root, and from there the iterates increase to it.

An infinite loss means "not offered": its arm gets probability zero.
"""

import math

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.packs import WIDTH, add_up, load, smaller, smallest_of
from bothworlds.kernels.status import NOT_CONVERGED, OK

EPSILON = 2.220446049250313e-16
MAX_NEWTON = 60


@kernel
def smallest(losses: Floats) -> float:
    """Return the smallest entry."""
    least = math.inf
    start = losses.shape[0] - losses.shape[0] % WIDTH
    if start > 0:
        pack = load(losses, 0)
        for a in range(WIDTH, start, WIDTH):
            pack = smaller(pack, load(losses, a))
        least = smallest_of(pack)
    for a in range(start, losses.shape[0]):
        if losses[a] < least:
            least = losses[a]
    return least


@kernel
def newton_sums(q: Floats, y: float, alpha: float) -> tuple[float, float]:
    """Return W(y) = sum_a (s_a + y)^(-p) and sum_a (s_a + y)^(-p-1); q holds the s_a."""
    total = 0.0
    slope = 0.0
    if alpha == 0.5:
        start = 0
        if q.shape[0] >= WIDTH:
            pack = 1.0 / (load(q, 0) + y)
            totals = pack * pack
            slopes = totals * pack
            start = q.shape[0] - q.shape[0] % WIDTH
            for a in range(WIDTH, start, WIDTH):
                pack = 1.0 / (load(q, a) + y)
                square = pack * pack
                totals = totals + square
                slopes = slopes + square * pack
            total = add_up(totals)
            slope = add_up(slopes)
        for a in range(start, q.shape[0]):
            r = 1.0 / (q[a] + y)
            w = r * r
            total += w
            slope += w * r
    else:
        p = 1.0 / (1.0 - alpha)
        for a in range(q.shape[0]):
            base = q[a] + y
            w = math.exp(-p * math.log(base))
            total += w
            slope += w / base
    return total, slope


@kernel
def newton_step(total: float, slope: float, alpha: float) -> float:
    """Return the Newton step on G(y) = W^(-1/p) - 1, that is W (W^(1/p) - 1) / sum_a (s_a + y)^(-p-1)."""
    if alpha == 0.5:
        return total * ((total - 1.0) / (math.sqrt(total) + 1.0)) / slope
    return total * math.expm1(math.log(total) * (1.0 - alpha)) / slope


@kernel
def fill_powers(q: Floats, y: float, alpha: float, total: float) -> None:
    """Replace s_a by (s_a + y)^(-p) / W."""
    scale = 1.0 / total
    if alpha == 0.5:
        for a in range(q.shape[0]):
            r = 1.0 / (q[a] + y)
            q[a] = r * r * scale
    else:
        p = 1.0 / (1.0 - alpha)
        for a in range(q.shape[0]):
            q[a] = math.exp(-p * math.log(q[a] + y)) * scale


@kernel
def tsallis_point(losses: Floats, eta: float, alpha: float, start: float, q: Floats) -> tuple[int, float]:
    """Write the FTRL point into q; return (status, y).

    ``start`` is a guess of y: that of the previous round, or 1. Any number is safe, it is clipped to the
    bracket. ``losses`` and ``q`` may be the same array.
    """
    K = q.shape[0]
    least = smallest(losses)
    for a in range(K):
        q[a] = eta * (losses[a] - least)
    p = 1.0 / (1.0 - alpha)
    highest = math.sqrt(K) if alpha == 0.5 else math.exp(math.log(K) / p)
    y = min(max(start, 1.0), highest)
    close_enough = 8.0 * EPSILON * (p + math.sqrt(K))
    for _ in range(MAX_NEWTON):
        total, slope = newton_sums(q, y, alpha)
        if abs(total - 1.0) <= close_enough:
            fill_powers(q, y, alpha, total)
            return OK, y
        following = min(max(y + newton_step(total, slope, alpha), 1.0), highest)
        if abs(following - y) <= 2.0 * EPSILON * y:
            fill_powers(q, y, alpha, total)
            return OK, y
        y = following
    return NOT_CONVERGED, y


@kernel
def shannon_point(losses: Floats, eta: float, q: Floats) -> None:
    """Write q_a proportional to exp(-eta L_a) into q: the limit alpha = 1 in its own parametrisation."""
    least = smallest(losses)
    total = 0.0
    for a in range(q.shape[0]):
        q[a] = math.exp(-eta * (losses[a] - least))
        total += q[a]
    for a in range(q.shape[0]):
        q[a] /= total
