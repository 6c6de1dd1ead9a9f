"""Every algorithm by its name: those of the table of contents that are one."""

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from bothworlds.contents import contents
from bothworlds.policy import Algorithm

ANOTHER_NAME = {"FixedPolicy": "uniform"}  # what it is called in studies, where it has no table


class Parts(Mapping[str, Any]):
    """Algorithms and the objects of their options by class name, each imported when it is asked for.

    What is given is made in a way of its own.

    >>> "MGR" in Parts(), Parts()["MGR"].__name__, Parts(MGR=dict)["MGR"]
    (True, 'MGR', <class 'dict'>)
    """

    def __init__(self, **own: Callable[..., Any]) -> None:
        self._own = own
        self._places = {name: place for name, place in contents().items() if ".algorithms." in place}

    def __getitem__(self, name: str) -> Any:
        return self._own.get(name) or getattr(importlib.import_module(self._places[name]), name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@cache
def algorithms() -> dict[str, Callable[..., Any]]:
    """Return every algorithm by the name it has in a study.

    >>> "LCTsallisINF" in algorithms(), "MGR" in algorithms(), "uniform" in algorithms()
    (True, False, True)
    """
    made = {name: part for name, part in Parts().items() if issubclass(part, Algorithm)}
    return dict(sorted((ANOTHER_NAME.get(name, name), part) for name, part in made.items()))


def takes_horizon(algorithm: Callable[..., Any]) -> bool:
    """Tell whether an algorithm declares a horizon among its hyper-parameters."""
    return is_dataclass(algorithm) and any(one.name == "horizon" for one in fields(algorithm))
