"""The smallest exploration rate that keeps a stability condition, computed exactly each round.

In coordinates where Sigma(e) is the identity, Sigma_t = (1 - gamma) Sigma(q) + gamma I, and with the leverages
lev(a, x) = z^T Sigma_t^-1 z, by Cauchy-Schwarz, eta |l_hat(a, x)| <= c q(a|x)^(alpha-1) holds for all arms,
contexts and plays as soon as

    eta^2 max[q^(2 (1-alpha)) lev] max[lev] <= c^2.

The logarithm of the left side is convex in gamma (1/lev is concave in Sigma), so the feasible rates form an
interval. It contains the rate of the schedule; its lower end is what we are after. The search starts at the rate of
the round before, which with a schedule is nearly always within a few percent, so that two trials are the rule.

Only the first trial computes all leverages. For rates s < t, (s/t) Sigma_t <= Sigma_s <= (1 - s)/(1 - t) Sigma_t, so a
leverage at one rate bounds that at another from both sides, and what cannot be the largest is left out.
"""

import math
from typing import Any, NamedTuple

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
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.matrix import invert_mixture, leverage

WIDTH = 0.95  # the rate found is at most 1/WIDTH times the smallest feasible one
NEGLIGIBLE = 1e-3  # below this share of the schedule's rate, zero is tried
FIRST = 1e-2  # the share of it that is tried where zero is not enough
AIM = 1.02  # how far above the foreseen edge a rate is tried
FORESEEN = 6  # so many trials follow the foreseen edge, then the middle is taken
ROUNDING = 1e-12
CHOOSY = 12  # dimensions: below, leverages cost less than bounds on them, and a factor about as much as its copies
SURE = 1e-9  # at smaller rates leverages say nothing of others: they may be rounding alone
NONE = -1.0  # below every leverage
SLACK = 1e-4  # of a bound: far above the rounding of leverages at such rates
MAX_TRIALS = 200
TINY = 1e-300


class Trial(NamedTuple):
    """What a trial of gamma reads (Sigma(q), features, q, alpha) and the space it writes to.

    ``lev`` has a number per arm and context: bounds on the leverages at the rate that was tried last. ``factor`` is
    that of this rate; that of the smallest one that has done stands above the diagonal of ``mixed``, which is not read,
    and in ``pivots``.
    """

    sigma: Floats
    z: Floats
    q: Floats
    alpha: float
    mixed: Floats
    factor: Floats
    pivots: Floats
    lev: Floats


class Seen(NamedTuple):
    """The rate that was tried last, 0 for none, with max[lev] and max[q^(2 (1-alpha)) lev]."""

    rate: Number
    highest: Number
    weighted: Number


class Smallest(NamedTuple):
    """A rate, and whether the factor of its covariance is at hand: 1, or 0 where it has to be made."""

    rate: Number
    inverted: Number


class Bounds(NamedTuple):
    """How many times larger a leverage may be than at the rate before, and the least that the largest ones are."""

    more: Number
    highest: Number
    weighted: Number


@kernel
def bounds_at(seen: Seen, gamma: Number) -> Bounds:
    """Return what the trial before says of another rate: nothing where one of them is next to zero."""
    sure = both(seen.rate >= SURE, gamma >= SURE)
    inner = (1.0 - seen.rate) / (1.0 - gamma)
    outer = seen.rate / larger(gamma, SURE)
    falls = gamma < seen.rate
    more, less = where(falls, outer, inner), where(falls, inner, outer)
    highest, weighted = where(sure, less * seen.highest, NONE), where(sure, less * seen.weighted, NONE)
    return Bounds(more * (1.0 + SLACK), highest, weighted)


@kernel
def emphasis(q: Number, alpha: float) -> Number:
    """Return q^(2 (1-alpha)), which is 0 for q = 0."""
    if alpha == 0.5:
        return q
    return where(q > 0.0, exponential(2.0 * (1.0 - alpha) * logarithm(larger(q, TINY))), 0.0)


@kernel
def largest_in_turn(trial: Trial, bounds: Bounds) -> tuple[Number, Number]:
    """Return max[lev] and max[q^(2 (1-alpha)) lev] of the contexts of each block."""
    highest = 0.0
    highest_weighted = 0.0
    choosy = trial.factor.shape[0] >= CHOOSY
    for x in range(trial.q.shape[0]):
        for a in range(trial.q.shape[1]):
            weight = emphasis(trial.q[x, a], trial.alpha)
            if choosy:
                bound = bounds.more * trial.lev[x, a]
                small = both(bound < bounds.highest, either(weight * bound < bounds.weighted, weight <= 0.0))
                if every(small):
                    trial.lev[x, a] = bound
                    continue
            lev = leverage(trial.factor, trial.z[x, a])
            highest = larger(highest, lev)
            highest_weighted = larger(highest_weighted, weight * lev)
            if choosy:
                trial.lev[x, a] = lev
    return highest, highest_weighted


@kernel
def largest(trial: Trial, bounds: Bounds) -> tuple[Number, Number]:
    """Return the same; a GPU has its own."""
    return largest_in_turn(trial, bounds)


@kernel
def condition(trial: Trial, gamma: Number, seen: Seen) -> tuple[Number, Seen]:
    """Return max[q^(2 (1-alpha)) lev] max[lev]; infinity where Sigma_t is not positive definite."""
    sound = invert_mixture(trial.sigma, gamma, trial.mixed, trial.factor)
    highest, highest_weighted = largest(trial, bounds_at(seen, gamma))
    now = Seen(where(sound, gamma, 0.0), highest_of_contexts(highest), highest_of_contexts(highest_weighted))
    return where(sound, now.highest * now.weighted, math.inf), now


@kernel
def foreseen(rate: Number, room: Number, before: Number, room_before: Number) -> Number:
    """Return where the room would be 1 if it were linear in the rate."""
    change = room - room_before
    return rate + (1.0 - room) * (rate - before) / where(absolute(change) > TINY, change, TINY)


@kernel
def within(value: Number, low: Number, high: Number, otherwise: Number) -> Number:
    """Return the value where it lies strictly between low and high."""
    return where(both(value > low, value < high), value, otherwise)


@kernel
def next_rate(
    number: int, start: Number, upper: Number, low: Number, high: Number, edge: Number, zero_open: Number
) -> Number:
    """Return the rate to try: the guess, its neighbour, then around the foreseen edge, at last the middle.

    Where the edge is within reach of what was tried, one trial beyond it ends the search. Zero is tried where it is
    foreseen to be enough, or where high is negligible.
    """
    aim = 0.5 * (low + high)
    negligible = NEGLIGIBLE * upper > high
    if number == 0:
        return where(start <= 0.0, 0.0, where(start < upper, start, aim))
    if number == 1:
        near = where(start <= 0.0, FIRST * upper, where(high < upper, WIDTH * high, low / WIDTH))
        aim = within(near, low, high, aim)
    elif number <= FORESEEN:
        near = where(edge >= WIDTH * high, WIDTH * high, where(WIDTH * edge <= low, low / WIDTH, AIM * edge))
        aim = within(near, low, high, aim)
        negligible = either(negligible, edge <= 0.0)
    return where(both(zero_open > 0.0, negligible), 0.0, aim)


@kernel
def keep_factor(trial: Trial, mask: Any) -> None:
    """Keep the factor of the rate that was tried last where the mask holds."""
    for i in range(trial.factor.shape[0]):
        for j in range(i):
            trial.mixed[j, i] = where(mask, trial.factor[i, j], trial.mixed[j, i])
        trial.pivots[i] = where(mask, trial.factor[i, i], trial.pivots[i])


@kernel
def restore_factor(trial: Trial, mask: Any) -> None:
    """Bring back the factor that was kept where the mask holds."""
    for i in range(trial.factor.shape[0]):
        for j in range(i):
            trial.factor[i, j] = where(mask, trial.mixed[j, i], trial.factor[i, j])
        trial.factor[i, i] = where(mask, trial.pivots[i], trial.factor[i, i])


@kernel
def smallest_rate(trial: Trial, limit: Number, start: Number, upper: Number) -> Smallest:
    """Return the smallest gamma in [0, upper] with condition(gamma) <= limit, to 5 % from above.

    ``start`` is a guess. ``upper`` is feasible by Lemma A.3, and what comes back if nothing smaller is. The room,
    limit/condition, is nearly linear in gamma: two trials foresee the edge. Mostly the first one does, and the second
    shows that no smaller rate would, so that a large factor is kept.
    """
    low = 0.0 * upper
    high = upper
    choosy, inverted = trial.factor.shape[0] >= CHOOSY, low
    rate, room, edge, seen = low, low, low, Seen(low, low, low)
    zero_open = 1.0 + low
    for number in range(MAX_TRIALS):
        done = low >= WIDTH * high * (1.0 - ROUNDING)
        if every(done):
            break
        before, room_before = rate, room
        rate = where(done, high, next_rate(number, start, upper, low, high, edge, zero_open))
        found, seen = condition(trial, rate, seen)
        room = limit / found
        edge = foreseen(rate, room, before, room_before)
        feasible = either(done, room >= 1.0)
        zero_open = where(rate <= 0.0, 0.0, zero_open)
        high = where(feasible, rate, high)
        low = where(feasible, low, rate)
        if choosy:
            inverted = where(feasible, 1.0, inverted)
            keep_factor(trial, feasible)
    if choosy:
        restore_factor(trial, inverted > 0.0)
    return Smallest(high, inverted)
