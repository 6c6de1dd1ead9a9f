"""The stochastic regime: one parameter for all rounds."""

import math

import numpy as np

from bothworlds.environments import nature
from bothworlds.environments.environment import Environment, Noise
from bothworlds.environments.instances import Instance
from bothworlds.environments.making import make, require_instance
from bothworlds.problem import Problem, stacked_parameters
from bothworlds.problem.checks import whole


def stochastic(instance: Instance, *, noise: Noise = "bernoulli", sigma: float = 0.25) -> Environment:
    """Make the stochastic regime: theta_t = theta_0 in every round (Definition 2.5)."""
    require_instance(instance, "stochastic")
    made = make(
        "stochastic", instance.problem, [instance.theta], nature.FIXED, noise=noise, sigma=sigma, stochastic=True
    )
    made.require_losses(made.tables[0])
    return made


def stacked(instance: Instance, *, noise: Noise = "bernoulli", sigma: float = 0.25) -> Environment:
    """Make the stochastic regime, but hide from the learner that arms share a parameter (Theorem 4.5).

    Every context has one vector, the features of all its arms, and every arm a parameter of its own: the same mean
    losses in d K dimensions, or as many as the contexts fill.
    """
    require_instance(instance, "stacked")
    problem = instance.problem
    K = problem.n_arms
    x = problem.features.reshape(problem.n_contexts, -1)
    wide = Problem.from_arm_independent(x, probabilities=problem.probabilities, arms=K, available=problem.available)
    theta = stacked_parameters(instance.theta, K).ravel()
    made = make("stacked", wide, [theta], nature.FIXED, noise=noise, sigma=sigma, stochastic=True)
    made.require_losses(made.tables[0])
    return made


def lower_bound(
    *, arms: int, horizon: int, seed: int = 0, noise: Noise = "bernoulli", sigma: float = 0.25
) -> Environment:
    """Make the classical hard instance: equal arms but one, better by sqrt(K/T)/2; which one is drawn by ``seed``."""
    whole(arms, 2, "arms")
    whole(horizon, 1, "horizon")
    whole(seed, 0, "seed")
    theta = np.zeros(arms)
    theta[np.random.default_rng(seed).integers(arms)] = -min(1.0, 0.5 * math.sqrt(arms / horizon))
    problem = Problem(features=np.eye(arms)[None], probabilities=[1.0])
    return make("lower bound", problem, [theta], nature.FIXED, noise=noise, sigma=sigma, stochastic=True)
