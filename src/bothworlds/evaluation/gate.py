"""The difference between two policies, and the decision to promote one of them, with its reason."""

import math
from dataclasses import dataclass
from typing import Any

from bothworlds.evaluation.diagnostics import Calibration
from bothworlds.evaluation.intervals import Band, brief
from bothworlds.problem.checks import is_number
from bothworlds.theory.confidence.checks import level_of

CLOSE = 1e-9  # relative tolerance of interval widths: rounding error


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Difference:
    """How much more one policy would have earned than another, per decision.

    ``left_open`` is the width, in the problem's units, that a valid interval keeps however many rows are added: arms
    that the log could not have chosen, and that the two policies play differently, may earn anything in the range of
    rewards. Not a number without whole rows of probabilities.
    """

    name: str
    over: str
    band: Band
    left_open: float

    @property
    def value(self) -> float:
        """The doubly robust estimate of the difference."""
        return float(self.band.estimate[-1])

    @property
    def interval(self) -> tuple[float, float]:
        """The interval after the last row."""
        return self.band.interval

    def __repr__(self) -> str:
        return f"Difference({brief(f'{self.name} over {self.over}', self.value, self.interval)})"


@dataclass(frozen=True)
class Verdict:
    """Whether to promote, and the reason."""

    yes: bool
    sentence: str

    def __bool__(self) -> bool:
        return self.yes


def verdict(difference: Difference, *, by: Any, calibration: Calibration | None) -> Verdict:
    """Return whether the lower bound of a difference exceeds ``by``; never if the log contradicts itself."""
    if not is_number(by) or not math.isfinite(by):
        raise ValueError(f"by must be a finite number, the required improvement in units of rewards; got {by!r}")
    low, high = difference.interval
    band, name, over = difference.band, difference.name, difference.over
    if calibration is not None and calibration.p_value < band.alpha:
        reason = f"arms do not occur as often as logged (p = {calibration.p_value:.1g} at any time)"
        return Verdict(False, f"do not promote {name!r}: {reason}")
    if band.contradicted:
        return Verdict(
            False, f"do not promote {name!r}: the difference changes with time; no single value fits all rows"
        )
    level = f"{level_of(band.alpha)} interval, {band.kind}"
    margin = f"{by:g}" if by else "0"
    finding = f"its value less that of {over!r} lies in [{low:.4g}, {high:.4g}] ({level})"
    if low > by:
        return Verdict(True, f"promote {name!r}: {finding}, above {margin}")
    if high < by:
        return Verdict(False, f"do not promote {name!r}: {finding}, below {margin}")
    undecided = f"do not promote {name!r} yet: {finding}, which does not exclude {margin}"
    return Verdict(False, f"{undecided}; {_remedy(difference, by)}")


def _remedy(difference: Difference, by: float) -> str:
    """Say what may exclude ``by``: more rows can if an end is farther from it than the width they leave open."""
    low, high = difference.interval
    if not difference.left_open > 0.0:
        return "more rows may"
    if max(by - low, high - by) > difference.left_open * (1.0 + CLOSE):
        return "more rows may, or a logging policy that plays the arms that the log could not have chosen"
    return (
        "more rows of the same logging policy say nothing about the arms that it could not have chosen; "
        "a policy that plays those arms may"
    )
