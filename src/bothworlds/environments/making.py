"""Shared by the functions that make environments."""

from typing import Any

import numpy as np

from bothworlds.environments.environment import Environment, Noise
from bothworlds.kernels.arrays import Floats
from bothworlds.problem import Problem


def make(
    name: str,
    problem: Problem,
    thetas: Any,
    kind: int,
    noise: Noise,
    sigma: float,
    numbers: list[float] | None = None,
    *,
    stochastic: bool = False,
    budget: float = 0.0,
    reacts: bool = False,
) -> Environment:
    """Make an environment from plain values."""
    return Environment(
        name=name,
        problem=problem,
        thetas=np.array(thetas, dtype=np.float64),
        kind=kind,
        numbers=np.array(numbers or [], dtype=np.float64),
        noise=noise,
        sigma=sigma,
        stochastic=stochastic,
        budget=budget,
        reacts=reacts,
    )


def one_at_a_time(
    name: str, problem: Problem, thetas: Any, kind: int, noise: Noise, sigma: float, numbers: list[float]
) -> Environment:
    """Make an environment in which one of the parameters is in force at a time."""
    made = make(name, problem, thetas, kind, noise, sigma, numbers)
    made.require_losses(np.abs(made.tables).max(axis=0), "a parameter")
    return made


def opposite(theta: Floats) -> Floats:
    """Return theta and minus theta, the simplest pair for an adversary."""
    return np.stack([theta, -theta])
