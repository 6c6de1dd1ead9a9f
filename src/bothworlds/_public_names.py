"""The modules of the public names, read from ``__init__.pyi``, and a mark for internal methods."""

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


@cache
def public_names() -> dict[str, str]:
    """Return the module of every public name, in the order of ``__init__.pyi``; public modules map to themselves.

    >>> public_names()["Policy"], public_names()["environments"]
    ('bothworlds.policy', 'bothworlds.environments')
    """
    tree = ast.parse((Path(__file__).parent / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    package = __name__.partition(".")[0]
    return {
        alias.name: f"{package}.{node.module}" if node.module else f"{package}.{alias.name}"
        for node in imports
        for alias in node.names
    }


def internal(function: Function) -> Function:
    """Mark a method as internal to the library: the reference omits it, and it may change.

    >>> @internal
    ... def helper() -> None: ...
    >>> is_internal(helper), is_internal(property(helper)), is_internal(print)
    (True, True, False)
    """
    function.__dict__["__internal__"] = True
    return function


def is_internal(member: Any) -> bool:
    """Return whether a method or a property is marked as `internal`."""
    # ``func`` is for cached properties, ``__func__`` for static and class methods.
    wrapped = getattr(member, "func", getattr(member, "__func__", member))
    function = member.fget if isinstance(member, property) else wrapped
    return bool(getattr(function, "__internal__", False))
