"""The errors of failed arithmetic and failed cells, and where a warning points."""

import sys
from typing import Any

PACKAGE = __name__.partition(".")[0]


class NumericalError(ArithmeticError):
    """Arithmetic failed: not converged, not finite, not positive definite. Nothing was changed or repaired."""


class StudyError(RuntimeError):
    """Some cells of a study failed; the others are finished and kept.

    ``failures`` has the cell and the error of each; the message says how to run it alone.
    """

    def __init__(self, message: str, failures: list[Any]) -> None:
        super().__init__(message)
        self.failures = failures


def users_line() -> int:
    """Return the ``stacklevel`` with which a warning points at the first line outside the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        frame, level = frame.f_back, level + 1
    return level
