"""Stability cost of a round of FTRL with 1/2-Tsallis entropy, without a condition on the step. Kernel functions.

For a step delta of the estimated losses, stability is at most sum_a q^(3/2) (delta - s)^2/(beta + (delta - s) sqrt q)
for every s that keeps the denominators positive (research/theory.md). We take the s that minimises
sum_a q^(3/2) (delta - s)^2, the mean weighted by q^(3/2); with y = (delta - s) sqrt(q)/beta and |y| <= m < 1 it is at
most beta sum_a sqrt(q) y^2/(1 - m). It is also at most <delta, q> - min delta.
"""

from typing import NamedTuple

from bothworlds.kernels.arithmetic import (
    Number,
    larger,
    smaller,
    where,
)
from bothworlds.kernels.jit.compile import kernel


class Context(NamedTuple):
    """A step in one context: sums of r y^2 and r y^2 (y - y^2/(1 - c)), the largest |y|, <delta, q>, min delta.

    In units of beta, as are all costs below.
    """

    squares: Number
    cubes: Number
    widest: Number
    mean: Number
    least: Number


class Cost(NamedTuple):
    """Costs of a step: its stability if covered, else the smaller bound; and that of a sum of several updates."""

    covered: Number
    uncovered: Number
    of_sum: Number


@kernel
def in_two_passes() -> bool:
    """Return whether rarely needed costs wait for a second pass. Replaced on a GPU."""
    return True


@kernel
def covered_cost(step: Context) -> Number:
    """Return sum_a r y^2 (1 - y + y^2/(1 - c)): if all |y| <= c the bracket is at least 1/(1 + y)."""
    return step.squares - step.cubes


@kernel
def cost_in(step: Context, c: float) -> tuple[Number, Number]:
    """Return the costs of a step in a context: if it is not covered, and as a sum of several updates."""
    fall = step.mean - step.least
    near = step.squares / larger(1.0 - step.widest, 1.0 - 2.0 * c)
    return where(step.widest <= 2.0 * c, smaller(near, fall), fall), where(step.widest <= c, covered_cost(step), fall)
