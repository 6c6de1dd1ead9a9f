"""The reduction with arm-independent features, in kernel text: Adaptive-RealLinExp3 as base, one covariance per arm.

In contexts that offer nothing but the excluded arm the base plays that arm and does not estimate it: there is nothing
to decide, so its losses are never asked for.
"""

import math
from typing import NamedTuple

from bothworlds.kernels.armwise import factor_of_arm
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.epochs import end_epoch
from bothworlds.kernels.excluding import explore, in_base, mix_options, others
from bothworlds.kernels.matrix import invert_lower, leverage, product, solve
from bothworlds.kernels.arithmetic import matrix_of, row_of
from bothworlds.kernels.plan import all_finite, draw_from
from bothworlds.kernels.random import Pair
from bothworlds.kernels.reduction import (
    LEAST_RATE,
    fix_constants,
    plan_master,
    plan_rates,
    tell_master,
    write_option,
)
from bothworlds.kernels.simplex import shannon_point
from bothworlds.kernels.status import NOT_FINITE, NOT_POSITIVE, OK


class Numbers(NamedTuple):
    """Hyper-parameters of the reduction; the ranks of the arms, then their complements (see `kernels.armwise`)."""

    log_horizon: float
    scale: float
    maps: float
    printed: float
    lists: Floats


class State(NamedTuple):
    """As in the reduction with arm-dependent features, with one Theta per arm; no covariance belongs to the plan."""

    t: Floats
    epoch: Floats
    clock: Floats
    previous: Floats
    losses: Floats
    total: Floats
    worst: Floats
    theta: Floats
    arms: Floats  # the same Theta, one row per arm
    candidate: Floats
    counts: Floats
    excluded: Floats
    planned: Floats
    facts: Floats
    shares: Floats
    rates: Floats
    base: Floats
    pi: Floats
    sigma: Floats
    factor: Floats


class Work(NamedTuple):
    """Scratch space: what the covariance of an arm needs."""

    vector: Floats
    sums: Floats


@kernel
def numbers_of(n: Floats) -> Numbers:
    """Name the hyper-parameters."""
    return Numbers(n[0], n[1], n[2], n[3], n[4:])


def sizes(B: int, K: int, d: int) -> tuple[int, int]:
    """Return how many numbers the memory takes: state first, then scratch."""
    return 18 + K * d + d + 3 * d * d, 2 * B + 3 * B * K


@kernel
def state_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> State:
    """Name the parts of a policy's memory."""
    m = 18 + K * d
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
        theta=row_of(memory, 18, K * d),
        arms=matrix_of(memory, 18, K, d),
        sigma=matrix_of(memory, m, d, d),
        factor=matrix_of(memory, m + d * d, d, d),
        candidate=row_of(cells, 0, B),
        excluded=row_of(cells, B, B),
        counts=matrix_of(cells, 2 * B, B, K),
        base=matrix_of(cells, 2 * B + B * K, B, K),
        pi=matrix_of(cells, 2 * B + 2 * B * K, B, K),
    )


@kernel
def work_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> Work:  # noqa: ARG001
    """Name the parts of the scratch space."""
    m = 18 + K * d + 2 * d * d
    return Work(sums=matrix_of(memory, m, d, d), vector=row_of(memory, m + d * d, d))


@kernel
def estimated(state: State, x: int, a: int) -> bool:
    """Tell whether the base may play an arm in a context and has a choice there."""
    return bool(state.base[x, a] > 0.0) and a != int(state.excluded[x])


@kernel
def arm_leverage(known: Known, numbers: Numbers, state: State, work: Work, a: int) -> float:
    """Return the largest x^T Sigma_a^-1 x of the contexts in which the base estimates the arm; -1 if that fails."""
    complements = numbers.lists[state.pi.shape[1] :]
    if not factor_of_arm(known, state, work, state.base, complements, a):
        return -1.0
    invert_lower(state.factor)
    highest = 0.0
    for x in range(state.base.shape[0]):
        if estimated(state, x, a):
            highest = max(highest, leverage(state.factor, known.z[x, a]))
    return highest


@kernel
def begin_epoch(known: Known, numbers: Numbers, state: State, work: Work) -> int:
    """Compute what the candidate fixes: the sum of the ranks of the base's arms, 1/lambda of even play, c1 and c2."""
    for x in range(state.excluded.shape[0]):
        state.excluded[x] = -1.0 if numbers.maps > 0.0 else state.candidate[x]
    most = explore(known, state)
    dimension = 0.0
    highest = 0.0
    for a in range(state.base.shape[1]):
        present = False
        for x in range(state.base.shape[0]):
            present = present or estimated(state, x, a)
        if present:
            largest = arm_leverage(known, numbers, state, work, a)
            if largest < 0.0:
                return NOT_POSITIVE
            highest = max(highest, largest)
            dimension += numbers.lists[a]
    fix_constants(state, dimension, highest, most, numbers.scale, numbers.log_horizon, numbers.printed > 0.0)
    return OK


@kernel
def plan_base(known: Known, numbers: Numbers, state: State) -> None:
    """Write the base's rates and its policy (1 - gamma) softmax of <x, Theta_a> + gamma even play."""
    plan_rates(state, numbers.printed > 0.0)
    eta, gamma = state.rates[0], state.rates[1]
    for x in range(state.base.shape[0]):
        count = others(known, state, x)
        alone = count == 0
        row = state.base[x]
        for a in range(row.shape[0]):
            row[a] = product(state.arms[a], known.z[x, a]) if in_base(known, state, x, a, alone) else math.inf
        shannon_point(row, max(eta, LEAST_RATE), row)
        for a in range(row.shape[0]):
            even = 1.0 / max(count, 1) if in_base(known, state, x, a, alone) else 0.0
            row[a] = (1.0 - gamma) * row[a] + gamma * even


@kernel
def refresh(known: Known, numbers: Numbers, state: State, work: Work) -> int:
    """Compute the plan: pi_t = q_1 candidate + q_2 base; where the candidate is not offered both play the base."""
    if not all_finite(state.theta) or not all_finite(state.losses):
        return NOT_FINITE
    if state.planned[0] != state.epoch[0]:
        status = begin_epoch(known, numbers, state, work)
        if status != OK:
            return status
    plan_master(state)
    plan_base(known, numbers, state)
    mix_options(state)
    return OK


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
    """Draw the option, then the arm; the direction is Sigma_a^-1 x/q_2 of the base, zero if the candidate was drawn."""
    d = work.vector.shape[0]
    u, v = uniforms
    option = 0 if u < state.shares[0] else 1
    arm = int(state.candidate[x])
    if option == 1 or arm < 0:
        arm = draw_from(state.base, x, v)
    for i in range(direction.shape[0]):
        direction[i] = 0.0
    if option == 1 and estimated(state, x, arm):
        sound = factor_of_arm(known, state, work, state.base, numbers.lists[state.pi.shape[1] :], arm)
        solve(state.factor, known.z[x, arm], direction[:d])
        for i in range(d):
            direction[i] = direction[i] / state.shares[1] if sound else math.nan
    write_option(state, option, direction, d)
    return arm


@kernel
def learn(
    known: Known,
    numbers: Numbers,
    state: State,
    x: int,
    a: int,
    loss: float,
    direction: Floats,
    baseline: Floats,  # noqa: ARG001
) -> None:
    """Tell the master, and the base if it played; what an earlier epoch decided is counted and not learnt from."""
    d = state.arms.shape[1]
    state.t[0] += 1.0
    if direction[d + 3] != state.epoch[0]:
        return
    for i in range(d):
        state.arms[a, i] += loss * direction[i]
    tell_master(state, loss, direction, d)
    state.counts[x, a] += 1.0
    end_epoch(known, state, numbers.maps > 0.0)


TEXT = KernelText(sizes, numbers_of, state_of, work_of, refresh, choose, learn)
