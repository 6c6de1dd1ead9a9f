"""Between the worlds: stochastic with corruption, and fixed gaps under a moving level."""

from typing import Any, Literal

import numpy as np

from bothworlds.environments import nature
from bothworlds.environments.environment import Environment, Noise
from bothworlds.environments.instances import Instance
from bothworlds.environments.making import make, parameter_of, require_instance, rounds_of
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

    A corrupted round has the parameter ``theta`` (minus theta_0 if left out); it costs sum_x g(x) max_a (Delta(a|x) -
    Delta_t(a|x))_+. Placement: the first rounds, rounds at random with the given probability, or adaptively, whenever
    the learner is within a quarter of the average gap of the arms offered of the optimum; until the budget is spent,
    exactly.
    """
    require_instance(instance, "corrupted")
    if not is_number(budget) or not 0.0 <= budget < np.inf:
        raise ValueError(f"budget must be finite and not negative; got {budget!r}")
    if not is_number(probability) or not 0.0 < probability <= 1.0:
        raise ValueError(f"probability must lie in (0, 1]; got {probability!r}")
    placements = {"first": nature.FIRST, "random": nature.AT_RANDOM, "adaptive": nature.WHEN_SURE}
    if placement not in placements:
        raise ValueError(f"unknown placement {placement!r}; choose one of {', '.join(placements)}")
    clean = stochastic(instance, noise=noise, sigma=sigma)
    other = -instance.theta if theta is None else parameter_of(theta, instance.problem)
    clean.require_losses(instance.problem.features @ other, "the corrupting theta")
    cost = clean.corruption_of(other)
    if cost <= 1e-9:
        raise ValueError("this theta corrupts nothing: it makes no arm better against the best one")
    average = float(instance.problem.probabilities @ clean.gaps.mean(axis=1, where=instance.problem.available))
    sure = float(clean.best_losses(np.ones(1))) + 0.25 * average
    constants = [float(placements[placement]), budget, cost, probability, sure]
    thetas = [instance.theta, other]
    return make(
        f"corrupted, {placement}",
        instance.problem,
        thetas,
        nature.CORRUPT,
        noise=noise,
        sigma=sigma,
        constants=constants,
        stochastic=True,
        budget=budget,
    )


def moving_level(
    instance: Instance, *, level: float, every: int = 100, noise: Noise = "bernoulli", sigma: float = 0.25
) -> Environment:
    """Make the stochastically constrained adversary: gaps fixed, all losses moved up and down by ``level`` (C = 0)."""
    require_instance(instance, "moving_level")
    length = rounds_of(every, 1, "every")
    if not is_number(level) or not np.isfinite(level):
        raise ValueError(f"level must be finite; got {level!r}")
    problem = instance.problem
    z = problem.span.coordinates[problem.available]
    constant = problem.span.basis @ z.mean(axis=0)
    if np.abs(problem.features[problem.available] @ constant - 1.0).max() > 1e-8:
        raise ValueError("a moving level needs a constant among the features: add a column of ones")
    thetas = [instance.theta, constant]
    made = make(
        "moving level",
        problem,
        thetas,
        nature.LEVEL,
        noise=noise,
        sigma=sigma,
        constants=[level, length],
        stochastic=True,
    )
    room = 1.0 - float(np.abs(made.tables[0][problem.available]).max())
    if abs(level) > room + nature.SLACK:
        raise ValueError(
            f"level {level!r} makes mean losses leave [-1, 1]: those of theta_0 leave room for {max(room, 0.0):.4g}"
        )
    return made
