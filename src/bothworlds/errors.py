"""Errors and warnings of the library, and helpers for installation hints and warning positions."""

import sys
from typing import Any

PACKAGE = __name__.partition(".")[0]


class NumericalError(ArithmeticError):
    """A computation did not converge, was not finite or not positive definite. The state is unchanged."""


class UserCodeError(RuntimeError):
    """A user's own algorithm or world failed; ``place`` is file and line of the user's code, ``reason`` the error.

    >>> str(UserCodeError("mine.py, line 7, in refresh", "ZeroDivisionError: float division by zero"))
    'mine.py, line 7, in refresh: ZeroDivisionError: float division by zero'
    """

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason)
        self.place, self.reason = place, reason

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


class ManyContextsWarning(UserWarning):
    """Nearly every row of a sample of floats is a separate context, so that no policy can learn from it."""


class StudyError(RuntimeError):
    """Some cells of a study failed; the results of the others are saved.

    ``failures`` lists each failed cell with its error; the message says how to run one alone.
    """

    def __init__(self, message: str, failures: list[Any]) -> None:
        super().__init__(message)
        self.failures = failures


class MissingPackageError(ImportError, ValueError):
    """An optional dependency is not installed; the message says how to install it."""


class MissingDeviceError(ValueError):
    """No usable GPU was found; the message says what is needed, and what to do without one."""


def how_to_install(extra: str) -> str:
    """Return how to install an extra: from a clone, since the library is on no package index.

    >>> how_to_install("serve")
    "from a clone of the repository: pip install '.[serve]'"
    """
    return f"from a clone of the repository: pip install '.[{extra}]'"


def not_installed(needs: str, package: str, extra: str) -> str:
    """Return a message that a package is missing, and how to install the extra that includes it.

    >>> not_installed("Parquet needs", "pyarrow", "parquet")
    "Parquet needs pyarrow, which is not installed; from a clone of the repository: pip install '.[parquet]'"
    """
    return f"{needs} {package}, which is not installed; {how_to_install(extra)}"


def user_stacklevel() -> int:
    """Return the ``stacklevel`` that makes a warning point at the first line outside the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        frame, level = frame.f_back, level + 1
    return level
