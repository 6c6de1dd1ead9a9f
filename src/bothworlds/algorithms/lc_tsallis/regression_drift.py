"""Regression drift: plans move from the unbiased sum of losses toward the regression's prediction. Kernel functions.

Theta has the variance of its least likely plays; n m, the prediction of a regression m for the same n rounds, remembers
plays that were likely once, and forgets. Plans follow Theta + mu_t, and mu_t moves toward n m - Theta. Two bounds limit
every move (research/default-rule.md):

* The possible cost. With p_t the mean feature of q_t it is at most

      E_X max_a <mu_{t+1}, phi(a, X)> - sum_s <mu_{s+1} - mu_s, p_s>,

  affine from 0 to n m - Theta: mu moves as far as keeps it within a share of the cost of the path.
* The step. With y = y' + zeta v, sum r y^2 grows by a share ROOM at most, and |y| <= c.

The products of every play (a pair of context and arm) are kept in tables, so that the many features are read once.
"""

import math
from typing import Any, NamedTuple

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import (
    Number,
    absolute,
    flat_of,
    fused,
    highest_of_contexts,
    larger,
    over_contexts,
    root,
    smaller,
    value,
    where,
)
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel
from bothworlds.theory.schedules import ROOM

STEP_LIMIT = 0.999  # of c: limit for a step with drift, so that rounding cannot make it uncovered


class PlayStats(NamedTuple):
    """Products of a play: <m, z>, <step, z>/beta, <Theta - n m, z> and <mu, z>."""

    prediction: Number
    shift: Number
    gap: Number
    drift: Number


class PlanStats(NamedTuple):
    """Statistics of all plays: the largest |<m, z>|, at least 1, and the mean of <m, phi>^2 over plays of q_t.

    The other fields limit the drift.
    """

    highest: Number
    squares: Number
    max_gap: Number  # E_X max_a <n m - Theta, phi>
    mean_gap: Number  # <n m - Theta, p_t>
    mean_drift: Number  # <mu, p_t>


class DriftStep(NamedTuple):
    """A move of mu toward a share of n m - Theta: zeta, what the whole way would add to ``drift_cost``, and 1/beta."""

    length: Number
    full_cost: Number
    eta: Number


class StepNorms(NamedTuple):
    """Norms of the step without the drift, y, and of the whole drift, v; both times sqrt q/beta."""

    own: Number  # sum r y^2
    mixed: Number  # sum r y v
    squares: Number  # sum r v^2
    max_step: Number  # max |y|
    max_drift: Number  # max |v|


@kernel
def stats_of_two(state: Any, work: Any, z: Floats, other: Floats) -> tuple[PlayStats, PlayStats]:
    """Compute the products of two plays; each feature is read once.

    ``half`` is m, ``vector`` the step over beta, ``total`` Theta - n m.
    """
    m, step, total, mu = work.half, work.vector, work.total, state.drift
    prediction, shift, gap, drift = m[0] * z[0], step[0] * z[0], total[0] * z[0], mu[0] * z[0]
    prediction2, shift2, gap2, drift2 = m[0] * other[0], step[0] * other[0], total[0] * other[0], mu[0] * other[0]
    for i in range(1, m.shape[0]):
        prediction, shift = fused(m[i], z[i], prediction), fused(step[i], z[i], shift)
        gap, drift = fused(total[i], z[i], gap), fused(mu[i], z[i], drift)
        prediction2, shift2 = fused(m[i], other[i], prediction2), fused(step[i], other[i], shift2)
        gap2, drift2 = fused(total[i], other[i], gap2), fused(mu[i], other[i], drift2)
    return PlayStats(prediction, shift, gap, drift), PlayStats(prediction2, shift2, gap2, drift2)


@kernel
def write_play_stats(known: Known, state: Any, work: Any) -> None:
    """Write the products of all plays, two at a time."""
    z, prediction, shift = flat_of(known.z), flat_of(work.rho), flat_of(work.shift)
    gap, drift = flat_of(work.table), flat_of(work.drift_table)
    for a in range(0, z.shape[0], 2):
        b = min(a + 1, z.shape[0] - 1)  # the last play twice if their number is odd
        play, other = stats_of_two(state, work, z[a], z[b])
        prediction[a], shift[a], gap[a], drift[a] = play.prediction, play.shift, play.gap, play.drift
        prediction[b], shift[b], gap[b], drift[b] = other.prediction, other.shift, other.gap, other.drift


@kernel
def plan_stats(known: Known, state: Any, work: Any) -> PlanStats:
    """Return the statistics of all plays, and write the means of each context, weighted by q^(3/2).

    They are the means of the step's shift, of <Theta - n m, z> and of <mu, z>.
    """
    zero = 0.0 * state.q[0, 0]
    highest, squares, max_gap, mean_gap, mean_drift = 1.0 + zero, zero, zero, zero, zero
    for x in range(state.q.shape[0]):
        square, here, drift, least = zero, zero, zero, math.inf + zero
        weights, shift, first, second = zero, zero, zero, zero
        for a in range(state.q.shape[1]):
            prediction, gap, mu, q = work.rho[x, a], work.table[x, a], work.drift_table[x, a], state.q[x, a]
            weight = q * state.roots[x, a]
            highest = larger(highest, absolute(prediction))
            square = fused(q * prediction, prediction, square)
            least = smaller(least, gap + known.blocked[x, a])
            here, drift = fused(q, gap, here), fused(q, mu, drift)
            weights, shift = weights + weight, fused(weight, work.shift[x, a], shift)
            first, second = fused(weight, gap, first), fused(weight, mu, second)
        squares, max_gap = fused(known.g[x], square, squares), max_gap - known.g[x] * least
        mean_gap, mean_drift = mean_gap - known.g[x] * here, fused(known.g[x], drift, mean_drift)
        share = 1.0 / where(weights > 0.0, weights, 1.0)  # there is no plan before the first
        work.means[x, 0], work.means[x, 1], work.means[x, 2] = shift * share, first * share, second * share
    return PlanStats(
        highest_of_contexts(highest),
        over_contexts(squares),
        over_contexts(max_gap),
        over_contexts(mean_gap),
        over_contexts(mean_drift),
    )


@kernel
def likely_variance(stats: PlanStats) -> Number:
    """Return the mean of 1 - <m_t, phi>^2 over plays of q_t: no losses with these means have a larger variance."""
    return 1.0 - stats.squares / (stats.highest * stats.highest)


@kernel
def drift_norms(known: Known, state: Any, work: Any, share: Number, eta: Number) -> StepNorms:
    """Write the offset of mu from its goal, by play and in the mean; return the norms of the step and the drift."""
    zero = 0.0 * state.q[0, 0]
    own, mixed, squares, max_step, max_drift = zero, zero, zero, zero, zero
    for x in range(state.q.shape[0]):
        middle, offset = value(work.means[x, 0]), fused(share, work.means[x, 1], work.means[x, 2])
        work.means[x, 1] = offset
        here, cross, whole = zero, zero, zero
        for a in range(state.q.shape[1]):
            away, r = fused(share, work.table[x, a], work.drift_table[x, a]), state.roots[x, a]
            work.drift_table[x, a] = away
            y, v = (work.shift[x, a] - middle) * r, (away - offset) * r  # v without its factor -1/beta
            max_step, max_drift = larger(max_step, absolute(y)), larger(max_drift, absolute(v))
            left = r * y
            here, cross, whole = fused(left, y, here), fused(left, v, cross), fused(r * v, v, whole)
        own, mixed, squares = own + known.g[x] * here, mixed - known.g[x] * cross, squares + known.g[x] * whole
    return StepNorms(
        over_contexts(own),
        eta * over_contexts(mixed),
        eta * eta * over_contexts(squares),
        highest_of_contexts(max_step),
        eta * highest_of_contexts(max_drift),
    )


@kernel
def clipped_ratio(numerator: Number, denominator: Number) -> Number:
    """Return the quotient clipped to [0, 1]; 1 if the denominator is not positive."""
    positive = denominator > 0.0
    return where(positive, larger(smaller(numerator / where(positive, denominator, 1.0), 1.0), 0.0), 1.0)


@kernel
def drift_length(norms: StepNorms, c: float) -> Number:
    """Return zeta: the part of the drift that keeps |y| <= c, and lets the squares grow by a share ROOM at most."""
    reach = root(norms.mixed * norms.mixed + ROOM * norms.own * norms.squares) - norms.mixed
    return smaller(clipped_ratio(reach, norms.squares), clipped_ratio(STEP_LIMIT * c - norms.max_step, norms.max_drift))


@kernel
def affordable_share(options: Any, state: Any, stats: PlanStats) -> Number:
    """Return the share of n m - Theta that mu may move to within the allowed cost."""
    allowed = options.drift_cap / (1.0 + options.drift_cap) * state.account[0]
    left, span = allowed - (state.drift_cost[0] + stats.mean_drift), stats.max_gap - stats.mean_gap
    return where(span > 0.0, clipped_ratio(left, span), 0.0)


@kernel
def plan_drift(known: Known, options: Any, state: Any, work: Any, stats: PlanStats) -> DriftStep:
    """Write the offset of mu from its goal; return the drift, of length 0 without a step since the plan."""
    eta, share = 1.0 / state.inverse_rate[0], affordable_share(options, state, stats)
    for i in range(state.theta.shape[0]):
        work.offset[i] = fused(share, work.total[i], state.drift[i])
    norms = drift_norms(known, state, work, share, eta)
    length = where(state.new_update[0] > 0.0, drift_length(norms, options.c), 0.0)
    return DriftStep(length, stats.mean_drift - share * stats.mean_gap, eta)


@kernel
def shift_of(work: Any, x: int, a: int, drift_step: DriftStep) -> Number:
    """Return the shift of a play by the step and the drift."""
    return fused(0.0 - drift_step.eta * drift_step.length, work.drift_table[x, a], work.shift[x, a])


@kernel
def mean_shift(work: Any, x: int, drift_step: DriftStep) -> Number:
    """Return the mean shift of a context, weighted by q^(3/2)."""
    return fused(0.0 - drift_step.eta * drift_step.length, work.means[x, 1], work.means[x, 0])


@kernel
def apply_drift(state: Any, work: Any, drift_step: DriftStep) -> None:
    """Apply the drift to mu, and write the sum Theta + mu."""
    state.drift_cost[0] += drift_step.length * drift_step.full_cost
    for i in range(state.theta.shape[0]):
        state.drift[i] = state.drift[i] - drift_step.length * work.offset[i]
        work.total[i] = state.theta[i] + state.drift[i]
