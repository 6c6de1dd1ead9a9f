"""Logdet-FTRL without the probabilities of contexts: empirical moments, a ridge and a bonus. Kernel functions.

In lifted coordinates [phi; 1] the published estimate needs no explicit centring. With M = (Cov + beta I)^-1 and the
mean m of phi, both under the empirical context distribution,

    [[E phi phi^T + beta I, m], [m^T, 1]]^-1 [phi; 1] = [M (phi - m); 1 - m^T M (phi - m)]

and its quadratic form is |phi - m|_M^2 + 1: estimate and bonus, up to a number that is the same for all arms.
"""

import math
from typing import Annotated, NamedTuple

from bothworlds.algorithms.experts.empirical_contexts import empirical_covariance, inverse_entry, total_count
from bothworlds.algorithms.experts.logdet_point import logdet_point
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Known, Play, build_kernel
from bothworlds.kernels.exact_ftrl import Direction, all_finite, choose_exactly, invert
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import given, learnt, planned, recalled, scratch
from bothworlds.kernels.linalg import product
from bothworlds.kernels.status import NOT_FINITE, OK


class Options(NamedTuple):
    """Hyper-parameters, the ranks of the contexts and their psi.

    eta_t = min{sqrt(squared_gain), limit}/sqrt(t), alpha_t = alpha/sqrt(t), beta_t = ridge/(t - 1).
    """

    squared_gain: float
    limit: float
    alpha: float
    ridge: float
    ranks: Annotated[Floats, given("S")]
    psi: Annotated[Floats, given("S", "K", "d")]


class State(NamedTuple):
    """Learner state: clock, Theta, sum of the bonus matrices, context counts, the last points p; then the plan."""

    t: Annotated[Floats, learnt()]
    theta: Annotated[Floats, learnt("d")]
    bonus: Annotated[Floats, learnt("d", "d")]
    counts: Annotated[Floats, learnt("S")]
    pi: Annotated[Floats, learnt("S", "K")]
    inverse: Annotated[Floats, recalled("d", "d")]
    rates: Annotated[Floats, planned(2)]  # eta_t, beta_t
    sigma: Annotated[Floats, planned("d", "d")]


class Work(NamedTuple):
    """Scratch space; losses, leverages, ``moment`` and ``factor`` belong to one context."""

    sums: Annotated[Floats, scratch("d", "d")]
    vector: Annotated[Floats, scratch("d")]
    half: Annotated[Floats, scratch("d")]
    moment: Annotated[Floats, scratch("d", "d")]
    factor: Annotated[Floats, scratch("d", "d")]
    losses: Annotated[Floats, scratch("K")]
    lev: Annotated[Floats, scratch("K")]


@kernel
def with_bonus(known: Known, state: State, x: int, losses: Floats) -> None:
    """Write <Theta, psi> - psi^T (sum of alpha_s Sigma_s^-1) psi of a context; infinite for arms not offered."""
    d = state.theta.shape[0]
    for a in range(losses.shape[0]):
        z = known.z[x, a]
        total = product(state.theta, z) + known.blocked[x, a]
        for i in range(d):
            for j in range(d):
                total -= z[i] * state.bonus[i, j] * z[j]
        losses[a] = total


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan: p_t of every context, and the lifted empirical moments, with a ridge."""
    d = state.theta.shape[0]
    for i in range(d):
        if not all_finite(state.bonus[i]):
            return NOT_FINITE
    if not all_finite(state.theta):
        return NOT_FINITE
    eta = min(math.sqrt(options.squared_gain), options.limit) / math.sqrt(state.t[0])
    for x in range(state.pi.shape[0]):
        with_bonus(known, state, x, work.losses)
        status = logdet_point(eta, options.psi[x], int(options.ranks[x]), state.pi[x], work)
        if status != OK:
            return status
    ridge = options.ridge / max(total_count(state.counts), 1.0)
    empirical_covariance(known, state, work, ridge, d - 1)
    state.rates[0] = eta
    state.rates[1] = ridge
    return invert(state)


@kernel
def learn(known: Known, options: Options, state: State, play: Play, carried: Direction) -> None:
    """Add the estimate to Theta and alpha_t Sigma_t^-1 to the bonus; count the context."""
    alpha = options.alpha / math.sqrt(state.t[0])
    for i in range(state.theta.shape[0]):
        state.theta[i] += play.loss * carried.direction[i]
        for j in range(i + 1):
            increment = alpha * inverse_entry(state.inverse, i, j)
            state.bonus[i, j] += increment
            if i != j:
                state.bonus[j, i] += increment
    state.counts[play.x] += 1.0
    state.t[0] += 1.0


KERNEL = build_kernel(refresh, choose_exactly, learn)
