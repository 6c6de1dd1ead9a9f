"""Uniform play as a yardstick: what there is to gain over it, and how much of that a learner has captured."""

from typing import Any

import numpy as np

from bothworlds.environments import nature
from bothworlds.environments.environment import TEXT, Environment
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import even_play
from bothworlds.problem.checks import whole

# An oblivious nature, whose parameters do not depend on the learner.
OBLIVIOUS = (
    nature.FIXED,
    nature.CYCLE,
    nature.GROWING,
    nature.SWITCH,
    nature.SINE,
    nature.WALK,
    nature.GIVEN,
    nature.LEVEL,
)


def possible_gain(environment: Environment, *, horizon: int) -> float:
    """Return the regret of uniform play: sum_t E_X[mean_a l_t(a, X)] less the loss of the best fixed policy.

    It is exact, and asks for an oblivious nature: one that answers the learner has no such number.

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
    """Return the share of the possible gain over uniform play that is captured: 1 - regret/regret of uniform play.

    1 is the best fixed policy, 0 uniform play; where nature changes, a learner may have more than 1.

    Parameters
    ----------
    environment
        A world whose parameters do not depend on the learner.
    regret
        At the horizon: a number, or an array of them, say ``run.paths[:, -1]``.
    horizon
        Rounds T.

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
    """Return sum_t c_j(t), the weight of each parameter in the whole run, for an oblivious nature."""
    if environment.kind not in OBLIVIOUS or environment.text is not TEXT or environment.function is not None:
        raise ValueError(
            f"the parameters of the environment {environment.name!r} are not known beforehand; "
            "simulate FixedPolicy() to see what uniform play has"
        )
    if environment.kind == nature.GIVEN:
        if horizon > len(environment.path):
            raise ValueError(f"the environment has parameters for {len(environment.path)} rounds, not for {horizon}")
        return np.asarray(environment.path[:horizon].sum(axis=0))
    made = environment.begin()
    if environment.kind == nature.FIXED:
        return np.array([float(horizon)] + [0.0] * (len(made.c) - 1))
    total = np.zeros(len(made.c))
    for t in range(1, horizon + 1):
        TEXT.decide(made, t, 0)
        total += made.c
    return total
