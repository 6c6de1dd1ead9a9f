"""A user's own nature as kernel text: the same speed as the rules of the package."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from bothworlds.environments import nature
from bothworlds.environments.environment import TEXT, Environment, Noise, rows_of
from bothworlds.environments.nature import NatureText
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.jit.compile import kernel
from bothworlds.problem import Problem
from bothworlds.problem.checks import whole

marked = lru_cache(maxsize=256)(kernel)  # a function is marked once, however many worlds it makes


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
) -> Environment:
    """Make an environment from kernel text; it runs compiled in `simulate` and interpreted in `replay`.

    Parameters
    ----------
    problem, thetas
        What the learner knows, and the J parameters (J, features) that nature combines.
    decide
        ``decide(nature, t, key)`` writes the J coefficients of round t into ``nature.c``. It may read ``nature.hurt``
        (J,), the learner's expected loss under each parameter in this round, ``nature.constants``, and
        ``nature.state``, and draw random numbers with ``two_uniforms(key, t, NATURE, j)`` of
        `bothworlds.kernels.random`. At t = 1 the state is all zeros.
    react
        ``react(nature, a)`` sees the arm that was played and may write ``nature.state``.
    noisy
        ``noisy(nature, mean, u, key, t)`` returns a loss in [-1, 1] with that mean, u being a uniform of the round;
        left out, ``noise`` and ``sigma`` say which.
    state_size, constants
        How many numbers nature remembers in ``nature.state[0]``, ``[1]``, ..., and the constants of the rule.
    stochastic, budget
        Whether thetas[0] is the fixed parameter theta_0 of gaps and comparator, and how much corruption nature may
        spend; then ``nature.state[0]`` says how much it has spent.

    The rule keeps the restrictions of kernel text: no allocation, no exceptions, ``math`` and written-out products;
    functions it calls are marked with `bothworlds.kernels.kernel`. `check_environment` says what is wrong.

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
    made = Environment(
        name=name,
        problem=problem,
        thetas=rows_of(thetas),
        constants=_checked(constants),
        noise=noise,
        sigma=sigma,
        stochastic=stochastic,
        budget=budget,
        reacts=react is not None,
        text=_text(decide, react, noisy),
        state_size=whole(state_size, 0, "state_size"),
    )
    _check_budget(made)
    small = bool((np.abs(made.tables[:, problem.available]) <= 1.0 + 0.25 * nature.SLACK).all())
    made = replace(made, text=made.text._replace(decide=(_glanced_at if small else _watched)(decide)))
    if stochastic:
        made.require_losses(made.tables[0], "thetas[0]")
    return made


def _text(
    decide: Callable[..., None], react: Callable[..., None] | None, noisy: Callable[..., float] | None
) -> NatureText:
    """Check the functions of a rule and make kernel text of them; the package's own stand in for those left out."""
    _check_text(decide, 3, "decide(nature, t, key)")
    _check_text(react or nature.no_reaction, 2, "react(nature, a)")
    _check_text(noisy or nature.noisy, 5, "noisy(nature, mean, u, key, t)")
    return TEXT._replace(
        decide=marked(decide),
        react=nature.no_reaction if react is None else marked(react),
        noisy=nature.noisy if noisy is None else marked(noisy),
    )


@lru_cache(maxsize=256)
def _watched(decide: Callable[..., None]) -> Callable[..., None]:
    """Build the rule that looks, after another has decided, at the mean losses of all contexts and arms."""
    rule, note_outside = marked(decide), nature.note_outside

    def decide_watched(nature: nature.Nature, t: int, key: int) -> None:
        rule(nature, t, key)
        note_outside(nature)

    return kernel(decide_watched)


@lru_cache(maxsize=256)
def _glanced_at(decide: Callable[..., None]) -> Callable[..., None]:
    """Build the same for parameters that stay in [-1, 1] one by one: averages of them need not be looked at."""
    rule, is_average, note_outside = marked(decide), nature.is_average, nature.note_outside

    def decide_watched(nature: nature.Nature, t: int, key: int) -> None:
        rule(nature, t, key)
        if not is_average(nature.c):
            note_outside(nature)

    return kernel(decide_watched)


def _checked(constants: Sequence[float]) -> Floats:
    """Return the constants of a rule as an array; refuse what is not a list of finite numbers."""
    found = np.array(constants, dtype=np.float64)
    if found.ndim != 1 or not np.isfinite(found).all():
        raise ValueError(f"constants must be a list of finite numbers; got {constants!r}")
    return found


def _check_budget(made: Environment) -> None:
    """Refuse a budget of corruption that cannot be accounted for."""
    if made.budget and not (made.stochastic and made.state_size and 0.0 < made.budget < np.inf):
        raise ValueError(
            f"a budget of corruption (here {made.budget!r}) is positive and finite, and needs stochastic=True and "
            "a state_size of at least 1: state[0] says what was spent"
        )


def _check_text(function: Any, count: int, form: str) -> None:
    """Refuse what cannot be called with that many arguments."""
    try:
        inspect.signature(function).bind(*range(count))
    except (TypeError, ValueError) as error:
        raise ValueError(f"a rule is a function {form}; {function!r} is not: {error}") from None
    if not inspect.isfunction(function):
        raise ValueError(f"a rule must be a plain function {form}; got {function!r}")
