"""Kernel functions of MWU-LC: continuous exponential weights on the simplex, alone or as the base of a reduction.

Alone, the candidate's share is 0, the update probability q_t is 1, and there is one epoch.
"""

import math
from typing import Annotated, NamedTuple

from bothworlds.algorithms.mwu_lc.simplex_integrals import Workspace, simplex_moments, sort_nodes, unit_of
from bothworlds.algorithms.mwu_lc.simplex_sampling import draw_point
from bothworlds.algorithms.shared.armwise import exact_arm_direction
from bothworlds.algorithms.shared.base_without_arm import in_base, others
from bothworlds.algorithms.shared.corral_master import data_master_point
from bothworlds.algorithms.shared.decision_checks import possible_option
from bothworlds.algorithms.shared.reduction_base import Master, RecordedPlay, finite, record_play
from bothworlds.algorithms.shared.reduction_candidates import mix_options
from bothworlds.algorithms.shared.reduction_epochs import end_epoch
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Draw, Known, Play, build_kernel
from bothworlds.kernels.exact_ftrl import add_theta_hat
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import carries, given, learnt, planned, scratch
from bothworlds.kernels.linalg import product
from bothworlds.kernels.random import draw as draw_index
from bothworlds.kernels.status import NOT_FINITE, OK

MOST_DRAWS = 50  # a draw is rejected with probability K e (10 d K t)^-4 at most: no run needed a second


class Options(NamedTuple):
    """Hyper-parameters: K d, the factor of eta_t; for the reduction whether there is one, maps, log T, c1, c2.

    ``complements`` belongs to arms in all contexts that offer them, ``lonely`` to arms in contexts that offer only
    them.
    """

    dimension: float
    speed: float
    reduced: float
    maps: float
    log_horizon: float
    c1: float
    c2: float
    complements: Annotated[Floats, given("K", "d", "d")]
    lonely: Annotated[Floats, given("K", "d", "d")]


class State(NamedTuple):
    """Learner state, then the plan.

    Master, candidate and counts are as in the reduction of RealLinExp3, but the master's ``total`` is the sum of
    xi^2 upd/q_2^2. ``spread`` is the sum of xi^2 (1{i} - q_i)^2, ``rate_sum`` that of 16 trunc^2 xi^2 upd/q_2^2;
    ``rejected`` counts draws.
    """

    t: Annotated[Floats, learnt()]
    master: Master
    spread: Annotated[Floats, learnt()]
    rate_sum: Annotated[Floats, learnt()]
    rejected: Annotated[Floats, learnt()]
    theta: Annotated[Floats, learnt("K*d")]
    arms: Annotated[Floats, learnt("K", "d", same_as="theta")]
    candidate: Annotated[Floats, learnt("S")]
    counts: Annotated[Floats, learnt("S", "K")]
    excluded: Annotated[Floats, planned("S")]
    rates: Annotated[Floats, planned(2)]  # eta_t and trunc_t
    base: Annotated[Floats, planned("S", "K")]  # E[r_a] of the base
    squares: Annotated[Floats, planned("S", "K")]  # E[r_a^2]
    pi: Annotated[Floats, planned("S", "K")]


class Work(NamedTuple):
    """Scratch space: for covariances; for losses, draw, leverages and directions in a context; for integrals."""

    vector: Annotated[Floats, scratch("d")]
    sums: Annotated[Floats, scratch("d", "d")]
    sigma: Annotated[Floats, scratch("d", "d")]
    factor: Annotated[Floats, scratch("d", "d")]
    costs: Annotated[Floats, scratch("K")]
    point: Annotated[Floats, scratch("K")]
    leverages: Annotated[Floats, scratch("K")]
    solved: Annotated[Floats, scratch("K", "d")]
    workspace: Workspace


class Carried(NamedTuple):
    """What a decision carries: the master's record, how many draws were rejected, and Q_t(arm)."""

    direction: Annotated[Floats, carries("d")]
    record: RecordedPlay
    rejected: Annotated[Floats, carries()]
    drawn: Annotated[Floats, carries()]


@kernel
def plan_shares(options: Options, state: State) -> None:
    """Write the shares q_1 of the candidate and q_2 of the base; without a reduction q_2 = 1."""
    master = state.master
    master.shares[0], master.shares[1] = 0.0, 1.0
    if options.reduced > 0.0:
        bonus = math.sqrt(options.c1 * master.total[0]) + options.c2 * master.worst[0]
        fixed = options.c1 + options.c2 * options.c2
        inverse_rate = 4.0 * math.sqrt(state.spread[0] / options.log_horizon + fixed)  # 1/eta_t of the master
        candidate_share, base_share = data_master_point(
            master.clock[0], master.losses[1] - bonus - master.losses[0], inverse_rate
        )
        master.shares[0], master.shares[1] = candidate_share, base_share


@kernel
def plan_rates(options: Options, state: State) -> None:
    """Write eta_t = (800 d K trunc_t^2/min q + sum of 16 trunc^2 xi^2 upd/q^2)^(-1/2), trunc_t = 4 log(10 d K t)."""
    trunc = 4.0 * math.log(10.0 * options.dimension * state.master.clock[0])
    worst = max(state.master.worst[0], 1.0 / state.master.shares[1])
    state.rates[0] = options.speed / math.sqrt(800.0 * options.dimension * trunc * trunc * worst + state.rate_sum[0])
    state.rates[1] = trunc


@kernel
def gather_losses(known: Known, state: State, work: Work, x: int) -> None:
    """Write <x, Theta_a> for the arms of the base into work.costs, infinity for the others."""
    alone = others(known, state, x) == 0
    for a in range(work.costs.shape[0]):
        work.costs[a] = product(state.arms[a], known.z[x, a]) if in_base(known, state, x, a, alone) else math.inf


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan: pi_t = q_1 candidate + q_2 E[r]; where the candidate is not offered both play the base."""
    if not finite(state):
        return NOT_FINITE
    plan_shares(options, state)
    plan_rates(options, state)
    for x in range(state.pi.shape[0]):
        state.excluded[x] = -1.0 if options.maps > 0.0 else state.candidate[x]
        gather_losses(known, state, work, x)
        if not simplex_moments(work.costs, state.rates[0], work.workspace, state.base[x], state.squares[x]):
            return NOT_FINITE
    mix_options(state)
    return OK


@kernel
def solve_arms(known: Known, options: Options, state: State, work: Work, x: int) -> float:
    """Write Sbar_a^-1 x and x^T Sbar_a^-1 x of the base's arms; return the largest E[r_a^2] x^T Sbar_a^-1 x."""
    largest = 0.0
    for a in range(work.leverages.shape[0]):
        work.leverages[a] = 0.0
        if state.base[x, a] > 0.0:
            lonely = a == state.excluded[x]
            complements = options.lonely if lonely else options.complements
            exact_arm_direction(known, state.squares, work, complements, (x, a), work.solved[a])
            work.leverages[a] = product(work.solved[a], known.z[x, a])
            largest = max(largest, state.squares[x, a] * work.leverages[a])
    return largest


@kernel
def draw_accepted(known: Known, options: Options, state: State, work: Work, x: int, draw: Draw) -> int:
    """Draw Q_t into work.point until sum_a Q(a)^2 x^T Sbar_a^-1 x is within its bound; return the rejections."""
    K, d = work.solved.shape
    bound = K * max(float(d), solve_arms(known, options, state, work, x)) * state.rates[1] * state.rates[1]
    gather_losses(known, state, work, x)
    n = sort_nodes(work.costs, state.rates[0], work.workspace)
    unit = unit_of(work.workspace.nodes, n)
    for attempt in range(MOST_DRAWS):
        draw_point(work.workspace, n, unit, draw, attempt, work.point)
        total = 0.0
        for a in range(K):
            total += work.point[a] * work.point[a] * work.leverages[a]
        if not total > bound:
            return attempt
    return MOST_DRAWS


@kernel
def choose(known: Known, options: Options, state: State, work: Work, x: int, draw: Draw, carried: Carried) -> int:
    """Draw the option, Q_t and the arm; the direction is Q_t(A) Sbar_A^-1 x/q_2, zero if the candidate was drawn."""
    u, v = draw.uniforms
    option = 0 if u < state.master.shares[0] else 1
    arm = int(state.candidate[x])
    carried.rejected[0] = 0.0
    carried.drawn[0] = 0.0
    for i in range(work.vector.shape[0]):
        carried.direction[i] = 0.0
    if option == 1 or arm < 0:
        carried.rejected[0] = draw_accepted(known, options, state, work, x, draw)
        arm = draw_index(work.point, v)
        carried.drawn[0] = work.point[arm]
    if option == 1:
        for i in range(work.vector.shape[0]):
            carried.direction[i] = work.point[arm] * work.solved[arm, i] / state.master.shares[1]
    record_play(state.master, option, carried.record)
    return arm


@kernel
def learn(known: Known, options: Options, state: State, play: Play, carried: Carried) -> None:
    """Update the master, and the base if it played; decisions of an earlier epoch are counted but not learned from."""
    master, record = state.master, carried.record
    state.t[0] += 1.0
    state.rejected[0] += carried.rejected[0]
    if record.epoch[0] != master.epoch[0]:
        return
    add_theta_hat(play.loss, carried.direction, state.arms[play.a])
    option, inverse, square = int(record.option[0]), record.inverse[0], play.loss * play.loss
    trunc = 4.0 * math.log(10.0 * options.dimension * master.clock[0])
    if option == 1:
        master.total[0] += square * inverse * inverse
        state.rate_sum[0] += 16.0 * trunc * trunc * square * inverse * inverse
    state.spread[0] += square * (1.0 - 1.0 / inverse) * (1.0 - 1.0 / inverse)
    master.losses[option] += play.loss * inverse
    master.worst[0] = max(master.worst[0], record.base_inverse[0])
    state.counts[play.x, play.a] += 1.0
    master.clock[0] += 1.0
    if options.reduced > 0.0 and end_epoch(known, state, options.maps > 0.0):
        state.spread[0] = 0.0
        state.rate_sum[0] = 0.0


KERNEL = build_kernel(refresh, choose, learn, possible=possible_option)
