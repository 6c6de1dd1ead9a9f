"""How far plans lean on the regression: from the unbiased sum of losses towards the one it predicts. Kernel text.

Theta has the variance of its least likely plays; n m_t, what a regression says of the same n rounds, remembers plays
that were likely once, and forgets. Plans follow Theta + mu_t, mu_t on its way to n m_t - Theta, and two things are
known of every step on that way (docs/theory.md):

* What leaning can have cost. With p_t the mean feature of q_t it is at most

      E_X max_a <mu_{t+1}, phi(a, X)> - sum_s <mu_{s+1} - mu_s, p_s>,

  affine from 0 to n m - Theta: we lead mu as far as keeps it within a share of what the path has cost otherwise.
* What it does to the step that is taken, y = y' + zeta v: sum r y^2 grows by a share ROOM at most, and |y| <= c.
"""

from typing import Any, NamedTuple

from bothworlds.kernels.arithmetic import (
    Number,
    absolute,
    every,
    fused,
    highest_of_contexts,
    larger,
    over_contexts,
    root,
    smaller,
    where,
)
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel
from bothworlds.theory.schedules import ROOM

WITHIN = 0.999  # of c: how far leaning may take a step, so that rounding does not decide whether it is covered


class Told(NamedTuple):
    """Of a play: <Theta, z>, <m, z> before it is scaled, how far the last step has moved it, and <mu, z>."""

    estimate: Number
    guess: Number
    moved: Number
    leant: Number


class Way(NamedTuple):
    """From mu to n m - Theta: n times the scale of m, and 1/beta."""

    rounds: Number
    eta: Number


class Seen(NamedTuple):
    """What a way does to plays: y is the step without it, v the whole way, o the way back to 0; all times sqrt q/beta.

    And to what leaning can have cost.
    """

    own: Number  # sum r y^2
    whole: Number  # sum r y v
    back: Number  # sum r y o
    squares: Number  # sum r v^2
    mixed: Number  # sum r v o
    rest: Number  # sum r o^2
    widest: Number  # max |y|
    farthest: Number  # max |v|
    longest: Number  # max |o|
    most: Number  # E_X max_a <n m - Theta, phi>
    mean: Number  # <n m - Theta, p_t>
    before: Number  # <mu, p_t>


@kernel
def told(known: Known, state: Any, work: Any, x: int, a: int) -> Told:
    """Return what is known of a play; a GPU has its own."""
    return Told(work.table[x, a], work.rho[x, a], work.reach[x, a], work.leant[x, a])


@kernel
def look_along(known: Known, state: Any, work: Any, way: Way) -> Seen:
    """Return what a way does."""
    zero, eta, back = 0.0 * way.eta, way.eta, 0.0 - way.eta
    own, whole, turned, squares, mixed, rest = zero, zero, zero, zero, zero, zero
    widest, farthest, longest, most, mean, before = zero, zero, zero, zero, zero, zero
    for x in range(state.q.shape[0]):
        weights, first, second, third = zero, zero, zero, zero
        highest, here, leant = zero - 1e308, zero, zero
        for a in range(state.q.shape[1]):
            one, q = told(known, state, work, x, a), state.q[x, a]
            wanted = fused(way.rounds, one.guess, 0.0 - one.estimate)
            highest = larger(highest, wanted - known.blocked[x, a])
            here, leant = fused(q, wanted, here), fused(q, one.leant, leant)
            weight = q * state.roots[x, a]
            weights, first = weights + weight, fused(weight, one.moved, first)
            second, third = fused(weight, wanted, second), fused(weight, one.leant, third)
        most, mean = fused(known.g[x], highest, most), fused(known.g[x], here, mean)
        before = fused(known.g[x], leant, before)
        share = 1.0 / weights
        first, second, third = first * share, second * share, third * share
        for a in range(state.q.shape[1]):
            one, r = told(known, state, work, x, a), state.roots[x, a]
            wanted = fused(way.rounds, one.guess, 0.0 - one.estimate)
            y, o = (one.moved - first) * r, (one.leant - third) * (back * r)
            v = fused(wanted - second, eta * r, o)
            widest, farthest = larger(widest, absolute(y)), larger(farthest, absolute(v))
            longest = larger(longest, absolute(o))
            weight = known.g[x] * r
            left, right = weight * y, weight * v
            own, whole, turned = fused(left, y, own), fused(left, v, whole), fused(left, o, turned)
            squares, mixed, rest = fused(right, v, squares), fused(right, o, mixed), fused(weight * o, o, rest)
    return Seen(
        over_contexts(own),
        over_contexts(whole),
        over_contexts(turned),
        over_contexts(squares),
        over_contexts(mixed),
        over_contexts(rest),
        highest_of_contexts(widest),
        highest_of_contexts(farthest),
        highest_of_contexts(longest),
        over_contexts(most),
        over_contexts(mean),
        over_contexts(before),
    )


@kernel
def over(numerator: Number, denominator: Number) -> Number:
    """Return the quotient within [0, 1]; 1 if there is nothing to divide by."""
    some = denominator > 0.0
    return where(some, larger(smaller(numerator / where(some, denominator, 1.0), 1.0), 0.0), 1.0)


@kernel
def length_of(seen: Seen, share: Number, c: float) -> Number:
    """Return zeta: which part of a way keeps |y| <= c, and lets the squares grow by a share ROOM at most.

    The way leads to a share of n m - Theta, so it is share v + (1 - share) o.
    """
    rest = 1.0 - share
    mixed = share * seen.whole + rest * seen.back
    squares = larger(share * share * seen.squares + rest * (2.0 * share * seen.mixed + rest * seen.rest), 0.0)
    reach = root(mixed * mixed + ROOM * seen.own * squares) - mixed
    farthest = share * seen.farthest + rest * seen.longest
    return smaller(over(reach, squares), over(WITHIN * c - seen.widest, farthest))


@kernel
def lean(known: Known, options: Any, state: Any, work: Any, scale: Number) -> None:
    """Let mu go on its way, and add to the step in ``vector`` what that does to plays."""
    if every(state.fresh[0] <= 0.0):
        return
    eta, news = 1.0 / state.inverse_rate[0], where(state.fresh[0] > 0.0, 1.0, 0.0)
    rounds = state.counted[0] * scale
    seen = look_along(known, state, work, Way(rounds, eta))
    allowed = options.leaning / (1.0 + options.leaning) * state.account[0]
    left = allowed - (state.owed[0] + seen.before)
    span = seen.most - seen.mean
    share = where(span > 0.0, over(left, span), 0.0)
    length = news * length_of(seen, share, options.c)
    state.owed[0] += length * (seen.before - share * seen.mean)
    for i in range(state.theta.shape[0]):
        wanted = share * (rounds * work.half[i] - state.theta[i])
        change = length * (wanted - state.lean[i])
        work.vector[i] = work.vector[i] + eta * change
        state.lean[i] += change


@kernel
def leaning_sum(state: Any, total: Floats) -> None:
    """Write Theta + mu."""
    for i in range(state.theta.shape[0]):
        total[i] = state.theta[i] + state.lean[i]
