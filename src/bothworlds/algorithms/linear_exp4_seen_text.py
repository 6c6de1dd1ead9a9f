"""Linear EXP4 without the probabilities of contexts, in kernel text: empirical means, a ridge and a bonus.

A policy's estimated loss of round s is sum_x ghat_s(x) (<phi(p(x), x), theta_hat_s> - alpha |phi(p(x), x)|^2), the norm
that of Sigma_s^-1, ghat_s the law of the contexts seen before s: a sum over contexts, so one table (contexts, arms) of
sums stands for all policies, listed or in product form.
"""

import math
from typing import NamedTuple

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.experts import loss_in_table
from bothworlds.kernels.matrix import leverage, product
from bothworlds.kernels.arithmetic import matrix_of, row_of
from bothworlds.kernels.plan import all_finite, choose_exactly, invert
from bothworlds.kernels.seen import seen_covariance, seen_in_all
from bothworlds.kernels.shannon import Work
from bothworlds.kernels.simplex import shannon_point
from bothworlds.kernels.status import NOT_FINITE


class Numbers(NamedTuple):
    """Hyper-parameters: beta_t = max{floor, ridge/(t - 1)}; ``lists`` has the arms of the policies, if listed."""

    eta: float
    alpha: float
    ridge: float
    floor: float
    listed: float
    lists: Floats


class State(NamedTuple):
    """What is learnt: the clock, the contexts seen and the table of losses less bonuses; then the plan."""

    t: Floats
    theta: Floats  # not used: what the plan's guard takes the dimension from
    rates: Floats  # eta, beta_t
    counts: Floats
    table: Floats
    pi: Floats
    sigma: Floats
    inverse: Floats


LEARNT = ("t", "counts", "table")


@kernel
def numbers_of(n: Floats) -> Numbers:
    """Name the hyper-parameters."""
    return Numbers(n[0], n[1], n[2], n[3], n[4], n[5:])


def sizes(B: int, K: int, d: int) -> tuple[int, int]:
    """Return how many numbers the memory takes: state first, then scratch."""
    return 3 + 3 * d + 3 * d * d, B + 2 * B * K


@kernel
def state_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> State:
    """Name the parts of a policy's memory."""
    m = 3 + d
    return State(
        t=row_of(memory, 0, 1),
        rates=row_of(memory, 1, 2),
        theta=row_of(memory, 3, d),
        sigma=matrix_of(memory, m, d, d),
        inverse=matrix_of(memory, m + d * d, d, d),
        counts=row_of(cells, 0, B),
        table=matrix_of(cells, B, B, K),
        pi=matrix_of(cells, B + B * K, B, K),
    )


@kernel
def work_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> Work:  # noqa: ARG001
    """Name the parts of the scratch space."""
    m = 3 + d + 2 * d * d
    v = m + d * d
    return Work(sums=matrix_of(memory, m, d, d), vector=row_of(memory, v, d), half=row_of(memory, v + d, d))


@kernel
def weigh_policies(numbers: Numbers, state: State) -> None:
    """Write pi_t(a|x) = sum of P_t(p) over the listed policies with p(x) = a."""
    S, K = state.pi.shape
    count = int(numbers.listed)
    least = math.inf
    for p in range(count):
        least = min(least, loss_in_table(numbers.lists, state.table, p))
    for x in range(S):
        for a in range(K):
            state.pi[x, a] = 0.0
    total = 0.0
    for p in range(count):
        weight = math.exp(numbers.eta * (least - loss_in_table(numbers.lists, state.table, p)))
        total += weight
        for x in range(S):
            state.pi[x, int(numbers.lists[p * S + x])] += weight
    for x in range(S):
        for a in range(K):
            state.pi[x, a] /= total


@kernel
def multiply_out(known: Known, numbers: Numbers, state: State) -> None:
    """Write the same for all maps: a softmax of the table in every context."""
    for x in range(state.pi.shape[0]):
        for a in range(state.pi.shape[1]):
            state.pi[x, a] = state.table[x, a] + known.blocked[x, a]
        shannon_point(state.pi[x], numbers.eta, state.pi[x])


@kernel
def refresh(known: Known, numbers: Numbers, state: State, work: Work) -> int:
    """Compute the plan of round t: pi_t, and its covariance over the contexts seen, with a ridge."""
    for x in range(state.table.shape[0]):
        if not all_finite(state.table[x]):
            return NOT_FINITE
    if numbers.listed > 0.0:
        weigh_policies(numbers, state)
    else:
        multiply_out(known, numbers, state)
    ridge = max(numbers.floor, numbers.ridge / max(seen_in_all(state.counts), 1.0))
    seen_covariance(known, state, work, ridge, state.sigma.shape[0])
    state.rates[0] = numbers.eta
    state.rates[1] = ridge
    return invert(state)


@kernel
def learn(
    known: Known,
    numbers: Numbers,
    state: State,
    x: int,
    a: int,  # noqa: ARG001
    loss: float,
    direction: Floats,
    baseline: Floats,  # noqa: ARG001
) -> None:
    """Add the estimates of all cells, less their bonuses, weighted as the contexts were seen; then count this one."""
    n = seen_in_all(state.counts)
    for y in range(state.table.shape[0]):
        if state.counts[y] > 0.0:
            share = state.counts[y] / n
            for b in range(state.table.shape[1]):
                z = known.z[y, b]
                bonus = numbers.alpha * leverage(state.inverse, z) if numbers.alpha > 0.0 else 0.0
                state.table[y, b] += share * (loss * product(direction, z) - bonus)
    state.counts[x] += 1.0
    state.t[0] += 1.0


TEXT = KernelText(sizes, numbers_of, state_of, work_of, refresh, choose_exactly, learn)
