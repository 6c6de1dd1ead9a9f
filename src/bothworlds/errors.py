"""The errors of failed arithmetic, failed cells, missing packages and missing devices, and where a warning points."""

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


class MissingPackageError(ImportError, ValueError):
    """A package that only some of the library needs is not installed; the message says how to get it."""


class MissingDeviceError(ValueError):
    """There is no GPU to work with here; the message says what is needed, and what to do without."""


def not_installed(needs: str, package: str, extra: str) -> str:
    """Say that a package is missing, and which extra brings it: in a clone, and where a wheel was installed.

    >>> not_installed("Parquet needs", "pyarrow", "parquet")
    "Parquet needs pyarrow, which is not installed: pip install 'bothworlds[parquet]'"
    """
    return f"{needs} {package}, which is not installed: pip install '{PACKAGE}[{extra}]'"


def users_line() -> int:
    """Return the ``stacklevel`` with which a warning points at the first line outside the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        frame, level = frame.f_back, level + 1
    return level
