"""Machine of MWU-LC, alone or as the base of a reduction: limits on the problem, options, initial state."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bothworlds.algorithms.mwu_lc.kernel import KERNEL, Options
from bothworlds.algorithms.mwu_lc.simplex_integrals import MOST_ARMS
from bothworlds.algorithms.shared.armwise import armwise_machine, complements_of
from bothworlds.algorithms.shared.reduction_candidates import first_candidate
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Machine
from bothworlds.problem import Problem
from bothworlds.theory.armwise import lonely_complements


class Reduction(NamedTuple):
    """Options of the reduction: T, whether candidates are maps, and the factor of c1 and c2."""

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
    """Raise ValueError if a context offers more arms than the integrals support."""
    most = int(problem.available.sum(axis=1).max())
    if most > MOST_ARMS:
        raise ValueError(
            f"MWU-LC integrates over the simplex of the arms of a context, at most {MOST_ARMS} of them; a context of "
            f"this problem offers {most}. Offer at most {MOST_ARMS} arms in each context, or use FTRLLC or "
            "RealLinExp3, which take any number"
        )


def with_lonely(problem: Problem, frame: Mapping[str, Floats]) -> Mapping[str, Floats]:
    """Return a frame of `armwise_frame` with the complements for arms that are the only ones left to the base."""
    return {**frame, "lonely": lonely_complements(problem, frame["contexts"])}


def mwu_machine(problem: Problem, frame: Mapping[str, Floats], *, speed: float, reduction: Reduction | None) -> Machine:
    """Return the machine; without a reduction the base plays all rounds."""
    x, K = frame["contexts"], problem.n_arms
    dimension = float(K * x.shape[1])
    first, previous, flags = np.full(len(x), -1.0), 0.0, (0.0, 0.0, 1.0, 0.0, 0.0)
    if reduction is not None:
        _, c1, c2 = constants_of(dimension, reduction.horizon)
        first, log_horizon = first_candidate(problem, maps=reduction.maps), math.log(reduction.horizon)
        previous = reduction.scale * c2 * log_horizon  # T_1 - T_0, as if an epoch of c2 log T came before
        flags = (1.0, float(reduction.maps), log_horizon, reduction.scale * c1, reduction.scale * c2)

    options = Options(
        dimension,
        speed,
        *flags,
        complements=complements_of(frame, K),
        lonely=complements_of(frame, K, "lonely"),
    )
    begin = {"epoch": 1.0, "clock": 1.0, "previous": previous, "candidate": first}
    return armwise_machine(KERNEL, problem, frame, options, begin)
