"""Errors in users' own algorithms and worlds, with file and line of the user's code."""

import contextlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bothworlds.arrays import Bools, Floats
from bothworlds.errors import PACKAGE, UserCodeError
from bothworlds.kernels.contract import Machine
from bothworlds.problem.checks import are_distributions

LIBRARIES = {PACKAGE, "numpy", "numba", "llvmlite", *sys.stdlib_module_names}
ROUNDED = 1e-6  # tolerance for the sum of a context's probabilities


def is_users(thing: Any) -> bool:
    """Return whether a function, or the class of an object, is defined outside this package."""
    module = getattr(thing if callable(thing) else type(thing), "__module__", None) or ""
    return module.partition(".")[0] != PACKAGE


def place_of(error: BaseException) -> str:
    """Return file, line and function of the innermost frame in a user's code; "" if there is no such frame."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_shown(error.filename)}, line {error.lineno}"
    steps = [
        f"{_shown(frame.f_code.co_filename)}, line {line}, in {frame.f_code.co_name}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in LIBRARIES
    ]
    return steps[-1] if steps else ""


def place_of_function(function: Callable[..., Any]) -> str:
    """Return file, first line and name of a function; "" if it has no Python code, as a built-in function."""
    code = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__code__", None)
    return f"{_shown(code.co_filename)}, line {code.co_firstlineno}, in {code.co_name}" if code else ""


def _shown(file: str) -> str:
    """Return a path relative to the current folder if it is inside."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


@contextlib.contextmanager
def users_code(function: Callable[..., Any] | None = None) -> Iterator[None]:
    """Turn an exception from a user's code into a `UserCodeError` with its place.

    ``function`` is the user's function to name if the traceback has no frame of the user's code, as for values that it
    returned. Without it, errors of this package are raised unchanged.
    """
    try:
        yield
    except UserCodeError:
        raise
    except Exception as error:
        if place := place_of(error):
            raise UserCodeError(place, f"{type(error).__name__}: {error}") from error
        if function is None:
            raise
        raise UserCodeError(place_of_function(function), str(error)) from error


def fault_of(table: Any, offered: Bools) -> str:
    """Return what is wrong with a table of probabilities, shape (contexts, arms); "" if it is valid.

    >>> fault_of([[0.5, 0.25]], np.array([[True, True]]))
    'the probabilities of context 0 sum to 0.75, not to 1'
    """
    pi: Floats = np.asarray(table, dtype=np.float64)
    if pi.shape != offered.shape:
        return f"probabilities have shape {pi.shape}, not (contexts, arms) = {offered.shape}"
    wrong = ~np.isfinite(pi) | (pi < 0.0) | (~offered & (pi != 0.0))
    if wrong.any():
        x, a = (int(place) for place in np.argwhere(wrong)[0])
        if np.isfinite(pi[x, a]) and not offered[x, a]:
            return f"the probability of arm {a} in context {x}, where it is not offered, is {pi[x, a]:.4g}, not 0"
        return f"the probability of arm {a} in context {x} is {pi[x, a]:.4g}"
    if not are_distributions(pi, within=ROUNDED):
        sums = pi.sum(axis=1)
        x = int(np.abs(sums - 1.0).argmax())
        return f"the probabilities of context {x} sum to {sums[x]:.6g}, not to 1"
    return ""


def require_probabilities(table: Any, offered: Bools, function: Callable[..., Any], *, when: str) -> None:
    """Refuse an invalid table of probabilities; name the user's function that computed it."""
    if fault := fault_of(table, offered):
        raise UserCodeError(place_of_function(function), f"{when}: {fault}")


def check_start(machine: Machine, function: Callable[..., Any]) -> None:
    """Refuse initial values that do not fit the fields of the state; name the user's function that returned them."""
    for name, value in machine.begin.items():
        leaf = machine.kernel.memory.leaves.get(name)
        if leaf is None or leaf.spec.kind == "scratch":
            raise UserCodeError(place_of_function(function), f"begin has {name!r}, which is not a field of the state")
        shape = leaf.place(machine.sizes)[1]
        try:
            np.broadcast_to(np.asarray(value), shape)
        except ValueError:
            raise UserCodeError(
                place_of_function(function),
                f"begin has an array of shape {np.shape(value)} for {name!r}, whose shape is {shape}",
            ) from None
