"""Checks of single options: a plain number of the right kind, or a sentence."""

import math

import numpy as np

from bothworlds.problem.checks import is_number

MOST = 2**62  # whole numbers beyond it are no number of anything that can be done


def check_positive(part: object, name: str) -> None:
    """Keep an option as a plain float; refuse what is not positive and finite."""
    value = getattr(part, name)
    if not is_number(value) or not 0.0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite; got {value!r}")
    object.__setattr__(part, name, float(value))


def check_not_negative(part: object, name: str) -> None:
    """Keep an option as a plain float; refuse what is negative or not finite."""
    value = getattr(part, name)
    if not is_number(value) or not 0.0 <= value < math.inf:
        raise ValueError(f"{name} must not be negative and must be finite; got {value!r}")
    object.__setattr__(part, name, float(value))


def check_within(part: object, name: str, low: float, high: float, *, closed: bool = False) -> None:
    """Keep an option as a number of Python's own; refuse what is not above ``low``, or at it, and below ``high``.

    A whole number stays one: what files say of an algorithm is compared letter by letter.
    """
    value = getattr(part, name)
    if not is_number(value) or not (low < value < high or (closed and value == low)):
        least = f"of at least {low:g}" if closed else f"above {low:g}"
        most = "finite" if high == math.inf else f"below {high:g}"
        raise ValueError(f"{name} must be a number {least} and {most}; got {value!r}")
    object.__setattr__(part, name, value if isinstance(value, int) else float(value))


def check_whole(part: object, name: str, *, least: int = 1) -> None:
    """Keep an option as a plain integer; refuse what is not a whole number of at least ``least``."""
    value = getattr(part, name)
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value < MOST:
        raise ValueError(f"{name} must be a whole number of at least {least} (and below 2**62); got {value!r}")
    object.__setattr__(part, name, int(value))
