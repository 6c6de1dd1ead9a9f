"""How far the plays of an exploration rate may go, by their leverages. Kernel text.

By Cauchy-Schwarz a play moves an arm, beyond the mean of its context, by at most the root of its own leverage times
that of the arm's centred feature: so one look at each play bounds what all pairs of them do. What is decided by that:
`bothworlds.kernels.price`.
"""

from typing import Any, NamedTuple

from bothworlds.kernels.arithmetic import (
    Number,
    fused,
    highest_of_contexts,
    larger,
    over_contexts,
    root,
)
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.matrix import (
    apply_half,
    cholesky,
    invert_mixture,
    leverages_beside,
    product,
)

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
    length: Floats  # of each play: in a search, chances are g pi times this
    middle: Floats  # a vector of a block of contexts
    play: Floats  # five vectors: of a play, half a solution, and the directions of three plays
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
        for i in range(0, case.centre.shape[1], 2):
            j, mean, other = min(i + 1, case.centre.shape[1] - 1), 0.0 * total, 0.0 * total
            for a in range(case.q.shape[1]):
                mean, other = fused(weights[a], known.z[x, a, i], mean), fused(weights[a], known.z[x, a, j], other)
            case.centre[x, i], case.centre[x, j] = mean * share, other * share


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
    for a in range(0, case.q.shape[1], 2):
        b = min(a + 1, case.q.shape[1] - 1)  # the last one twice where they are odd
        lev, cross, other_lev, other_cross = leverages_beside(case.inverse, known.z[x, a], known.z[x, b], case.middle)
        extent = with_play(case, x, a, lev, distance(lev, cross, own), extent)
        extent = with_play(case, x, b, other_lev, distance(other_lev, other_cross, own), extent)
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
