"""Checks of single options: a plain number of the right kind, or a sentence."""

import math

import numpy as np


def check_positive(part: object, name: str) -> None:
    """Keep an option as a plain float; refuse what is not positive and finite."""
    value = getattr(part, name)
    if not isinstance(value, int | float | np.number) or not 0.0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite; got {value!r}")
    object.__setattr__(part, name, float(value))


def check_not_negative(part: object, name: str) -> None:
    """Keep an option as a plain float; refuse what is negative or not finite."""
    value = getattr(part, name)
    if not isinstance(value, int | float | np.number) or not 0.0 <= value < math.inf:
        raise ValueError(f"{name} must not be negative and must be finite; got {value!r}")
    object.__setattr__(part, name, float(value))


def check_whole(part: object, name: str) -> None:
    """Keep an option as a plain integer; refuse what is not a whole number of at least 1."""
    value = getattr(part, name)
    if not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}")
    object.__setattr__(part, name, int(value))
