"""Checks of options that several algorithms share."""

from typing import Any

import numpy as np

from bothworlds.algorithms.tunings import MGR


def check_horizon(part: Any, *, least: int) -> None:
    """Keep the horizon as a plain integer; refuse what is not a whole number of at least ``least``."""
    value = part.horizon
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"horizon must be a whole number of at least {least}; got {value!r}")
    object.__setattr__(part, "horizon", int(value))


def check_choice(part: Any, name: str, choices: tuple[str, ...]) -> None:
    """Refuse an option that is none of the choices."""
    if getattr(part, name) not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {getattr(part, name)!r}")


def check_covariance(part: Any) -> None:
    """Refuse a covariance that is neither "exact" nor MGR with the theorem's number of draws, or a fixed one."""
    value = part.covariance
    if value != "exact" and not isinstance(value, MGR):
        raise ValueError(f"covariance must be 'exact' or MGR(...); got {value!r}")
    if isinstance(value, MGR) and value.bias is not None:
        raise ValueError("the theorem sets the number of draws here: use MGR(), or MGR(samples=...) for a fixed one")


def description(part: Any, **defaults: Any) -> str:
    """Return the repr of an algorithm: its class, its horizon, and what differs from the defaults."""
    changed = {name: getattr(part, name) for name, default in defaults.items() if getattr(part, name) != default}
    listed = ", ".join(f"{name}={value!r}" for name, value in {"horizon": part.horizon, **changed}.items())
    return f"{type(part).__name__}({listed})"
