"""The machine of MWU-LC, alone or as the base of a reduction: which problems it takes, and its numbers."""

import math
from typing import NamedTuple

import numpy as np

from bothworlds.algorithms.candidates import first_candidate
from bothworlds.algorithms.mwu_lc_memory import LEARNT, State
from bothworlds.algorithms.mwu_lc_text import MORE, TEXT
from bothworlds.algorithms.possible import options_of_a_master
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.divided import MOST_ARMS
from bothworlds.policy import Machine
from bothworlds.problem import Problem
from bothworlds.theory.armwise import lonely_complements
from bothworlds.theory.frame import world_of


class Reduction(NamedTuple):
    """What the reduction adds: T, whether candidates are maps, and the factor of c1 and c2."""

    horizon: int
    maps: bool
    scale: float


class Constants(NamedTuple):
    """Constants of the reduction's bonus: kappa = 32 d K log(10 d K T) log T, c1 = kappa^2, c2 = kappa (50 d K)^0.5."""

    kappa: float
    c1: float
    c2: float


def constants_of(dimension: float, horizon: int) -> Constants:
    """Return the printed constants (data-dependent stability of MWU-LC) for d K dimensions.

    >>> constants = constants_of(12, 100_000)
    >>> f"{constants.kappa:.3g} {constants.c1:.3g} {constants.c2:.3g}"
    '7.21e+04 5.19e+09 1.77e+06'
    """
    kappa = 32.0 * dimension * math.log(10.0 * dimension * horizon) * math.log(horizon)
    return Constants(kappa, kappa * kappa, kappa * math.sqrt(50.0 * dimension))


def check_arms(problem: Problem) -> None:
    """Refuse more arms in a context than the integrals are computed for."""
    most = int(problem.available.sum(axis=1).max())
    if most > MOST_ARMS:
        raise ValueError(
            f"MWU-LC integrates over the simplex of the arms of a context, up to {MOST_ARMS} of them; here {most} are "
            f"offered in one. It could do this problem with at most {MOST_ARMS} arms offered in each context; FTRLLC "
            "and RealLinExp3 take any number"
        )


def with_lonely(problem: Problem, frame: dict[str, Floats]) -> dict[str, Floats]:
    """Return a frame of `armwise_frame` with what a base needs that leaves an arm out."""
    return {**frame, "lonely": lonely_complements(problem, frame["contexts"])}


def mwu_machine(problem: Problem, frame: dict[str, Floats], *, speed: float, reduction: Reduction | None) -> Machine:
    """Return the machine; without a reduction the base has all rounds."""
    x, K = frame["contexts"], problem.n_arms
    dimension = float(K * x.shape[1])
    first, previous, flags = np.full(len(x), -1.0), 0.0, [0.0, 0.0, 1.0, 0.0, 0.0]
    if reduction is not None:
        _, c1, c2 = constants_of(dimension, reduction.horizon)
        first, log_horizon = first_candidate(problem, maps=reduction.maps), math.log(reduction.horizon)
        previous = reduction.scale * c2 * log_horizon  # T_1 - T_0, as if an epoch of c2 log T went before
        flags = [1.0, float(reduction.maps), log_horizon, reduction.scale * c1, reduction.scale * c2]

    def begin(state: State) -> None:
        state.t[...] = state.epoch[...] = state.clock[...] = 1.0
        state.previous[...] = previous
        state.candidate[...] = first

    complements, lonely = frame["complements"].ravel(), frame["lonely"].ravel()
    return Machine(
        text=TEXT,
        world=world_of(problem, frame["exploration"], np.repeat(x[:, None, :], K, axis=1)),
        numbers=np.concatenate([[dimension, speed, *flags, len(complements)], complements, lonely]),
        begin=begin,
        learnt=LEARNT,
        frame=frame,
        has_baseline=False,
        carried=x.shape[1] + MORE,
        possible=options_of_a_master(x.shape[1]),
    )
