"""The reduction with policies as actions, in kernel text: epochs, a master, and exponential weights on the others."""

import math
from typing import NamedTuple

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.epochs import end_epoch_of_policies, forget_plays
from bothworlds.kernels.excluding import base_covariance, find_span, highest_leverage, inside
from bothworlds.kernels.experts import draw_policy, loss_in_table, loss_of_point, marginals
from bothworlds.kernels.matrix import apply_inverse
from bothworlds.kernels.arithmetic import matrix_of, row_of
from bothworlds.kernels.plan import all_finite, invert
from bothworlds.kernels.random import Pair
from bothworlds.kernels.reduction import (
    MORE,
    fix_constants,
    plan_master,
    plan_rates,
    tell_master,
    write_option,
)
from bothworlds.kernels.shannon import Work
from bothworlds.kernels.status import NOT_FINITE, OK

CARRIED = MORE + 1  # besides the direction: what the master needs, and the policy drawn
LARGEST_SQUARE = 4.0  # of losses shifted from [-1, 1] to [0, 2]


class Numbers(NamedTuple):
    """Hyper-parameters: log T, the scale of c1 and c2, whether estimates are linear; ``lists``: arms, then points."""

    log_horizon: float
    scale: float
    linear: float
    lists: Floats


class State(NamedTuple):
    """What is learnt, then what an epoch fixes, then the plan.

    As in the reduction to arms, but ``candidate`` is the number of a policy and ``counts`` how often each policy was
    drawn in the epoch; ``table`` has the importance-weighted losses of contexts and arms, ``weights`` the base's
    probabilities of the policies and ``base`` what they mean for the arms.
    """

    t: Floats
    epoch: Floats
    clock: Floats
    previous: Floats
    losses: Floats
    total: Floats
    worst: Floats
    theta: Floats
    candidate: Floats
    counts: Floats
    table: Floats
    planned: Floats
    facts: Floats
    span: Floats
    shares: Floats
    rates: Floats
    weights: Floats
    base: Floats
    pi: Floats
    sigma: Floats
    inverse: Floats


LEARNT = ("t", "epoch", "clock", "previous", "losses", "total", "worst", "theta", "candidate", "counts", "table")


@kernel
def numbers_of(n: Floats) -> Numbers:
    """Name the hyper-parameters."""
    return Numbers(n[0], n[1], n[2], n[3:])


def sizes(B: int, K: int, d: int) -> tuple[int, int]:
    """Return how many numbers the memory takes: state first, then scratch; two more for every policy come after."""
    return 19 + 4 * d + 3 * d * d, 3 * B * K


@kernel
def state_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> State:
    """Name the parts of a policy's memory."""
    m = 19 + 2 * d
    end = 19 + 4 * d + 3 * d * d
    count = (memory.shape[0] - end) // 2
    return State(
        t=row_of(memory, 0, 1),
        epoch=row_of(memory, 1, 1),
        clock=row_of(memory, 2, 1),
        previous=row_of(memory, 3, 1),
        losses=row_of(memory, 4, 2),
        total=row_of(memory, 6, 1),
        worst=row_of(memory, 7, 1),
        planned=row_of(memory, 8, 1),
        facts=row_of(memory, 9, 5),
        shares=row_of(memory, 14, 2),
        rates=row_of(memory, 16, 2),
        candidate=row_of(memory, 18, 1),
        theta=row_of(memory, 19, d),
        span=row_of(memory, 19 + d, d),
        sigma=matrix_of(memory, m, d, d),
        inverse=matrix_of(memory, m + d * d, d, d),
        counts=row_of(memory, end, count),
        weights=row_of(memory, end + count, count),
        table=matrix_of(cells, 0, B, K),
        base=matrix_of(cells, B * K, B, K),
        pi=matrix_of(cells, 2 * B * K, B, K),
    )


@kernel
def work_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> Work:  # noqa: ARG001
    """Name the parts of the scratch space."""
    m = 19 + 2 * d + 2 * d * d
    v = m + d * d
    return Work(sums=matrix_of(memory, m, d, d), vector=row_of(memory, v, d), half=row_of(memory, v + d, d))


@kernel
def in_base(state: State, p: int) -> bool:
    """Tell whether the base may draw a policy: all but the candidate, or that one if there is no other."""
    return p != int(state.candidate[0]) or state.weights.shape[0] == 1


@kernel
def others(state: State) -> float:
    """Return N, the number of policies of the base."""
    return float(max(state.weights.shape[0] - 1, 1))


@kernel
def most_arms(state: State) -> float:
    """Return the largest number of arms that the base may play in a context."""
    most = 1.0
    for x in range(state.base.shape[0]):
        count = 0.0
        for a in range(state.base.shape[1]):
            if state.base[x, a] > 0.0:
                count += 1.0
        most = max(most, count)
    return most


@kernel
def begin_epoch(known: Known, numbers: Numbers, state: State, work: Work) -> int:
    """Compute what the candidate fixes: N, and J and lambda of an even draw of the others; c1 and c2."""
    size = others(state)
    for p in range(state.weights.shape[0]):
        state.weights[p] = 1.0 / size if in_base(state, p) else 0.0
    marginals(numbers.lists, state.weights, state.base)
    if numbers.linear == 0.0:
        dimension = LARGEST_SQUARE * most_arms(state)
        fix_constants(state, dimension, 0.0, size, numbers.scale, numbers.log_horizon, False)
        state.facts[3] = numbers.scale * 4.0 * dimension * state.facts[2]  # no exploration, and no estimate below zero
        return OK
    for i in range(state.span.shape[0]):
        state.span[i] = 1.0
    base_covariance(known, state, work)
    rank = find_span(state)
    base_covariance(known, state, work)
    status = invert(state)
    if status == OK:
        highest = highest_leverage(known, state, work)
        fix_constants(state, rank, highest, size, numbers.scale, numbers.log_horizon, False)
    return status


@kernel
def estimated_loss(numbers: Numbers, state: State, p: int) -> float:
    """Return the estimated cumulative loss of a policy, by either kind of estimate."""
    if numbers.linear == 0.0:
        return loss_in_table(numbers.lists, state.table, p)
    return loss_of_point(numbers.lists, state.theta, state.weights.shape[0] * state.base.shape[0], p)


@kernel
def weigh(numbers: Numbers, state: State) -> None:
    """Write (1 - gamma) P_t + gamma/N into weights, P_t(p) ~ exp(-eta estimated loss), zero for the candidate."""
    eta, gamma = state.rates[0], state.rates[1]
    size = others(state)
    least = math.inf
    for p in range(state.weights.shape[0]):
        state.weights[p] = estimated_loss(numbers, state, p) if in_base(state, p) else math.inf
        least = min(least, state.weights[p])
    total = 0.0
    for p in range(state.weights.shape[0]):
        state.weights[p] = math.exp(eta * (least - state.weights[p])) if in_base(state, p) else 0.0
        total += state.weights[p]
    for p in range(state.weights.shape[0]):
        if in_base(state, p):
            state.weights[p] = (1.0 - gamma) * state.weights[p] / total + gamma / size


@kernel
def plan_base(known: Known, numbers: Numbers, state: State, work: Work) -> int:
    """Write the base's rates, its weights of policies, what they mean for arms, and the covariance of that."""
    plan_rates(state, False)
    weigh(numbers, state)
    marginals(numbers.lists, state.weights, state.base)
    if numbers.linear == 0.0:
        return OK
    base_covariance(known, state, work)
    return invert(state)


@kernel
def refresh(known: Known, numbers: Numbers, state: State, work: Work) -> int:
    """Compute the plan: pi_t = q_1 candidate + q_2 base."""
    S = state.pi.shape[0]
    if not all_finite(state.theta) or not all_finite(state.losses):
        return NOT_FINITE
    for x in range(S):
        if not all_finite(state.table[x]):
            return NOT_FINITE
    if state.planned[0] != state.epoch[0]:
        status = begin_epoch(known, numbers, state, work)
        if status != OK:
            return status
    plan_master(state)
    status = plan_base(known, numbers, state, work)
    for x in range(S):
        for a in range(state.pi.shape[1]):
            state.pi[x, a] = state.shares[1] * state.base[x, a]
        state.pi[x, int(numbers.lists[int(state.candidate[0]) * S + x])] += state.shares[0]
    return status


@kernel
def choose(
    known: Known,
    numbers: Numbers,
    state: State,
    work: Work,
    x: int,
    uniforms: Pair,
    key: int,  # noqa: ARG001
    time: int,  # noqa: ARG001
    direction: Floats,
    baseline: Floats,  # noqa: ARG001
) -> int:
    """Draw the option, then the policy, and play its arm.

    The direction is Sigma^-1 phi/q_2 of the base, or the importance weight 1/(q_2 base(a|x)); zero if the candidate was
    drawn.
    """
    d = state.theta.shape[0]
    u, v = uniforms
    option = 0 if u < state.shares[0] else 1
    drawn = int(state.candidate[0]) if option == 0 else draw_policy(state.weights, v)
    arm = int(numbers.lists[drawn * state.pi.shape[0] + x])
    for i in range(direction.shape[0]):
        direction[i] = 0.0
    if option == 1 and numbers.linear == 0.0:
        direction[0] = 1.0 / (state.shares[1] * state.base[x, arm])
    elif option == 1:
        inside(known, state, x, arm, work.vector)
        apply_inverse(state.inverse, work.vector, work.half, direction)
        for i in range(d):
            direction[i] /= state.shares[1]
    write_option(state, option, direction, d)
    direction[d + MORE] = drawn
    return arm


@kernel
def learn(
    known: Known,  # noqa: ARG001
    numbers: Numbers,
    state: State,
    x: int,
    a: int,
    loss: float,
    direction: Floats,
    baseline: Floats,  # noqa: ARG001
) -> None:
    """Tell the master, and the base if it played; what an earlier epoch decided is counted and not learnt from."""
    d = state.theta.shape[0]
    state.t[0] += 1.0
    if direction[d + 3] != state.epoch[0]:
        return
    if numbers.linear == 0.0:
        state.table[x, a] += (loss + 1.0) * direction[0]
    else:
        for i in range(d):
            state.theta[i] += loss * direction[i]
    tell_master(state, loss, direction, d)
    state.counts[int(direction[d + MORE])] += 1.0
    end_epoch_of_policies(state)
    if state.clock[0] == 1.0:
        forget_plays(state.table)


TEXT = KernelText(sizes, numbers_of, state_of, work_of, refresh, choose, learn)
