"""What a function written outside the package does, as a hash: so that edited text is never served old machine code.

Numba knows functions by name. The text of the package itself is covered by the name of its cache folder; a user's
rule, and every function, number and module attribute it uses, is read here.
"""

import hashlib
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

PACKAGE = __name__.partition(".")[0]
LIBRARIES = ("numba", "numpy")  # their versions are part of numba's own key, or of no account in kernel text


def foreign_hash(function: Callable[..., Any]) -> str | None:
    """Return a hash of all text outside the package that a function reaches, or None if there is none.

    >>> foreign_hash(foreign_hash) is None
    True
    >>> one, two = (eval(f"lambda t: t + {step}", {"__name__": "mine"}) for step in (1, 2))
    >>> foreign_hash(one) == foreign_hash(one) != foreign_hash(two)
    True
    """
    parts = list(_parts(function, set()))
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=10).hexdigest() if parts else None


def identity(function: Callable[..., Any]) -> str:
    """Return a short name for a function together with the functions and values it encloses.

    >>> identity(identity) == identity(identity) != identity(foreign_hash)
    True
    """
    return hashlib.blake2b("\n".join(_enclosed(function)).encode(), digest_size=10).hexdigest()


def _enclosed(function: Any) -> Iterator[str]:
    yield f"{function.__module__}.{function.__qualname__}"
    for cell in function.__closure__ or ():
        value = cell.cell_contents
        if isinstance(value, types.FunctionType):
            yield from _enclosed(value)
        else:
            yield repr(value)


def _parts(function: Any, seen: set[int]) -> Iterator[str]:
    """Yield what matters of a function and of all it reaches, in a fixed order."""
    origin = str(function.__module__).partition(".")[0]
    if id(function) in seen or origin in LIBRARIES:
        return
    seen.add(id(function))
    foreign = origin != PACKAGE
    if foreign:
        yield from _code(function.__code__)
        yield repr(function.__defaults__)
    for name, found in _reached(function):
        value = getattr(found, "py_func", found)  # what numba compiled of its own
        if isinstance(value, types.FunctionType):
            yield from _parts(value, seen)
        elif foreign and not isinstance(value, types.ModuleType):
            yield f"{name} = {value.tobytes().hex() if isinstance(value, np.ndarray) else repr(value)}"


def _code(code: types.CodeType) -> Iterator[str]:
    """Yield instructions, constants and names; positions in the file do not matter."""
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code(constant)
        else:
            yield repr(constant)


def _names(code: types.CodeType) -> tuple[str, ...]:
    """Return the names that code and the functions inside it use."""
    inner = [name for part in code.co_consts if isinstance(part, types.CodeType) for name in _names(part)]
    return tuple(dict.fromkeys([*code.co_names, *inner]))


def _reached(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the globals, attributes of modules and enclosed values that a function uses."""
    names = _names(function.__code__)
    for cell in function.__closure__ or ():
        yield "enclosed", cell.cell_contents
    for name in names:
        value = function.__globals__.get(name)
        if value is not None:
            yield name, value
        if isinstance(value, types.ModuleType):
            yield from ((part, vars(value)[part]) for part in names if part in vars(value))
