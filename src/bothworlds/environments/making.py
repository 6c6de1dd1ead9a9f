"""Shared by the functions that make environments."""

from collections.abc import Sized
from typing import Any

import numpy as np

from bothworlds.environments.environment import Environment, rows_of
from bothworlds.environments.instances import Instance
from bothworlds.kernels.arrays import Floats
from bothworlds.problem import Problem
from bothworlds.problem.checks import whole

FOR_EVER = 2**53  # whole numbers up to here are floats exactly, and no run has more rounds


def make(name: str, problem: Problem, thetas: Any, kind: int, *, constants: Any = (), **rest: Any) -> Environment:
    """Make an environment from plain values; the rest is its noise, and what it says about itself."""
    numbers = np.array(constants, dtype=np.float64)
    return Environment(name=name, problem=problem, thetas=thetas, kind=kind, constants=numbers, **rest)


def one_at_a_time(name: str, problem: Problem, thetas: Any, kind: int, **rest: Any) -> Environment:
    """Make an environment in which one of the parameters is in force at a time."""
    made = make(name, problem, thetas, kind, **rest)
    made.require_losses(np.abs(made.tables).max(axis=0), "a parameter")
    return made


def rounds_of(value: Any, least: int, name: str) -> float:
    """Return a number of rounds as a constant of a rule; more than any run has are as many as that.

    >>> rounds_of(7, 1, "every"), rounds_of(10**400, 1, "every") == FOR_EVER
    (7.0, True)
    """
    return float(min(whole(value, least, name), FOR_EVER))


def require_two(thetas: Any, word: str) -> None:
    """Refuse what are not two parameters, before and after or for sine and cosine."""
    count = len(thetas) if isinstance(thetas, Sized) else 0
    if count != 2:
        raise ValueError(f"{word} needs two parameters, one row each; got {count or repr(thetas)}")


def require_instance(given: Any, word: str) -> None:
    """Refuse what is no instance, a problem say, in which nothing is true yet."""
    if not isinstance(given, Instance):
        raise ValueError(f"{word} takes an instance, Instance(problem, theta) say; got {type(given).__name__}")


def parameter_of(theta: Any, problem: Problem) -> Floats:
    """Return a parameter as an array; refuse one that is not finite or has not one entry per feature."""
    found, d = rows_of(theta), problem.features.shape[2]
    if found.shape != (d,) or not np.isfinite(found).all():
        raise ValueError(f"theta must have {d} finite entries, one per feature; got shape {found.shape}")
    return found


def opposite(theta: Floats) -> Floats:
    """Return theta and minus theta, the simplest pair for an adversary."""
    return np.stack([theta, -theta])
