"""What a plan foresees: the losses of Theta + mu + m_t, and how far a loss can lie from its prediction. Kernel text.

``state`` has q and roots, ``work`` has table, rho, means and begun; ``total`` is the sum Theta + mu, ``half`` the
prediction m before it is scaled to m_t. What is told of plays (`leaning`) gives way to what is foreseen of them, from
which the plan is made: begun at the rate of the one before, made at its own. A GPU, whose threads have no room for
tables, computes it anew (`bothworlds.simulation.gpu.anew`).
"""

import math
from typing import Any, NamedTuple

from bothworlds.algorithms.lc_tsallis.leaning import Way, going, told
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
    value,
    where,
)
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.matrix import products_with
from bothworlds.kernels.root_point import Solved
from bothworlds.kernels.stability import Context, Cost, cost_in, covered_cost, in_two_passes
from bothworlds.kernels.status import OK


class Foreseen(NamedTuple):
    """In a context: the foreseen losses, the largest residuals, and where its point and the roots of it are made."""

    losses: Floats
    rho: Floats
    q: Floats
    r: Floats


@kernel
def largest_residual(guess: Number, scale: Number) -> Number:
    """Return rho = 1 + |<z, m_t>|, for losses lie in [-1, 1]; the guess is <z, m>, not scaled yet."""
    return fused(absolute(guess), scale, 1.0)


@kernel
def moved_in(known: Known, state: Any, work: Any, x: int, a: int, way: Way) -> Number:
    """Return how far the step and the way have moved a play."""
    if way.taken:
        one = going(known, work, x, a)
        return fused(0.0 - way.eta * way.length, one.off, one.moved)
    return told(known, state, work, x, a, False).moved


@kernel
def middle_of(work: Any, x: int, way: Way) -> Number:
    """Return the mean of the two in a context, weighted by q^(3/2)."""
    if way.taken:
        return fused(0.0 - way.eta * way.length, work.means[x, 1], work.means[x, 0])
    return work.means[x, 0]


@kernel
def step_in(known: Known, state: Any, work: Any, x: int, way: Way, c: float, thorough: bool) -> Context:
    """Return what the step from the plan before is in a context; mean and least only if that is to be thorough."""
    zero, steep, middle = 0.0 * state.q[0, 0], -1.0 / (1.0 - c), middle_of(work, x, way)
    squares, cubes, widest, mean, least = zero, zero, zero, zero, math.inf + zero
    for a in range(state.q.shape[1]):
        delta, q, r = moved_in(known, state, work, x, a, way), state.q[x, a], state.roots[x, a]
        y = (delta - middle) * r
        widest = larger(widest, absolute(y))
        square = r * (y * y)
        squares, cubes = squares + square, fused(square, fused(steep, y * y, y), cubes)
        if thorough:
            mean, least = fused(q, delta, mean), smaller(least, where(q > 0.0, delta, math.inf))
    return Context(squares, cubes, widest, mean, least)


@kernel
def step_cost(known: Known, state: Any, work: Any, way: Way, c: float) -> Cost:
    """Return what the step from the plan before has cost in the mean over contexts, in units of beta.

    It is covered if all |y| <= c. Of several updates, each context is taken by itself. Most steps are single and
    covered, so that the rest is looked at in a second pass.
    """
    single, zero = state.fresh[0] <= 1.0, 0.0 * state.q[0, 0]
    covered, uncovered, of_sum, within = zero, zero, zero, single
    for number in range(2):
        thorough = number > 0 or not in_two_passes()
        covered, worst = zero, zero
        for x in range(state.q.shape[0]):
            one = step_in(known, state, work, x, way, c, thorough)
            worst = larger(worst, one.widest)
            covered = fused(known.g[x], covered_cost(one), covered)
            if thorough:
                alone, among = cost_in(one, c)
                uncovered, of_sum = fused(known.g[x], alone, uncovered), fused(known.g[x], among, of_sum)
        within = highest_of_contexts(worst) <= c
        if thorough or every(both(within, single)):
            break
    z, u = over_contexts(covered), over_contexts(uncovered)
    return Cost(where(within, z, 0.0), where(within, 0.0, u), over_contexts(of_sum))


@kernel
def foresee_all(known: Known, state: Any, work: Any, scale: Number) -> None:
    """Write the foreseen losses, infinite for arms not offered, less the smallest of the context, and residuals.

    They take the place of what was told. A GPU has its own.
    """
    for x in range(state.q.shape[0]):
        least = math.inf + 0.0 * scale
        for a in range(0, state.q.shape[1], 2):
            b = min(a + 1, state.q.shape[1] - 1)  # the last one twice where they are odd
            left, right = products_with(work.total, known.z[x, a], known.z[x, b])
            guess, other_guess = value(work.rho[x, a]), value(work.rho[x, b])
            loss = fused(guess, scale, left + known.blocked[x, a])
            other_loss = fused(other_guess, scale, right + known.blocked[x, b])
            work.table[x, a], work.table[x, b] = loss, other_loss
            work.rho[x, a], work.rho[x, b] = largest_residual(guess, scale), largest_residual(other_guess, scale)
            least = smaller(least, smaller(loss, other_loss))
        for a in range(state.q.shape[1]):
            work.table[x, a] = work.table[x, a] - least


@kernel
def foreseen_in(known: Known, state: Any, work: Any, x: int, scale: Number) -> Foreseen:
    """Return what is foreseen in a context; a GPU has its own."""
    return Foreseen(work.table[x], work.rho[x], state.q[x], state.roots[x])


@kernel
def keep_begun(work: Any, x: int, found: Solved) -> None:
    """Keep where the search for the point of a context has come; a GPU has its own."""
    begun = work.begun[x]
    begun[0] = found.y
    begun[1], begun[2], begun[3], begun[4] = found.sums


@kernel
def begun_in(work: Any, x: int) -> Solved:
    """Return where that search has come; a GPU has its own."""
    begun = work.begun[x]
    return Solved(OK, begun[0], 0.0 * begun[0], (begun[1], begun[2], begun[3], begun[4]), 1)


@kernel
def keep_point(state: Any, here: Foreseen, x: int) -> None:
    """Keep the point of a context and its roots, unless they were made in their place; a GPU has its own."""


@kernel
def find_residuals(known: Known, state: Any, work: Any, scale: Number) -> None:
    """Write the largest residual of every play, unless they are kept; a GPU has its own."""
