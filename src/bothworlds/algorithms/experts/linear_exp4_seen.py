"""Linear EXP4 without the probabilities of contexts, in kernel text: empirical means, a ridge and a bonus.

A policy's estimated loss of round s is sum_x ghat_s(x) (<phi(p(x), x), theta_hat_s> - alpha |phi(p(x), x)|^2), the norm
that of Sigma_s^-1, ghat_s the law of the contexts seen before s: a sum over contexts, so one table (contexts, arms) of
sums stands for all policies, listed or in product form.
"""

from typing import Annotated, NamedTuple

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Known, Play, kernel_text
from bothworlds.kernels.experts import loss_in_table, weigh_policies
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import given, learnt, planned, recalled, scratch
from bothworlds.kernels.matrix import leverage, product
from bothworlds.kernels.plan import Direction, all_finite, choose_exactly, invert
from bothworlds.kernels.seen import seen_covariance, seen_in_all
from bothworlds.kernels.simplex import shannon_point
from bothworlds.kernels.status import NOT_FINITE


class Options(NamedTuple):
    """Hyper-parameters: beta_t = max{floor, ridge/(t - 1)}; arms of the listed policies, none for the product form."""

    eta: float
    alpha: float
    ridge: float
    floor: float
    arms: Annotated[Floats, given("P", "S")]


class State(NamedTuple):
    """What is learnt: the clock, the contexts seen and the table of losses less bonuses; then the plan."""

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
def multiply_out(known: Known, options: Options, state: State) -> None:
    """Weigh all maps of contexts to arms: a softmax of the table in every context."""
    for x in range(state.pi.shape[0]):
        for a in range(state.pi.shape[1]):
            state.pi[x, a] = state.table[x, a] + known.blocked[x, a]
        shannon_point(state.pi[x], options.eta, state.pi[x])


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan of round t: pi_t, and its covariance over the contexts seen, with a ridge."""
    for x in range(state.table.shape[0]):
        if not all_finite(state.table[x]):
            return NOT_FINITE
    if options.arms.shape[0] > 0:
        for p in range(options.arms.shape[0]):
            work.losses[p] = loss_in_table(options.arms, state.table, p)
        weigh_policies(options.arms, options.eta, work.losses, state.pi)
    else:
        multiply_out(known, options, state)
    ridge = max(options.floor, options.ridge / max(seen_in_all(state.counts), 1.0))
    seen_covariance(known, state, work, ridge, state.sigma.shape[0])
    state.rates[0] = options.eta
    state.rates[1] = ridge
    return invert(state)


@kernel
def learn(known: Known, options: Options, state: State, play: Play, carried: Direction) -> None:
    """Add the estimates of all pairs, less their bonuses, weighted as the contexts were seen; then count this one."""
    n = seen_in_all(state.counts)
    for y in range(state.table.shape[0]):
        if state.counts[y] > 0.0:
            share = state.counts[y] / n
            for b in range(state.table.shape[1]):
                z = known.z[y, b]
                bonus = options.alpha * leverage(state.inverse, z) if options.alpha > 0.0 else 0.0
                state.table[y, b] += share * (play.loss * product(carried.direction, z) - bonus)
    state.counts[play.x] += 1.0
    state.t[0] += 1.0


TEXT = kernel_text(refresh, choose_exactly, learn)
