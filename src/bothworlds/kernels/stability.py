"""What a round of FTRL with 1/2-Tsallis entropy has cost: stability, without a condition. Kernel text.

For a step delta of the estimated losses, stability is at most sum_a q^(3/2) (delta - s)^2/(beta + (delta - s) sqrt q)
for every s that keeps the denominators positive (docs/theory.md). We take the s that makes sum_a q^(3/2) (delta - s)^2
smallest, the mean weighted by q^(3/2); with y = (delta - s) sqrt(q)/beta and |y| <= m < 1 it is at most
beta sum_a sqrt(q) y^2/(1 - m). It is also at most <delta, q> - min delta.
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

    In units of beta, as all that follows.
    """

    squares: Number
    cubes: Number
    widest: Number
    mean: Number
    least: Number


class Cost(NamedTuple):
    """What a step costs: by its stability if it is covered, else by the smaller bound; and if it is one of many."""

    covered: Number
    uncovered: Number
    of_sum: Number


@kernel
def in_two_passes() -> bool:
    """Tell whether what few steps need waits for a second pass; a GPU has its own answer."""
    return True


@kernel
def covered_cost(one: Context) -> Number:
    """Return sum_a r y^2 (1 - y + y^2/(1 - c)): if all |y| <= c the bracket is at least 1/(1 + y)."""
    return one.squares - one.cubes


@kernel
def cost_in(one: Context, c: float) -> tuple[Number, Number]:
    """Return what a step costs in a context if it is not covered, and as one of many: each context by itself."""
    fall = one.mean - one.least
    near = one.squares / larger(1.0 - one.widest, 1.0 - 2.0 * c)
    return where(one.widest <= 2.0 * c, smaller(near, fall), fall), where(one.widest <= c, covered_cost(one), fall)
