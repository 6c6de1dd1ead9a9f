"""What exploration is worth: the rate gamma_t that costs least, what it leaves uncovered included.

Write beta = 1/eta, d(a|x) = <Sigma_t^-1 phi_t, psi(a,x)> for a play phi_t, where psi is the feature less the mean of
its context weighted by q^(3/2), and rho for the largest residual that the play can have. The play is *covered* if

    rho |d(a|x)| sqrt(q(a|x)) <= c beta                                for all arms and contexts.

A covered play is paid for when it is made, by its own stability. One that is not may cost any amount, but rarely: its
expectation is paid in every round, like exploration. So the price of a rate is

    2 gamma + sum over plays that are not covered of g pi sum_x g(x) k(x),
    k = rho max{mean d - min d, max d - mean d}       the mean being that of q, or if it is less
        rho^2 sum_a q^(3/2) d^2/(beta - rho m)        in contexts with rho m <= 2 c beta, m = max_a |d| sqrt q,

and k bounds the stability of every residual up to rho (docs/theory.md). Leverages decide most plays: by Cauchy-Schwarz
a play is covered if rho^2 lev max[q lev(psi)] <= (c beta)^2. Only the others are looked at one by one; where there are
too many, all of them are charged rho sqrt(lev) times 2 sum_x g max_a sqrt(lev(psi)), which is never less.
"""

import math
from typing import Any, NamedTuple

from bothworlds.kernels.arithmetic import (
    Number,
    absolute,
    at,
    count_of,
    either,
    every,
    feature,
    highest_of_contexts,
    larger,
    matrix_of,
    over_contexts,
    root,
    smaller,
    where,
)
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.matrix import apply_half, apply_inverse, cholesky, invert_lower, leverage_beside, product
from bothworlds.kernels.rates import MOST_EXPLORATION

FACTOR = 1.5  # from one rate that is tried to the next
SMALLEST = 1e-7  # the next one below it is zero
MOST_TRIALS = 12
MOST_PLAYS = 128  # contexts times arms: beyond, pairs of plays and arms are too many to look at
TURNS = 4.0  # ways that the search goes, one after the other
REST = 1.0 / 64.0  # of all rounds so far, before it goes on
JUMP = 4.0  # times what the price was when the search went on last: then it does not rest
LEAP = 2.0  # the turn on which it tries a rate as dear as half of what is paid
ROUNDING = 1e-9  # of a leverage: what a difference of leverages may be wrong by


class Case(NamedTuple):
    """What a price is computed from, and the space for it.

    ``sigma`` is Sigma(q), r the roots of q, ``rho`` the largest residual of every play, ``centre`` the weighted mean
    feature of each context.
    """

    sigma: Floats
    q: Floats
    r: Floats
    rho: Floats
    beta: Number
    c: float
    mixed: Floats
    inverse: Floats
    centre: Floats
    reach: Floats
    middle: Floats  # a vector of a block of contexts
    play: Floats  # three vectors, of one play


class Search(NamedTuple):
    """Where the search for a rate begins, which way it goes, for how many rounds it rests, and up to which price."""

    start: Number
    turn: Number
    rest: Number
    level: Number


@kernel
def find_centres(known: Known, q: Floats, r: Floats, centre: Floats) -> None:
    """Write the mean feature of every context, arms weighted by q^(3/2)."""
    for x in range(q.shape[0]):
        total = 0.0
        for a in range(q.shape[1]):
            total = total + q[x, a] * r[x, a]
        share = 1.0 / total
        for i in range(centre.shape[1]):
            mean = 0.0
            for a in range(q.shape[1]):
                mean = mean + q[x, a] * r[x, a] * known.z[x, a, i]
            centre[x, i] = mean * share


@kernel
def reaches(known: Known, case: Case) -> tuple[Number, Number, Number]:
    """Write rho^2 lev of every play; return the largest, the largest q lev(psi), and 2 sum_x g max_a sqrt(lev(psi))."""
    farthest = 0.0 * case.q[0, 0]
    widest, total = farthest, farthest
    for x in range(case.q.shape[0]):
        apply_half(case.inverse, case.centre[x], case.middle)
        own = product(case.middle, case.middle)
        highest = 0.0 * case.q[0, 0]
        for a in range(case.q.shape[1]):
            lev, cross = leverage_beside(case.inverse, known.z[x, a], case.middle)
            apart = larger(lev - 2.0 * cross + own, 0.0) + ROUNDING * (lev + own)
            case.reach[x, a] = case.rho[x, a] * case.rho[x, a] * lev
            farthest = larger(farthest, case.reach[x, a])
            widest = larger(widest, case.q[x, a] * apart)
            highest = larger(highest, where(case.q[x, a] > 0.0, apart, 0.0))
        total = total + known.g[x] * root(highest)
    return highest_of_contexts(farthest), highest_of_contexts(widest), 2.0 * over_contexts(total)


@kernel
def cost_by_leverages(known: Known, case: Case, gamma: Number, widest: Number, width: Number) -> Number:
    """Return sum g pi rho sqrt(lev) width over all plays that their leverages do not show to be covered."""
    limit = case.c * case.beta * (case.c * case.beta)
    total = 0.0 * case.q[0, 0]
    for x in range(case.q.shape[0]):
        for a in range(case.q.shape[1]):
            share = (1.0 - gamma) * case.q[x, a] + gamma * known.e[x, a]
            far = where(case.reach[x, a] * widest <= limit, 0.0, root(case.reach[x, a]))
            total = total + known.g[x] * share * far
    return over_contexts(total) * width


@kernel
def cost_of_play(known: Known, case: Case, direction: Floats, rho: Number) -> Number:
    """Return sum_x g k(x) of the play with the direction Sigma_t^-1 phi_t if it is not covered, else 0."""
    limit = case.c * case.beta
    total = 0.0
    worst = 0.0 * case.q[0, 0]
    for x in range(case.q.shape[0]):
        middle = product(direction, case.centre[x])
        zero = 0.0 * case.q[x, 0]
        squares, mean, most, least, step = zero, zero, zero, zero, zero
        for a in range(case.q.shape[1]):
            q, r = case.q[x, a], case.r[x, a]
            d = where(q > 0.0, product(direction, known.z[x, a]) - middle, 0.0)
            squares = squares + q * r * d * d
            mean = mean + q * d
            most = larger(most, d)
            least = smaller(least, d)
            step = larger(step, absolute(d) * r)
        worst = larger(worst, step)
        far, reach = rho * larger(mean - least, most - mean), rho * step
        near = rho * rho * squares / larger(case.beta - reach, (1.0 - 2.0 * case.c) * case.beta)
        k = where(reach <= 2.0 * limit, smaller(near, far), far)
        total = total + known.g[x] * k
    return where(rho * highest_of_contexts(worst) <= limit, 0.0, over_contexts(total))


@kernel
def price(known: Known, case: Case, gamma: Number, most: Number) -> Number:
    """Return the price of a rate, or anything above ``most`` where it is more; infinity where Sigma_t is singular."""
    for i in range(case.sigma.shape[0]):
        for j in range(i + 1):
            case.mixed[i, j] = (1.0 - gamma) * case.sigma[i, j]
        case.mixed[i, i] = case.mixed[i, i] + gamma
    sound = cholesky(case.mixed, case.inverse)
    invert_lower(case.inverse)
    farthest, widest, width = reaches(known, case)
    limit = case.c * case.beta * (case.c * case.beta)
    total = 2.0 * gamma
    if every(farthest * widest <= limit):
        return where(sound, total, math.inf)
    if count_of(known.g) * case.q.shape[1] > MOST_PLAYS:
        return where(sound, total + cost_by_leverages(known, case, gamma, widest, width), math.inf)
    shares = matrix_of(known.g, 0, known.g.shape[0], 1)
    for x in range(count_of(known.g)):
        for a in range(case.q.shape[1]):
            weight = at(shares, x, 0) * ((1.0 - gamma) * at(case.q, x, a) + gamma * at(known.e, x, a))
            near = either(at(case.reach, x, a) * widest <= limit, either(weight <= 0.0, total > most))
            if every(near):
                continue
            z, direction = case.play[0], case.play[1]
            for i in range(z.shape[0]):
                z[i] = feature(known.z, x, a, i)
            apply_inverse(case.inverse, z, case.play[2], direction)
            cost = cost_of_play(known, case, direction, at(case.rho, x, a))
            total = total + where(near, 0.0, weight * cost)
    return where(sound, total, math.inf)


@kernel
def next_trial(turn: Number, rate: Number, cost: Number) -> Number:
    """Return the rate to try: in turn a smaller one, a larger one, one as dear as half of what is paid, and none."""
    below = where(rate > SMALLEST, rate / FACTOR, 0.0)
    above = where(rate > 0.0, smaller(FACTOR * rate, MOST_EXPLORATION), SMALLEST)
    leap = smaller(0.25 * cost, MOST_EXPLORATION)
    return where(turn <= 0.0, below, where(turn <= 1.0, above, where(turn <= LEAP, leap, 0.0)))


@kernel
def plan_search(state: Any) -> None:
    """Turn the search for gamma_t, let it rest for a share of the rounds so far, and note the price of now."""
    resting = state.rest[0] >= 1.0
    turned = where(state.turn[0] + 1.0 < TURNS, state.turn[0] + 1.0, 0.0)
    state.turn[0] = where(resting, state.turn[0], turned)
    state.rest[0] = where(resting, state.rest[0] - 1.0, REST * state.t[0])
    state.level[0] = where(resting, state.level[0], state.paid[0])


class Found(NamedTuple):
    """A rate, its price, and whether ``case.inverse`` is that of its covariance."""

    rate: Number
    price: Number
    inverted: Any


@kernel
def cheapest_rate(known: Known, case: Case, search: Search, covering: Number, dearest: float) -> Found:
    """Return a rate gamma_t and its price, never above that of the covering rate, which leaves no play uncovered.

    Where that is above 1/2, the price is at most ``dearest``, which bounds that of the rate 1/2.

    The search goes on from the rate of the round before, in one direction a round, as long as prices fall. Where the
    price has jumped, it leaps at once: a play that has become dear must not wait for the next turn.
    """
    rate = smaller(search.start, MOST_EXPLORATION) + 0.0 * covering
    bound = where(covering <= MOST_EXPLORATION, 2.0 * covering, dearest)
    going, cost = where(search.rest >= 1.0, 0.0, 1.0) + 0.0 * rate, math.inf + 0.0 * rate
    last, trial, useless, heading = rate, rate, rate < 0.0, search.turn + 0.0 * rate
    for turn in range(1 + MOST_TRIALS):
        if turn > 0:
            trial = next_trial(heading, rate, cost)
            useless = either(2.0 * trial >= cost, either(going <= 0.0, absolute(trial - rate) <= 0.0))
        if every(useless):
            break
        last = trial
        found = price(known, case, trial, cost)
        if turn > 0:
            worse = either(useless, found >= cost)
            going = where(worse, 0.0, 1.0)
            rate, cost = where(worse, rate, trial), where(worse, cost, found)
        else:
            rate = where(bound < found, smaller(covering, MOST_EXPLORATION), rate)
            cost = smaller(found, bound)
            jumped = cost > JUMP * search.level
            going, heading = where(jumped, 1.0, going), where(jumped, LEAP, heading)
    return Found(rate, cost, absolute(last - rate) <= 0.0)
