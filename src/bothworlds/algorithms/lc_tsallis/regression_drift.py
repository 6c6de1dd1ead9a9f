"""Regression drift: plans move from the unbiased sum of losses toward the regression's prediction. Kernel functions.

Theta has the variance of its least likely plays; n m, the prediction of a regression m for the same n rounds, remembers
plays that were likely once, and forgets. Plans follow Theta + mu_t, and mu_t moves toward n m - Theta. Two bounds limit
every move (research/theory.md):

* The possible cost. With p_t the mean feature of q_t it is at most

      E_X max_a <mu_{t+1}, phi(a, X)> - sum_s <mu_{s+1} - mu_s, p_s>,

  affine from 0 to n m - Theta: mu moves as far as keeps it within a share of the cost of the path.
* The step. With y = y' + zeta v, sum r y^2 grows by a share ROOM at most, and |y| <= c.

Plans drift in every DRIFT_PERIOD-th round and skip the rounds between: n m - Theta changes little once mu has reached
it. While zeta is less than LARGE_DRIFT, they drift in every round.

The products of every play (a pair of context and arm) are kept in tables, so that the many features are read once. A
GPU has no room for tables in its threads and recomputes them (`bothworlds.simulation.gpu.matched_recompute`).
"""

import math
from typing import Any, NamedTuple

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import (
    Number,
    absolute,
    both,
    either,
    every,
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
from bothworlds.kernels.linalg import Four
from bothworlds.theory.schedules import ROOM

STEP_LIMIT = 0.999  # of c: limit for a step with drift, so that rounding cannot make it uncovered
DRIFT_PERIOD = 8.0  # plans from one drift to the next
LARGE_DRIFT = 0.25  # a plan with a smaller zeta drifts again in the next round


class PlayStats(NamedTuple):
    """Products of a play: <m, z> and <step, z>/beta; for the drift <Theta - n m, z> and <mu, z>."""

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
    """A move of mu toward a share of n m - Theta: zeta, what the whole way would add to ``drift_cost``, and 1/beta.

    ``taken`` is false if no plan drifts, neither this one nor any in the same vector.
    """

    length: Number
    full_cost: Number
    eta: Number
    taken: bool


class PlayDrift(NamedTuple):
    """Of a play: the last step's shift, and the offset of <mu, z> from its goal before the move."""

    shift: Number
    offset: Number


class StepNorms(NamedTuple):
    """Norms of the step without the drift, y, and of the whole drift, v; both times sqrt q/beta."""

    own: Number  # sum r y^2
    mixed: Number  # sum r y v
    squares: Number  # sum r v^2
    max_step: Number  # max |y|
    max_drift: Number  # max |v|


@kernel
def products_of_two(first: Floats, second: Floats, z: Floats, other: Floats) -> Four:
    """Return the products of two vectors with one feature, and with another; each feature is read once."""
    left, right = first[0] * z[0], second[0] * z[0]
    other_left, other_right = first[0] * other[0], second[0] * other[0]
    for i in range(1, first.shape[0]):
        left, right = fused(first[i], z[i], left), fused(second[i], z[i], right)
        other_left, other_right = fused(first[i], other[i], other_left), fused(second[i], other[i], other_right)
    return left, right, other_left, other_right


@kernel
def drift_paused(state: Any) -> Any:
    """Return where plans do not drift: without new updates, or between scheduled rounds if the last zeta was large."""
    settled = both(state.rounds_since_drift[0] > 0.0, state.drift_fraction[0] >= LARGE_DRIFT)
    return either(state.new_updates[0] <= 0.0, settled)


@kernel
def all_paused(paused: Any) -> bool:
    """Return whether no plan drifts. Replaced on a GPU, whose threads run together."""
    return every(paused)


@kernel
def stats_of_two(state: Any, work: Any, z: Floats, other: Floats) -> tuple[PlayStats, PlayStats]:
    """Compute the products of two plays that may drift; each feature is read once.

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
def write_play_stats(known: Known, state: Any, work: Any, drifting: bool) -> None:
    """Write the products of all plays, two at a time. Replaced on a GPU."""
    z, prediction, shift = flat_of(known.z), flat_of(work.rho), flat_of(work.reach)
    gap, drift = flat_of(work.table), flat_of(work.drift_table)
    for a in range(0, z.shape[0], 2):
        b = min(a + 1, z.shape[0] - 1)  # the last play twice if their number is odd
        if drifting:
            play, other = stats_of_two(state, work, z[a], z[b])
            gap[a], drift[a], gap[b], drift[b] = play.gap, play.drift, other.gap, other.drift
            prediction[a], shift[a], prediction[b], shift[b] = (
                play.prediction,
                play.shift,
                other.prediction,
                other.shift,
            )
        else:
            prediction[a], shift[a], prediction[b], shift[b] = products_of_two(work.half, work.vector, z[a], z[b])


@kernel
def play_stats(known: Known, state: Any, work: Any, x: int, a: int, drifting: bool) -> PlayStats:
    """Return the products of a play. Replaced on a GPU."""
    return PlayStats(work.rho[x, a], work.reach[x, a], work.table[x, a], work.drift_table[x, a])


@kernel
def plan_stats(known: Known, state: Any, work: Any, drifting: bool) -> PlanStats:
    """Return the statistics of all plays, and write the means of each context, weighted by q^(3/2).

    They are the means of the step's shift and, for the drift, of <Theta - n m, z> and <mu, z>.
    """
    zero = 0.0 * state.q[0, 0]
    highest, squares, max_gap, mean_gap, mean_drift = 1.0 + zero, zero, zero, zero, zero
    for x in range(state.q.shape[0]):
        square, here, drift, least = zero, zero, zero, math.inf + zero
        weights, shift, first, second = zero, zero, zero, zero
        for a in range(state.q.shape[1]):
            play, q = play_stats(known, state, work, x, a, drifting), state.q[x, a]
            weight = q * state.roots[x, a]
            highest = larger(highest, absolute(play.prediction))
            square = fused(q * play.prediction, play.prediction, square)
            weights, shift = weights + weight, fused(weight, play.shift, shift)
            if drifting:
                least = smaller(least, play.gap + known.blocked[x, a])
                here, drift = fused(q, play.gap, here), fused(q, play.drift, drift)
                first, second = fused(weight, play.gap, first), fused(weight, play.drift, second)
        squares = squares + known.g[x] * square
        share = 1.0 / where(weights > 0.0, weights, 1.0)  # there is no plan before the first
        work.means[x, 0] = shift * share
        if drifting:
            max_gap, mean_gap = max_gap - known.g[x] * least, mean_gap - known.g[x] * here
            mean_drift = mean_drift + known.g[x] * drift
            work.means[x, 1], work.means[x, 2] = first * share, second * share
    return PlanStats(
        highest_of_contexts(highest),
        over_contexts(squares),
        over_contexts(max_gap),
        over_contexts(mean_gap),
        over_contexts(mean_drift),
    )


@kernel
def start_play_drift(known: Known, work: Any, x: int, a: int, share: Number) -> PlayDrift:
    """Return the drift of a play, and write the offset in place of <mu, z>. Replaced on a GPU."""
    offset = fused(share, work.table[x, a], work.drift_table[x, a])
    work.drift_table[x, a] = offset
    return PlayDrift(work.reach[x, a], offset)


@kernel
def play_drift(known: Known, work: Any, x: int, a: int) -> PlayDrift:
    """Return the drift of a play. Replaced on a GPU."""
    return PlayDrift(work.reach[x, a], work.drift_table[x, a])


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
            play, r = start_play_drift(known, work, x, a, share), state.roots[x, a]
            y, v = (play.shift - middle) * r, (play.offset - offset) * r  # v without its factor -1/beta
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
def plan_drift(
    known: Known, options: Any, state: Any, work: Any, stats: PlanStats, paused: Any, drifting: bool
) -> DriftStep:
    """Write the offset of mu from its goal; return the drift and its length, 0 where the plan skips the round."""
    eta = 1.0 / state.inverse_rate[0]
    zero = 0.0 * eta
    if not drifting:
        return DriftStep(zero, zero, eta, drifting)
    share = affordable_share(options, state, stats)
    for i in range(state.theta.shape[0]):
        work.offset[i] = fused(share, work.total[i], state.drift[i])
    norms = drift_norms(known, state, work, share, eta)
    length = where(paused, 0.0, drift_length(norms, options.c))
    state.drift_fraction[0] = where(paused, state.drift_fraction[0], length)
    return DriftStep(length, stats.mean_drift - share * stats.mean_gap, eta, drifting)


@kernel
def apply_drift(state: Any, work: Any, drift_step: DriftStep) -> None:
    """Apply the drift to mu, and write the sum Theta + mu."""
    rounds = where(state.rounds_since_drift[0] + 1.0 < DRIFT_PERIOD, state.rounds_since_drift[0] + 1.0, 0.0)
    state.rounds_since_drift[0] = where(state.new_updates[0] > 0.0, rounds, state.rounds_since_drift[0])
    if drift_step.taken:
        state.drift_cost[0] += drift_step.length * drift_step.full_cost
        for i in range(state.theta.shape[0]):
            state.drift[i] = state.drift[i] - drift_step.length * work.offset[i]
    for i in range(state.theta.shape[0]):
        work.total[i] = state.theta[i] + state.drift[i]
