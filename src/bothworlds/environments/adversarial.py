"""The adversarial regime: parameters that change, obliviously or in answer to the learner."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from bothworlds.environments import nature
from bothworlds.environments.environment import Environment, Noise, rows_of
from bothworlds.environments.making import FOR_EVER, make, one_at_a_time, require_two, rounds_of
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import even_play
from bothworlds.problem import Problem
from bothworlds.problem.checks import is_number, whole


def alternating(
    problem: Problem, thetas: Any, *, every: int = 1, noise: Noise = "bernoulli", sigma: float = 0.25
) -> Environment:
    """Make an adversary that goes round a list of parameters, ``every`` rounds each."""
    length = rounds_of(every, 1, "every")
    return one_at_a_time("alternating", problem, thetas, nature.CYCLE, noise=noise, sigma=sigma, constants=[length])


def growing_phases(
    problem: Problem,
    thetas: Any,
    *,
    first: int = 100,
    growth: float = 1.6,
    noise: Noise = "bernoulli",
    sigma: float = 0.25,
) -> Environment:
    """Make an adversary whose phases grow: what was learnt in the last phase is wrong in the next, longer one."""
    length = rounds_of(first, 1, "first")
    if not is_number(growth) or not 1.0 <= growth <= 1e6:
        raise ValueError(f"growth must lie between 1 and 1e6; got {growth!r}")
    return one_at_a_time(
        "growing phases", problem, thetas, nature.GROWING, noise=noise, sigma=sigma, constants=[length, growth]
    )


def flip(problem: Problem, thetas: Any, *, at: int, noise: Noise = "bernoulli", sigma: float = 0.25) -> Environment:
    """Make an adversary that changes once: the first parameter up to round ``at``, the second from then on."""
    last = rounds_of(at, 0, "at")
    require_two(thetas, "a flip")
    return one_at_a_time("flip", problem, thetas, nature.SWITCH, noise=noise, sigma=sigma, constants=[last])


def sine(
    problem: Problem, thetas: Any, *, period: float, noise: Noise = "bernoulli", sigma: float = 0.25
) -> Environment:
    """Make a drift: theta_t = sin(2 pi t/period) theta_1 + cos(2 pi t/period) theta_2."""
    if not is_number(period) or not period > 0.0:
        raise ValueError(f"a sine needs a positive period; got {period!r}")
    require_two(thetas, "a sine")
    made = make("sine", problem, thetas, nature.SINE, noise=noise, sigma=sigma, constants=[period])
    made.require_losses(np.sqrt((made.tables**2).sum(axis=0)), "the largest amplitude")
    return made


def random_walk(
    problem: Problem, *, step: float = 0.01, seed: int = 0, noise: Noise = "bernoulli", sigma: float = 0.25
) -> Environment:
    """Make a drift: every coordinate of theta walks by +-step of its range, reflected at the ends.

    The walk is drawn by ``seed`` and the same in all replications.
    """
    if not is_number(step) or not 0.0 < step <= 1.0:
        raise ValueError(f"step must lie in (0, 1]; got {step!r}")
    basis = problem.span.basis.T  # rows: parameters that read off one coordinate of the span
    reach = np.abs(np.einsum("xai,ji->jxa", problem.features, basis)).max(axis=(1, 2))
    thetas = basis / (reach * len(basis))[:, None]
    start = np.random.default_rng(whole(seed, 0, "seed")).uniform(-1.0, 1.0, size=len(basis))
    made = make(
        "random walk",
        problem,
        thetas,
        nature.WALK,
        noise=noise,
        sigma=sigma,
        constants=[step, _key_of(seed), *start.tolist()],
    )
    made.require_losses(np.abs(made.tables).sum(axis=0))
    return made


def _key_of(seed: int) -> float:
    """Return the key of a walk, which a float must hold exactly: the seed, or a hash of one that is too large."""
    return float(seed if seed < FOR_EVER else np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> 11)


def given(problem: Problem, thetas: Any, *, noise: Noise = "bernoulli", sigma: float = 0.25) -> Environment:
    """Make an adversary from an array of parameters (T, features), one row a round."""
    rows = rows_of(thetas)
    d = problem.features.shape[2]
    if rows.ndim != 2 or rows.shape[1] != d or not len(rows) or not np.isfinite(rows).all():
        raise ValueError(f"thetas must be finite and have shape (rounds, {d}); got {rows.shape}")
    made = Environment(
        name="given", problem=problem, thetas=np.eye(d), kind=nature.GIVEN, path=rows, noise=noise, sigma=sigma
    )
    for block in np.array_split(rows, max(1, len(rows) * made.tables.size // 10**7)):
        made.require_losses(np.abs(np.einsum("tj,jxa->txa", block, made.tables)).max(axis=0), "a row of thetas")
    return made


def from_function(
    problem: Problem,
    theta: Callable[[int, Floats], Any],
    *,
    name: str = "from a function",
    noise: Noise = "bernoulli",
    sigma: float = 0.25,
) -> Environment:
    """Make an adversary from a Python function (t, probabilities) -> theta_t; it is played in Python, slowly.

    ``probabilities`` is the learner's current table pi_t, shape (contexts, arms).
    """
    thetas = np.eye(problem.features.shape[2])
    return Environment(
        name=name, problem=problem, thetas=thetas, kind=nature.GIVEN, noise=noise, sigma=sigma, function=theta
    )


def adaptive_adversary(
    problem: Problem, thetas: Any, *, noise: Noise = "bernoulli", sigma: float = 0.25
) -> Environment:
    """Make an adversary that sees pi_t and takes the parameter under which the learner does worst.

    Worst is the learner's expected loss less that of uniform play under the same parameter.
    """
    made = one_at_a_time("adaptive adversary", problem, thetas, nature.WORST, noise=noise, sigma=sigma)
    pi = even_play(problem.available)
    return replace(made, constants=np.einsum("x,xa,jxa->j", problem.probabilities, pi, made.tables))
