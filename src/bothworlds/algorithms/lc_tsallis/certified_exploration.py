"""The smallest exploration rate that keeps a stability condition, computed in each round. Kernel functions.

In coordinates where Sigma(e) is the identity, Sigma_t = (1 - gamma) Sigma(q) + gamma I, and with the leverages
lev(a, x) = z^T Sigma_t^-1 z, by Cauchy-Schwarz, eta |l_hat(a, x)| <= c q(a|x)^(alpha-1) holds for all arms,
contexts and plays as soon as

    eta^2 max[q^(2 (1-alpha)) lev] max[lev] <= c^2.

The logarithm of the left side is convex in gamma (1/lev is concave in Sigma), so the feasible rates form an
interval, which contains the rate of the schedule. The search finds its lower end. It starts at the rate of the
previous round, which with a schedule is nearly always within a few percent, so that it usually takes two trials.

Only the first trial computes all leverages. For rates s < t, (s/t) Sigma_t <= Sigma_s <= (1 - s)/(1 - t) Sigma_t, so a
leverage at one rate bounds that at another from both sides, and leverages that cannot be the largest are skipped.
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
    exponential,
    highest_of_contexts,
    larger,
    logarithm,
    where,
)
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.linalg import invert_mixture, leverage

WIDTH = 0.95  # the rate found is at most 1/WIDTH times the smallest feasible one
NEGLIGIBLE = 1e-3  # below this share of the schedule's rate, zero is tried
FIRST = 1e-2  # share of the schedule's rate that is tried if zero is infeasible
AIM = 1.02  # ratio of a trial rate to the predicted edge
EDGE_TRIALS = 6  # trials that follow the predicted edge; later ones take the midpoint
ROUNDING = 1e-12
SELECTIVE_FROM = 12  # dimensions: below, leverages cost less than bounds, and a factor about as much as its copies
RELIABLE = 1e-9  # at smaller rates leverages imply no bounds: they may be rounding alone
NONE = -1.0  # below every leverage
SLACK = 1e-4  # of a bound: far above the rounding of leverages at such rates
MAX_TRIALS = 200
TINY = 1e-300


class Trial(NamedTuple):
    """Inputs of a trial of gamma (Sigma(q), features, q, alpha) and the space it writes to.

    ``lev`` has a number per context and arm: bounds on the leverages at the last trial rate, whose factor is
    ``factor``. The factor of the smallest feasible rate so far is stored above the diagonal of ``mixed``, which is not
    read otherwise, and in ``pivots``.
    """

    sigma: Floats
    z: Floats
    q: Floats
    alpha: float
    mixed: Floats
    factor: Floats
    pivots: Floats
    lev: Floats


class LastTrial(NamedTuple):
    """The last trial rate, 0 for none, with max[lev] and max[q^(2 (1-alpha)) lev]."""

    rate: Number
    highest: Number
    weighted: Number


class Smallest(NamedTuple):
    """A rate, and whether ``factor`` belongs to it: 1, or 0 where it has to be computed."""

    rate: Number
    inverted: Number


class Bounds(NamedTuple):
    """Largest ratio of a leverage to that at the last trial rate, and lower bounds on the two maxima."""

    ratio: Number
    highest: Number
    weighted: Number


@kernel
def bounds_at(last: LastTrial, gamma: Number) -> Bounds:
    """Return the bounds that the last trial implies for another rate: none where one of the rates is near zero."""
    reliable = both(last.rate >= RELIABLE, gamma >= RELIABLE)
    inner = (1.0 - last.rate) / (1.0 - gamma)
    outer = last.rate / larger(gamma, RELIABLE)
    falls = gamma < last.rate
    ratio, less = where(falls, outer, inner), where(falls, inner, outer)
    highest, weighted = where(reliable, less * last.highest, NONE), where(reliable, less * last.weighted, NONE)
    return Bounds(ratio * (1.0 + SLACK), highest, weighted)


@kernel
def emphasis(q: Number, alpha: float) -> Number:
    """Return q^(2 (1-alpha)), which is 0 for q = 0."""
    if alpha == 0.5:
        return q
    return where(q > 0.0, exponential(2.0 * (1.0 - alpha) * logarithm(larger(q, TINY))), 0.0)


@kernel
def largest_in_turn(trial: Trial, bounds: Bounds) -> tuple[Number, Number]:
    """Return max[lev] and max[q^(2 (1-alpha)) lev] over the contexts of each block."""
    highest = 0.0
    highest_weighted = 0.0
    selective = trial.factor.shape[0] >= SELECTIVE_FROM
    for x in range(trial.q.shape[0]):
        for a in range(trial.q.shape[1]):
            weight = emphasis(trial.q[x, a], trial.alpha)
            if selective:
                bound = bounds.ratio * trial.lev[x, a]
                small = both(bound < bounds.highest, either(weight * bound < bounds.weighted, weight <= 0.0))
                if every(small):
                    trial.lev[x, a] = bound
                    continue
            lev = leverage(trial.factor, trial.z[x, a])
            highest = larger(highest, lev)
            highest_weighted = larger(highest_weighted, weight * lev)
            if selective:
                trial.lev[x, a] = lev
    return highest, highest_weighted


@kernel
def largest(trial: Trial, bounds: Bounds) -> tuple[Number, Number]:
    """Return max[lev] and max[q^(2 (1-alpha)) lev]. Replaced on a GPU."""
    return largest_in_turn(trial, bounds)


@kernel
def condition(trial: Trial, gamma: Number, last: LastTrial) -> tuple[Number, LastTrial]:
    """Return max[q^(2 (1-alpha)) lev] max[lev]; infinity where Sigma_t is not positive definite."""
    regular = invert_mixture(trial.sigma, gamma, trial.mixed, trial.factor)
    highest, highest_weighted = largest(trial, bounds_at(last, gamma))
    current = LastTrial(where(regular, gamma, 0.0), highest_of_contexts(highest), highest_of_contexts(highest_weighted))
    return where(regular, current.highest * current.weighted, math.inf), current


@kernel
def extrapolated_rate(rate: Number, room: Number, before: Number, room_before: Number) -> Number:
    """Return the rate where the room would be 1 if it were linear in the rate."""
    change = room - room_before
    return rate + (1.0 - room) * (rate - before) / where(absolute(change) > TINY, change, TINY)


@kernel
def if_between(value: Number, low: Number, high: Number, otherwise: Number) -> Number:
    """Return the value where it lies strictly between low and high, else ``otherwise``."""
    return where(both(value > low, value < high), value, otherwise)


@kernel
def next_rate(
    number: int, start: Number, upper: Number, low: Number, high: Number, edge: Number, zero_open: Number
) -> Number:
    """Return the rate to try: the guess, its neighbour, then near the predicted edge, at last the midpoint.

    If the edge is close to a tried rate, one trial beyond it ends the search. Zero is tried if the edge is predicted
    there, or if ``high`` is negligible.
    """
    aim = 0.5 * (low + high)
    negligible = NEGLIGIBLE * upper > high
    if number == 0:
        return where(start <= 0.0, 0.0, where(start < upper, start, aim))
    if number == 1:
        near = where(start <= 0.0, FIRST * upper, where(high < upper, WIDTH * high, low / WIDTH))
        aim = if_between(near, low, high, aim)
    elif number <= EDGE_TRIALS:
        near = where(edge >= WIDTH * high, WIDTH * high, where(WIDTH * edge <= low, low / WIDTH, AIM * edge))
        aim = if_between(near, low, high, aim)
        negligible = either(negligible, edge <= 0.0)
    return where(both(zero_open > 0.0, negligible), 0.0, aim)


@kernel
def keep_factor(trial: Trial, mask: Any) -> None:
    """Store the factor of the last trial rate where the mask holds."""
    for i in range(trial.factor.shape[0]):
        for j in range(i):
            trial.mixed[j, i] = where(mask, trial.factor[i, j], trial.mixed[j, i])
        trial.pivots[i] = where(mask, trial.factor[i, i], trial.pivots[i])


@kernel
def restore_factor(trial: Trial, mask: Any) -> None:
    """Restore the stored factor where the mask holds."""
    for i in range(trial.factor.shape[0]):
        for j in range(i):
            trial.factor[i, j] = where(mask, trial.mixed[j, i], trial.factor[i, j])
        trial.factor[i, i] = where(mask, trial.pivots[i], trial.factor[i, i])


@kernel
def smallest_rate(trial: Trial, limit: Number, start: Number, upper: Number) -> Smallest:
    """Return the smallest gamma in [0, upper] with condition(gamma) <= limit, to 5 % from above.

    ``start`` is a guess. ``upper`` is feasible by Lemma A.3, and returned if no smaller rate is. The room,
    limit/condition, is nearly linear in gamma: two trials predict the edge. Usually the first trial is feasible, and
    the second shows that no smaller rate is, so large factors are stored for reuse.
    """
    low = 0.0 * upper
    high = upper
    selective, inverted = trial.factor.shape[0] >= SELECTIVE_FROM, low
    rate, room, edge, last = low, low, low, LastTrial(low, low, low)
    zero_open = 1.0 + low
    for number in range(MAX_TRIALS):
        done = low >= WIDTH * high * (1.0 - ROUNDING)
        if every(done):
            break
        before, room_before = rate, room
        rate = where(done, high, next_rate(number, start, upper, low, high, edge, zero_open))
        value_at_rate, last = condition(trial, rate, last)
        room = limit / value_at_rate
        edge = extrapolated_rate(rate, room, before, room_before)
        feasible = either(done, room >= 1.0)
        zero_open = where(rate <= 0.0, 0.0, zero_open)
        high = where(feasible, rate, high)
        low = where(feasible, low, rate)
        if selective:
            inverted = where(feasible, 1.0, inverted)
            keep_factor(trial, feasible)
    if selective:
        restore_factor(trial, inverted > 0.0)
    return Smallest(high, inverted)
