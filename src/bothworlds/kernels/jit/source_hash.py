"""Hashes of functions from outside the package, so that edited code never runs old machine code from the cache.

Numba's cache identifies functions by name. The source of the package is covered by the name of the cache folder; the
hash here covers a user's function, and every function, number and module attribute that it uses.
"""

import hashlib
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

PACKAGE = __name__.partition(".")[0]
LIBRARIES = ("numba", "numpy")  # their versions are part of numba's own key, or do not matter to kernel code


def foreign_hash(function: Callable[..., Any]) -> str | None:
    """Return a hash of all code outside the package that a function reaches, or None if there is none.

    >>> foreign_hash(foreign_hash) is None
    True
    >>> one, two = (eval(f"lambda t: t + {step}", {"__name__": "mine"}) for step in (1, 2))
    >>> foreign_hash(one) == foreign_hash(one) != foreign_hash(two)
    True
    """
    parts = list(_parts(function, set()))
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=10).hexdigest() if parts else None


def name_hash(function: Callable[..., Any]) -> str:
    """Return a short hash of the name of a function and of the functions and values in its closure.

    >>> name_hash(name_hash) == name_hash(name_hash) != name_hash(foreign_hash)
    True
    """
    return hashlib.blake2b("\n".join(_names_in_closure(function)).encode(), digest_size=10).hexdigest()


def _names_in_closure(function: Any) -> Iterator[str]:
    yield f"{function.__module__}.{function.__qualname__}"
    for cell in function.__closure__ or ():
        value = cell.cell_contents
        if isinstance(value, types.FunctionType):
            yield from _names_in_closure(value)
        else:
            yield repr(value)


def _parts(function: Any, visited: set[int]) -> Iterator[str]:
    """Yield code and values of a function and of all functions it reaches, in a fixed order."""
    origin = str(function.__module__).partition(".")[0]
    if id(function) in visited or origin in LIBRARIES:
        return
    visited.add(id(function))
    foreign = origin != PACKAGE
    if foreign:
        yield from _code(function.__code__)
        yield repr(function.__defaults__)
    for name, reached in _reached(function):
        value = getattr(reached, "py_func", reached)  # the Python function of a numba dispatcher
        if isinstance(value, types.FunctionType):
            yield from _parts(value, visited)
        elif foreign and not isinstance(value, types.ModuleType):
            yield f"{name} = {value.tobytes().hex() if isinstance(value, np.ndarray) else repr(value)}"


def _code(code: types.CodeType) -> Iterator[str]:
    """Yield instructions, constants and names, but no positions in the file."""
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code(constant)
        else:
            yield repr(constant)


def _names(code: types.CodeType) -> tuple[str, ...]:
    """Return the names that code and its inner functions use."""
    inner = [name for part in code.co_consts if isinstance(part, types.CodeType) for name in _names(part)]
    return tuple(dict.fromkeys([*code.co_names, *inner]))


def _reached(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the closure, the globals and the module attributes that a function uses."""
    names = _names(function.__code__)
    for cell in function.__closure__ or ():
        yield "enclosed", cell.cell_contents
    for name in names:
        value = function.__globals__.get(name)
        if value is not None:
            yield name, value
        if isinstance(value, types.ModuleType):
            yield from ((part, vars(value)[part]) for part in names if part in vars(value))
