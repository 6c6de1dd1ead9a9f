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
from typing import NamedTuple

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
    value,
    where,
)
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.matrix import (
    apply_inverse,
    product,
    squared_length,
    write_whole_inverse,
)
from bothworlds.kernels.reach import Case, Weighed

POINTS = 3.0  # plays that an estimate looks at, early on
MORE_POINTS = 12.0  # and later, where prices are paid for long
LIKELY = 0.4  # of what the largest residuals would cost: what it counts early on, as plays pay for those they have

Three = tuple[Number, Number, Number]


class Gone(NamedTuple):
    """How far a play goes in a context: sum of q^(3/2) d^2, mean, largest and least d, largest |d| sqrt q."""

    squares: Number
    mean: Number
    most: Number
    least: Number
    step: Number


@kernel
def go_on(so_far: Gone, moved: Number, q: Number, r: Number) -> Gone:
    """Return how far a play goes in a context with one more arm, which it moves by so much if it is ever played."""
    d = where(q > 0.0, moved, 0.0)
    y = d * r
    return Gone(
        fused(r * y, y, so_far.squares),
        fused(q, d, so_far.mean),
        larger(so_far.most, d),
        smaller(so_far.least, d),
        larger(so_far.step, absolute(y)),
    )


@kernel
def cost_of_context(case: Case, gone: Gone, rho: Number) -> Number:
    """Return k(x) of a play, in the context where it goes that far."""
    limit = case.c * case.beta
    far, reach = rho * larger(gone.mean - gone.least, gone.most - gone.mean), rho * gone.step
    near = rho * rho * gone.squares / larger(case.beta - reach, (1.0 - 2.0 * case.c) * case.beta)
    return where(reach <= 2.0 * limit, smaller(near, far), far)


@kernel
def unless_covered(case: Case, rho: Number, step: Number, cost: Number) -> Number:
    """Return what a play costs in all contexts, 0 if it is covered in each of them."""
    return where(rho * highest_of_contexts(step) <= case.c * case.beta, 0.0, over_contexts(cost))


@kernel
def cost_of_play(known: Known, case: Case, direction: Floats, rho: Number) -> Number:
    """Return sum_x g k(x) of the play with the direction Sigma_t^-1 phi_t if it is not covered, else 0."""
    zero = 0.0 * case.q[0, 0]
    total, step = zero, zero
    for x in range(case.q.shape[0]):
        middle, gone = product(direction, case.centre[x]), Gone(zero, zero, zero, zero, zero)
        for a in range(case.q.shape[1]):
            q, r = case.q[x, a], case.r[x, a]
            gone = go_on(gone, product(direction, known.z[x, a]) - middle, q, r)
        step, total = larger(step, gone.step), total + known.g[x] * cost_of_context(case, gone, rho)
    return unless_covered(case, rho, step, total)


@kernel
def three_products(first: Floats, second: Floats, third: Floats, z: Floats) -> Three:
    """Return the products of three vectors with another one, which is read once."""
    one, two, three = first[0] * z[0], second[0] * z[0], third[0] * z[0]
    for i in range(1, first.shape[0]):
        one, two, three = fused(first[i], z[i], one), fused(second[i], z[i], two), fused(third[i], z[i], three)
    return one, two, three


@kernel
def costs_of_three(known: Known, case: Case, first: Number, second: Number, third: Number) -> Three:
    """Return the same of the three plays whose directions are at hand, with these rho: features are read once."""
    zero = 0.0 * case.q[0, 0]
    d0, d1, d2 = case.play[2], case.play[3], case.play[4]
    total0, total1, total2, step0, step1, step2 = zero, zero, zero, zero, zero, zero
    for x in range(case.q.shape[0]):
        nowhere = Gone(zero, zero, zero, zero, zero)
        gone0, gone1, gone2 = nowhere, nowhere, nowhere
        m0, m1, m2 = three_products(d0, d1, d2, case.centre[x])
        for a in range(case.q.shape[1]):
            q, r, moved = case.q[x, a], case.r[x, a], three_products(d0, d1, d2, known.z[x, a])
            gone0 = go_on(gone0, moved[0] - m0, q, r)
            gone1 = go_on(gone1, moved[1] - m1, q, r)
            gone2 = go_on(gone2, moved[2] - m2, q, r)
        step0, step1, step2 = larger(step0, gone0.step), larger(step1, gone1.step), larger(step2, gone2.step)
        total0 = total0 + known.g[x] * cost_of_context(case, gone0, first)
        total1 = total1 + known.g[x] * cost_of_context(case, gone1, second)
        total2 = total2 + known.g[x] * cost_of_context(case, gone2, third)
    return (
        unless_covered(case, first, step0, total0),
        unless_covered(case, second, step1, total1),
        unless_covered(case, third, step2, total2),
    )


@kernel
def write_direction(known: Known, case: Case, x: Place, a: Place, out: Floats) -> None:
    """Write Sigma_t^-1 phi of the play of arm a in context x; lanes may have their own."""
    z, half = case.play[0], case.play[1]
    for i in range(z.shape[0]):
        z[i] = feature(known.z, x, a, i)
    apply_inverse(case.inverse, z, half, out)


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
def find_chances(known: Known, case: Case, weighed: Weighed, gamma: Number, by_leverages: bool) -> Number:
    """Write g pi times the length of the plays that leverages do not show to be covered, else 0; return the sum.

    The length is rho sqrt(lev), or the one that was found.
    """
    limit = case.c * case.beta * (case.c * case.beta)
    total = 0.0 * case.q[0, 0]
    for x in range(case.q.shape[0]):
        for a in range(case.q.shape[1]):
            reach = value(case.reach[x, a])
            covered = reach * weighed.widest <= limit
            if every(covered):
                case.chance[x, a] = 0.0
                continue
            length = root(reach) if by_leverages else case.length[x, a]
            share = (1.0 - gamma) * case.q[x, a] + gamma * known.e[x, a]
            case.chance[x, a] = known.g[x] * share * where(covered, 0.0, length)
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
def three_at(case: Case, contexts: int, u: Number, v: Number, w: Number) -> tuple[Place, ...]:
    """Return the plays at which it passes u, v and w, context and arm of each; chances are read once."""
    x0, a0, x1, a1, x2, a2, passed = 0, 0, 0, 0, 0, 0, 0.0 * u
    for x in range(contexts):
        for a in range(case.chance.shape[1]):
            chance = at(case.chance, x, a)
            some = chance > 0.0
            to0, to1, to2 = both(some, passed <= u), both(some, passed <= v), both(some, passed <= w)
            x0, a0 = where(to0, x, x0), where(to0, a, a0)
            x1, a1 = where(to1, x, x1), where(to1, a, a1)
            x2, a2 = where(to2, x, x2), where(to2, a, a2)
            passed = passed + chance
    return x0, a0, x1, a1, x2, a2


@kernel
def weight_of(known: Known, case: Case, x: Place, a: Place, gamma: Number, each: Number) -> Number:
    """Return g pi of a play that was drawn, over its chance, each such play standing for so much of their sum."""
    shares = matrix_of(known.g, 0, known.g.shape[0], 1)
    weight = at(shares, x, 0) * ((1.0 - gamma) * at(case.q, x, a) + gamma * at(known.e, x, a))
    chance = at(case.chance, x, a)
    return where(chance > 0.0, each / where(chance > 0.0, chance, 1.0), 0.0) * weight


@kernel
def price(known: Known, case: Case, weighed: Weighed, gamma: Number, most: Number) -> Number:
    """Return what a rate that has been weighed is likely to cost; infinity where Sigma_t is singular.

    It is estimated from a few plays, evenly spaced in the sum of the chances, three at a time. Any positive length will
    do for that, so those of the rate where the search begins are taken for all. Any estimate above ``most`` may be
    returned for another.
    """
    early = case.beta < case.b
    points, likely = where(early, POINTS, MORE_POINTS), where(early, LIKELY, 1.0)
    each = find_chances(known, case, weighed, gamma, False) / points
    total = where(weighed.sound, 2.0 * gamma, math.inf)
    if every(each <= 0.0):
        return total
    number = 0.5
    while not every(number > points):
        places = three_at(case, count_of(known.g), number * each, (number + 1.0) * each, (number + 2.0) * each)
        x0, a0, x1, a1, x2, a2 = places
        write_direction(known, case, x0, a0, case.play[2])
        write_direction(known, case, x1, a1, case.play[3])
        write_direction(known, case, x2, a2, case.play[4])
        costs = costs_of_three(known, case, at(case.rho, x0, a0), at(case.rho, x1, a1), at(case.rho, x2, a2))
        count = where(number < points, likely, 0.0)
        total = total + count * (weight_of(known, case, x0, a0, gamma, each) * costs[0])
        count = where(number + 1.0 < points, likely, 0.0)
        total = total + count * (weight_of(known, case, x1, a1, gamma, each) * costs[1])
        count = where(number + 2.0 < points, likely, 0.0)
        total = total + count * (weight_of(known, case, x2, a2, gamma, each) * costs[2])
        if every(total > most):
            break
        number = number + 3.0
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
    at hand.
    """
    total = find_chances(known, case, weighed, gamma, True)
    x, a = play_at(case, count_of(known.g), u * total)
    far = root(at(case.reach, x, a))
    drawn = where(total > 0.0, total / where(far > 0.0, far, 1.0), 0.0)
    write_direction(known, case, x, a, case.play[2])
    return drawn * cost_of_play(known, case, case.play[2], at(case.rho, x, a)), total * width_of(known, case)
