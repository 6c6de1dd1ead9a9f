"""Bounds on the moves of all plays under an exploration rate, by their leverages. Kernel functions.

By Cauchy-Schwarz a play moves an arm, beyond the mean of its context, by at most the root of its own leverage times
that of the arm's centred feature: so one pass over the plays bounds all pairs of them. For the use of these bounds see
`bothworlds.algorithms.lc_tsallis.exploration_cost`.
"""

from typing import Any, NamedTuple

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import (
    Number,
    fused,
    highest_of_contexts,
    larger,
    over_contexts,
    root,
)
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.linalg import (
    apply_half,
    cholesky,
    invert_mixture,
    leverages_and_crosses,
    product,
)

ROUNDING = 1e-9  # relative error of a difference of leverages


class ExplorationCase(NamedTuple):
    """Inputs of the price of a rate, and the space to compute it.

    ``sigma`` is Sigma(q), r the roots of q, ``rho`` the largest residual of every play, ``centre`` the weighted mean
    feature of each context. *Early* means beta < b.
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
    centred_lev: Floats
    draw_weight: Floats
    length: Floats  # of each play: in a search, weights are g pi times this
    middle: Floats  # a vector, for a block of contexts
    play: Floats  # five vectors: a feature, a half solution, and the directions of three plays
    covariance_floor: Floats  # above this covariance no play can cost too much


class LeverageBounds(NamedTuple):
    """Leverage bounds of a rate: where Sigma_t is regular, the largest rho^2 lev, and the largest q lev(psi).

    ``max_cost`` is 4 max sqrt(lev) sum_x g max_a sqrt(lev), which bounds the cost of a play for all q and m_t.
    """

    regular: Any
    max_reach: Number
    max_spread: Number
    max_cost: Number


class Extent(NamedTuple):
    """Maxima in a context: lev, rho^2 lev, q lev(psi)."""

    most: Number
    reach: Number
    spread: Number


@kernel
def write_centres(known: Known, case: ExplorationCase) -> None:
    """Write the mean feature of every context, weighted by q^(3/2); overwrites ``draw_weight``. Replaced on a GPU."""
    for x in range(case.q.shape[0]):
        weights, total = case.draw_weight[x], 0.0 * case.q[x, 0]
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
def above_floor(case: ExplorationCase) -> Any:
    """Return where Sigma_t is above the floor at which no play can cost too much; overwrites ``mixed``."""
    for i in range(case.mixed.shape[0]):
        for j in range(i + 1):
            case.mixed[i, j] = case.mixed[i, j] - case.covariance_floor[i, j]
    return cholesky(case.mixed, case.mixed)


@kernel
def add_play(case: ExplorationCase, x: int, a: int, lev: Number, centred_lev: Number, extent: Extent) -> Extent:
    """Write the reach of a play, rho^2 lev, and lev(psi); return the extent of its context including it."""
    case.reach[x, a] = case.rho[x, a] * case.rho[x, a] * lev
    case.centred_lev[x, a] = centred_lev
    return Extent(
        larger(extent.most, lev),
        larger(extent.reach, case.reach[x, a]),
        larger(extent.spread, case.q[x, a] * centred_lev),
    )


@kernel
def centred_leverage(lev: Number, cross: Number, own: Number) -> Number:
    """Return lev(psi), rounded up, from the leverage of phi, that of the centre, and their product."""
    return larger(lev - 2.0 * cross + own, 0.0) + ROUNDING * (lev + own)


@kernel
def bound_context_in_turn(known: Known, case: ExplorationCase, x: int, own: Number) -> Extent:
    """Write the reach of the plays of a context one after the other, and return its extent."""
    zero = 0.0 * case.q[0, 0]
    extent = Extent(zero, zero, zero)
    for a in range(0, case.q.shape[1], 2):
        b = min(a + 1, case.q.shape[1] - 1)  # the last arm twice if their number is odd
        lev, cross, other_lev, other_cross = leverages_and_crosses(
            case.inverse, known.z[x, a], known.z[x, b], case.middle
        )
        extent = add_play(case, x, a, lev, centred_leverage(lev, cross, own), extent)
        extent = add_play(case, x, b, other_lev, centred_leverage(other_lev, other_cross, own), extent)
    return extent


@kernel
def bound_context(known: Known, case: ExplorationCase, x: int, own: Number) -> Extent:
    """Write the reach of every play of a context, and return its extent. Replaced on a GPU.

    ``middle`` is G times the centre, ``own`` its squared length.
    """
    return bound_context_in_turn(known, case, x, own)


@kernel
def bound_plays(known: Known, case: ExplorationCase, regular: Any) -> LeverageBounds:
    """Write rho^2 lev and lev(psi) of every play; return the bounds of the rate whose factor ``case.inverse`` holds."""
    max_reach = 0.0 * case.q[0, 0]
    max_spread, highest, total = max_reach, max_reach, max_reach
    for x in range(case.q.shape[0]):
        apply_half(case.inverse, case.centre[x], case.middle)
        extent = bound_context(known, case, x, product(case.middle, case.middle))
        max_reach, max_spread = larger(max_reach, extent.reach), larger(max_spread, extent.spread)
        highest = larger(highest, extent.most)
        total = total + known.g[x] * root(extent.most)
    max_cost = 4.0 * root(highest_of_contexts(highest)) * over_contexts(total)
    max_reach, max_spread = highest_of_contexts(max_reach), highest_of_contexts(max_spread)
    return LeverageBounds(regular, max_reach, max_spread, max_cost)


@kernel
def bound_rate(known: Known, case: ExplorationCase, gamma: Number) -> LeverageBounds:
    """Write the factor of Sigma_t^-1 for a rate and the reach of every play; return the bounds of the rate."""
    return bound_plays(known, case, invert_mixture(case.sigma, gamma, case.mixed, case.inverse))


@kernel
def excess(case: ExplorationCase, bounds: LeverageBounds) -> Number:
    """Return the squared ratio of the leverage bound to the limit c beta: at most 1 if all plays are covered."""
    limit = case.c * case.beta
    return bounds.max_reach * bounds.max_spread / (limit * limit)
