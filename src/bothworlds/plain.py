"""Frozen objects as plain values for files: the class name and the fields, nested."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def to_plain(part: Any) -> Any:
    """Return a frozen object as a dictionary; arrays are left out, whoever saves it keeps them elsewhere.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Coin:
    ...     bias: float
    >>> to_plain(Coin(0.25))
    {'name': 'Coin', 'bias': 0.25}
    """
    if part is None or isinstance(part, str | int | float | list | dict):
        return part
    if not is_dataclass(part) or isinstance(part, type):
        return repr(part)
    values = {f.name: getattr(part, f.name) for f in fields(part)}
    kept = {name: to_plain(value) for name, value in values.items() if not isinstance(value, np.ndarray)}
    return {"name": type(part).__name__, **kept}


def from_plain(value: Any, makers: Mapping[str, Callable[..., Any]]) -> Any:
    """Rebuild what `to_plain` wrote; ``makers`` maps class names to constructors."""
    if not isinstance(value, dict):
        return value
    options = {key: from_plain(item, makers) for key, item in value.items() if key != "name"}
    if value.get("name") not in makers:
        raise ValueError(f"unknown part {value.get('name')!r}; this version knows {', '.join(makers)}")
    return makers[value["name"]](**options)
