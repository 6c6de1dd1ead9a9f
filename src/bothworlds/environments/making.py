"""Shared by the functions that make environments."""

from typing import Any

import numpy as np

from bothworlds.environments.environment import Environment, Noise
from bothworlds.kernels.arrays import Floats
from bothworlds.problem import Problem
from bothworlds.problem.checks import whole

FOR_EVER = 2**53  # whole numbers up to here are floats exactly, and no run has more rounds


def make(
    name: str, problem: Problem, thetas: Any, kind: int, noise: Noise, sigma: float, constants: Any = (), **truth: Any
) -> Environment:
    """Make an environment from plain values; ``truth`` is what it says about itself."""
    rule: dict[str, Any] = {"thetas": thetas, "kind": kind, "constants": np.array(constants, dtype=np.float64)}
    return Environment(name=name, problem=problem, noise=noise, sigma=sigma, **rule, **truth)


def one_at_a_time(*values: Any) -> Environment:
    """Make an environment in which one of the parameters is in force at a time."""
    made = make(*values)
    made.require_losses(np.abs(made.tables).max(axis=0), "a parameter")
    return made


def rounds_of(value: Any, least: int, name: str) -> float:
    """Return a number of rounds as a constant of a rule; more than any run has are as many as that.

    >>> rounds_of(7, 1, "every"), rounds_of(10**400, 1, "every") == FOR_EVER
    (7.0, True)
    """
    return float(min(whole(value, least, name), FOR_EVER))


def opposite(theta: Floats) -> Floats:
    """Return theta and minus theta, the simplest pair for an adversary."""
    return np.stack([theta, -theta])
