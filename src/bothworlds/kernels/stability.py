"""What a round of FTRL with 1/2-Tsallis entropy has cost: stability, without a condition. Kernel text.

For a step delta of the estimated losses, stability is at most sum_a q^(3/2) (delta - s)^2/(beta + (delta - s) sqrt q)
for every s that keeps the denominators positive (docs/theory.md). We take the s that makes sum_a q^(3/2) (delta - s)^2
smallest, the mean weighted by q^(3/2). It is also at most <delta, q> - min delta.
"""

from bothworlds.kernels.arithmetic import (
    Number,
    absolute,
    highest_of_contexts,
    larger,
    over_contexts,
    where,
)
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.matrix import product


@kernel
def context_stability(
    known: Known, q: Floats, r: Floats, beta: Number, step: Floats, c: float, x: int, losses: Floats
) -> tuple[Number, Number]:  # fmt: skip
    """Write delta; return sum_a r y^2 (1 - y + y^2/(1 - c)) of a context, and the largest |y|."""
    eta, steep = 1.0 / beta, 1.0 / (1.0 - c)
    weights, first = 0.0, 0.0
    for a in range(q.shape[1]):
        losses[a] = product(step, known.z[x, a])
        weight = q[x, a] * r[x, a]
        weights = weights + weight
        first = first + weight * losses[a]
    s = first / weights
    inner = 0.0
    worst = 0.0 * q[x, 0]
    for a in range(q.shape[1]):
        y = (losses[a] - s) * r[x, a] * eta
        worst = larger(worst, absolute(y))
        inner = inner + r[x, a] * (y * y) * (1.0 - y + steep * (y * y))
    return inner, worst


@kernel
def covered_stability(
    known: Known, q: Floats, r: Floats, beta: Number, step: Floats, c: float, losses: Floats
) -> Number:  # fmt: skip
    """Return z = beta sum_x g sum_a r y^2 (1 - y + y^2/(1 - c)), y = (delta - s) r/beta, r = sqrt q; 0 where |y| > c.

    For |y| <= c the bracket is at least 1/(1 + y). ``losses`` has space for a number per arm.
    """
    total = 0.0
    worst = 0.0 * q[0, 0]
    for x in range(q.shape[0]):
        inner, widest = context_stability(known, q, r, beta, step, c, x, losses)
        worst = larger(worst, widest)
        total = total + known.g[x] * inner
    return where(highest_of_contexts(worst) <= c, beta * over_contexts(total), 0.0)


@kernel
def stability_of_sum(
    known: Known, q: Floats, r: Floats, beta: Number, step: Floats, c: float, losses: Floats
) -> Number:  # fmt: skip
    """Return the same, but <delta, q> - min delta in contexts where |y| > c: no step is left out."""
    total = 0.0
    for x in range(q.shape[0]):
        inner, widest = context_stability(known, q, r, beta, step, c, x, losses)
        mean = 0.0
        for a in range(q.shape[1]):
            mean = mean + q[x, a] * losses[a]
        fall = 0.0 * q[x, 0]
        for a in range(q.shape[1]):
            fall = larger(fall, where(q[x, a] > 0.0, mean - losses[a], 0.0))
        total = total + known.g[x] * where(widest <= c, beta * inner, fall)
    return over_contexts(total)
