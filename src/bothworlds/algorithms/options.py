"""Checks of options that several algorithms share."""

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from bothworlds.algorithms.tunings import DEFAULT_BIAS, MGR, Reservoir
from bothworlds.kernels.sampled import Pieces
from bothworlds.problem import Problem, SampledProblem
from bothworlds.sampled import Covariance, ResampledCovariance, SeenCovariance

CovarianceChoice = Literal["exact", "reservoir"] | MGR | Reservoir


def check_horizon(part: Any, *, least: int) -> None:
    """Keep the horizon as a plain integer; refuse what is not a whole number of at least ``least``."""
    value = part.horizon
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"horizon must be a whole number of at least {least}; got {value!r}")
    object.__setattr__(part, "horizon", int(value))


def check_choice(part: Any, name: str, choices: tuple[str, ...]) -> None:
    """Refuse an option that is none of the choices."""
    if getattr(part, name) not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {getattr(part, name)!r}")


def check_factor(part: Any, name: str, *, above: float | None = None) -> None:
    """Keep a factor as a plain number; refuse what is not finite and at least 0, or above ``above``."""
    value = getattr(part, name)
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0.0 <= value < math.inf or (above is not None and value <= above):
        least = "of at least 0" if above is None else f"above {above:g}"
        raise ValueError(f"{name} must be a number {least}; got {value!r}")
    object.__setattr__(part, name, float(value))


def check_contexts(part: Any) -> None:
    """Refuse an unknown law of contexts, and options that have no meaning under one."""
    check_choice(part, "contexts", ("known", "empirical"))
    check_factor(part, "scale")
    if part.contexts == "empirical" and part.design != "joint-g":
        raise ValueError("a design needs the probabilities of contexts, which contexts='empirical' does without")
    if part.contexts == "known" and part.scale != 1.0:
        raise ValueError("scale shrinks the bonus and the ridge of contexts='empirical'; known contexts have neither")


def check_covariance(part: Any, *, reservoir: bool = False) -> None:
    """Refuse a covariance that is not "exact", MGR with the theorem's draws or a fixed number, or a reservoir."""
    value = part.covariance
    if value != "exact" and not isinstance(value, MGR | Reservoir if reservoir else MGR):
        known = "'exact', 'reservoir', Reservoir(...) or MGR(...)" if reservoir else "'exact' or MGR(...)"
        raise ValueError(f"covariance must be {known}; got {value!r}")
    if isinstance(value, MGR) and value.bias is not None:
        raise ValueError("the theorem sets the number of draws here: use MGR(), or MGR(samples=...) for a fixed one")


def take_reservoir(part: Any) -> None:
    """Let the word "reservoir" stand for ``Reservoir()``."""
    if part.covariance == "reservoir":
        object.__setattr__(part, "covariance", Reservoir())


def refuse_reservoir(part: Any, problem: Problem) -> None:
    """Refuse a reservoir where the contexts are listed."""
    if isinstance(part.covariance, Reservoir):
        raise ValueError(f"the contexts of {problem} are listed: 'exact' does better than a reservoir of some of them")


def sampled_covariance(part: Any) -> Callable[[SampledProblem, Pieces], Covariance]:
    """Return what makes the stand-in for Sigma_t^-1 on a sampled problem."""
    match part.covariance:
        case Reservoir(size=size):
            return lambda problem, pieces: SeenCovariance(problem, pieces, size=size)
        case MGR(samples=samples, bias=bias):
            log_bias = -math.log(bias or DEFAULT_BIAS)
            return lambda problem, pieces: ResampledCovariance(problem, pieces, samples=samples, log_bias=log_bias)
    raise ValueError(
        "the exact covariance needs a list of contexts, which a sampled problem does not have: choose "
        "covariance=Reservoir() or covariance=MGR()"
    )


def refuse_design(part: Any, default: Any) -> None:
    """Refuse an exploration design where the problem brings its own exploration policy."""
    if part.design != default:
        raise ValueError("a sampled problem explores by its own policy: SampledProblem(exploration=...), not design=")


def description(part: Any, **defaults: Any) -> str:
    """Return the repr of an algorithm: its class, its horizon, and what differs from the defaults."""
    changed = {name: getattr(part, name) for name, default in defaults.items() if getattr(part, name) != default}
    listed = ", ".join(f"{name}={value!r}" for name, value in {"horizon": part.horizon, **changed}.items())
    return f"{type(part).__name__}({listed})"
