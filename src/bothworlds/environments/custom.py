"""Environments from a user's kernel functions, as fast as the built-in ones."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.environments import dynamics
from bothworlds.environments.dynamics import NatureKernel
from bothworlds.environments.environment import KERNEL, Environment, Noise, float_array
from bothworlds.kernels.jit.compile import kernel
from bothworlds.problem import Problem
from bothworlds.problem.checks import whole

as_kernel = lru_cache(maxsize=256)(kernel)  # each function is marked once, for all its environments


def kernel_environment(
    problem: Problem,
    thetas: Any,
    *,
    decide: Callable[..., None],
    react: Callable[..., None] | None = None,
    noisy: Callable[..., float] | None = None,
    state_size: int = 0,
    constants: Sequence[float] = (),
    name: str = "own rule",
    noise: Noise = "bernoulli",
    sigma: float = 0.25,
    stochastic: bool = False,
    budget: float = 0.0,
    changing: bool = False,
) -> Environment:
    """Make an environment from kernel functions; they run compiled in `simulate` and interpreted in `replay`.

    Parameters
    ----------
    problem, thetas
        The learner's problem, and the J parameters (J, features) that the rule combines.
    decide
        ``decide(nature, t, key)`` writes the J coefficients of round t into ``nature.c``. It may read
        ``nature.expected_loss`` (J,), the learner's expected loss under each parameter in this round,
        ``nature.constants``, and ``nature.state``, and draw random numbers with ``two_uniforms(key, t, NATURE, j)`` of
        `bothworlds.kernels.random`. At t = 1 the state is all zeros.
    react
        ``react(nature, a)`` receives the arm that was played and may write ``nature.state``.
    noisy
        ``noisy(nature, mean, u, key, t)`` returns a loss in [-1, 1] with that mean; u is a uniform of the round. By
        default ``noise`` and ``sigma`` determine the noise.
    state_size, constants
        Number of floats in ``nature.state``, and the constants of the rule.
    stochastic, budget
        Whether thetas[0] is the fixed parameter theta_0 of gaps and comparator, and the corruption budget; with a
        budget, ``nature.state[0]`` must be the corruption so far.
    changing
        Whether reports judge learners by dynamic regret, against the best arm of every round.

    Kernel functions do not allocate or raise, and use ``math`` and written-out products. Mark functions that they call
    with `bothworlds.kernels.kernel`. `check_environment` reports violations.

    Examples
    --------
    >>> import bothworlds as bw
    >>> def weekend(nature, t, key):
    ...     nature.c[0] = 1.0 if t % 7 < 5 else 0.0
    ...     nature.c[1] = 1.0 - nature.c[0]
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1])
    >>> world = kernel_environment(problem, [[0.3, 0.5], [0.5, 0.3]], decide=weekend)
    >>> path = bw.replay(world, bw.FixedPolicy(), horizon=14)
    >>> path.sums[-1].tolist()
    [10.0, 4.0]
    """
    environment = Environment(
        name=name,
        problem=problem,
        thetas=float_array(thetas),
        constants=_constants_array(constants),
        noise=noise,
        sigma=sigma,
        stochastic=stochastic,
        budget=budget,
        reacts=react is not None,
        changing=changing,
        kernel=_kernel_functions(decide, react, noisy),
        state_size=whole(state_size, 0, "state_size"),
    )
    _check_budget(environment)
    small = bool((np.abs(environment.tables[:, problem.available]) <= 1.0 + 0.25 * dynamics.SLACK).all())
    checked = (_range_checked_unless_average if small else _range_checked)(decide)
    environment = replace(environment, kernel=environment.kernel._replace(decide=checked))
    if stochastic:
        environment.require_mean_losses(environment.tables[0], "thetas[0]")
    return environment


def _kernel_functions(
    decide: Callable[..., None], react: Callable[..., None] | None, noisy: Callable[..., float] | None
) -> NatureKernel:
    """Check the functions of a rule and mark them as kernels; the built-in ones replace those left out."""
    _check_function(decide, 3, "decide(nature, t, key)")
    _check_function(react or dynamics.no_reaction, 2, "react(nature, a)")
    _check_function(noisy or dynamics.noisy, 5, "noisy(nature, mean, u, key, t)")
    return KERNEL._replace(
        decide=as_kernel(decide),
        react=dynamics.no_reaction if react is None else as_kernel(react),
        noisy=dynamics.noisy if noisy is None else as_kernel(noisy),
    )


@lru_cache(maxsize=256)
def _range_checked(decide: Callable[..., None]) -> Callable[..., None]:
    """Build a rule that checks the mean losses of all contexts and arms after each decision."""
    rule, note_outside = as_kernel(decide), dynamics.note_outside

    def decide_and_check(dynamics: dynamics.Nature, t: int, key: int) -> None:
        rule(dynamics, t, key)
        note_outside(dynamics)

    return kernel(decide_and_check)


@lru_cache(maxsize=256)
def _range_checked_unless_average(decide: Callable[..., None]) -> Callable[..., None]:
    """Build a rule that checks mean losses unless sum_j |c_j| <= 1; for parameters that each stay in [-1, 1]."""
    rule, is_average, note_outside = as_kernel(decide), dynamics.is_average, dynamics.note_outside

    def decide_and_check(dynamics: dynamics.Nature, t: int, key: int) -> None:
        rule(dynamics, t, key)
        if not is_average(dynamics.c):
            note_outside(dynamics)

    return kernel(decide_and_check)


def _constants_array(constants: Sequence[float]) -> Floats:
    """Return the constants of a rule as an array; refuse anything but a list of finite numbers."""
    array = np.array(constants, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError(f"constants must be a list of finite numbers; got {constants!r}")
    return array


def _check_budget(environment: Environment) -> None:
    """Refuse a corruption budget without a fixed parameter or without a state that counts the corruption."""
    if environment.budget and not (
        environment.stochastic and environment.state_size and 0.0 < environment.budget < np.inf
    ):
        raise ValueError(
            f"a corruption budget must be positive and finite, and needs stochastic=True and a state_size of at least "
            f"1, state[0] being the corruption so far; got budget={environment.budget!r}"
        )


def _check_function(function: Any, n_arguments: int, form: str) -> None:
    """Raise ValueError unless this is a plain function that takes the given number of arguments."""
    try:
        inspect.signature(function).bind(*range(n_arguments))
    except (TypeError, ValueError) as error:
        raise ValueError(f"a rule must be a function {form}; got {function!r}: {error}") from None
    if not inspect.isfunction(function):
        raise ValueError(f"a rule must be a plain function {form}; got {function!r}")
