"""Kernel functions of the reduction with arm-independent features: Adaptive-RealLinExp3, one covariance per arm.

In contexts that offer only the excluded arm the base plays that arm and does not estimate it: there is nothing to
decide, so its losses are not needed.
"""

import math
from typing import Annotated, NamedTuple

from bothworlds.algorithms.shared.armwise import Work, factor_of_arm
from bothworlds.algorithms.shared.base_without_arm import exclude, play_softly
from bothworlds.algorithms.shared.decision_checks import possible_option
from bothworlds.algorithms.shared.reduction_base import (
    Carried,
    EpochConstants,
    Master,
    finite,
    fix_constants,
    plan_master,
    plan_rates,
)
from bothworlds.algorithms.shared.reduction_candidates import draw_option, learn_play, mix_options
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Draw, Known, Play, build_kernel
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import given, learnt, planned, recalled
from bothworlds.kernels.linalg import invert_lower, leverage, product, solve
from bothworlds.kernels.status import NOT_FINITE, NOT_POSITIVE, OK


class Options(NamedTuple):
    """Hyper-parameters of the reduction, the ranks of the arms and their complements (see `shared.armwise`)."""

    log_horizon: float
    scale: float
    maps: float
    printed: float
    ranks: Annotated[Floats, given("K")]
    complements: Annotated[Floats, given("K", "d", "d")]


class State(NamedTuple):
    """As in the reduction with arm-dependent features, with one Theta per arm; the plan has no covariance."""

    t: Annotated[Floats, learnt()]
    master: Master
    theta: Annotated[Floats, learnt("K*d")]
    arms: Annotated[Floats, learnt("K", "d", same_as="theta")]
    candidate: Annotated[Floats, learnt("S")]
    counts: Annotated[Floats, learnt("S", "K")]
    constants: EpochConstants
    excluded: Annotated[Floats, recalled("S")]
    rates: Annotated[Floats, planned(2)]
    base: Annotated[Floats, planned("S", "K")]
    pi: Annotated[Floats, planned("S", "K")]


@kernel
def estimated(state: State, x: int, a: int) -> bool:
    """Return whether the base may play an arm in a context and has a choice there."""
    return bool(state.base[x, a] > 0.0) and a != int(state.excluded[x])


@kernel
def arm_leverage(known: Known, options: Options, state: State, work: Work, a: int) -> float:
    """Return the largest x^T Sigma_a^-1 x of the contexts in which the base estimates the arm; -1 if that fails."""
    if not factor_of_arm(known, work, state.base, options.complements, a):
        return -1.0
    invert_lower(work.factor)
    highest = 0.0
    for x in range(state.base.shape[0]):
        if estimated(state, x, a):
            highest = max(highest, leverage(work.factor, known.z[x, a]))
    return highest


@kernel
def begin_epoch(known: Known, options: Options, state: State, work: Work) -> int:
    """At the start of an epoch, compute the constants of its candidate.

    They are the sum of the ranks of the base's arms, 1/lambda of even play, c1 and c2.
    """
    if state.constants.fixed_in[0] == state.master.epoch[0]:
        return OK
    most = exclude(known, state, options.maps > 0.0)
    dimension = 0.0
    highest = 0.0
    for a in range(state.base.shape[1]):
        present = False
        for x in range(state.base.shape[0]):
            present = present or estimated(state, x, a)
        if present:
            largest = arm_leverage(known, options, state, work, a)
            if largest < 0.0:
                return NOT_POSITIVE
            highest = max(highest, largest)
            dimension += options.ranks[a]
    fix_constants(state, dimension, highest, most, options.scale, options.log_horizon, options.printed > 0.0)
    return OK


@kernel
def plan_base(known: Known, options: Options, state: State) -> None:
    """Write the base's rates and its policy (1 - gamma) softmax of <x, Theta_a> + gamma even play."""
    plan_rates(state, options.printed > 0.0)
    for x in range(state.base.shape[0]):
        for a in range(state.base.shape[1]):
            state.base[x, a] = product(state.arms[a], known.z[x, a])
        play_softly(known, state, x)


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan; an arm's covariance is factored when the base draws the arm."""
    status = begin_epoch(known, options, state, work) if finite(state) else NOT_FINITE
    if status == OK:
        plan_master(state)
        plan_base(known, options, state)
        mix_options(state)
    return status


@kernel
def choose(known: Known, options: Options, state: State, work: Work, x: int, draw: Draw, carried: Carried) -> int:
    """Draw the option, then the arm; the direction is Sigma_a^-1 x/q_2 of the base, zero if the candidate was drawn."""
    option, arm = draw_option(state, x, draw, carried)
    if option == 1 and estimated(state, x, arm):
        sound = factor_of_arm(known, work, state.base, options.complements, arm)
        direction = carried.direction
        solve(work.factor, known.z[x, arm], direction)
        for i in range(direction.shape[0]):
            direction[i] = direction[i] / state.master.shares[1] if sound else math.nan
    return arm


@kernel
def learn(known: Known, options: Options, state: State, play: Play, carried: Carried) -> None:
    """Update master and base, in the base only the arm played."""
    learn_play(known, state, play, carried, state.arms[play.a], options.maps > 0.0)


KERNEL = build_kernel(refresh, choose, learn, possible=possible_option)
