"""Kernel functions of the reduction with arm-dependent features: a candidate, a master, and RealLinExp3 as base."""

from typing import Annotated, NamedTuple

from bothworlds.algorithms.shared.base_without_arm import (
    Work,
    base_covariance,
    base_direction,
    exclude,
    play_softly,
    span_of_base,
)
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
from bothworlds.kernels.exact_ftrl import invert
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import learnt, planned, recalled
from bothworlds.kernels.linalg import product
from bothworlds.kernels.status import NOT_FINITE, OK


class Options(NamedTuple):
    """Hyper-parameters: log T, the scale of c1 and c2, whether candidates are maps, and whether rates are printed."""

    log_horizon: float
    scale: float
    maps: float
    printed: float


class State(NamedTuple):
    """Learner state, then the constants of the epoch, then the plan."""

    t: Annotated[Floats, learnt()]
    master: Master
    theta: Annotated[Floats, learnt("d")]
    candidate: Annotated[Floats, learnt("S")]  # -1 where it is not offered
    counts: Annotated[Floats, learnt("S", "K")]  # plays of the epoch
    constants: EpochConstants
    excluded: Annotated[Floats, recalled("S")]  # the base's excluded arms
    span: Annotated[Floats, recalled("d")]
    rates: Annotated[Floats, planned(2)]
    base: Annotated[Floats, planned("S", "K")]
    pi: Annotated[Floats, planned("S", "K")]
    sigma: Annotated[Floats, planned("d", "d")]
    inverse: Annotated[Floats, planned("d", "d")]


@kernel
def begin_epoch(known: Known, options: Options, state: State, work: Work) -> int:
    """At the start of an epoch, compute the constants of its candidate: J, lambda of even play of the base, c1, c2."""
    if state.constants.fixed_in[0] == state.master.epoch[0]:
        return OK
    most = exclude(known, state, options.maps > 0.0)
    status, rank, highest = span_of_base(known, state, work)
    if status != OK:
        return status
    fix_constants(state, rank, highest, most, options.scale, options.log_horizon, options.printed > 0.0)
    return OK


@kernel
def plan_base(known: Known, options: Options, state: State, work: Work) -> int:
    """Write the base's rates, its policy (1 - gamma) softmax + gamma even play of M, and its covariance."""
    plan_rates(state, options.printed > 0.0)
    for x in range(state.base.shape[0]):
        for a in range(state.base.shape[1]):
            state.base[x, a] = product(state.theta, known.z[x, a])
        play_softly(known, state, x)
    base_covariance(known, state, work)
    return invert(state)


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan and the covariance of the base."""
    status = begin_epoch(known, options, state, work) if finite(state) else NOT_FINITE
    if status == OK:
        plan_master(state)
        status = plan_base(known, options, state, work)
        mix_options(state)
    return status


@kernel
def choose(known: Known, options: Options, state: State, work: Work, x: int, draw: Draw, carried: Carried) -> int:
    """Draw the option, then the arm; the direction is Sigma^-1 phi/q_2 of the base, zero if the candidate was drawn."""
    option, arm = draw_option(state, x, draw, carried)
    if option == 1:
        base_direction(known, state, work, x, arm, carried.direction)
    return arm


@kernel
def learn(known: Known, options: Options, state: State, play: Play, carried: Carried) -> None:
    """Update master and base."""
    learn_play(known, state, play, carried, state.theta, options.maps > 0.0)


KERNEL = build_kernel(refresh, choose, learn, possible=possible_option)
