"""What a round of FTRL with 1/2-Tsallis entropy has cost: stability, without a condition. Kernel text.

For a step delta of the estimated losses, stability is at most sum_a q^(3/2) (delta - s)^2/(beta + (delta - s) sqrt q)
for every s that keeps the denominators positive (docs/theory.md). We take the s that makes sum_a q^(3/2) (delta - s)^2
smallest, the mean weighted by q^(3/2); with y = (delta - s) sqrt(q)/beta and |y| <= m < 1 it is at most
beta sum_a sqrt(q) y^2/(1 - m). It is also at most <delta, q> - min delta.
"""

from typing import Any, NamedTuple

from bothworlds.kernels.arithmetic import (
    Number,
    absolute,
    both,
    every,
    fused,
    highest_of_contexts,
    larger,
    over_contexts,
    smaller,
    where,
)
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.matrix import product


class Taken(NamedTuple):
    """A step over beta, the plan it was taken from, q and its roots r, and c.

    And space for a number per arm.
    """

    step: Floats
    q: Floats
    r: Floats
    c: float
    losses: Floats


class Context(NamedTuple):
    """A step in one context: sums of r y^2 (1 - y + y^2/(1 - c)) and r y^2, the largest |y|, <delta, q> - min delta.

    In units of beta, as all that follows.
    """

    inner: Number
    squares: Number
    widest: Number
    fall: Number


class Cost(NamedTuple):
    """What a step costs: by its stability if it is covered, else by the smaller bound; and if it is one of many."""

    covered: Number
    uncovered: Number
    of_sum: Number


@kernel
def context_cost(known: Known, taken: Taken, x: int, thorough: bool) -> Context:
    """Write delta, and return what a step is in a context; squares and fall only if that is to be thorough."""
    step, q, r, c, losses = taken
    steep = 1.0 / (1.0 - c)
    weights, first, mean = 0.0, 0.0, 0.0
    for a in range(q.shape[1]):
        losses[a] = product(step, known.z[x, a])
        weight = q[x, a] * r[x, a]
        weights = weights + weight
        first = fused(weight, losses[a], first)
        mean = fused(q[x, a], losses[a], mean)
    s = first / weights
    zero = 0.0 * q[x, 0]
    inner, squares, widest, fall = zero, zero, zero, zero
    for a in range(q.shape[1]):
        y = (losses[a] - s) * r[x, a]
        square = r[x, a] * (y * y)
        widest = larger(widest, absolute(y))
        inner = fused(square, fused(y, fused(steep, y, -1.0), 1.0), inner)
        if thorough:
            squares = squares + square
            fall = larger(fall, where(q[x, a] > 0.0, mean - losses[a], 0.0))
    return Context(inner, squares, widest, fall)


@kernel
def in_two_passes() -> bool:
    """Tell whether what few steps need waits for a second pass; a GPU has its own answer."""
    return True


@kernel
def step_cost(known: Known, taken: Taken, single: Any) -> Cost:
    """Return what a step costs in the mean over contexts, delta being over beta: y = (delta - s) r, r = sqrt q.

    Covered, all |y| <= c, it is z = sum_a r y^2 (1 - y + y^2/(1 - c)), for then the bracket is at least 1/(1 + y); the
    other is 0. Of a sum of steps, where it is not a single one, each context is taken by itself. Most steps are single
    and covered, so that the rest is looked at in a second pass.
    """
    zero, c = 0.0 * taken.q[0, 0], taken.c
    covered, uncovered, of_sum, within = zero, zero, zero, single
    for number in range(2):
        thorough = number > 0 or not in_two_passes()
        covered, worst = zero, zero
        for x in range(taken.q.shape[0]):
            one = context_cost(known, taken, x, thorough)
            worst = larger(worst, one.widest)
            covered = covered + known.g[x] * one.inner
            if thorough:
                near = one.squares / larger(1.0 - one.widest, 1.0 - 2.0 * c)
                uncovered = uncovered + known.g[x] * where(one.widest <= 2.0 * c, smaller(near, one.fall), one.fall)
                of_sum = of_sum + known.g[x] * where(one.widest <= c, one.inner, one.fall)
        within = highest_of_contexts(worst) <= c
        if thorough or every(both(within, single)):
            break
    z, u = over_contexts(covered), over_contexts(uncovered)
    return Cost(where(within, z, 0.0), where(within, 0.0, u), over_contexts(of_sum))
