"""Environments of the adversarial regime: parameters change, obliviously or in reaction to the learner."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.environments import dynamics
from bothworlds.environments.common import LARGEST_EXACT, make, one_at_a_time, require_two, rounds_of
from bothworlds.environments.environment import Environment, Noise, float_array
from bothworlds.kernels.contract import even_play
from bothworlds.problem import Problem
from bothworlds.problem.checks import is_number, whole


def alternating(
    problem: Problem, thetas: Any, *, every: int = 1, noise: Noise = "bernoulli", sigma: float = 0.25
) -> Environment:
    """Make an adversary that cycles through a list of parameters, ``every`` rounds each."""
    length = rounds_of(every, 1, "every")
    return one_at_a_time("alternating", problem, thetas, dynamics.CYCLE, noise=noise, sigma=sigma, constants=[length])


def growing_phases(
    problem: Problem,
    thetas: Any,
    *,
    first: int = 100,
    growth: float = 1.6,
    noise: Noise = "bernoulli",
    sigma: float = 0.25,
) -> Environment:
    """Make an adversary with growing phases, each with another parameter than the shorter phase before it."""
    length = rounds_of(first, 1, "first")
    if not is_number(growth) or not 1.0 <= growth <= 1e6:
        raise ValueError(f"growth must lie between 1 and 1e6; got {growth!r}")
    return one_at_a_time(
        "growing phases", problem, thetas, dynamics.GROWING, noise=noise, sigma=sigma, constants=[length, growth]
    )


def flip(problem: Problem, thetas: Any, *, at: int, noise: Noise = "bernoulli", sigma: float = 0.25) -> Environment:
    """Make an adversary that changes once: the first parameter through round ``at``, the second after it."""
    last = rounds_of(at, 0, "at")
    require_two(thetas, "a flip")
    return one_at_a_time("flip", problem, thetas, dynamics.SWITCH, noise=noise, sigma=sigma, constants=[last])


def sine(
    problem: Problem, thetas: Any, *, period: float, noise: Noise = "bernoulli", sigma: float = 0.25
) -> Environment:
    """Make a drift: theta_t = sin(2 pi t/period) theta_1 + cos(2 pi t/period) theta_2."""
    if not is_number(period) or not period > 0.0:
        raise ValueError(f"a sine needs a positive period; got {period!r}")
    require_two(thetas, "a sine")
    environment = make("sine", problem, thetas, dynamics.SINE, noise=noise, sigma=sigma, constants=[period])
    environment.require_mean_losses(np.sqrt((environment.tables**2).sum(axis=0)), "the largest amplitude")
    return environment


def random_walk(
    problem: Problem, *, step: float = 0.01, seed: int = 0, noise: Noise = "bernoulli", sigma: float = 0.25
) -> Environment:
    """Make a drift: every coordinate of theta is a random walk with steps of +-``step`` of its range, reflected.

    ``seed`` determines the path, which is the same in all replications.
    """
    if not is_number(step) or not 0.0 < step <= 1.0:
        raise ValueError(f"step must lie in (0, 1]; got {step!r}")
    basis = problem.span.basis.T  # row j: the parameter whose mean loss is coordinate j in the span
    largest = np.abs(np.einsum("xai,ji->jxa", problem.features, basis)).max(axis=(1, 2))
    thetas = basis / (largest * len(basis))[:, None]
    start = np.random.default_rng(whole(seed, 0, "seed")).uniform(-1.0, 1.0, size=len(basis))
    environment = make(
        "random walk",
        problem,
        thetas,
        dynamics.RANDOM_WALK,
        noise=noise,
        sigma=sigma,
        constants=[step, _key_of(seed), *start.tolist()],
    )
    environment.require_mean_losses(np.abs(environment.tables).sum(axis=0))
    return environment


def _key_of(seed: int) -> float:
    """Return the key of a random walk, exact as a float: the seed, or a hash of a larger seed."""
    return float(seed if seed < LARGEST_EXACT else np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> 11)


def given(
    problem: Problem, thetas: Any, *, changing: bool = False, noise: Noise = "bernoulli", sigma: float = 0.25
) -> Environment:
    """Make an adversary from an array of parameters (T, features), one row per round.

    With ``changing`` reports judge learners by dynamic regret, against the best arm of every round.
    """
    rows = float_array(thetas)
    d = problem.features.shape[2]
    if rows.ndim != 2 or rows.shape[1] != d or not len(rows) or not np.isfinite(rows).all():
        raise ValueError(f"thetas must be finite and have shape (rounds, {d}); got {rows.shape}")
    environment = Environment(
        name="given",
        problem=problem,
        thetas=np.eye(d),
        kind=dynamics.GIVEN,
        path=rows,
        noise=noise,
        sigma=sigma,
        changing=changing,
    )
    for block in np.array_split(rows, max(1, len(rows) * environment.tables.size // 10**7)):
        environment.require_mean_losses(
            np.abs(np.einsum("tj,jxa->txa", block, environment.tables)).max(axis=0), "a row of thetas"
        )
    return environment


def from_function(
    problem: Problem,
    theta: Callable[[int, Floats], Any],
    *,
    name: str = "from a function",
    changing: bool = False,
    noise: Noise = "bernoulli",
    sigma: float = 0.25,
) -> Environment:
    """Make an adversary from a Python function (t, probabilities) -> theta_t; simulations run in Python, slowly.

    ``probabilities`` is the learner's current table pi_t, shape (contexts, arms). With ``changing`` reports judge
    learners by dynamic regret, against the best arm of every round.
    """
    thetas = np.eye(problem.features.shape[2])
    return Environment(
        name=name,
        problem=problem,
        thetas=thetas,
        kind=dynamics.GIVEN,
        noise=noise,
        sigma=sigma,
        function=theta,
        changing=changing,
    )


def adaptive_adversary(
    problem: Problem, thetas: Any, *, noise: Noise = "bernoulli", sigma: float = 0.25
) -> Environment:
    """Make an adversary that sees pi_t and chooses the parameter that is worst for the learner.

    The worst parameter maximizes the learner's expected loss less that of uniform play under the same parameter.
    """
    environment = one_at_a_time("adaptive adversary", problem, thetas, dynamics.WORST, noise=noise, sigma=sigma)
    pi = even_play(problem.available)
    return replace(environment, constants=np.einsum("x,xa,jxa->j", problem.probabilities, pi, environment.tables))
