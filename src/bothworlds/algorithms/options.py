"""Options that several algorithms share: covariances, which options go together, and how an algorithm prints."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal

from bothworlds.algorithms.checks import check_not_negative, check_positive, check_whole
from bothworlds.kernels.sampled import Pieces
from bothworlds.problem import Problem, SampledProblem
from bothworlds.sampled import Covariance, ResampledCovariance, SeenCovariance

DEFAULT_BIAS = 0.01


@dataclass(frozen=True, kw_only=True)
class MGR:
    """Matrix Geometric Resampling instead of the exact inverse: Sigma_t^-1 phi from random draws.

    The estimate is biased by a factor of at most exp(-gamma_t lambda samples/2). The paper proves nothing for
    LC-Tsallis-INF with it, `RealLinExp3` and `FTRLLC` were invented with it; use it to see what exactness is worth.

    Parameters
    ----------
    samples
        Draws per decision; if left out, as many as keep the bias below ``bias``, a number that grows like 1/gamma_t.
    bias
        Largest relative bias of an estimated loss. If both are left out, what the algorithm's theorem asks for, and
        0.01 for LC-Tsallis-INF, which has none.

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
    """For a `SampledProblem`: Sigma_t averaged over a reservoir of contexts seen so far.

    Faster than `MGR`, which draws anew for every decision. What is lost: the average is over ``size`` contexts, so
    estimates are off by a relative error of the order of sqrt(d/size) that does not average out over rounds, and the
    contexts in it are among those that Theta was learnt from. The bound on the size of an estimated loss is kept.

    Parameters
    ----------
    size
        How many contexts it holds; it begins with those of the problem's sample.

    >>> Reservoir()
    Reservoir(size=1000)
    """

    size: int = 1000

    def __post_init__(self) -> None:
        check_whole(self, "size")


CovarianceChoice = Literal["exact", "reservoir"] | MGR | Reservoir


def check_choice(part: Any, name: str, choices: tuple[str, ...]) -> None:
    """Refuse an option that is none of the choices."""
    if getattr(part, name) not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {getattr(part, name)!r}")


def check_contexts(part: Any) -> None:
    """Refuse an unknown law of contexts, and options that have no meaning under one."""
    check_choice(part, "contexts", ("known", "empirical"))
    check_not_negative(part, "scale")
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


def description(part: Any) -> str:
    """Return the repr of an algorithm: its class, and the options that have no default or differ from it."""
    values = [(option, getattr(part, option.name)) for option in fields(part)]
    changed = [f"{option.name}={value!r}" for option, value in values if value != option.default]
    return f"{type(part).__name__}({', '.join(changed)})"
