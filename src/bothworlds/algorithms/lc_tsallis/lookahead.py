"""Predicted losses of a plan, Theta + mu + m_t, and the largest residual of each play. Kernel functions.

``state`` has q and roots, ``work`` has table, rho, means and partial; ``total`` is the sum Theta + mu, ``half`` the
prediction m before it is scaled to m_t. The predicted losses replace the products of the drift (`regression_drift`) in
the tables. The search for the points of a plan starts at the rate of the previous plan and ends at its own. A GPU has
no room for tables in its threads and recomputes them (`bothworlds.simulation.gpu.matched_recompute`).
"""

import math
from typing import Any, NamedTuple

from bothworlds.algorithms.lc_tsallis.regression_drift import DriftStep, play_drift, play_stats
from bothworlds.algorithms.lc_tsallis.stability_cost import Context, Cost, cost_in, covered_cost, in_two_passes
from bothworlds.arrays import Floats
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
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.linalg import products_with
from bothworlds.kernels.status import OK
from bothworlds.kernels.tsallis_half import Solved


class PredictedContext(NamedTuple):
    """A context's predicted losses, largest residuals, and the memory for its point and the roots of it."""

    losses: Floats
    rho: Floats
    q: Floats
    r: Floats


@kernel
def largest_residual(prediction: Number, scale: Number) -> Number:
    """Return rho = 1 + |<z, m_t>|, since losses lie in [-1, 1]; ``prediction`` is <z, m>, not scaled yet."""
    return fused(absolute(prediction), scale, 1.0)


@kernel
def shift_of(known: Known, state: Any, work: Any, x: int, a: int, drift_step: DriftStep) -> Number:
    """Return the shift of a play by the step and the drift."""
    if drift_step.taken:
        drift = play_drift(known, work, x, a)
        return fused(0.0 - drift_step.eta * drift_step.length, drift.offset, drift.shift)
    return play_stats(known, state, work, x, a, False).shift


@kernel
def mean_shift(work: Any, x: int, drift_step: DriftStep) -> Number:
    """Return the mean shift of a context, weighted by q^(3/2)."""
    if drift_step.taken:
        return fused(0.0 - drift_step.eta * drift_step.length, work.means[x, 1], work.means[x, 0])
    return work.means[x, 0]


@kernel
def step_in_context(
    known: Known, state: Any, work: Any, x: int, drift_step: DriftStep, c: float, thorough: bool
) -> Context:
    """Return the step since the previous plan in a context; mean and least only if ``thorough``."""
    zero, steep, middle = 0.0 * state.q[0, 0], -1.0 / (1.0 - c), mean_shift(work, x, drift_step)
    squares, cubes, widest, mean, least = zero, zero, zero, zero, math.inf + zero
    for a in range(state.q.shape[1]):
        delta, q, r = shift_of(known, state, work, x, a, drift_step), state.q[x, a], state.roots[x, a]
        y = (delta - middle) * r
        widest = larger(widest, absolute(y))
        square = r * (y * y)
        squares, cubes = squares + square, fused(square, fused(steep, y * y, y), cubes)
        if thorough:
            mean, least = fused(q, delta, mean), smaller(least, where(q > 0.0, delta, math.inf))
    return Context(squares, cubes, widest, mean, least)


@kernel
def step_cost(known: Known, state: Any, work: Any, drift_step: DriftStep, c: float) -> Cost:
    """Return the cost of the step since the previous plan, mean over contexts, in units of beta.

    It is covered if all |y| <= c. For several updates, each context is judged by itself. Most steps are single and
    covered, so that other costs wait for a second pass.
    """
    single, zero = state.new_updates[0] <= 1.0, 0.0 * state.q[0, 0]
    covered, uncovered, of_sum, within = zero, zero, zero, single
    for number in range(2):
        thorough = number > 0 or not in_two_passes()
        covered, worst = zero, zero
        for x in range(state.q.shape[0]):
            step = step_in_context(known, state, work, x, drift_step, c, thorough)
            worst = larger(worst, step.widest)
            covered = fused(known.g[x], covered_cost(step), covered)
            if thorough:
                alone, among = cost_in(step, c)
                uncovered, of_sum = fused(known.g[x], alone, uncovered), fused(known.g[x], among, of_sum)
        within = highest_of_contexts(worst) <= c
        if thorough or every(both(within, single)):
            break
    z, u = over_contexts(covered), over_contexts(uncovered)
    return Cost(where(within, z, 0.0), where(within, 0.0, u), over_contexts(of_sum))


@kernel
def write_predicted_losses(known: Known, state: Any, work: Any, scale: Number) -> None:
    """Write the predicted losses, infinite for arms not offered, less the smallest of the context, and the residuals.

    They replace the products of the drift. Replaced on a GPU.
    """
    for x in range(state.q.shape[0]):
        least = math.inf + 0.0 * scale
        for a in range(0, state.q.shape[1], 2):
            b = min(a + 1, state.q.shape[1] - 1)  # the last arm twice if their number is odd
            left, right = products_with(work.total, known.z[x, a], known.z[x, b])
            prediction, other_prediction = value(work.rho[x, a]), value(work.rho[x, b])
            loss = fused(prediction, scale, left + known.blocked[x, a])
            other_loss = fused(other_prediction, scale, right + known.blocked[x, b])
            work.table[x, a], work.table[x, b] = loss, other_loss
            work.rho[x, a], work.rho[x, b] = (
                largest_residual(prediction, scale),
                largest_residual(other_prediction, scale),
            )
            least = smaller(least, smaller(loss, other_loss))
        for a in range(state.q.shape[1]):
            work.table[x, a] = work.table[x, a] - least


@kernel
def predicted_context(known: Known, state: Any, work: Any, x: int, scale: Number) -> PredictedContext:
    """Return the predictions of a context. Replaced on a GPU."""
    return PredictedContext(work.table[x], work.rho[x], state.q[x], state.roots[x])


@kernel
def store_partial(work: Any, x: int, found: Solved) -> None:
    """Store the partial solution for the point of a context. Replaced on a GPU."""
    partial = work.partial[x]
    partial[0] = found.y
    partial[1], partial[2], partial[3], partial[4] = found.sums


@kernel
def load_partial(work: Any, x: int) -> Solved:
    """Return the stored partial solution. Replaced on a GPU."""
    partial = work.partial[x]
    return Solved(OK, partial[0], 0.0 * partial[0], (partial[1], partial[2], partial[3], partial[4]), 1)


@kernel
def store_point(state: Any, here: PredictedContext, x: int) -> None:
    """Store the point of a context and its roots, unless they were written in place. Replaced on a GPU."""


@kernel
def write_residuals(known: Known, state: Any, work: Any, scale: Number) -> None:
    """Write the largest residual of every play, unless they are stored. Replaced on a GPU."""
