"""Intermediate regimes: stochastic with corruption, and fixed gaps with a moving level of all losses."""

from typing import Any, Literal

import numpy as np

from bothworlds.environments import dynamics
from bothworlds.environments.common import make, parameter_of, require_instance, rounds_of
from bothworlds.environments.environment import Environment, Noise
from bothworlds.environments.instances import Instance
from bothworlds.environments.stochastic import stochastic
from bothworlds.problem.checks import is_number

Placement = Literal["first", "random", "adaptive"]


def corrupted(
    instance: Instance,
    *,
    budget: float,
    placement: Placement = "first",
    theta: Any = None,
    probability: float = 0.05,
    noise: Noise = "bernoulli",
    sigma: float = 0.25,
) -> Environment:
    """Make the stochastic regime with corruption of total size C = budget (Definition 2.6).

    Corrupted rounds use the parameter ``theta``, by default -theta_0; each costs sum_x g(x) max_a (Delta(a|x) -
    Delta_t(a|x))_+. Placement "first" corrupts the first rounds, "random" rounds at random with the given probability,
    and "adaptive" rounds in which the learner's expected loss exceeds the optimum by at most a quarter of the average
    gap of the offered arms. Corruption ends when exactly the budget is spent.
    """
    require_instance(instance, "corrupted")
    if not is_number(budget) or not 0.0 <= budget < np.inf:
        raise ValueError(f"budget must be finite and not negative; got {budget!r}")
    if not is_number(probability) or not 0.0 < probability <= 1.0:
        raise ValueError(f"probability must lie in (0, 1]; got {probability!r}")
    placements = {"first": dynamics.FIRST, "random": dynamics.AT_RANDOM, "adaptive": dynamics.ADAPTIVE}
    if placement not in placements:
        raise ValueError(f"unknown placement {placement!r}; choose one of {', '.join(placements)}")
    clean = stochastic(instance, noise=noise, sigma=sigma)
    other = -instance.theta if theta is None else parameter_of(theta, instance.problem)
    clean.require_mean_losses(instance.problem.features @ other, "the corrupting theta")
    cost = clean.corruption_of(other)
    if cost <= 1e-9:
        raise ValueError("this theta corrupts nothing: it reduces no gap")
    average = float(instance.problem.probabilities @ clean.gaps.mean(axis=1, where=instance.problem.available))
    threshold = float(clean.best_losses(np.ones(1))) + 0.25 * average
    constants = [float(placements[placement]), budget, cost, probability, threshold]
    thetas = [instance.theta, other]
    return make(
        f"corrupted, {placement}",
        instance.problem,
        thetas,
        dynamics.CORRUPT,
        noise=noise,
        sigma=sigma,
        constants=constants,
        stochastic=True,
        budget=budget,
    )


def moving_level(
    instance: Instance, *, level: float, every: int = 100, noise: Noise = "bernoulli", sigma: float = 0.25
) -> Environment:
    """Make the stochastically constrained adversary: fixed gaps, all losses shifted by +-``level`` in turn (C = 0).

    The sign changes every ``every`` rounds.
    """
    require_instance(instance, "moving_level")
    length = rounds_of(every, 1, "every")
    if not is_number(level) or not np.isfinite(level):
        raise ValueError(f"level must be finite; got {level!r}")
    problem = instance.problem
    z = problem.span.coordinates[problem.available]
    constant = problem.span.basis @ z.mean(axis=0)
    if np.abs(problem.features[problem.available] @ constant - 1.0).max() > 1e-8:
        raise ValueError("a moving level needs a constant feature: add a column of ones to the features")
    thetas = [instance.theta, constant]
    environment = make(
        "moving level",
        problem,
        thetas,
        dynamics.LEVEL,
        noise=noise,
        sigma=sigma,
        constants=[level, length],
        stochastic=True,
    )
    room = 1.0 - float(np.abs(environment.tables[0][problem.available]).max())
    if abs(level) > room + dynamics.SLACK:
        raise ValueError(
            f"level {level!r} makes mean losses leave [-1, 1]: theta_0 allows a level of at most {max(room, 0.0):.4g}"
        )
    return environment
