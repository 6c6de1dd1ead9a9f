"""The exploration rate gamma_t: EARLY/(n + 1), then LATER/(n + 1), wherever affordable, n rounds since a restart.

Write beta = 1/eta, d(a|x) = <Sigma_t^-1 phi_t, psi(a,x)> for a play phi_t, where psi is the feature less the mean of
its context weighted by q^(3/2), and rho for the largest residual that the play can have. The play is *covered* if

    rho |d(a|x)| sqrt(q(a|x)) <= c beta                                for all arms and contexts.

A covered play is paid for when it is made, by its own stability. An uncovered one may cost any amount, but rarely.

*Early*, while beta < b, it is paid for when it is made, and may cost no more than ``largest``: its cost is at most
D = 4 max sqrt(lev) E_X[max_a sqrt(lev)] <= 4/(lambda gamma), so the rate SAFE always suffices.

*Later* all of them are paid for beforehand. The price of a rate is

    2 gamma + sum over uncovered plays of g pi sum_x g(x) k(x),
    k = rho max{mean d - min d, max d - mean d}       the mean under q, or if it is less
        rho^2 sum_a q^(3/2) d^2/(beta - rho m)        in contexts with rho m <= 2 c beta, m = max_a |d| sqrt q,

and k bounds the stability of every residual up to rho (research/default-rule.md). A rate is affordable if its price is
at most 2 gamma of the *covering* rate, which leaves no play uncovered. By Cauchy-Schwarz a play is covered if
rho^2 lev max[q lev(psi)] <= (c beta)^2, which decides most plays.
"""

from typing import Any, NamedTuple

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import (
    Number,
    absolute,
    at,
    both,
    count_of,
    either,
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
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.linalg import apply_inverse, cholesky, invert_mixture, leverage, product
from bothworlds.kernels.rates import SAFE

EARLY = 0.5  # gamma_t = EARLY/(n + 1) while beta < b
LATER = 2.0  # gamma_t = LATER/(n + 1) from there on


class Rate(NamedTuple):
    """An exploration rate, the price of its uncovered plays, and where ``state.inverse`` belongs to it."""

    gamma: Number
    price: Number
    inverted: Any


class PlayMove(NamedTuple):
    """How far a play moves a context: sum of q^(3/2) d^2, mean, largest and smallest d, largest |d| sqrt q."""

    squares: Number
    mean: Number
    most: Number
    least: Number
    step: Number


@kernel
def covering_rate(options: Any, beta: Number) -> Number:
    """Return the exploration rate that leaves no play uncovered."""
    return smaller(options.curved / (beta * beta), options.linear / beta)


@kernel
def leverages(inverse: Floats, z: Floats, out: Floats) -> None:
    """Write lev = |G z|^2 of every arm of a context. Replaced on a GPU."""
    for a in range(z.shape[0]):
        out[a] = leverage(inverse, z[a])


@kernel
def largest_cost(known: Known, state: Any, work: Any) -> Number:
    """Write lev of every play for Sigma_t = (G^T G)^-1, G in ``state.inverse``; return D."""
    highest, total = 0.0 * state.q[0, 0], 0.0 * state.q[0, 0]
    for x in range(state.q.shape[0]):
        most = 0.0 * total
        leverages(state.inverse, known.z[x], work.lev[x])
        for a in range(state.q.shape[1]):
            most = larger(most, work.lev[x, a])
        highest, total = larger(highest, most), fused(known.g[x], root(most), total)
    return 4.0 * root(highest_of_contexts(highest)) * over_contexts(total)


@kernel
def above_floor(work: Any) -> Any:
    """Return where Sigma_t, in ``work.mixed``, is at least SAFE Sigma(e): there D <= 4/(lambda SAFE)."""
    for i in range(work.mixed.shape[0]):
        work.mixed[i, i] = work.mixed[i, i] - SAFE
    return cholesky(work.mixed, work.mixed)


@kernel
def write_centres(state: Any, z: Floats, work: Any) -> None:
    """Write the mean feature of every context, weighted by q^(3/2)."""
    for x in range(state.q.shape[0]):
        total = 0.0 * state.q[x, 0]
        for a in range(state.q.shape[1]):
            total = fused(state.q[x, a], state.roots[x, a], total)
        for i in range(work.centre.shape[1]):
            mean = 0.0 * total
            for a in range(state.q.shape[1]):
                mean = fused(state.q[x, a] * state.roots[x, a], z[x, a, i], mean)
            work.centre[x, i] = mean / total


@kernel
def widest_spread(known: Known, state: Any, work: Any) -> Number:
    """Return max[q lev(psi)] over all arms and contexts."""
    spread, psi = 0.0 * state.q[0, 0], work.centred
    for x in range(state.q.shape[0]):
        for a in range(state.q.shape[1]):
            for i in range(psi.shape[0]):
                psi[i] = known.z[x, a, i] - work.centre[x, i]
            spread = larger(spread, state.q[x, a] * leverage(state.inverse, psi))
    return highest_of_contexts(spread)


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
def cost_of_context(options: Any, beta: Number, move: PlayMove, rho: Number) -> Number:
    """Return k(x) of a play, from its move of the context."""
    c = options.c
    far, reach = rho * larger(move.mean - move.least, move.most - move.mean), rho * move.step
    near = rho * rho * move.squares / larger(beta - reach, (1.0 - 2.0 * c) * beta)
    return where(reach <= 2.0 * c * beta, smaller(near, far), far)


@kernel
def cost_of_play(known: Known, options: Any, state: Any, work: Any, direction: Floats, rho: Number) -> Number:
    """Return sum_x g k(x) of the play with the direction Sigma_t^-1 phi_t if it is not covered, else 0."""
    beta, zero = state.inverse_rate[0], 0.0 * state.q[0, 0]
    total, step = zero, zero
    for x in range(state.q.shape[0]):
        middle, move = product(direction, work.centre[x]), PlayMove(zero, zero, zero, zero, zero)
        for a in range(state.q.shape[1]):
            move = add_arm(move, product(direction, known.z[x, a]) - middle, state.q[x, a], state.roots[x, a])
        step, total = larger(step, move.step), fused(known.g[x], cost_of_context(options, beta, move, rho), total)
    return where(rho * highest_of_contexts(step) <= options.c * beta, 0.0, over_contexts(total))


@kernel
def write_direction(known: Known, state: Any, work: Any, x: int, a: int) -> None:
    """Write Sigma_t^-1 phi of the play of arm a in context x into ``work.direction``."""
    for i in range(work.vector.shape[0]):
        work.vector[i] = feature(known.z, x, a, i)
    apply_inverse(state.inverse, work.vector, work.half, work.direction)


@kernel
def price_of_plays(known: Known, options: Any, state: Any, work: Any, gamma: Number, most: Number) -> Number:
    """Return the price of all uncovered plays of a rate, whose leverages are written; incomplete beyond ``most``."""
    write_centres(state, known.z, work)
    limit = options.c * state.inverse_rate[0] * (options.c * state.inverse_rate[0])
    spread, shares, total = widest_spread(known, state, work), matrix_of(known.g, 0, known.g.shape[0], 1), 0.0 * gamma
    for x in range(count_of(known.g)):
        for a in range(state.q.shape[1]):
            rho = 1.0 + absolute(at(work.rho, x, a))
            passed = either(rho * rho * at(work.lev, x, a) * spread <= limit, total > most)
            if every(passed):
                continue
            chance = at(shares, x, 0) * ((1.0 - gamma) * at(state.q, x, a) + gamma * at(known.e, x, a))
            write_direction(known, state, work, x, a)
            total = total + where(passed, 0.0, chance * cost_of_play(known, options, state, work, work.direction, rho))
    return total


@kernel
def exploration_rate(known: Known, options: Any, state: Any, work: Any) -> Rate:
    """Return gamma_t: EARLY/(n + 1) or LATER/(n + 1) where affordable, else SAFE early and the covering rate later."""
    beta = state.inverse_rate[0]
    early, covering = beta < options.covered, covering_rate(options, beta)
    ceiling = where(early, SAFE, covering)
    gamma = smaller(where(early, EARLY, LATER) / (state.remembered[0] + 1.0), ceiling)
    regular = invert_mixture(state.sigma, gamma, work.mixed, state.inverse)
    room, price, cost = where(early, 0.0, 2.0 * (ceiling - gamma)), 0.0 * gamma, 0.0 * gamma
    later = not every(early)
    if later or not every(above_floor(work)):
        cost = largest_cost(known, state, work)
    if later:
        price = price_of_plays(known, options, state, work, gamma, where(regular, room, -1.0))
        price = where(room > 0.0, price, 0.0)
    affordable = both(regular, where(early, cost - options.largest, price - room) <= 0.0)
    return Rate(where(affordable, gamma, ceiling), where(affordable, price, 0.0), affordable)
