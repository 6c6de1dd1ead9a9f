"""How far plans lean on the regression: from the unbiased sum of losses towards the one it predicts. Kernel text.

Theta has the variance of its least likely plays; n m, what a regression m says of the same n rounds, remembers plays
that were likely once, and forgets. Plans follow Theta + mu_t, mu_t on its way to n m - Theta, and two things are
known of every step on that way (docs/theory.md):

* What leaning can have cost. With p_t the mean feature of q_t it is at most

      E_X max_a <mu_{t+1}, phi(a, X)> - sum_s <mu_{s+1} - mu_s, p_s>,

  affine from 0 to n m - Theta: we lead mu as far as keeps it within a share of what the path has cost otherwise.
* What it does to the step that is taken, y = y' + zeta v: sum r y^2 grows by a share ROOM at most, and |y| <= c.

What is told of plays stands in tables: features are many, and are read once. A GPU, whose threads have no room for
tables, computes it anew (`bothworlds.simulation.gpu.anew`).
"""

import math
from typing import Any, NamedTuple

from bothworlds.kernels.arithmetic import (
    Number,
    absolute,
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
    """Of a play: <Theta, z>, <m, z>, how far the last step has moved it, over beta, and <mu, z>."""

    estimate: Number
    guess: Number
    moved: Number
    leant: Number


class Looked(NamedTuple):
    """Of all plays: the largest |<m, z>|, at least 1, and what decides how far leaning may lead."""

    highest: Number
    most: Number  # E_X max_a <n m - Theta, phi>
    mean: Number  # <n m - Theta, p_t>
    before: Number  # <mu, p_t>
    squares: Number  # the mean of <m, phi>^2 over plays of q_t


class Way(NamedTuple):
    """From mu to a share of n m - Theta: the length of it that is gone, and 1/beta."""

    rounds: Number
    share: Number
    length: Number
    eta: Number


class Going(NamedTuple):
    """Of a play: how far the last step has moved it, and how far <mu, z> is off its goal, before anything is gone."""

    moved: Number
    off: Number


class Seen(NamedTuple):
    """What a way does to plays: y is the step without it, v the whole way; both times sqrt q/beta."""

    own: Number  # sum r y^2
    mixed: Number  # sum r y v
    squares: Number  # sum r v^2
    widest: Number  # max |y|
    farthest: Number  # max |v|


@kernel
def two_products(first: Floats, second: Floats, z: Floats) -> tuple[Number, Number]:
    """Return <first, z> and <second, z>, z being read once."""
    left, right = first[0] * z[0], second[0] * z[0]
    for i in range(1, first.shape[0]):
        left, right = fused(first[i], z[i], left), fused(second[i], z[i], right)
    return left, right


@kernel
def tell(state: Any, work: Any, z: Floats) -> Told:
    """Compute what there is to tell of a play: ``half`` is m, ``vector`` the last step over beta."""
    estimate, guess = two_products(state.theta, work.half, z)
    moved, leant = two_products(work.vector, state.lean, z)
    return Told(estimate, guess, moved, leant)


@kernel
def tell_all(known: Known, state: Any, work: Any) -> None:
    """Write what there is to tell of every play; a GPU has its own."""
    for x in range(state.q.shape[0]):
        for a in range(state.q.shape[1]):
            one = tell(state, work, known.z[x, a])
            work.table[x, a], work.rho[x, a], work.reach[x, a], work.leant[x, a] = one


@kernel
def told(known: Known, state: Any, work: Any, x: int, a: int) -> Told:
    """Return what was told of a play; a GPU has its own."""
    return Told(work.table[x, a], work.rho[x, a], work.reach[x, a], work.leant[x, a])


@kernel
def apart(one: Told, rounds: Number) -> Number:
    """Return <Theta - n m, z>."""
    return fused(0.0 - rounds, one.guess, one.estimate)


@kernel
def set_out(known: Known, state: Any, work: Any, x: int, a: int, way: Way) -> Going:
    """Return what a way makes of a play, and keep it in the place of <mu, z>; a GPU has its own."""
    one = told(known, state, work, x, a)
    off = fused(way.share, apart(one, way.rounds), one.leant)
    work.leant[x, a] = off
    return Going(one.moved, off)


@kernel
def going(known: Known, work: Any, x: int, a: int) -> Going:
    """Return what a way makes of a play; a GPU has its own."""
    return Going(work.reach[x, a], work.leant[x, a])


@kernel
def look_at_all(known: Known, state: Any, work: Any) -> Looked:
    """Return what is known of all plays."""
    rounds, zero = state.counted[0], 0.0 * state.q[0, 0]
    highest, most, mean, before, squares = 1.0 + zero, zero, zero, zero, zero
    for x in range(state.q.shape[0]):
        here, leant, square, least = zero, zero, zero, math.inf + zero
        for a in range(state.q.shape[1]):
            one = told(known, state, work, x, a)
            behind = apart(one, rounds)
            highest = larger(highest, absolute(one.guess))
            least = smaller(least, behind + known.blocked[x, a])
            here, leant = fused(state.q[x, a], behind, here), fused(state.q[x, a], one.leant, leant)
            square = fused(state.q[x, a] * one.guess, one.guess, square)
        most, mean = most - known.g[x] * least, mean - known.g[x] * here
        before, squares = before + known.g[x] * leant, squares + known.g[x] * square
    return Looked(
        highest_of_contexts(highest),
        over_contexts(most),
        over_contexts(mean),
        over_contexts(before),
        over_contexts(squares),
    )


@kernel
def likely_variance(looked: Looked) -> Number:
    """Return the mean of 1 - <m_t, phi>^2 over plays of q_t: losses of these means have no larger variance."""
    return 1.0 - looked.squares / (looked.highest * looked.highest)


@kernel
def look_along(known: Known, state: Any, work: Any, way: Way) -> Seen:
    """Return what a whole way does, and write the means of the step and of the way in contexts, weighted by q^(3/2)."""
    zero = 0.0 * state.q[0, 0]
    own, mixed, squares, widest, farthest = zero, zero, zero, zero, zero
    for x in range(state.q.shape[0]):
        weights, first, second = zero, zero, zero
        for a in range(state.q.shape[1]):
            one = set_out(known, state, work, x, a, way)
            weight = state.q[x, a] * state.roots[x, a]
            weights, first = weights + weight, fused(weight, one.moved, first)
            second = fused(weight, one.off, second)
        share = 1.0 / where(weights > 0.0, weights, 1.0)  # there is no plan before the first
        first, second = first * share, second * share
        work.means[x, 0], work.means[x, 1] = first, second
        here, cross, whole = zero, zero, zero
        for a in range(state.q.shape[1]):
            one, r = going(known, work, x, a), state.roots[x, a]
            y, v = (one.moved - first) * r, (one.off - second) * r  # v without its factor -1/beta
            widest, farthest = larger(widest, absolute(y)), larger(farthest, absolute(v))
            left = r * y
            here, cross, whole = fused(left, y, here), fused(left, v, cross), fused(r * v, v, whole)
        own, mixed, squares = own + known.g[x] * here, mixed - known.g[x] * cross, squares + known.g[x] * whole
    return Seen(
        over_contexts(own),
        way.eta * over_contexts(mixed),
        way.eta * way.eta * over_contexts(squares),
        highest_of_contexts(widest),
        way.eta * highest_of_contexts(farthest),
    )


@kernel
def over(numerator: Number, denominator: Number) -> Number:
    """Return the quotient within [0, 1]; 1 if there is nothing to divide by."""
    some = denominator > 0.0
    return where(some, larger(smaller(numerator / where(some, denominator, 1.0), 1.0), 0.0), 1.0)


@kernel
def length_of(seen: Seen, c: float) -> Number:
    """Return zeta: which part of a way keeps |y| <= c, and lets the squares grow by a share ROOM at most."""
    reach = root(seen.mixed * seen.mixed + ROOM * seen.own * seen.squares) - seen.mixed
    return smaller(over(reach, seen.squares), over(WITHIN * c - seen.widest, seen.farthest))


@kernel
def way_from(known: Known, options: Any, state: Any, work: Any, looked: Looked) -> Way:
    """Write how far mu is off its goal; return the way that it goes, and how far: nowhere where nothing is new."""
    rounds, eta = state.counted[0], 1.0 / state.inverse_rate[0]
    allowed = options.leaning / (1.0 + options.leaning) * state.account[0]
    left, span = allowed - (state.owed[0] + looked.before), looked.most - looked.mean
    share = where(span > 0.0, over(left, span), 0.0)
    for i in range(state.theta.shape[0]):
        work.off[i] = state.lean[i] - share * (rounds * work.half[i] - state.theta[i])
    seen = look_along(known, state, work, Way(rounds, share, 0.0 * eta, eta))
    length = where(state.fresh[0] > 0.0, length_of(seen, options.c), 0.0)
    return Way(rounds, share, length, eta)


@kernel
def lean(state: Any, work: Any, way: Way, looked: Looked) -> None:
    """Let mu go its way, and write the sum Theta + mu."""
    state.owed[0] += way.length * (looked.before - way.share * looked.mean)
    for i in range(state.theta.shape[0]):
        state.lean[i] = state.lean[i] - way.length * work.off[i]
        work.total[i] = state.theta[i] + state.lean[i]
