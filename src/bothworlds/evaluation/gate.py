"""The difference between two policies, and the gate: promote or not, with the reason."""

import math
from dataclasses import dataclass
from typing import Any

from bothworlds.evaluation.bands import Band, brief
from bothworlds.evaluation.diagnostics import Calibration
from bothworlds.problem.checks import is_number
from bothworlds.theory.confidence.checks import level_of

CLOSE = 1e-9  # of widths: what rounding leaves


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Difference:
    """How much more one policy would have earned than another, per decision.

    ``left_open`` is how wide an interval that holds has to stay however many rows come, in the problem's units: arms
    that the log could not have chosen, and that the two play differently, may earn anything in the range of rewards.
    Not a number without whole rows of probabilities.
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
    """Whether to promote, and why."""

    yes: bool
    sentence: str

    def __bool__(self) -> bool:
        return self.yes


def verdict(difference: Difference, *, by: Any, calibration: Calibration | None) -> Verdict:
    """Return whether the lower bound of a difference exceeds ``by``; never if the log contradicts itself."""
    if not is_number(by) or not math.isfinite(by):
        raise ValueError(f"by is how much better it must be, a number in the units of rewards; got {by!r}")
    low, high = difference.interval
    band, name, over = difference.band, difference.name, difference.over
    if calibration is not None and calibration.p_value < band.alpha:
        reason = f"arms do not come as often as logged (p = {calibration.p_value:.1g} at any time)"
        return Verdict(False, f"do not promote {name!r}: {reason}")
    if band.contradicted:
        return Verdict(False, f"do not promote {name!r}: the difference changes with time, no one number fits all rows")
    level = f"{level_of(band.alpha)} interval, {band.kind}"
    than = f"{by:g}" if by else "0"
    found = f"its value less that of {over!r} lies in [{low:.4g}, {high:.4g}] ({level})"
    if low > by:
        return Verdict(True, f"promote {name!r}: {found}, above {than}")
    if high < by:
        return Verdict(False, f"do not promote {name!r}: {found}, below {than}")
    undecided = f"do not promote {name!r} yet: {found}, which does not exclude {than}"
    return Verdict(False, f"{undecided}; {_what_may(difference, by)}")


def _what_may(difference: Difference, by: float) -> str:
    """Say what may exclude ``by``: more rows can if it is farther from an end than what they leave open is wide."""
    low, high = difference.interval
    if not difference.left_open > 0.0:
        return "more rows may"
    if max(by - low, high - by) > difference.left_open * (1.0 + CLOSE):
        return "more rows may, or a logging policy that plays the arms that the log could not have chosen"
    return (
        "more rows of the same logging policy tell nothing of the arms that it could not have chosen; "
        "one that plays those arms may"
    )
