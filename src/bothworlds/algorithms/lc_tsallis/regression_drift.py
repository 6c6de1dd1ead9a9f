"""Regression drift: plans move from the unbiased sum of losses to the regression's prediction. Kernel functions.

Theta has the variance of its least likely plays; n m, the prediction of a regression m for the n rounds that it has
seen, remembers plays that were likely once, and forgets at a restart. Plans follow Theta + mu_t, and mu_t moves toward
n m - Theta. Two limits hold for every move (research/changing-worlds.md):

* The potential. Let got_t be the estimated losses of the plans so far. Whatever mu is, playing on with it costs at
  most, against every fixed policy, what the account grows by, and

      S_t(mu) = got_t - min_q [<Theta_t + mu, q> + beta psi(q)] + E_X max_a <mu, phi(a, X)>.

  S is convex, so a part of the way keeps it within the account; where plans have gained much it is far below. What
  late answers have cost is added to it.
* The step: |y| <= c with the move.

The products of every play (a pair of context and arm) are kept in tables, so that the many features are read once.
"""

import math
from typing import Any, NamedTuple

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import (
    Number,
    absolute,
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
from bothworlds.kernels.tsallis_half import near_point, sum_of_roots

STEP_LIMIT = 0.999  # of c, so that rounding cannot make a step with drift exceed c


class PlayStats(NamedTuple):
    """Products of a play: <m, z>, <step, z>/beta, <Theta - n m, z> and <mu, z>."""

    prediction: Number
    shift: Number
    gap: Number
    drift: Number


class PlanStats(NamedTuple):
    """Statistics of all plays: the largest |<m, z>|, at least 1, and means under q_t of <m, phi>^2 and of the step."""

    highest: Number
    squares: Number
    mean_shift: Number


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
    highest, squares, mean = 1.0 + zero, zero, zero
    for x in range(state.q.shape[0]):
        square, here = zero, zero
        weights, shift, first, second = zero, zero, zero, zero
        for a in range(state.q.shape[1]):
            prediction, gap, mu, q = work.rho[x, a], work.table[x, a], work.drift_table[x, a], state.q[x, a]
            weight = q * state.roots[x, a]
            highest = larger(highest, absolute(prediction))
            square, here = fused(q * prediction, prediction, square), fused(q, work.shift[x, a], here)
            weights, shift = weights + weight, fused(weight, work.shift[x, a], shift)
            first, second = fused(weight, gap, first), fused(weight, mu, second)
        squares, mean = fused(known.g[x], square, squares), fused(known.g[x], here, mean)
        share = 1.0 / where(weights > 0.0, weights, 1.0)  # there is no plan before the first
        work.means[x, 0], work.means[x, 1], work.means[x, 2] = shift * share, first * share, second * share
    return PlanStats(highest_of_contexts(highest), over_contexts(squares), over_contexts(mean))


@kernel
def mean_prediction(known: Known, state: Any, work: Any) -> Number:
    """Return <m_t, p_t>, the mean prediction of the plan."""
    total = 0.0 * state.q[0, 0]
    for x in range(state.q.shape[0]):
        here = 0.0 * total
        for a in range(state.q.shape[1]):
            here = fused(state.q[x, a], work.rho[x, a], here)
        total = fused(known.g[x], here, total)
    return over_contexts(total)


@kernel
def likely_variance(stats: PlanStats) -> Number:
    """Return the mean of 1 - <m_t, phi>^2 over plays of q_t: no losses with these means have a larger variance."""
    return 1.0 - stats.squares / (stats.highest * stats.highest)


@kernel
def clipped_ratio(numerator: Number, denominator: Number) -> Number:
    """Return the quotient clipped to [0, 1]; 1 if the denominator is not positive."""
    positive = denominator > 0.0
    return where(positive, larger(smaller(numerator / where(positive, denominator, 1.0), 1.0), 0.0), 1.0)


@kernel
def covered_part(state: Any, work: Any, c: float) -> Number:
    """Return the part of the way to n m - Theta that keeps |y| <= c, at most 1."""
    zero, eta = 0.0 * state.q[0, 0], 1.0 / state.inverse_rate[0]
    step, way = zero, zero
    for x in range(state.q.shape[0]):
        middle, offset = value(work.means[x, 0]), work.means[x, 1] + work.means[x, 2]
        for a in range(state.q.shape[1]):
            r, away = state.roots[x, a], work.table[x, a] + work.drift_table[x, a]
            step = larger(step, absolute((work.shift[x, a] - middle) * r))
            way = larger(way, absolute((away - offset) * r))
    return clipped_ratio(STEP_LIMIT * c - highest_of_contexts(step), eta * highest_of_contexts(way))


@kernel
def potential(known: Known, state: Any, work: Any, moved: bool) -> Number:
    """Return S for mu_t, or for n m - Theta if ``moved``.

    The minimum over q of a context is at least min L + beta (2 - y - sum r), r = 1/(l/beta + y), for every y: nearly
    solved is good enough.
    """
    beta, rounds, total = state.inverse_rate[0], state.remembered[0], 0.0 * state.q[0, 0]
    for x in range(state.q.shape[0]):
        least, most = math.inf + 0.0 * total, 0.0 * total - math.inf
        for a in range(state.q.shape[1]):
            gap, mu = work.table[x, a], work.drift_table[x, a]
            loss, drift = rounds * work.rho[x, a] + known.blocked[x, a], 0.0 - gap
            if not moved:
                loss, drift = loss + (gap + mu), mu + 0.0
            work.losses[a] = loss
            least, most = smaller(least, loss), larger(most, drift - known.blocked[x, a])
        for a in range(state.q.shape[1]):
            work.losses[a] = work.losses[a] - least
        near = near_point(work.losses, 1.0 / beta, state.start[x], work.lev[x])
        minimum = least + beta * (2.0 - (near.y + near.step) - sum_of_roots(near, work.lev[x]))
        total = fused(known.g[x], most - minimum, total)
    return state.got[0] + over_contexts(total)


@kernel
def late_cost(state: Any) -> Number:
    """Return what late answers have cost beyond what chance explains: two standard errors of t losses."""
    return larger(state.late[0] - 2.0 * root(state.t[0]), 0.0)


@kernel
def begin_potential(known: Known, state: Any, work: Any) -> None:
    """Before the first plan, let S be 0; its first penalty follows. What losses that are believed cost is W(u)."""
    first = state.account[0] <= 0.0
    if not every(state.account[0] > 0.0):
        here = potential(known, state, work, False)
        state.got[0] = where(first, state.got[0] - here, state.got[0])


@kernel
def affordable_part(known: Known, options: Any, state: Any, work: Any) -> Number:
    """Return the part of the way to n m - Theta that keeps S within the account; S is convex."""
    account = state.account[0] - late_cost(state)
    if options.drift_cap <= 0.0:
        return 0.0 * account
    there = potential(known, state, work, True)
    if every(there <= account):
        return 1.0 + 0.0 * there
    here = potential(known, state, work, False)
    return where(there <= account, 1.0, clipped_ratio(account - here, there - here))


@kernel
def plan_drift(known: Known, options: Any, state: Any, work: Any) -> Number:
    """Write the offset of mu from its goal; return the part of the way to go, 0 without a step since the plan."""
    for i in range(state.theta.shape[0]):
        work.offset[i] = work.total[i] + state.drift[i]
    part = smaller(affordable_part(known, options, state, work), covered_part(state, work, options.c))
    return where(state.new_update[0] > 0.0, part, 0.0)


@kernel
def apply_drift(state: Any, work: Any, length: Number) -> None:
    """Apply the drift to mu, and write the sum Theta + mu."""
    for i in range(state.theta.shape[0]):
        state.drift[i] = state.drift[i] - length * work.offset[i]
        work.total[i] = state.theta[i] + state.drift[i]
