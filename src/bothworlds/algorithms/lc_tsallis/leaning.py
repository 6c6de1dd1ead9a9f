"""How far plans lean on the regression: from the unbiased sum of losses towards the one it predicts. Kernel text.

Theta has the variance of its least likely plays; n m, what a regression m says of the same n rounds, remembers plays
that were likely once, and forgets. Plans follow Theta + mu_t, mu_t on its way to n m - Theta, and two things are
known of every step on that way (docs/theory.md):

* What leaning can have cost. With p_t the mean feature of q_t it is at most

      E_X max_a <mu_{t+1}, phi(a, X)> - sum_s <mu_{s+1} - mu_s, p_s>,

  affine from 0 to n m - Theta: we lead mu as far as keeps it within a share of what the path has cost otherwise.
* What it does to the step that is taken, y = y' + zeta v: sum r y^2 grows by a share ROOM at most, and |y| <= c.

Plans lean in every PACE-th round, and rest in between: n m - Theta moves little once mu has come there. As long as
only a small part of a way can be gone, less than NEAR, they go on in every round.

What is told of plays stands in tables: features are many, and are read once. A GPU, whose threads have no room for
tables, computes it anew (`bothworlds.simulation.gpu.anew`).
"""

import math
from typing import Any, NamedTuple

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
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.matrix import Four
from bothworlds.theory.schedules import ROOM

WITHIN = 0.999  # of c: how far leaning may take a step, so that rounding does not decide whether it is covered
PACE = 8.0  # plans from one that leans to the next
NEAR = 0.25  # of a way: a plan that has gone less does not rest


class Told(NamedTuple):
    """Of a play: <m, z>, and how far the last step has moved it, over beta; <Theta - n m, z> and <mu, z> to lean."""

    guess: Number
    moved: Number
    behind: Number
    leant: Number


class Looked(NamedTuple):
    """Of all plays: the largest |<m, z>|, at least 1, and the mean of <m, phi>^2 over plays of q_t.

    The rest decides how far leaning may lead.
    """

    highest: Number
    squares: Number
    most: Number  # E_X max_a <n m - Theta, phi>
    mean: Number  # <n m - Theta, p_t>
    before: Number  # <mu, p_t>


class Way(NamedTuple):
    """From mu to a share of n m - Theta: how much of it is gone, what all of it would add to ``owed``, and 1/beta.

    ``taken`` is false if no plan leans, neither this one nor any beside it.
    """

    length: Number
    owes: Number
    eta: Number
    taken: bool


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
def products_of_two(first: Floats, second: Floats, one: Floats, other: Floats) -> Four:
    """Return the products of two vectors with one feature, and with another; everything is read once."""
    left, right = first[0] * one[0], second[0] * one[0]
    other_left, other_right = first[0] * other[0], second[0] * other[0]
    for i in range(1, first.shape[0]):
        left, right = fused(first[i], one[i], left), fused(second[i], one[i], right)
        other_left, other_right = fused(first[i], other[i], other_left), fused(second[i], other[i], other_right)
    return left, right, other_left, other_right


@kernel
def resting(state: Any) -> Any:
    """Return where plans do not lean: where nothing is new, and where it is not their turn and they need not hurry."""
    return either(state.fresh[0] <= 0.0, both(state.beat[0] > 0.0, state.gone[0] >= NEAR))


@kernel
def all_rest(rests: Any) -> bool:
    """Tell whether no plan leans; a GPU, whose threads go together, has its own answer."""
    return every(rests)


@kernel
def tell_two(state: Any, work: Any, z: Floats, other: Floats) -> tuple[Told, Told]:
    """Compute what there is to tell of two plays that may lean, everything being read once.

    ``half`` is m, ``vector`` the step over beta, ``total`` Theta - n m.
    """
    m, step, total, mu = work.half, work.vector, work.total, state.lean
    guess, moved, behind, leant = m[0] * z[0], step[0] * z[0], total[0] * z[0], mu[0] * z[0]
    guess2, moved2, behind2, leant2 = m[0] * other[0], step[0] * other[0], total[0] * other[0], mu[0] * other[0]
    for i in range(1, m.shape[0]):
        guess, moved = fused(m[i], z[i], guess), fused(step[i], z[i], moved)
        behind, leant = fused(total[i], z[i], behind), fused(mu[i], z[i], leant)
        guess2, moved2 = fused(m[i], other[i], guess2), fused(step[i], other[i], moved2)
        behind2, leant2 = fused(total[i], other[i], behind2), fused(mu[i], other[i], leant2)
    return Told(guess, moved, behind, leant), Told(guess2, moved2, behind2, leant2)


@kernel
def tell_all(known: Known, state: Any, work: Any, leans: bool) -> None:
    """Write what there is to tell of every play, of two at a time; a GPU has its own."""
    z, guess, moved = flat_of(known.z), flat_of(work.rho), flat_of(work.reach)
    behind, leant = flat_of(work.table), flat_of(work.leant)
    for a in range(0, z.shape[0], 2):
        b = min(a + 1, z.shape[0] - 1)  # the last one twice where they are odd
        if leans:
            one, other = tell_two(state, work, z[a], z[b])
            behind[a], leant[a], behind[b], leant[b] = one.behind, one.leant, other.behind, other.leant
            guess[a], moved[a], guess[b], moved[b] = one.guess, one.moved, other.guess, other.moved
        else:
            guess[a], moved[a], guess[b], moved[b] = products_of_two(work.half, work.vector, z[a], z[b])


@kernel
def told(known: Known, state: Any, work: Any, x: int, a: int, leans: bool) -> Told:
    """Return what was told of a play; a GPU has its own."""
    return Told(work.rho[x, a], work.reach[x, a], work.table[x, a], work.leant[x, a])


@kernel
def look_at_all(known: Known, state: Any, work: Any, leans: bool) -> Looked:
    """Return what is known of all plays, and write the means of each context, weighted by q^(3/2).

    They are those of how far the step has moved plays, and to lean, of <Theta - n m, z> and <mu, z>.
    """
    zero = 0.0 * state.q[0, 0]
    highest, squares, most, mean, before = 1.0 + zero, zero, zero, zero, zero
    for x in range(state.q.shape[0]):
        square, here, leant, least = zero, zero, zero, math.inf + zero
        weights, moved, first, second = zero, zero, zero, zero
        for a in range(state.q.shape[1]):
            one, q = told(known, state, work, x, a, leans), state.q[x, a]
            weight = q * state.roots[x, a]
            highest = larger(highest, absolute(one.guess))
            square = fused(q * one.guess, one.guess, square)
            weights, moved = weights + weight, fused(weight, one.moved, moved)
            if leans:
                least = smaller(least, one.behind + known.blocked[x, a])
                here, leant = fused(q, one.behind, here), fused(q, one.leant, leant)
                first, second = fused(weight, one.behind, first), fused(weight, one.leant, second)
        squares = squares + known.g[x] * square
        part = 1.0 / where(weights > 0.0, weights, 1.0)  # there is no plan before the first
        work.means[x, 0] = moved * part
        if leans:
            most, mean, before = most - known.g[x] * least, mean - known.g[x] * here, before + known.g[x] * leant
            work.means[x, 1], work.means[x, 2] = first * part, second * part
    return Looked(
        highest_of_contexts(highest),
        over_contexts(squares),
        over_contexts(most),
        over_contexts(mean),
        over_contexts(before),
    )


@kernel
def set_out(known: Known, work: Any, x: int, a: int, share: Number) -> Going:
    """Return what a way makes of a play, and keep it in the place of <mu, z>; a GPU has its own."""
    off = fused(share, work.table[x, a], work.leant[x, a])
    work.leant[x, a] = off
    return Going(work.reach[x, a], off)


@kernel
def going(known: Known, work: Any, x: int, a: int) -> Going:
    """Return what a way makes of a play; a GPU has its own."""
    return Going(work.reach[x, a], work.leant[x, a])


@kernel
def likely_variance(looked: Looked) -> Number:
    """Return the mean of 1 - <m_t, phi>^2 over plays of q_t: losses of these means have no larger variance."""
    return 1.0 - looked.squares / (looked.highest * looked.highest)


@kernel
def look_along(known: Known, state: Any, work: Any, share: Number, eta: Number) -> Seen:
    """Set out: write how far mu is off its goal, of every play and in the mean; return what a whole way does."""
    zero = 0.0 * state.q[0, 0]
    own, mixed, squares, widest, farthest = zero, zero, zero, zero, zero
    for x in range(state.q.shape[0]):
        middle, off = value(work.means[x, 0]), fused(share, work.means[x, 1], work.means[x, 2])
        work.means[x, 1] = off
        here, cross, whole = zero, zero, zero
        for a in range(state.q.shape[1]):
            one, r = set_out(known, work, x, a, share), state.roots[x, a]
            y, v = (one.moved - middle) * r, (one.off - off) * r  # v without its factor -1/beta
            widest, farthest = larger(widest, absolute(y)), larger(farthest, absolute(v))
            left = r * y
            here, cross, whole = fused(left, y, here), fused(left, v, cross), fused(r * v, v, whole)
        own, mixed, squares = own + known.g[x] * here, mixed - known.g[x] * cross, squares + known.g[x] * whole
    return Seen(
        over_contexts(own),
        eta * over_contexts(mixed),
        eta * eta * over_contexts(squares),
        highest_of_contexts(widest),
        eta * highest_of_contexts(farthest),
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
def share_of(options: Any, state: Any, looked: Looked) -> Number:
    """Return which share of n m - Theta leaning may lead to, within what it may cost."""
    allowed = options.leaning / (1.0 + options.leaning) * state.account[0]
    left, span = allowed - (state.owed[0] + looked.before), looked.most - looked.mean
    return where(span > 0.0, over(left, span), 0.0)


@kernel
def way_from(known: Known, options: Any, state: Any, work: Any, looked: Looked, rests: Any, leans: bool) -> Way:
    """Write how far mu is off its goal; return the way that it goes, and how far: nowhere where it rests."""
    eta = 1.0 / state.inverse_rate[0]
    zero = 0.0 * eta
    if not leans:
        return Way(zero, zero, eta, leans)
    share = share_of(options, state, looked)
    for i in range(state.theta.shape[0]):
        work.off[i] = fused(share, work.total[i], state.lean[i])
    seen = look_along(known, state, work, share, eta)
    length = where(rests, 0.0, length_of(seen, options.c))
    state.gone[0] = where(rests, state.gone[0], length)
    return Way(length, looked.before - share * looked.mean, eta, leans)


@kernel
def lean(state: Any, work: Any, way: Way) -> None:
    """Let mu go its way, and write the sum Theta + mu."""
    turned = where(state.beat[0] + 1.0 < PACE, state.beat[0] + 1.0, 0.0)
    state.beat[0] = where(state.fresh[0] > 0.0, turned, state.beat[0])
    if way.taken:
        state.owed[0] += way.length * way.owes
        for i in range(state.theta.shape[0]):
            state.lean[i] = state.lean[i] - way.length * work.off[i]
    for i in range(state.theta.shape[0]):
        work.total[i] = state.theta[i] + state.lean[i]
