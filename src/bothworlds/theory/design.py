"""Exploration designs: a policy e*, its coverage lambda, and a certified bound on the best possible coverage."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, Self

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.problem import Problem
from bothworlds.problem.checks import are_distributions, is_number
from bothworlds.theory import designs

Kind = Literal["joint-g", "joint-d", "per-context", "uniform"]
KINDS: tuple[Kind, ...] = ("joint-g", "joint-d", "per-context", "uniform")


@dataclass(frozen=True, eq=False)
class Design:
    """An exploration policy (Assumption 2.4).

    Attributes
    ----------
    kind
        The method that made it: "joint-g", "joint-d", "per-context", "uniform", or "own" for a given policy.
    exploration
        e*(a|x), shape (contexts, arms).
    coverage
        lambda: z^T Sigma(e*)^-1 z <= 1/lambda for all features z. Computed, unless the worst-case bound was requested.
    coverage_limit
        No exploration policy of this problem has a larger lambda than this.
    """

    kind: str
    exploration: Floats
    coverage: float
    coverage_limit: float

    @property
    def gap(self) -> float:
        """The certified largest fraction by which 1/lambda exceeds its optimum."""
        return self.coverage_limit / self.coverage - 1.0

    @classmethod
    def of(cls, problem: Problem, exploration: Any) -> Self:
        """Check a user's own exploration policy and compute its coverage."""
        e = np.array(exploration, dtype=np.float64)
        if e.shape != problem.available.shape:
            raise ValueError(f"exploration must have shape {problem.available.shape}; got {e.shape}")
        if not are_distributions(e, within=1e-9):
            raise ValueError("each row of exploration must be a probability distribution over the arms")
        if e[~problem.available].any():
            raise ValueError("exploration gives probability to an arm that is not offered")
        return cls("own", e, *_coverage_and_limit(problem, e))

    def __repr__(self) -> str:
        return f"Design({self.kind!r}, coverage={self.coverage:.4g}, gap={self.gap:.2%})"


def design_for(problem: Problem, chosen: Kind | Design) -> Design:
    """Return the design of a kind, or check that a given one fits the problem."""
    if isinstance(chosen, Design):
        return _checked(chosen, problem)
    cached = _cached_design(problem, chosen)
    return replace(cached, exploration=cached.exploration.copy())


def _checked(given: Design, problem: Problem) -> Design:
    """Return a design unchanged; raise ValueError if its coverage is not valid for the problem."""
    true = Design.of(problem, given.exploration).coverage
    if not 0.0 < given.coverage <= true * (1.0 + 1e-3):
        raise ValueError(
            f"this design claims a coverage of {given.coverage:.4g}, but has {true:.4g} on this problem: it was made "
            "for another one. Make a new one with design(problem)"
        )
    return given


@lru_cache(maxsize=8)  # several algorithms, and restarted policies, explore the same problem
def _cached_design(problem: Problem, kind: Kind) -> Design:
    return design(problem, kind)


def check_design(chosen: object) -> None:
    """Raise ValueError for an option that is neither a design nor the name of a kind."""
    if not isinstance(chosen, Design) and chosen not in KINDS:
        raise ValueError(f"unknown design {chosen!r}; choose one of {', '.join(KINDS)}")


def design(
    problem: Problem,
    kind: Kind = "joint-g",
    *,
    coverage: Literal["computed", "bound"] = "computed",
    tolerance: float = 0.001,
) -> Design:
    """Compute an exploration policy and its coverage.

    Parameters
    ----------
    kind
        "joint-g" maximises lambda itself, "joint-d" the determinant of Sigma(e*), "per-context" is the paper's choice
        (a G-optimal design in each context on its own), "uniform" plays all offered arms equally often.
    coverage
        "bound" replaces the computed lambda by the paper's worst case 1/(d L), which only holds for "per-context".
    tolerance
        "joint-g" stops when 1/lambda is certified to be within this fraction of its optimum.

    >>> p = Problem(features=[[[1, 0], [0, 1], [1, 1]]], probabilities=[1])
    >>> design(p).coverage <= 0.5
    True
    """
    z, g, offered = problem.span.coordinates, problem.probabilities, problem.available
    allowed: Any = tolerance
    if not is_number(allowed) or not 0.0 <= allowed < np.inf:
        raise ValueError(
            f"tolerance must be a number of at least 0: how far 1/lambda may exceed its optimum; got {tolerance!r}"
        )
    if coverage not in ("computed", "bound"):
        raise ValueError(f"coverage must be 'computed' or 'bound'; got {coverage!r}")
    if coverage == "bound" and kind != "per-context":
        raise ValueError(f"the bound lambda = 1/(d L) holds for the design 'per-context' only, not for {kind!r}")
    if kind not in KINDS:
        raise ValueError(f"unknown design {kind!r}; choose one of {', '.join(KINDS)}")
    tabular = designs.is_tabular(z, offered)
    if kind == "joint-g" and not tabular:
        optimum = designs.joint_g_optimal(z, g, offered, tolerance=tolerance)
        return Design(kind, optimum.e, 1.0 / optimum.value, 1.0 / optimum.lower_bound)
    makers = {
        "joint-d": designs.joint_d_optimal,
        "per-context": designs.per_context_g_optimal,
        "uniform": designs.uniform,
    }
    e = (designs.uniform if tabular else makers[kind])(z, g, offered)
    computed, limit = _coverage_and_limit(problem, e)
    if coverage == "bound":
        return Design(kind, e, min(computed, 1.0 / (problem.dimension * problem.rarity)), limit)
    return Design(kind, e, computed, limit)


def _coverage_and_limit(problem: Problem, e: Floats) -> tuple[float, float]:
    """Return lambda of an exploration policy, and an upper bound on the lambda of any other."""
    z, g, offered = problem.span.coordinates, problem.probabilities, problem.available
    if designs.is_tabular(z, offered) and e[offered].all():
        return designs.tabular_coverage(g, e, offered), designs.tabular_limit(g, offered)
    return designs.coverage(z, g, e), 1.0 / designs.lower_bound(z, g, e)
