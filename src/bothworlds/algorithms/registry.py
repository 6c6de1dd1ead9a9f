"""Algorithms by name, and from tables of options in studies and service settings."""

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from bothworlds._public_names import public_names
from bothworlds.algorithms.lc_tsallis.lc_tsallis_inf import TUNINGS
from bothworlds.algorithms.options import MGR
from bothworlds.policy import Algorithm
from bothworlds.problem.checks import option_errors, take_kind
from bothworlds.user_code import NOW, FileHashes, is_user_kind, make_object

STUDY_NAMES = {"FixedPolicy": "uniform"}  # name in studies, where it has no table


class AlgorithmClasses(Mapping[str, Any]):
    """Algorithms and the classes of their options by name, each imported on first use.

    Keyword arguments replace the constructor of a class.

    >>> "MGR" in AlgorithmClasses(), AlgorithmClasses()["MGR"].__name__, AlgorithmClasses(MGR=dict)["MGR"]
    (True, 'MGR', <class 'dict'>)
    """

    def __init__(self, **own: Callable[..., Any]) -> None:
        self._own = own
        self._places = {name: place for name, place in public_names().items() if ".algorithms." in place}

    def __getitem__(self, name: str) -> Any:
        return self._own.get(name) or getattr(importlib.import_module(self._places[name]), name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@cache
def algorithms() -> dict[str, Callable[..., Any]]:
    """Return every algorithm by its name in studies.

    >>> "LCTsallisINF" in algorithms(), "MGR" in algorithms(), "uniform" in algorithms()
    (True, False, True)
    """
    classes = {name: part for name, part in AlgorithmClasses().items() if issubclass(part, Algorithm)}
    return dict(sorted((STUDY_NAMES.get(name, name), part) for name, part in classes.items()))


def takes_horizon(algorithm: Callable[..., Any]) -> bool:
    """Return whether an algorithm has the hyper-parameter ``horizon``."""
    return is_dataclass(algorithm) and any(field.name == "horizon" for field in fields(algorithm))


def make_algorithm(options: Mapping[str, Any], texts: FileHashes = NOW) -> Any:
    """Return an algorithm from a table: its kind and its options. ``texts`` has the hashes of the user's files.

    >>> make_algorithm({"kind": "LinUCB", "width": 0.5})
    LinUCB(width=0.5, ridge=1.0)
    """
    given = dict(options)
    if is_user_kind(given.get("kind")):
        return _user_algorithm(given, texts)
    kind = take_kind(given, list(algorithms()), "algorithm")
    for name, parts in (("tuning", (*TUNINGS.values(),)), ("covariance", (MGR,))):
        if isinstance(given.get(name), dict):
            given[name] = _make_part(given[name], parts, name)
    with option_errors(f"algorithm {kind}"):
        return algorithms()[kind](**given)


def _make_part(table: Mapping[str, Any], parts: Iterable[type[Any]], name: str) -> Any:
    """Return an option object from its table."""
    inner, classes = dict(table), {part.__name__.lower(): part for part in parts}
    kind = take_kind(inner, list(classes), name)
    with option_errors(name):
        return classes[kind](**inner)


def _user_algorithm(options: dict[str, Any], texts: FileHashes) -> Any:
    """Return a user's algorithm from a table of a study."""
    kind = options.pop("kind")
    return require_algorithm(make_object(kind, options, texts), kind)


def require_algorithm(given: Any, word: str) -> Any:
    """Return an algorithm; raise ValueError for anything else. ``word`` names it in the message.

    >>> require_algorithm("LinUCB", "it")
    Traceback (most recent call last):
    ValueError: 'LinUCB' is a name: write LinUCB()
    """
    if isinstance(given, type):
        raise ValueError(f"{given.__name__} is a class: write {given.__name__}()")
    if isinstance(given, str):
        known = given in algorithms()
        raise ValueError(f"{given!r} is a name: write {given}()" if known else f"{given!r} is text, not an algorithm")
    if not (hasattr(given, "machine") or hasattr(given, "start")):
        raise ValueError(f"{word} is not an algorithm: it has neither machine(problem) nor start(problem, rng=...)")
    return given
