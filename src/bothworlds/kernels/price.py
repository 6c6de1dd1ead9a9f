"""What an exploration rate costs: its own price, and that of the plays it leaves uncovered. Kernel text.

Write beta = 1/eta, d(a|x) = <Sigma_t^-1 phi_t, psi(a,x)> for a play phi_t, where psi is the feature less the mean of
its context weighted by q^(3/2), and rho for the largest residual that the play can have. The play is *covered* if

    rho |d(a|x)| sqrt(q(a|x)) <= c beta                                for all arms and contexts.

A covered play is paid for when it is made, by its own stability. One that is not may cost any amount, but rarely. So
the price of a rate is

    2 gamma + sum over plays that are not covered of g pi sum_x g(x) k(x),
    k = rho max{mean d - min d, max d - mean d}       the mean being that of q, or if it is less
        rho^2 sum_a q^(3/2) d^2/(beta - rho m)        in contexts with rho m <= 2 c beta, m = max_a |d| sqrt q,

and k bounds the stability of every residual up to rho (docs/theory.md). Leverages decide most plays: by Cauchy-Schwarz
a play is covered if rho^2 lev max[q lev(psi)] <= (c beta)^2.

To choose a rate, a share of its price is estimated from a few plays. *Early*, below beta = b, plays that are not
covered are paid for when they are made as well. Later a plan charges for them beforehand, one for all: it draws a play
with chances in proportion to g pi rho sqrt(lev), and charges what this one costs, over its chance. In the mean over
draws that is what they all cost, and it is never more than their sum of g pi rho sqrt(lev) times the width
sum_x g [max_a sqrt(lev(psi)) + sqrt(sum_a q lev(psi))].
"""

import math
from typing import Any, NamedTuple

from bothworlds.kernels.arithmetic import (
    Number,
    Place,
    absolute,
    at,
    both,
    count_of,
    every,
    feature,
    fused,
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
from bothworlds.kernels.matrix import (
    apply_half,
    apply_inverse,
    cholesky,
    invert_mixture,
    leverage_beside,
    product,
    squared_length,
    write_whole_inverse,
)

POINTS = 3.0  # plays that an estimate looks at, early on
MORE_POINTS = 12.0  # and later, where prices are paid for long
LIKELY = 0.4  # of what the largest residuals would cost: what it counts early on, as plays pay for those they have
ROUNDING = 1e-9  # of a leverage: what a difference of leverages may be wrong by


class Case(NamedTuple):
    """What a price is computed from, and the space for it.

    ``sigma`` is Sigma(q), r the roots of q, ``rho`` the largest residual of every play, ``centre`` the weighted mean
    feature of each context. It is early as long as beta is below b.
    """

    sigma: Floats
    q: Floats
    r: Floats
    rho: Floats
    beta: Number
    b: float
    c: float
    mixed: Floats
    inverse: Floats
    centre: Floats
    reach: Floats
    apart: Floats
    chance: Floats
    length: Floats  # of each play: chances are g pi times this
    middle: Floats  # a vector of a block of contexts
    play: Floats  # three vectors, of one play
    enough: Floats  # a covariance: at those that are nowhere less no play can cost too much


class Weighed(NamedTuple):
    """What leverages say of a rate: where Sigma_t is regular, and the largest rho^2 lev and q lev(psi).

    And ``dearest``, 4 max sqrt(lev) sum_x g max_a sqrt(lev): what a play can cost whatever q and m_t are.
    """

    sound: Any
    farthest: Number
    widest: Number
    dearest: Number


class Extent(NamedTuple):
    """How far the plays of a context go: max lev, max rho^2 lev, max q lev(psi)."""

    most: Number
    reach: Number
    wide: Number


@kernel
def find_centres(known: Known, case: Case) -> None:
    """Write the mean feature of every context, arms weighted by q^(3/2); ``chance`` has these weights meanwhile.

    A GPU has its own.
    """
    for x in range(case.q.shape[0]):
        weights, total = case.chance[x], 0.0 * case.q[x, 0]
        for a in range(case.q.shape[1]):
            weights[a] = case.q[x, a] * case.r[x, a]
            total = total + weights[a]
        share = 1.0 / total
        for i in range(case.centre.shape[1]):
            mean = 0.0 * total
            for a in range(case.q.shape[1]):
                mean = fused(weights[a], known.z[x, a, i], mean)
            case.centre[x, i] = mean * share


@kernel
def has_stayed(case: Case) -> Any:
    """Return where Sigma_t is nowhere less than what is enough for no play to cost too much; uses up ``mixed``."""
    for i in range(case.mixed.shape[0]):
        for j in range(i + 1):
            case.mixed[i, j] = case.mixed[i, j] - case.enough[i, j]
    return cholesky(case.mixed, case.mixed)


@kernel
def with_play(case: Case, x: int, a: int, lev: Number, apart: Number, extent: Extent) -> Extent:
    """Write the reach of a play, rho^2 lev, and lev(psi); return the extent of its context with it."""
    case.reach[x, a] = case.rho[x, a] * case.rho[x, a] * lev
    case.apart[x, a] = apart
    return Extent(
        larger(extent.most, lev),
        larger(extent.reach, case.reach[x, a]),
        larger(extent.wide, case.q[x, a] * apart),
    )


@kernel
def distance(lev: Number, cross: Number, own: Number) -> Number:
    """Return lev(psi) and what it may be wrong by, from that of phi, of the centre, and the product of the two."""
    return larger(lev - 2.0 * cross + own, 0.0) + ROUNDING * (lev + own)


@kernel
def look_in_turn(known: Known, case: Case, x: int, own: Number) -> Extent:
    """Write the reach of the plays of a context one after the other, and return its extent."""
    zero = 0.0 * case.q[0, 0]
    extent = Extent(zero, zero, zero)
    for a in range(case.q.shape[1]):
        lev, cross = leverage_beside(case.inverse, known.z[x, a], case.middle)
        extent = with_play(case, x, a, lev, distance(lev, cross, own), extent)
    return extent


@kernel
def look_at(known: Known, case: Case, x: int, own: Number) -> Extent:
    """Write the reach of every play of a context, and return its extent; a GPU has its own.

    ``middle`` is G times its centre, ``own`` that one's square.
    """
    return look_in_turn(known, case, x, own)


@kernel
def look(known: Known, case: Case, sound: Any) -> Weighed:
    """Write rho^2 lev and lev(psi) of every play; return what leverages say of the rate whose factor is at hand."""
    farthest = 0.0 * case.q[0, 0]
    widest, highest, total = farthest, farthest, farthest
    for x in range(case.q.shape[0]):
        apply_half(case.inverse, case.centre[x], case.middle)
        extent = look_at(known, case, x, product(case.middle, case.middle))
        farthest, widest = larger(farthest, extent.reach), larger(widest, extent.wide)
        highest = larger(highest, extent.most)
        total = total + known.g[x] * root(extent.most)
    dearest = 4.0 * root(highest_of_contexts(highest)) * over_contexts(total)
    farthest, widest = highest_of_contexts(farthest), highest_of_contexts(widest)
    return Weighed(sound, farthest, widest, dearest)


@kernel
def weigh(known: Known, case: Case, gamma: Number) -> Weighed:
    """Write the factor of Sigma_t^-1 and the reach of every play; return what they say of the rate."""
    return look(known, case, invert_mixture(case.sigma, gamma, case.mixed, case.inverse))


@kernel
def excess(case: Case, weighed: Weighed) -> Number:
    """Return how far plays may go beyond the condition by their leverages, squared: at most 1 if all are covered."""
    limit = case.c * case.beta
    return weighed.farthest * weighed.widest / (limit * limit)


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
            y = d * r
            squares, mean = fused(r * y, y, squares), fused(q, d, mean)
            most, least = larger(most, d), smaller(least, d)
            step = larger(step, absolute(y))
        worst = larger(worst, step)
        far, reach = rho * larger(mean - least, most - mean), rho * step
        near = rho * rho * squares / larger(case.beta - reach, (1.0 - 2.0 * case.c) * case.beta)
        k = where(reach <= 2.0 * limit, smaller(near, far), far)
        total = total + known.g[x] * k
    return where(rho * highest_of_contexts(worst) <= limit, 0.0, over_contexts(total))


@kernel
def cost_at(known: Known, case: Case, x: Place, a: Place) -> Number:
    """Return the same for the play of arm a in context x; lanes may have their own."""
    z, direction = case.play[0], case.play[1]
    for i in range(z.shape[0]):
        z[i] = feature(known.z, x, a, i)
    apply_inverse(case.inverse, z, case.play[2], direction)
    return cost_of_play(known, case, direction, at(case.rho, x, a))


@kernel
def squared_lengths(matrix: Floats, z: Floats, out: Floats) -> None:
    """Write |M z|^2 of every arm of a context; a GPU has its own."""
    for a in range(z.shape[0]):
        out[a] = squared_length(matrix, z[a])


@kernel
def find_lengths(known: Known, case: Case) -> None:
    """Write rho |Sigma^-1 phi| of every play, for the rate whose factor is at hand; uses up ``mixed``.

    In coordinates where Sigma(e) is the identity that length is the root mean square of d when e is played.
    """
    write_whole_inverse(case.inverse, case.mixed)
    for x in range(case.q.shape[0]):
        squared_lengths(case.mixed, known.z[x], case.length[x])
        for a in range(case.q.shape[1]):
            case.length[x, a] = case.rho[x, a] * root(case.length[x, a])


@kernel
def find_chances(known: Known, case: Case, weighed: Weighed, gamma: Number) -> Number:
    """Write g pi times the length of the plays that leverages do not show to be covered, else 0; return the sum."""
    limit = case.c * case.beta * (case.c * case.beta)
    total = 0.0 * case.q[0, 0]
    for x in range(case.q.shape[0]):
        for a in range(case.q.shape[1]):
            share = (1.0 - gamma) * case.q[x, a] + gamma * known.e[x, a]
            open_to = where(case.reach[x, a] * weighed.widest <= limit, 0.0, case.length[x, a])
            case.chance[x, a] = known.g[x] * share * open_to
            total = total + case.chance[x, a]
    return over_contexts(total)


@kernel
def play_at(case: Case, contexts: int, u: Number) -> tuple[Place, Place]:
    """Return the play at which the sum of the chances passes u."""
    x_found, a_found, passed = 0, 0, 0.0 * u
    for x in range(contexts):
        for a in range(case.chance.shape[1]):
            chance = at(case.chance, x, a)
            reached = both(chance > 0.0, passed <= u)
            x_found, a_found = where(reached, x, x_found), where(reached, a, a_found)
            passed = passed + chance
    return x_found, a_found


@kernel
def price(known: Known, case: Case, weighed: Weighed, gamma: Number, most: Number) -> Number:
    """Return what a rate that has been weighed is likely to cost; infinity where Sigma_t is singular.

    It is estimated from a few plays, evenly spaced in the sum of the chances. Any positive length will do for that, so
    those of the rate where the search begins are taken for all. Any estimate above ``most`` may be returned for
    another.
    """
    early = case.beta < case.b
    points, likely = where(early, POINTS, MORE_POINTS), where(early, LIKELY, 1.0)
    each = find_chances(known, case, weighed, gamma) / points
    shares = matrix_of(known.g, 0, known.g.shape[0], 1)
    total = where(weighed.sound, 2.0 * gamma, math.inf)
    if every(each <= 0.0):
        return total
    number = 0.5
    while not every(number > points):
        x, a = play_at(case, count_of(known.g), number * each)
        weight = at(shares, x, 0) * ((1.0 - gamma) * at(case.q, x, a) + gamma * at(known.e, x, a))
        chance = at(case.chance, x, a)
        drawn = where(chance > 0.0, each / where(chance > 0.0, chance, 1.0), 0.0)
        total = total + where(number < points, likely, 0.0) * (drawn * weight * cost_at(known, case, x, a))
        if every(total > most):
            break
        number = number + 1.0
    return total


@kernel
def width_of(known: Known, case: Case) -> Number:
    """Return sum_x g [max_a sqrt(lev(psi)) + sqrt(sum_a q lev(psi))]."""
    width = 0.0 * case.q[0, 0]
    for x in range(case.q.shape[0]):
        far, mean = 0.0 * case.q[x, 0], 0.0 * case.q[x, 0]
        for a in range(case.q.shape[1]):
            far = larger(far, where(case.q[x, a] > 0.0, case.apart[x, a], 0.0))
            mean = fused(case.q[x, a], case.apart[x, a], mean)
        width = width + known.g[x] * (root(far) + root(mean))
    return over_contexts(width)


@kernel
def charge(known: Known, case: Case, weighed: Weighed, gamma: Number, u: Number) -> tuple[Number, Number]:
    """Return the cost of the play that u draws, over its chance, and what that is at most whatever u is.

    In the mean over u, uniform on [0, 1), it is what all plays cost that are not covered, for the rate whose factor is
    at hand. Their lengths are rho sqrt(lev) now.
    """
    for x in range(case.q.shape[0]):
        for a in range(case.q.shape[1]):
            case.length[x, a] = root(case.reach[x, a])
    total = find_chances(known, case, weighed, gamma)
    x, a = play_at(case, count_of(known.g), u * total)
    far = root(at(case.reach, x, a))
    drawn = where(total > 0.0, total / where(far > 0.0, far, 1.0), 0.0)
    return drawn * cost_at(known, case, x, a), total * width_of(known, case)
