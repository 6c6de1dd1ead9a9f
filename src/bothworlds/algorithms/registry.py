"""Every algorithm by its name: those of the table of contents that are one."""

import importlib
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from bothworlds.contents import contents
from bothworlds.policy import Algorithm

ANOTHER_NAME = {"FixedPolicy": "uniform"}  # what it is called in studies, where it has no table


@cache
def public_parts() -> dict[str, type]:
    """Return algorithms and the objects of their options by class name."""
    places = {name: place for name, place in contents().items() if ".algorithms." in place}
    return {name: getattr(importlib.import_module(place), name) for name, place in places.items()}


@cache
def algorithms() -> dict[str, Callable[..., Any]]:
    """Return every algorithm by the name it has in a study.

    >>> "LCTsallisINF" in algorithms(), "MGR" in algorithms(), "uniform" in algorithms()
    (True, False, True)
    """
    made = {name: part for name, part in public_parts().items() if issubclass(part, Algorithm)}
    return dict(sorted((ANOTHER_NAME.get(name, name), part) for name, part in made.items()))


def takes_horizon(algorithm: Callable[..., Any]) -> bool:
    """Tell whether an algorithm declares a horizon among its hyper-parameters."""
    return is_dataclass(algorithm) and any(one.name == "horizon" for one in fields(algorithm))
