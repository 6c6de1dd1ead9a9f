"""Environments of the stochastic regime: one parameter for all rounds."""

import math

import numpy as np

from bothworlds.environments import dynamics
from bothworlds.environments.common import make, require_instance
from bothworlds.environments.environment import Environment, Noise
from bothworlds.environments.instances import Instance
from bothworlds.problem import Problem, stacked_parameters
from bothworlds.problem.checks import whole


def stochastic(instance: Instance, *, noise: Noise = "bernoulli", sigma: float = 0.25) -> Environment:
    """Make an environment of the stochastic regime: theta_t = theta_0 in every round (Definition 2.5)."""
    require_instance(instance, "stochastic")
    environment = make(
        "stochastic", instance.problem, [instance.theta], dynamics.FIXED, noise=noise, sigma=sigma, stochastic=True
    )
    environment.require_mean_losses(environment.tables[0])
    return environment


def stacked(instance: Instance, *, noise: Noise = "bernoulli", sigma: float = 0.25) -> Environment:
    """Make a stochastic environment that hides from the learner that arms share a parameter (Theorem 4.5).

    Every context has one vector, the features of all its arms, and every arm has its own parameter. Mean losses are
    the same; the dimension is d K, or that of the span of the contexts.
    """
    require_instance(instance, "stacked")
    problem = instance.problem
    K = problem.n_arms
    x = problem.features.reshape(problem.n_contexts, -1)
    wide = Problem.from_arm_independent(x, probabilities=problem.probabilities, arms=K, available=problem.available)
    theta = stacked_parameters(instance.theta, K).ravel()
    environment = make("stacked", wide, [theta], dynamics.FIXED, noise=noise, sigma=sigma, stochastic=True)
    environment.require_mean_losses(environment.tables[0])
    return environment


def lower_bound(
    *, arms: int, horizon: int, seed: int = 0, noise: Noise = "bernoulli", sigma: float = 0.25
) -> Environment:
    """Make the classical hard instance: one arm, drawn with ``seed``, is better than the others by sqrt(K/T)/2."""
    whole(arms, 2, "arms")
    whole(horizon, 1, "horizon")
    whole(seed, 0, "seed")
    theta = np.zeros(arms)
    theta[np.random.default_rng(seed).integers(arms)] = -min(1.0, 0.5 * math.sqrt(arms / horizon))
    problem = Problem(features=np.eye(arms)[None], probabilities=[1.0])
    return make("lower bound", problem, [theta], dynamics.FIXED, noise=noise, sigma=sigma, stochastic=True)
