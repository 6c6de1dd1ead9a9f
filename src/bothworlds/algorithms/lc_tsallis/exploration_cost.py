"""Cost of an exploration rate: its own price, and that of the plays it leaves uncovered. Kernel functions.

Write beta = 1/eta, d(a|x) = <Sigma_t^-1 phi_t, psi(a,x)> for a play phi_t, where psi is the feature less the mean of
its context weighted by q^(3/2), and rho for the largest residual that the play can have. The play is *covered* if

    rho |d(a|x)| sqrt(q(a|x)) <= c beta                                for all arms and contexts.

A covered play is paid for when it is made, by its own stability. An uncovered one may cost any amount, but rarely. So
the price of a rate is

    2 gamma + sum over uncovered plays of g pi sum_x g(x) k(x),
    k = rho max{mean d - min d, max d - mean d}       the mean under q, or if it is less
        rho^2 sum_a q^(3/2) d^2/(beta - rho m)        in contexts with rho m <= 2 c beta, m = max_a |d| sqrt q,

and k bounds the stability of every residual up to rho (research/theory.md). Leverages decide most plays: by
Cauchy-Schwarz a play is covered if rho^2 lev max[q lev(psi)] <= (c beta)^2.

To choose a rate, its price is estimated from a few plays. *Early*, below beta = b, uncovered plays are also paid for
when they are made. Later a plan charges for all of them beforehand: it draws one play with probability proportional to
g pi rho sqrt(lev), and charges its cost divided by that probability. The expected charge is the cost of all uncovered
plays, and no charge exceeds their sum of g pi rho sqrt(lev) times the width
sum_x g [max_a sqrt(lev(psi)) + sqrt(sum_a q lev(psi))].
"""

import math
from typing import NamedTuple

from bothworlds.algorithms.lc_tsallis.leverage_bounds import ExplorationCase, LeverageBounds
from bothworlds.arrays import Floats
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
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.linalg import (
    apply_inverse,
    product,
    squared_length,
    write_inverse,
)

POINTS = 3.0  # plays in an estimate while beta < b
MORE_POINTS = 12.0  # and later, where prices are paid over many rounds
LIKELY = 0.4  # while beta < b: factor on the cost of the largest residuals, since plays pay for actual ones

Three = tuple[Number, Number, Number]


class PlayMove(NamedTuple):
    """How far a play moves a context: sum of q^(3/2) d^2, mean, largest and smallest d, largest |d| sqrt q."""

    squares: Number
    mean: Number
    most: Number
    least: Number
    step: Number


@kernel
def add_arm(move: PlayMove, shift: Number, q: Number, r: Number) -> PlayMove:
    """Add an arm, which the play moves by ``shift``, to the move of a context; arms with q = 0 do not count."""
    d = where(q > 0.0, shift, 0.0)
    y = d * r
    return PlayMove(
        fused(r * y, y, move.squares),
        fused(q, d, move.mean),
        larger(move.most, d),
        smaller(move.least, d),
        larger(move.step, absolute(y)),
    )


@kernel
def cost_of_context(case: ExplorationCase, move: PlayMove, rho: Number) -> Number:
    """Return k(x) of a play, from its move of the context."""
    limit = case.c * case.beta
    far, reach = rho * larger(move.mean - move.least, move.most - move.mean), rho * move.step
    near = rho * rho * move.squares / larger(case.beta - reach, (1.0 - 2.0 * case.c) * case.beta)
    return where(reach <= 2.0 * limit, smaller(near, far), far)


@kernel
def unless_covered(case: ExplorationCase, rho: Number, step: Number, cost: Number) -> Number:
    """Return the cost of a play in all contexts, 0 if it is covered in each of them."""
    return where(rho * highest_of_contexts(step) <= case.c * case.beta, 0.0, over_contexts(cost))


@kernel
def cost_of_play(known: Known, case: ExplorationCase, direction: Floats, rho: Number) -> Number:
    """Return sum_x g k(x) of the play with the direction Sigma_t^-1 phi_t if it is not covered, else 0."""
    zero = 0.0 * case.q[0, 0]
    total, step = zero, zero
    for x in range(case.q.shape[0]):
        middle, move = product(direction, case.centre[x]), PlayMove(zero, zero, zero, zero, zero)
        for a in range(case.q.shape[1]):
            q, r = case.q[x, a], case.r[x, a]
            move = add_arm(move, product(direction, known.z[x, a]) - middle, q, r)
        step, total = larger(step, move.step), total + known.g[x] * cost_of_context(case, move, rho)
    return unless_covered(case, rho, step, total)


@kernel
def three_products(first: Floats, second: Floats, third: Floats, z: Floats) -> Three:
    """Return the products of three vectors with a fourth, which is read once."""
    one, two, three = first[0] * z[0], second[0] * z[0], third[0] * z[0]
    for i in range(1, first.shape[0]):
        one, two, three = fused(first[i], z[i], one), fused(second[i], z[i], two), fused(third[i], z[i], three)
    return one, two, three


@kernel
def costs_of_three(known: Known, case: ExplorationCase, first: Number, second: Number, third: Number) -> Three:
    """Return `cost_of_play` for three plays, whose directions ``case.play`` holds; each feature is read once."""
    zero = 0.0 * case.q[0, 0]
    d0, d1, d2 = case.play[2], case.play[3], case.play[4]
    total0, total1, total2, step0, step1, step2 = zero, zero, zero, zero, zero, zero
    for x in range(case.q.shape[0]):
        no_move = PlayMove(zero, zero, zero, zero, zero)
        move0, move1, move2 = no_move, no_move, no_move
        m0, m1, m2 = three_products(d0, d1, d2, case.centre[x])
        for a in range(case.q.shape[1]):
            q, r, shift = case.q[x, a], case.r[x, a], three_products(d0, d1, d2, known.z[x, a])
            move0 = add_arm(move0, shift[0] - m0, q, r)
            move1 = add_arm(move1, shift[1] - m1, q, r)
            move2 = add_arm(move2, shift[2] - m2, q, r)
        step0, step1, step2 = larger(step0, move0.step), larger(step1, move1.step), larger(step2, move2.step)
        total0 = total0 + known.g[x] * cost_of_context(case, move0, first)
        total1 = total1 + known.g[x] * cost_of_context(case, move1, second)
        total2 = total2 + known.g[x] * cost_of_context(case, move2, third)
    return (
        unless_covered(case, first, step0, total0),
        unless_covered(case, second, step1, total1),
        unless_covered(case, third, step2, total2),
    )


@kernel
def write_direction(known: Known, case: ExplorationCase, x: Place, a: Place, out: Floats) -> None:
    """Write Sigma_t^-1 phi of the play of arm a in context x."""
    z, half = case.play[0], case.play[1]
    for i in range(z.shape[0]):
        z[i] = feature(known.z, x, a, i)
    apply_inverse(case.inverse, z, half, out)


@kernel
def squared_lengths(matrix: Floats, z: Floats, out: Floats) -> None:
    """Write |M z|^2 of every arm of a context. Replaced on a GPU."""
    for a in range(z.shape[0]):
        out[a] = squared_length(matrix, z[a])


@kernel
def write_lengths(known: Known, case: ExplorationCase) -> None:
    """Write rho |Sigma^-1 phi| of every play, for the rate whose factor ``case.inverse`` holds; overwrites ``mixed``.

    In coordinates where Sigma(e) is the identity that length is the root mean square of d when e is played.
    """
    write_inverse(case.inverse, case.mixed)
    for x in range(case.q.shape[0]):
        squared_lengths(case.mixed, known.z[x], case.length[x])
        for a in range(case.q.shape[1]):
            case.length[x, a] = case.rho[x, a] * root(case.length[x, a])


@kernel
def write_draw_weights(
    known: Known, case: ExplorationCase, bounds: LeverageBounds, gamma: Number, by_leverages: bool
) -> Number:
    """Write g pi times a length for plays that the leverages do not prove covered, else 0; return the sum.

    The length is rho sqrt(lev), or that of `write_lengths`.
    """
    limit = case.c * case.beta * (case.c * case.beta)
    total = 0.0 * case.q[0, 0]
    for x in range(case.q.shape[0]):
        for a in range(case.q.shape[1]):
            reach = value(case.reach[x, a])
            covered = reach * bounds.max_spread <= limit
            if every(covered):
                case.draw_weight[x, a] = 0.0
                continue
            length = root(reach) if by_leverages else case.length[x, a]
            share = (1.0 - gamma) * case.q[x, a] + gamma * known.e[x, a]
            case.draw_weight[x, a] = known.g[x] * share * where(covered, 0.0, length)
            total = total + case.draw_weight[x, a]
    return over_contexts(total)


@kernel
def play_at(case: ExplorationCase, contexts: int, u: Number) -> tuple[Place, Place]:
    """Return the play at which the cumulative sum of the weights exceeds u."""
    x_found, a_found, passed = 0, 0, 0.0 * u
    for x in range(contexts):
        for a in range(case.draw_weight.shape[1]):
            draw_weight = at(case.draw_weight, x, a)
            reached = both(draw_weight > 0.0, passed <= u)
            x_found, a_found = where(reached, x, x_found), where(reached, a, a_found)
            passed = passed + draw_weight
    return x_found, a_found


@kernel
def three_plays_at(case: ExplorationCase, contexts: int, u: Number, v: Number, w: Number) -> tuple[Place, ...]:
    """Return the plays at which the cumulative sum exceeds u, v and w, context and arm of each.

    The weights are read once.
    """
    x0, a0, x1, a1, x2, a2, passed = 0, 0, 0, 0, 0, 0, 0.0 * u
    for x in range(contexts):
        for a in range(case.draw_weight.shape[1]):
            draw_weight = at(case.draw_weight, x, a)
            some = draw_weight > 0.0
            to0, to1, to2 = both(some, passed <= u), both(some, passed <= v), both(some, passed <= w)
            x0, a0 = where(to0, x, x0), where(to0, a, a0)
            x1, a1 = where(to1, x, x1), where(to1, a, a1)
            x2, a2 = where(to2, x, x2), where(to2, a, a2)
            passed = passed + draw_weight
    return x0, a0, x1, a1, x2, a2


@kernel
def importance_of(known: Known, case: ExplorationCase, x: Place, a: Place, gamma: Number, each: Number) -> Number:
    """Return g pi of a drawn play over its weight, times ``each``, the share of the total that the draw represents."""
    shares = matrix_of(known.g, 0, known.g.shape[0], 1)
    weight = at(shares, x, 0) * ((1.0 - gamma) * at(case.q, x, a) + gamma * at(known.e, x, a))
    draw_weight = at(case.draw_weight, x, a)
    return where(draw_weight > 0.0, each / where(draw_weight > 0.0, draw_weight, 1.0), 0.0) * weight


@kernel
def price(known: Known, case: ExplorationCase, bounds: LeverageBounds, gamma: Number, most: Number) -> Number:
    """Return an estimate of the cost of a rate whose leverages are known; infinity where Sigma_t is singular.

    It uses a few plays, evenly spaced in the cumulative sum of the weights, three at a time. Any positive lengths give
    an estimate, so the lengths of the first rate of the search serve for all. A value above ``most`` may be incomplete:
    it only says that the cost exceeds ``most``.
    """
    early = case.beta < case.b
    points, likely = where(early, POINTS, MORE_POINTS), where(early, LIKELY, 1.0)
    each = write_draw_weights(known, case, bounds, gamma, False) / points
    total = where(bounds.regular, 2.0 * gamma, math.inf)
    if every(each <= 0.0):
        return total
    number = 0.5
    while not every(number > points):
        places = three_plays_at(case, count_of(known.g), number * each, (number + 1.0) * each, (number + 2.0) * each)
        x0, a0, x1, a1, x2, a2 = places
        write_direction(known, case, x0, a0, case.play[2])
        write_direction(known, case, x1, a1, case.play[3])
        write_direction(known, case, x2, a2, case.play[4])
        costs = costs_of_three(known, case, at(case.rho, x0, a0), at(case.rho, x1, a1), at(case.rho, x2, a2))
        count = where(number < points, likely, 0.0)
        total = total + count * (importance_of(known, case, x0, a0, gamma, each) * costs[0])
        count = where(number + 1.0 < points, likely, 0.0)
        total = total + count * (importance_of(known, case, x1, a1, gamma, each) * costs[1])
        count = where(number + 2.0 < points, likely, 0.0)
        total = total + count * (importance_of(known, case, x2, a2, gamma, each) * costs[2])
        if every(total > most):
            break
        number = number + 3.0
    return total


@kernel
def width_of(known: Known, case: ExplorationCase) -> Number:
    """Return sum_x g [max_a sqrt(lev(psi)) + sqrt(sum_a q lev(psi))]."""
    width = 0.0 * case.q[0, 0]
    for x in range(case.q.shape[0]):
        far, mean = 0.0 * case.q[x, 0], 0.0 * case.q[x, 0]
        for a in range(case.q.shape[1]):
            far = larger(far, where(case.q[x, a] > 0.0, case.centred_lev[x, a], 0.0))
            mean = fused(case.q[x, a], case.centred_lev[x, a], mean)
        width = width + known.g[x] * (root(far) + root(mean))
    return over_contexts(width)


@kernel
def charge(
    known: Known, case: ExplorationCase, bounds: LeverageBounds, gamma: Number, u: Number
) -> tuple[Number, Number]:
    """Return the cost of the play that u draws, divided by its probability, and the maximum of this over u.

    With u uniform on [0, 1) its expectation is the cost of all uncovered plays, for the rate whose factor
    ``case.inverse`` holds.
    """
    total = write_draw_weights(known, case, bounds, gamma, True)
    x, a = play_at(case, count_of(known.g), u * total)
    far = root(at(case.reach, x, a))
    drawn = where(total > 0.0, total / where(far > 0.0, far, 1.0), 0.0)
    write_direction(known, case, x, a, case.play[2])
    return drawn * cost_of_play(known, case, case.play[2], at(case.rho, x, a)), total * width_of(known, case)
