"""Cost of the step since the previous plan: stability of FTRL with 1/2-Tsallis entropy, without a condition on it.

For a step delta of the estimated losses, stability is at most sum_a q^(3/2) (delta - s)^2/(beta + (delta - s) sqrt q)
for every s that keeps the denominators positive (research/default-rule.md). We take the s that minimises
sum_a q^(3/2) (delta - s)^2, the mean weighted by q^(3/2); with y = (delta - s) sqrt(q)/beta and |y| <= m < 1 it is at
most beta sum_a sqrt(q) y^2/(1 - m). It is also at most <delta, q> - min delta. All kernel functions here are in units
of beta.
"""

import math
from typing import Any, NamedTuple

from bothworlds.kernels.arithmetic import (
    Number,
    absolute,
    every,
    fused,
    highest_of_contexts,
    larger,
    over_contexts,
    smaller,
    where,
)
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel


class Step(NamedTuple):
    """A step in one context: sums of r y^2 and r y^2 (y - y^2/(1 - c)), the largest |y|, <delta, q>, min delta."""

    squares: Number
    cubes: Number
    widest: Number
    mean: Number
    least: Number


@kernel
def in_two_passes() -> bool:
    """Return whether rarely needed costs wait for a second pass. Replaced on a GPU."""
    return True


@kernel
def covered_cost(step: Step) -> Number:
    """Return sum_a r y^2 (1 - y + y^2/(1 - c)): if all |y| <= c the bracket is at least 1/(1 + y)."""
    return step.squares - step.cubes


@kernel
def uncovered_cost(step: Step, c: float) -> Number:
    """Return the cost of a step in a context if it is not covered."""
    fall = step.mean - step.least
    near = step.squares / larger(1.0 - step.widest, 1.0 - 2.0 * c)
    return where(step.widest <= 2.0 * c, smaller(near, fall), fall)


@kernel
def step_in_context(state: Any, work: Any, x: int, c: float, thorough: bool) -> Step:
    """Return the step in a context; mean and least only if ``thorough``."""
    zero, steep, middle = 0.0 * state.q[0, 0], -1.0 / (1.0 - c), work.means[x, 0]
    squares, cubes, widest, mean, least = zero, zero, zero, zero, math.inf + zero
    for a in range(state.q.shape[1]):
        delta, q, r = work.shift[x, a], state.q[x, a], state.roots[x, a]
        y = (delta - middle) * r
        widest = larger(widest, absolute(y))
        square = r * (y * y)
        squares, cubes = squares + square, fused(square, fused(steep, y * y, y), cubes)
        if thorough:
            mean, least = fused(q, delta, mean), smaller(least, where(q > 0.0, delta, math.inf))
    return Step(squares, cubes, widest, mean, least)


@kernel
def step_costs(known: Known, state: Any, work: Any, c: float) -> tuple[Number, Number]:
    """Return the costs of the step, mean over contexts: if it is covered, all |y| <= c, and if not; one of them is 0.

    ``state`` has the plan before the step. Most steps are covered, so that the other cost waits for a second pass.
    """
    zero = 0.0 * state.q[0, 0]
    covered, uncovered, widest = zero, zero, over_contexts(zero)
    for number in range(2):
        thorough = number > 0 or not in_two_passes()
        covered, uncovered, most = zero, zero, zero
        for x in range(state.q.shape[0]):
            step = step_in_context(state, work, x, c, thorough)
            most = larger(most, step.widest)
            covered = fused(known.g[x], covered_cost(step), covered)
            if thorough:
                uncovered = fused(known.g[x], uncovered_cost(step, c), uncovered)
        widest = highest_of_contexts(most)
        if thorough or every(widest <= c):
            break
    return where(widest <= c, over_contexts(covered), 0.0), where(widest <= c, 0.0, over_contexts(uncovered))
