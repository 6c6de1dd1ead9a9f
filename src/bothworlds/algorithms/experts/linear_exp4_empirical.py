"""Linear EXP4 without the probabilities of contexts: empirical means, a ridge and a bonus. Kernel functions.

A policy's estimated loss of round s is sum_x ghat_s(x) (<phi(p(x), x), theta_hat_s> - alpha |phi(p(x), x)|^2), the norm
that of Sigma_s^-1, ghat_s the empirical distribution of contexts before s. This is a sum over contexts, so one table of
sums (contexts, arms) serves all policies, listed or in product form.
"""

from typing import Annotated, NamedTuple

from bothworlds.algorithms.experts.empirical_contexts import empirical_covariance, total_count
from bothworlds.algorithms.shared.policy_mixture import loss_in_table, weigh_policies
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Known, Play, build_kernel
from bothworlds.kernels.exact_ftrl import Direction, all_finite, choose_exactly, invert
from bothworlds.kernels.ftrl_points import shannon_point
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import given, learnt, planned, recalled, scratch
from bothworlds.kernels.linalg import leverage, product
from bothworlds.kernels.status import NOT_FINITE


class Options(NamedTuple):
    """Hyper-parameters: beta_t = max{floor, ridge/(t - 1)}; arms of the listed policies, empty for the product form."""

    eta: float
    alpha: float
    ridge: float
    floor: float
    arms: Annotated[Floats, given("P", "S")]


class State(NamedTuple):
    """Learner state: the clock, context counts and the table of losses less bonuses; then the plan."""

    t: Annotated[Floats, learnt()]
    counts: Annotated[Floats, learnt("S")]
    table: Annotated[Floats, learnt("S", "K")]
    inverse: Annotated[Floats, recalled("d", "d")]
    rates: Annotated[Floats, planned(2)]  # eta, beta_t
    pi: Annotated[Floats, planned("S", "K")]
    sigma: Annotated[Floats, planned("d", "d")]


class Work(NamedTuple):
    """Scratch space; ``losses`` are those of the policies."""

    sums: Annotated[Floats, scratch("d", "d", packed=True)]
    vector: Annotated[Floats, scratch("d")]
    half: Annotated[Floats, scratch("d")]
    losses: Annotated[Floats, scratch("P")]


@kernel
def weigh_product_form(known: Known, options: Options, state: State) -> None:
    """Weigh all maps of contexts to arms: a softmax of the table in every context."""
    for x in range(state.pi.shape[0]):
        for a in range(state.pi.shape[1]):
            state.pi[x, a] = state.table[x, a] + known.blocked[x, a]
        shannon_point(state.pi[x], options.eta, state.pi[x])


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan of round t: pi_t, and its covariance under the empirical distribution, with a ridge."""
    for x in range(state.table.shape[0]):
        if not all_finite(state.table[x]):
            return NOT_FINITE
    if options.arms.shape[0] > 0:
        for p in range(options.arms.shape[0]):
            work.losses[p] = loss_in_table(options.arms, state.table, p)
        weigh_policies(options.arms, options.eta, work.losses, state.pi)
    else:
        weigh_product_form(known, options, state)
    ridge = max(options.floor, options.ridge / max(total_count(state.counts), 1.0))
    empirical_covariance(known, state, work, ridge, state.sigma.shape[0])
    state.rates[0] = options.eta
    state.rates[1] = ridge
    return invert(state)


@kernel
def learn(known: Known, options: Options, state: State, play: Play, carried: Direction) -> None:
    """Add the estimates of all pairs, less their bonuses, weighted by the empirical distribution; then count x."""
    n = total_count(state.counts)
    for y in range(state.table.shape[0]):
        if state.counts[y] > 0.0:
            share = state.counts[y] / n
            for b in range(state.table.shape[1]):
                z = known.z[y, b]
                bonus = options.alpha * leverage(state.inverse, z) if options.alpha > 0.0 else 0.0
                state.table[y, b] += share * (play.loss * product(carried.direction, z) - bonus)
    state.counts[play.x] += 1.0
    state.t[0] += 1.0


KERNEL = build_kernel(refresh, choose_exactly, learn)
