"""`Facts`: all inputs of the bounds, validated."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bothworlds.problem import Problem
from bothworlds.problem.checks import is_number
from bothworlds.theory.bounds.bound import LONGEST, Bound, Formula
from bothworlds.theory.bounds.transformation import Transformation, transformation
from bothworlds.theory.design import Design, Kind, check_design, design_for

LEAST_MARGIN = 1e-300


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A problem, the coverage lambda of a design, the horizon, and known properties of the environment.

    ``gap`` is None where no gap is known; only adversarial bounds are stated then. ``margin`` is infinite where every
    gap is at least ``gap``.
    """

    problem: Problem
    coverage: float
    horizon: int
    gap: float | None
    margin: float
    corruption: float
    transformed: Transformation

    @property
    def regime(self) -> str:
        """The name of the regime that gap, margin and corruption describe."""
        if math.isinf(self.margin):
            return "corrupted" if self.corruption > 0.0 else "stochastic"
        return "margin, corrupted" if self.corruption > 0.0 else "margin"

    def bound(
        self,
        name: str,
        source: str,
        formula: Formula,
        statement: str,
        *assumptions: str,
        regime: str = "adversarial",
        constants_known: bool = True,
        lower: bool = False,
    ) -> Bound:
        """Return a `Bound`, evaluated at the horizon."""
        return Bound(
            name=name,
            source=source,
            regime=regime,
            horizon=self.horizon,
            value=float(formula(np.array([float(self.horizon)]))[0]),
            statement=statement,
            assumptions=assumptions,
            constants_known=constants_known,
            lower=lower,
            formula=formula,
        )


def facts_of(problem: Problem, *, horizon: Any, gap: Any, margin: Any, corruption: Any, design: Kind | Design) -> Facts:
    """Check the arguments of `bounds`, compute coverage and transformation; raise ValueError for invalid arguments."""
    if not isinstance(problem, Problem):
        raise ValueError(f"bounds are for a Problem; got {type(problem).__name__}. For an environment: world.problem")
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or not 1 <= horizon <= LONGEST:
        raise ValueError(f"horizon must be a whole number from 1 to 10**15; got {horizon!r}")
    if gap is not None and not 0.0 < _number(gap, "gap") <= 2.0:
        raise ValueError(f"gap is the smallest difference of mean losses, in (0, 2]; got {gap!r}")
    if margin is not None and not _number(margin, "margin") >= LEAST_MARGIN:
        raise ValueError(
            f"margin is the exponent beta of Definition 2.5, positive (1e-300 at least) or infinite; got {margin!r}"
        )
    if corruption is not None and not 0.0 <= _number(corruption, "corruption") < math.inf:
        raise ValueError(f"corruption is a total C, finite and not negative; got {corruption!r}")
    if gap is None and (margin is not None or corruption is not None):
        raise ValueError("margin and corruption refer to a gap Delta_*: give gap= as well")
    check_design(design)
    return Facts(
        problem=problem,
        coverage=design_for(problem, design).coverage,
        horizon=int(horizon),
        gap=None if gap is None else float(gap),
        margin=math.inf if margin is None else float(margin),
        corruption=0.0 if corruption is None else float(corruption),
        transformed=transformation(problem),
    )


def _number(value: Any, name: str) -> float:
    """Return an option as a float; raise ValueError if it is not a number."""
    if not is_number(value) or math.isnan(float(value)):
        raise ValueError(f"{name} must be a number or None; got {value!r}")
    return float(value)
