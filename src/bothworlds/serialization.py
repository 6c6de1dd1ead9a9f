"""Conversion of frozen dataclasses to nested dictionaries of plain values, JSON without NaN, and printable text."""

import json
import math
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

# Characters that change the direction of text.
BIDI_CONTROLS = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def to_plain(part: Any) -> Any:
    """Return a frozen dataclass as a dictionary of its class name and fields, nested, without arrays.

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
    plain = {name: to_plain(value) for name, value in values.items() if not isinstance(value, np.ndarray)}
    return {"name": type(part).__name__, **plain}


def printable(text: str) -> str:
    r"""Return a text on one line, with control characters and changes of text direction escaped.

    >>> printable("one\ntwo ü")
    'one\\ntwo ü'
    """
    hidden = (c in BIDI_CONTROLS or unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in text)
    return "".join(c.encode("unicode_escape").decode() if wrong else c for c, wrong in zip(text, hidden, strict=True))


def to_json(value: Any, **options: Any) -> str:
    """Return plain values as standard JSON, in which numbers that are not finite are null.

    >>> to_json({"bound": float("inf"), "range": (0, float("nan"))})
    '{"bound": null, "range": [0, null]}'
    """
    return json.dumps(finite(value), allow_nan=False, **options)


def finite(value: Any) -> Any:
    """Return nested plain values with None for every number that is not finite."""
    if isinstance(value, Mapping):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def from_plain(value: Any, makers: Mapping[str, Callable[..., Any]]) -> Any:
    """Rebuild what `to_plain` wrote; ``makers`` maps class names to constructors."""
    if not isinstance(value, dict):
        return value
    options = {key: from_plain(item, makers) for key, item in value.items() if key != "name"}
    if value.get("name") not in makers:
        raise ValueError(f"unknown part {value.get('name')!r}; this version knows {', '.join(makers)}")
    return makers[value["name"]](**options)
