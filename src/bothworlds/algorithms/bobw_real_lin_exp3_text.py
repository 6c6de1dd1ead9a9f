"""The reduction of RealLinExp3 as kernel text: epochs with a candidate, a master, and a base on the other arms."""

import math
from typing import NamedTuple

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.epochs import end_epoch
from bothworlds.kernels.excluding import (
    base_covariance,
    explore,
    find_span,
    highest_leverage,
    in_base,
    inside,
    mix_options,
    others,
)
from bothworlds.kernels.matrix import apply_inverse, product
from bothworlds.kernels.arithmetic import matrix_of, row_of
from bothworlds.kernels.plan import all_finite, draw_from, invert
from bothworlds.kernels.random import Pair
from bothworlds.kernels.reduction import (
    LEAST_RATE,
    fix_constants,
    plan_master,
    plan_rates,
    tell_master,
    write_option,
)
from bothworlds.kernels.shannon import Work
from bothworlds.kernels.simplex import shannon_point
from bothworlds.kernels.status import NOT_FINITE, OK


class Numbers(NamedTuple):
    """Hyper-parameters: log T, the scale of c1 and c2, whether candidates are maps, and whether rates are printed."""

    log_horizon: float
    scale: float
    maps: float
    printed: float


class State(NamedTuple):
    """What is learnt, then what an epoch fixes, then the plan.

    ``clock`` counts the rounds of the epoch from 1, ``previous`` is the length of the one before, ``losses`` are the
    master's estimates, ``total`` and ``worst`` the sum and the largest of 1/q_2; ``candidate`` is -1 where it is not
    offered, ``counts`` are the plays of the epoch, ``excluded`` the arms that the base leaves out. ``facts`` are rank,
    1/lambda, log K, c1 and c2 of the base.
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
    excluded: Floats
    planned: Floats
    facts: Floats
    span: Floats
    shares: Floats
    rates: Floats
    base: Floats
    pi: Floats
    sigma: Floats
    inverse: Floats


LEARNT = ("t", "epoch", "clock", "previous", "losses", "total", "worst", "theta", "candidate", "counts")


@kernel
def numbers_of(n: Floats) -> Numbers:
    """Name the hyper-parameters."""
    return Numbers(n[0], n[1], n[2], n[3])


def sizes(B: int, K: int, d: int) -> tuple[int, int]:
    """Return how many numbers the memory takes: state first, then scratch."""
    return 18 + 4 * d + 3 * d * d, 2 * B + 3 * B * K


@kernel
def state_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> State:
    """Name the parts of a policy's memory."""
    m = 18 + 2 * d
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
        theta=row_of(memory, 18, d),
        span=row_of(memory, 18 + d, d),
        sigma=matrix_of(memory, m, d, d),
        inverse=matrix_of(memory, m + d * d, d, d),
        candidate=row_of(cells, 0, B),
        excluded=row_of(cells, B, B),
        counts=matrix_of(cells, 2 * B, B, K),
        base=matrix_of(cells, 2 * B + B * K, B, K),
        pi=matrix_of(cells, 2 * B + 2 * B * K, B, K),
    )


@kernel
def work_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> Work:  # noqa: ARG001
    """Name the parts of the scratch space."""
    m = 18 + 2 * d + 2 * d * d
    v = m + d * d
    return Work(sums=matrix_of(memory, m, d, d), vector=row_of(memory, v, d), half=row_of(memory, v + d, d))


@kernel
def begin_epoch(known: Known, numbers: Numbers, state: State, work: Work) -> int:
    """Compute what the candidate fixes: J, lambda of even play of the base's arms, and the constants c1 and c2."""
    for x in range(state.excluded.shape[0]):
        state.excluded[x] = -1.0 if numbers.maps > 0.0 else state.candidate[x]
    most = explore(known, state)
    for i in range(state.span.shape[0]):
        state.span[i] = 1.0
    base_covariance(known, state, work)
    rank = find_span(state)
    base_covariance(known, state, work)
    status = invert(state)
    if status != OK:
        return status
    highest = highest_leverage(known, state, work)
    fix_constants(state, rank, highest, most, numbers.scale, numbers.log_horizon, numbers.printed > 0.0)
    return OK


@kernel
def plan_base(known: Known, numbers: Numbers, state: State, work: Work) -> int:
    """Write the base's rates, its policy (1 - gamma) softmax + gamma even play of M, and its covariance."""
    plan_rates(state, numbers.printed > 0.0)
    eta, gamma = state.rates[0], state.rates[1]
    for x in range(state.base.shape[0]):
        count = others(known, state, x)
        alone = count == 0
        row = state.base[x]
        for a in range(row.shape[0]):
            row[a] = product(state.theta, known.z[x, a]) if in_base(known, state, x, a, alone) else math.inf
        shannon_point(row, max(eta, LEAST_RATE), row)
        for a in range(row.shape[0]):
            even = 1.0 / max(count, 1) if in_base(known, state, x, a, alone) else 0.0
            row[a] = (1.0 - gamma) * row[a] + gamma * even
    base_covariance(known, state, work)
    return invert(state)


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
    status = plan_base(known, numbers, state, work)
    mix_options(state)
    return status


@kernel
def choose(
    known: Known,
    numbers: Numbers,  # noqa: ARG001
    state: State,
    work: Work,
    x: int,
    uniforms: Pair,
    key: int,  # noqa: ARG001
    time: int,  # noqa: ARG001
    direction: Floats,
    baseline: Floats,  # noqa: ARG001
) -> int:
    """Draw the option, then the arm; the direction is Sigma^-1 phi/q_2 of the base, zero if the candidate was drawn."""
    d = state.theta.shape[0]
    option = 0 if uniforms[0] < state.shares[0] else 1
    arm = int(state.candidate[x])
    if option == 1 or arm < 0:
        arm = draw_from(state.base, x, uniforms[1])
    for i in range(direction.shape[0]):
        direction[i] = 0.0
    if option == 1:
        inside(known, state, x, arm, work.vector)
        apply_inverse(state.inverse, work.vector, work.half, direction)
        for i in range(d):
            direction[i] /= state.shares[1]
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
    d = state.theta.shape[0]
    state.t[0] += 1.0
    if direction[d + 3] != state.epoch[0]:
        return
    for i in range(d):
        state.theta[i] += loss * direction[i]
    tell_master(state, loss, direction, d)
    state.counts[x, a] += 1.0
    end_epoch(known, state, numbers.maps > 0.0)


TEXT = KernelText(sizes, numbers_of, state_of, work_of, refresh, choose, learn)
