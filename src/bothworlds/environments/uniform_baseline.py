"""Uniform play as a baseline: the largest possible gain over it, and the share that a learner captures."""

from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.environments import dynamics
from bothworlds.environments.environment import KERNEL, Environment
from bothworlds.kernels.contract import even_play
from bothworlds.problem.checks import whole

OBLIVIOUS = (  # kinds of rules whose parameters do not depend on the learner
    dynamics.FIXED,
    dynamics.CYCLE,
    dynamics.GROWING,
    dynamics.SWITCH,
    dynamics.SINE,
    dynamics.RANDOM_WALK,
    dynamics.GIVEN,
    dynamics.LEVEL,
)


def possible_gain(environment: Environment, *, horizon: int) -> float:
    """Return the regret of uniform play: sum_t E_X[mean_a l_t(a, X)] less the loss of the best fixed policy.

    The value is exact. It is defined for oblivious environments only: their parameters do not depend on the learner.

    >>> from bothworlds.environments import clicks
    >>> round(possible_gain(clicks(), horizon=30_000))
    844
    """
    sums = coefficient_sums(environment, whole(horizon, 1, "horizon"))
    problem = environment.problem
    pi = even_play(problem.available)
    uniform = np.einsum("x,xa,jxa,j->", problem.probabilities, pi, environment.tables, sums)
    return float(uniform - environment.best_losses(sums))


def captured_gain(environment: Environment, regret: Any, *, horizon: int) -> Floats:
    """Return the captured share of the possible gain over uniform play: 1 - regret/regret of uniform play.

    1 is the best fixed policy, 0 uniform play. In a changing environment a learner may exceed 1.

    Parameters
    ----------
    environment
        An environment whose parameters do not depend on the learner.
    regret
        Regret at the horizon: a number or an array, for example ``run.paths[:, -1]``.
    horizon
        Number of rounds T.

    >>> from bothworlds.environments import clicks
    >>> world = clicks()
    >>> captured_gain(world, [0.0, possible_gain(world, horizon=100)], horizon=100).tolist()
    [1.0, 0.0]
    """
    gain = possible_gain(environment, horizon=horizon)
    if not gain > 0.0:
        raise ValueError(f"in the environment {environment.name!r} no policy is better than uniform play")
    return np.asarray(1.0 - np.asarray(regret, dtype=np.float64) / gain)


def coefficient_sums(environment: Environment, horizon: int) -> Floats:
    """Return sum_t c_j(t) (J,), the weight of each parameter in the whole run, for an oblivious environment."""
    if environment.kind not in OBLIVIOUS or environment.kernel is not KERNEL or environment.function is not None:
        raise ValueError(
            f"the parameters of the environment {environment.name!r} are not known in advance; "
            "simulate FixedPolicy() to measure uniform play"
        )
    if environment.kind == dynamics.GIVEN:
        if horizon > len(environment.path):
            raise ValueError(f"the environment has parameters for {len(environment.path)} rounds, not for {horizon}")
        return np.asarray(environment.path[:horizon].sum(axis=0))
    nature = environment.begin()
    if environment.kind == dynamics.FIXED:
        return np.array([float(horizon)] + [0.0] * (len(nature.c) - 1))
    total = np.zeros(len(nature.c))
    for t in range(1, horizon + 1):
        KERNEL.decide(nature, t, 0)
        total += nature.c
    return total
