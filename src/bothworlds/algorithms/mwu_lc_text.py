"""MWU-LC as kernel text: continuous exponential weights on the simplex, alone or as the base of a reduction.

Alone, the candidate's share is 0, the update probability q_t is 1, and there is one epoch.
"""

import math

from bothworlds.algorithms.mwu_lc_memory import Numbers, State, Work, numbers_of, sizes, state_of, work_of
from bothworlds.kernels.armwise import exact_arm_direction
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.corral import data_master_point
from bothworlds.kernels.divided import gather, simplex_moments, unit_of
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.epochs import end_epoch
from bothworlds.kernels.excluding import in_base, others
from bothworlds.kernels.matrix import product
from bothworlds.kernels.plan import all_finite
from bothworlds.kernels.random import Pair, draw
from bothworlds.kernels.simplex_draw import draw_point
from bothworlds.kernels.status import NOT_FINITE, OK

MORE = 6  # what a decision carries besides the direction: option, 1/q of it, 1/q_2, epoch, rejections, Q_t(arm)
MOST_DRAWS = 50  # one is rejected with probability K e (10 d K t)^-4 at most: none of our runs needed a second


@kernel
def plan_shares(numbers: Numbers, state: State) -> None:
    """Write the shares q_1 of the candidate and q_2 of the base; alone the base has all."""
    state.shares[0], state.shares[1] = 0.0, 1.0
    if numbers.reduced > 0.0:
        bonus = math.sqrt(numbers.c1 * state.total[0]) + numbers.c2 * state.worst[0]
        fixed = numbers.c1 + numbers.c2 * numbers.c2
        pace = 4.0 * math.sqrt(state.spread[0] / numbers.log_horizon + fixed)  # 1/eta_t of the master
        one, two = data_master_point(state.clock[0], state.losses[1] - bonus - state.losses[0], pace)
        state.shares[0], state.shares[1] = one, two


@kernel
def plan_rates(numbers: Numbers, state: State) -> None:
    """Write eta_t = (800 d K trunc_t^2/min q + sum of 16 trunc^2 xi^2 upd/q^2)^(-1/2), trunc_t = 4 log(10 d K t)."""
    trunc = 4.0 * math.log(10.0 * numbers.dimension * state.clock[0])
    worst = max(state.worst[0], 1.0 / state.shares[1])
    state.rates[0] = numbers.speed / math.sqrt(800.0 * numbers.dimension * trunc * trunc * worst + state.pace[0])
    state.rates[1] = trunc


@kernel
def gather_losses(known: Known, state: State, work: Work, x: int) -> None:
    """Write <x, Theta_a> for the arms of the base into work.losses, infinity for the others."""
    alone = others(known, state, x) == 0
    for a in range(work.losses.shape[0]):
        work.losses[a] = product(state.arms[a], known.z[x, a]) if in_base(known, state, x, a, alone) else math.inf


@kernel
def refresh(known: Known, numbers: Numbers, state: State, work: Work) -> int:
    """Compute the plan: pi_t = q_1 candidate + q_2 E[r]; where the candidate is not offered both play the base."""
    if not all_finite(state.theta) or not all_finite(state.losses):
        return NOT_FINITE
    plan_shares(numbers, state)
    plan_rates(numbers, state)
    for x in range(state.pi.shape[0]):
        chosen = int(state.candidate[x]) if numbers.reduced > 0.0 else -1
        state.excluded[x] = -1.0 if numbers.maps > 0.0 else chosen
        gather_losses(known, state, work, x)
        if not simplex_moments(work.losses, state.rates[0], work.room, state.base[x], state.squares[x]):
            return NOT_FINITE
        share = state.shares[1] if chosen >= 0 else 1.0
        for a in range(state.pi.shape[1]):
            state.pi[x, a] = share * state.base[x, a]
        if chosen >= 0:
            state.pi[x, chosen] += state.shares[0]
    return OK


@kernel
def solve_arms(known: Known, numbers: Numbers, state: State, work: Work, x: int) -> float:
    """Write Sbar_a^-1 x and x^T Sbar_a^-1 x of the base's arms; return the largest E[r_a^2] x^T Sbar_a^-1 x."""
    largest = 0.0
    for a in range(work.levers.shape[0]):
        work.levers[a] = 0.0
        if state.base[x, a] > 0.0:
            lonely = a == state.excluded[x]
            complements = numbers.lonely if lonely else numbers.complements
            exact_arm_direction(known, state.squares, state, work, complements, x, a, work.solved[a])
            work.levers[a] = product(work.solved[a], known.z[x, a])
            largest = max(largest, state.squares[x, a] * work.levers[a])
    return largest


@kernel
def draw_accepted(known: Known, numbers: Numbers, state: State, work: Work, x: int, key: int, time: int) -> int:
    """Draw Q_t into work.point until sum_a Q(a)^2 x^T Sbar_a^-1 x is within its bound; return how often it was not."""
    K, d = work.solved.shape
    bound = K * max(float(d), solve_arms(known, numbers, state, work, x)) * state.rates[1] * state.rates[1]
    gather_losses(known, state, work, x)
    n = gather(work.losses, state.rates[0], work.room)
    unit = unit_of(work.room.nodes, n)
    for attempt in range(MOST_DRAWS):
        draw_point(work.room, n, unit, key, time, attempt, work.point)
        total = 0.0
        for a in range(K):
            total += work.point[a] * work.point[a] * work.levers[a]
        if not total > bound:
            return attempt
    return MOST_DRAWS


@kernel
def choose(
    known: Known,
    numbers: Numbers,
    state: State,
    work: Work,
    x: int,
    uniforms: Pair,
    key: int,
    time: int,
    direction: Floats,
    baseline: Floats,  # noqa: ARG001
) -> int:
    """Draw the option, Q_t and the arm; the direction is Q_t(A) Sbar_A^-1 x/q_2, zero if the candidate was drawn."""
    d = work.vector.shape[0]
    u, v = uniforms
    option = 0 if u < state.shares[0] else 1
    arm = int(state.candidate[x])
    for i in range(direction.shape[0]):
        direction[i] = 0.0
    if option == 1 or arm < 0:
        direction[d + 4] = draw_accepted(known, numbers, state, work, x, key, time)
        arm = draw(work.point, v)
        direction[d + 5] = work.point[arm]
    if option == 1:
        for i in range(d):
            direction[i] = work.point[arm] * work.solved[arm, i] / state.shares[1]
    direction[d] = option
    direction[d + 1] = 1.0 / state.shares[option]
    direction[d + 2] = 1.0 / state.shares[1]
    direction[d + 3] = state.epoch[0]
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
    state.rejected[0] += direction[d + 4]
    if direction[d + 3] != state.epoch[0]:
        return
    for i in range(d):
        state.arms[a, i] += loss * direction[i]
    option, inverse, square = int(direction[d]), direction[d + 1], loss * loss
    trunc = 4.0 * math.log(10.0 * numbers.dimension * state.clock[0])
    if option == 1:
        state.total[0] += square * inverse * inverse
        state.pace[0] += 16.0 * trunc * trunc * square * inverse * inverse
    state.spread[0] += square * (1.0 - 1.0 / inverse) * (1.0 - 1.0 / inverse)
    state.losses[option] += loss * inverse
    state.worst[0] = max(state.worst[0], direction[d + 2])
    state.counts[x, a] += 1.0
    state.clock[0] += 1.0
    if numbers.reduced > 0.0 and end_epoch(known, state, numbers.maps > 0.0):
        state.spread[0] = 0.0
        state.pace[0] = 0.0


TEXT = KernelText(sizes, numbers_of, state_of, work_of, refresh, choose, learn)
