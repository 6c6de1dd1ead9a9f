"""Worlds that change, in which learners should follow the best arm: judged by dynamic regret.

The rules are those of `flip`, `alternating` and `sine`, which are adversaries: there a learner is compared with the
best fixed policy, here with the best arm of every round. The parameters are theta_0 of the instance and others drawn
with the seed, in random directions, scaled so that the largest mean loss is 0.9 or -0.9.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.environments import dynamics
from bothworlds.environments.common import make, one_at_a_time, require_instance, rounds_of
from bothworlds.environments.environment import Environment, Noise
from bothworlds.environments.instances import LARGEST_MEAN, Instance
from bothworlds.problem import Problem
from bothworlds.problem.checks import is_number, whole


def change_point(
    instance: Instance, *, at: int, seed: int = 0, noise: Noise = "bernoulli", sigma: float = 0.25
) -> Environment:
    """Make a world that changes once: theta_0 through round ``at``, then another parameter, drawn with ``seed``.

    >>> from bothworlds.environments import random_instance
    >>> world = change_point(random_instance(contexts=3, arms=2, dimension=2, gap=0.2), at=50)
    >>> world.name, world.changing, len(world.thetas)
    ('change point', True, 2)
    """
    require_instance(instance, "change_point")
    thetas = [instance.theta, *_fresh_parameters(instance.problem, 1, seed)]
    constants = [rounds_of(at, 0, "at")]
    return _one_by_one("change point", instance, thetas, dynamics.SWITCH, constants, noise=noise, sigma=sigma)


def seasons(
    instance: Instance,
    *,
    horizon: int,
    phases: int = 8,
    seed: int = 0,
    noise: Noise = "bernoulli",
    sigma: float = 0.25,
) -> Environment:
    """Make a world with seasons: two parameters take turns, ``phases`` phases of equal length in ``horizon`` rounds.

    The first is theta_0, the other one is drawn with ``seed``.
    """
    require_instance(instance, "seasons")
    thetas = [instance.theta, *_fresh_parameters(instance.problem, 1, seed)]
    length = [_phase_length(horizon, phases)]
    return _one_by_one("seasons", instance, thetas, dynamics.CYCLE, length, noise=noise, sigma=sigma)


def jumps(
    instance: Instance,
    *,
    horizon: int,
    phases: int = 10,
    seed: int = 0,
    noise: Noise = "bernoulli",
    sigma: float = 0.25,
) -> Environment:
    """Make a world that jumps: a fresh parameter in each of ``phases`` phases of equal length in ``horizon`` rounds.

    The first is theta_0, the others are drawn with ``seed``. The last one stays in longer runs.
    """
    require_instance(instance, "jumps")
    length = _phase_length(horizon, phases)
    count = math.ceil(min(float(horizon), 2.0**53) / length)
    thetas = [instance.theta, *_fresh_parameters(instance.problem, count - 1, seed)]
    ends = [length * number for number in range(1, count)]
    return _one_by_one("jumps", instance, thetas, dynamics.SWITCH, ends, noise=noise, sigma=sigma)


def slow_turn(
    instance: Instance,
    *,
    horizon: int,
    turns: float = 1.0,
    seed: int = 0,
    noise: Noise = "bernoulli",
    sigma: float = 0.25,
) -> Environment:
    """Make a world that turns slowly: theta_t = sin(2 pi t/P) theta_1 + cos(2 pi t/P) theta_0, P = horizon/turns.

    theta_1 is drawn with ``seed``. Both are scaled by the same factor so that mean losses stay in [-0.9, 0.9].
    """
    require_instance(instance, "slow_turn")
    if not is_number(turns) or not 0.0 < turns < np.inf:
        raise ValueError(f"turns must be positive and finite; got {turns!r}")
    period = rounds_of(horizon, 1, "horizon") / turns
    problem = instance.problem
    pair = np.stack([*_fresh_parameters(problem, 1, seed), instance.theta])
    means = problem.features[problem.available] @ pair.T
    pair *= LARGEST_MEAN / np.sqrt((means**2).sum(axis=1)).max()
    return make(
        "slow turn",
        problem,
        pair,
        dynamics.SINE,
        constants=[period],
        noise=noise,
        sigma=sigma,
        changing=True,
    )


def _one_by_one(
    name: str, instance: Instance, thetas: Sequence[Any], kind: int, constants: Sequence[float], **options: Any
) -> Environment:
    """Make a world that uses a single one of its parameters in every round."""
    return one_at_a_time(name, instance.problem, thetas, kind, constants=constants, changing=True, **options)


def _fresh_parameters(problem: Problem, count: int, seed: int) -> list[Floats]:
    """Draw parameters in random directions of the span, whose largest absolute mean loss is 0.9."""
    rng = np.random.default_rng(np.random.SeedSequence([whole(seed, 0, "seed"), *problem.features.shape]))
    drawn = rng.normal(size=(count, problem.dimension)) @ problem.span.basis.T
    largest = np.abs(problem.features[problem.available] @ drawn.T).max(axis=0)
    return list(LARGEST_MEAN * drawn / largest[:, None])


def _phase_length(horizon: int, phases: int) -> float:
    """Return the number of rounds of a phase, at least 1."""
    return float(math.ceil(rounds_of(horizon, 1, "horizon") / whole(phases, 1, "phases")))
