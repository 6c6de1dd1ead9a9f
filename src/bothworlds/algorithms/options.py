"""Options that several algorithms share, and their checks."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from bothworlds.problem import Problem, SampledProblem
from bothworlds.problem.checks import is_number
from bothworlds.sampled import Covariance, ResampledCovariance, ReservoirCovariance
from bothworlds.sampled.kernels import BatchKernels

MOST = 2**62  # limit of whole-number options


def check_positive(part: object, name: str) -> None:
    """Store an option as a float; raise ValueError unless it is positive and finite."""
    value = getattr(part, name)
    if not is_number(value) or not 0.0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite; got {value!r}")
    object.__setattr__(part, name, float(value))


def check_not_negative(part: object, name: str) -> None:
    """Store an option as a float; raise ValueError unless it is nonnegative and finite."""
    value = getattr(part, name)
    if not is_number(value) or not 0.0 <= value < math.inf:
        raise ValueError(f"{name} must not be negative and must be finite; got {value!r}")
    object.__setattr__(part, name, float(value))


def check_within(part: object, name: str, low: float, high: float, *, closed: bool = False) -> None:
    """Store an option as an int or float; raise ValueError outside (low, high), or [low, high) if ``closed``.

    An integer stays one: files compare the repr of an algorithm.
    """
    value = getattr(part, name)
    if not is_number(value) or not (low < value < high or (closed and value == low)):
        least = f"of at least {low:g}" if closed else f"above {low:g}"
        most = "finite" if high == math.inf else f"below {high:g}"
        raise ValueError(f"{name} must be a number {least} and {most}; got {value!r}")
    object.__setattr__(part, name, value if isinstance(value, int) else float(value))


def check_whole(part: object, name: str, *, least: int = 1) -> None:
    """Store an option as an int; raise ValueError unless it is a whole number of at least ``least``."""
    value = getattr(part, name)
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value < MOST:
        raise ValueError(f"{name} must be a whole number of at least {least} (and below 2**62); got {value!r}")
    object.__setattr__(part, name, int(value))


DEFAULT_BIAS = 0.01


@dataclass(frozen=True, kw_only=True)
class MGR:
    """Matrix Geometric Resampling instead of the exact inverse: Sigma_t^-1 phi from random draws.

    The estimate is biased by a factor of at most exp(-gamma_t lambda samples/2). The paper proves nothing for
    LC-Tsallis-INF with it; `RealLinExp3` and `FTRLLC` were published with it. Use it to measure the value of the exact
    inverse.

    Parameters
    ----------
    samples
        Draws per decision; if left out, as many as keep the bias below ``bias``, a number that grows like 1/gamma_t.
    bias
        Largest relative bias of an estimated loss. If both are left out: the number of draws of the algorithm's
        theorem, and a bias of 0.01 for LC-Tsallis-INF, which has no such theorem.

    >>> from bothworlds import LCTsallisINF
    >>> LCTsallisINF(tuning="paper", covariance=MGR(bias=0.001)).covariance
    MGR(samples=None, bias=0.001)
    """

    samples: int | None = None
    bias: float | None = None

    def __post_init__(self) -> None:
        if self.samples is not None:
            check_whole(self, "samples")
        if self.bias is not None:
            check_positive(self, "bias")
        if self.bias is not None and self.bias >= 1.0:
            raise ValueError(f"bias must lie between 0 and 1; got {self.bias!r}")


@dataclass(frozen=True, kw_only=True)
class Reservoir:
    """For a `SampledProblem`: Sigma_t averaged over a reservoir of the contexts so far.

    Faster than `MGR`, which draws new contexts for every decision. Its price: the average is over ``size`` contexts, so
    estimates have a relative error of the order of sqrt(d/size) that does not average out over rounds, and the
    reservoir's contexts are among those that Theta was learned from. The bound on the size of an estimated loss is
    kept.

    Parameters
    ----------
    size
        Number of contexts in the reservoir, which starts with those of the problem's sample.

    >>> Reservoir()
    Reservoir(size=1000)
    """

    size: int = 1000

    def __post_init__(self) -> None:
        check_whole(self, "size")


CovarianceChoice = Literal["exact", "reservoir"] | MGR | Reservoir


def check_choice(part: Any, name: str, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless an option is one of the choices."""
    if getattr(part, name) not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {getattr(part, name)!r}")


def check_contexts(part: Any) -> None:
    """Check the option ``contexts``, and reject other options that have no effect with its value."""
    check_choice(part, "contexts", ("known", "empirical"))
    check_not_negative(part, "scale")
    if part.contexts == "empirical" and part.design != "joint-g":
        raise ValueError("a design needs the probabilities of contexts, which contexts='empirical' does not use")
    if part.contexts == "known" and part.scale != 1.0:
        raise ValueError("scale shrinks the bonus and the ridge of contexts='empirical'; contexts='known' has neither")


def check_covariance(part: Any, *, reservoir: bool = False) -> None:
    """Raise ValueError unless the covariance is "exact", MGR without a bias, or, if allowed, a reservoir."""
    value = part.covariance
    if value != "exact" and not isinstance(value, MGR | Reservoir if reservoir else MGR):
        known = "'exact', 'reservoir', Reservoir(...) or MGR(...)" if reservoir else "'exact' or MGR(...)"
        raise ValueError(f"covariance must be {known}; got {value!r}")
    if isinstance(value, MGR) and value.bias is not None:
        raise ValueError("the theorem sets the number of draws here: use MGR(), or MGR(samples=...) for a fixed one")


def take_reservoir(part: Any) -> None:
    """Replace the word "reservoir" by ``Reservoir()``."""
    if part.covariance == "reservoir":
        object.__setattr__(part, "covariance", Reservoir())


def refuse_reservoir(part: Any, problem: Problem) -> None:
    """Raise ValueError for a reservoir on a problem that lists its contexts."""
    if isinstance(part.covariance, Reservoir):
        raise ValueError(f"the contexts of {problem} are listed: use covariance='exact' instead of a reservoir")


def sampled_covariance(part: Any) -> Callable[[SampledProblem, BatchKernels], Covariance]:
    """Return a function that builds the substitute for Sigma_t^-1 on a sampled problem."""
    match part.covariance:
        case Reservoir(size=size):
            return lambda problem, kernels: ReservoirCovariance(problem, kernels, size=size)
        case MGR(samples=samples, bias=bias):
            log_bias = -math.log(bias or DEFAULT_BIAS)
            return lambda problem, kernels: ResampledCovariance(problem, kernels, samples=samples, log_bias=log_bias)
    raise ValueError(
        "the exact covariance needs a list of contexts, which a sampled problem does not have: choose "
        "covariance=Reservoir() or covariance=MGR()"
    )


def refuse_design(part: Any, default: Any) -> None:
    """Raise ValueError for an exploration design on a problem that has its own exploration policy."""
    if part.design != default:
        raise ValueError("a sampled problem has its own exploration: use SampledProblem(exploration=...), not design=")


def description(part: Any) -> str:
    """Return the repr of an algorithm: its class, and the options that differ from their defaults."""
    values = [(option, getattr(part, option.name)) for option in fields(part)]
    changed = [f"{option.name}={value!r}" for option, value in values if value != option.default]
    return f"{type(part).__name__}({', '.join(changed)})"
