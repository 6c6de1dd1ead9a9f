"""Kernel functions of the reduction with policies as actions: epochs, a master, exponential weights on the others."""

import math
from typing import Annotated, NamedTuple

from bothworlds.algorithms.shared.base_without_arm import Work, base_covariance, base_direction, span_of_base
from bothworlds.algorithms.shared.decision_checks import possible_option
from bothworlds.algorithms.shared.policy_mixture import draw_policy, loss_in_table, loss_of_point, marginals
from bothworlds.algorithms.shared.reduction_base import (
    EpochConstants,
    Master,
    RecordedPlay,
    add_loss,
    finite,
    fix_constants,
    plan_master,
    plan_rates,
    record_play,
)
from bothworlds.algorithms.shared.reduction_epochs import end_epoch_of_policies, forget_plays
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Draw, Known, Play, build_kernel
from bothworlds.kernels.exact_ftrl import add_theta_hat, all_finite, invert
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import carries, given, learnt, planned, recalled
from bothworlds.kernels.linalg import erase
from bothworlds.kernels.status import NOT_FINITE, OK

LARGEST_SQUARE = 4.0  # of losses shifted from [-1, 1] to [0, 2]


class Options(NamedTuple):
    """Hyper-parameters: log T, the scale of c1 and c2, whether estimates are linear; arms and points of policies."""

    log_horizon: float
    scale: float
    linear: float
    arms: Annotated[Floats, given("P", "S")]
    points: Annotated[Floats, given("P", "d")]


class State(NamedTuple):
    """Learner state, then the constants of the epoch, then the plan.

    As in the reduction to arms, but ``candidate`` is the number of a policy and ``counts`` how often each policy was
    drawn in the epoch. ``table`` has the importance-weighted losses by context and arm, ``weights`` the base's
    probabilities of the policies and ``base`` the resulting probabilities of the arms.
    """

    t: Annotated[Floats, learnt()]
    master: Master
    theta: Annotated[Floats, learnt("d")]
    candidate: Annotated[Floats, learnt()]
    counts: Annotated[Floats, learnt("P")]
    table: Annotated[Floats, learnt("S", "K")]
    constants: EpochConstants
    span: Annotated[Floats, recalled("d")]
    rates: Annotated[Floats, planned(2)]
    weights: Annotated[Floats, planned("P")]
    base: Annotated[Floats, planned("S", "K")]
    pi: Annotated[Floats, planned("S", "K")]
    sigma: Annotated[Floats, planned("d", "d")]
    inverse: Annotated[Floats, planned("d", "d")]


class Carried(NamedTuple):
    """What a decision carries: the master's record, and the policy drawn."""

    direction: Annotated[Floats, carries("d")]
    record: RecordedPlay
    drawn: Annotated[Floats, carries()]


@kernel
def in_base(state: State, p: int) -> bool:
    """Return whether the base may draw a policy: all but the candidate, or that one if there is no other."""
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
def begin_epoch(known: Known, options: Options, state: State, work: Work) -> int:
    """At the start of an epoch, compute the constants of its candidate: N, J and lambda of an even draw, c1, c2."""
    if state.constants.fixed_in[0] == state.master.epoch[0]:
        return OK
    size = others(state)
    for p in range(state.weights.shape[0]):
        state.weights[p] = 1.0 / size if in_base(state, p) else 0.0
    marginals(options.arms, state.weights, state.base)
    if options.linear == 0.0:
        dimension = LARGEST_SQUARE * most_arms(state)
        fix_constants(state, dimension, 0.0, size, options.scale, options.log_horizon, False)
        # no exploration, and no estimate below zero
        state.constants.c1[0] = options.scale * 4.0 * dimension * state.constants.log_size[0]
        return OK
    status, rank, highest = span_of_base(known, state, work)
    if status == OK:
        fix_constants(state, rank, highest, size, options.scale, options.log_horizon, False)
    return status


@kernel
def estimated_loss(options: Options, state: State, p: int) -> float:
    """Return the estimated cumulative loss of a policy, by either kind of estimate."""
    if options.linear == 0.0:
        return loss_in_table(options.arms, state.table, p)
    return loss_of_point(options.points, state.theta, p)


@kernel
def weigh(options: Options, state: State) -> None:
    """Write (1 - gamma) P_t + gamma/N into weights, P_t(p) ~ exp(-eta estimated loss), zero for the candidate."""
    eta, gamma = state.rates[0], state.rates[1]
    size = others(state)
    least = math.inf
    for p in range(state.weights.shape[0]):
        state.weights[p] = estimated_loss(options, state, p) if in_base(state, p) else math.inf
        least = min(least, state.weights[p])
    total = 0.0
    for p in range(state.weights.shape[0]):
        state.weights[p] = math.exp(eta * (least - state.weights[p])) if in_base(state, p) else 0.0
        total += state.weights[p]
    for p in range(state.weights.shape[0]):
        if in_base(state, p):
            state.weights[p] = (1.0 - gamma) * state.weights[p] / total + gamma / size


@kernel
def plan_base(known: Known, options: Options, state: State, work: Work) -> int:
    """Write the base's rates, its weights of policies, the resulting policy over arms, and the covariance of that."""
    plan_rates(state, False)
    weigh(options, state)
    marginals(options.arms, state.weights, state.base)
    if options.linear == 0.0:
        return OK
    base_covariance(known, state, work)
    return invert(state)


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan: pi_t = q_1 candidate + q_2 base."""
    S = state.pi.shape[0]
    sound = finite(state)
    for x in range(S):
        sound = sound and all_finite(state.table[x])
    status = begin_epoch(known, options, state, work) if sound else NOT_FINITE
    if status != OK:
        return status
    plan_master(state)
    status = plan_base(known, options, state, work)
    for x in range(S):
        for a in range(state.pi.shape[1]):
            state.pi[x, a] = state.master.shares[1] * state.base[x, a]
        state.pi[x, int(options.arms[int(state.candidate[0]), x])] += state.master.shares[0]
    return status


@kernel
def choose(known: Known, options: Options, state: State, work: Work, x: int, draw: Draw, carried: Carried) -> int:
    """Draw the option, then the policy, and play its arm.

    The direction is Sigma^-1 phi/q_2 of the base, or the importance weight 1/(q_2 base(a|x)); zero if the candidate was
    drawn.
    """
    master, direction = state.master, carried.direction
    u, v = draw.uniforms
    option = 0 if u < master.shares[0] else 1
    drawn = int(state.candidate[0]) if option == 0 else draw_policy(state.weights, v)
    arm = int(options.arms[drawn, x])
    erase(direction)
    if option == 1 and options.linear == 0.0:
        direction[0] = 1.0 / (master.shares[1] * state.base[x, arm])
    elif option == 1:
        base_direction(known, state, work, x, arm, direction)
    record_play(master, option, carried.record)
    carried.drawn[0] = drawn
    return arm


@kernel
def learn(known: Known, options: Options, state: State, play: Play, carried: Carried) -> None:
    """Update the master, and the base if it played; decisions of an earlier epoch are counted but not learned from."""
    if not add_loss(state, play.loss, carried.record):
        return
    if options.linear == 0.0:
        state.table[play.x, play.a] += (play.loss + 1.0) * carried.direction[0]
    else:
        add_theta_hat(play.loss, carried.direction, state.theta)
    state.counts[int(carried.drawn[0])] += 1.0
    end_epoch_of_policies(state)
    if state.master.clock[0] == 1.0:
        forget_plays(state.table)


@kernel
def possible(known: Known, options: Options, play: Play, carried: Carried, propensity: float) -> bool:
    """Check what the decision carries for the master, and that the drawn policy is a valid number."""
    drawn = carried.drawn[0]
    listed = 0.0 <= drawn < options.arms.shape[0] and drawn == math.floor(drawn)
    return listed and possible_option(known, options, play, carried, propensity)


KERNEL = build_kernel(refresh, choose, learn, possible=possible)
