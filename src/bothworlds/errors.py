"""The error of failed arithmetic, and kernel statuses in words."""

import sys
from typing import Any

from bothworlds.kernels import status as codes

PACKAGE = __name__.partition(".")[0]
SENTENCES = {
    codes.NOT_FINITE: "the cumulative estimate is no longer finite",
    codes.NOT_CONVERGED: "Newton's method for the FTRL point reached its iteration cap",
    codes.NOT_POSITIVE: "the covariance matrix is not positive definite",
    codes.TRACE_BROKEN: "the covariance matrix is too ill-conditioned: the leverages no longer average to d",
    codes.DAMAGED: "no plan has a direction or a baseline with a number that is not finite, or above 1e100 in size",
}


class NumericalError(ArithmeticError):
    """Arithmetic failed: not converged, not finite, not positive definite. Nothing was changed or repaired."""


class StudyError(RuntimeError):
    """Some cells of a study failed; the others are finished and kept.

    ``failures`` has the cell and the error of each; the message says how to run it alone.
    """

    def __init__(self, message: str, failures: list[Any]) -> None:
        super().__init__(message)
        self.failures = failures


def sentence(status: int) -> str:
    """Return what a kernel's status means.

    >>> sentence(codes.NOT_POSITIVE)
    'the covariance matrix is not positive definite'
    """
    return SENTENCES[status]


def users_line() -> int:
    """Return the ``stacklevel`` with which a warning points at the first line outside the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        frame, level = frame.f_back, level + 1
    return level
