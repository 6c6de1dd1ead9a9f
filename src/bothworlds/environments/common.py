"""Helpers shared by the functions that make environments."""

from collections.abc import Sized
from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.environments.environment import Environment, float_array
from bothworlds.environments.instances import Instance
from bothworlds.problem import Problem
from bothworlds.problem.checks import whole

LARGEST_EXACT = 2**53  # floats represent whole numbers exactly up to here; no run has more rounds


def make(name: str, problem: Problem, thetas: Any, kind: int, *, constants: Any = (), **options: Any) -> Environment:
    """Make an environment from plain values; ``options`` are other fields of `Environment`."""
    numbers = np.array(constants, dtype=np.float64)
    return Environment(name=name, problem=problem, thetas=thetas, kind=kind, constants=numbers, **options)


def one_at_a_time(name: str, problem: Problem, thetas: Any, kind: int, **options: Any) -> Environment:
    """Make an environment that uses a single one of its parameters in every round."""
    environment = make(name, problem, thetas, kind, **options)
    environment.require_mean_losses(np.abs(environment.tables).max(axis=0), "a parameter")
    return environment


def rounds_of(value: Any, least: int, name: str) -> float:
    """Return a number of rounds as a float, at most `LARGEST_EXACT`.

    >>> rounds_of(7, 1, "every"), rounds_of(10**400, 1, "every") == LARGEST_EXACT
    (7.0, True)
    """
    return float(min(whole(value, least, name), LARGEST_EXACT))


def require_two(thetas: Any, word: str) -> None:
    """Raise ValueError unless there are exactly two parameters."""
    count = len(thetas) if isinstance(thetas, Sized) else 0
    if count != 2:
        raise ValueError(f"{word} needs two parameters, one row each; got {count or repr(thetas)}")


def require_instance(value: Any, function: str) -> None:
    """Raise ValueError unless the value is an instance, that is, a problem with its parameter."""
    if not isinstance(value, Instance):
        raise ValueError(
            f"{function} takes an instance, for example Instance(problem, theta); got {type(value).__name__}"
        )


def parameter_of(theta: Any, problem: Problem) -> Floats:
    """Return a parameter as an array; refuse entries that are not finite and a number other than one per feature."""
    array, d = float_array(theta), problem.features.shape[2]
    if array.shape != (d,) or not np.isfinite(array).all():
        raise ValueError(f"theta must have {d} finite entries, one per feature; got shape {array.shape}")
    return array


def opposite(theta: Floats) -> Floats:
    """Return the pair theta and -theta (2, features), the simplest parameters for an adversary."""
    return np.stack([theta, -theta])
