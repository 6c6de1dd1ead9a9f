"""Grids over options: an option with a list of values expands into one option table per value."""

import inspect
import itertools
from collections.abc import Callable
from typing import Any

from bothworlds.algorithms.registry import algorithms
from bothworlds.user_code import find_file, is_user_kind, load_object

# Options of environments that take lists, and sizes, whose grid belongs to the whole study.
WHOLE_LISTS = {"attributes", "rates", "changes", "theta", "contexts", "arms", "dimension", "gap", "rarity", "margin"}
SEQUENCES = ("list", "Sequence", "tuple", "Iterable", "ndarray", "Floats", "Ints")


def spread(tables: dict[str, dict[str, Any]], word: str, folder: Any = None) -> dict[str, dict[str, Any]]:
    """Return option tables by label, one for every combination of values of options with lists.

    >>> list(spread({"LC": {"kind": "LCTsallisINF", "tuning": "certified", "alpha": [0.3, 0.5]}}, "algorithm"))
    ['LC, alpha 0.3', 'LC, alpha 0.5']
    """
    found: dict[str, dict[str, Any]] = {}
    for label, given in tables.items():
        options = {**given, "kind": find_file(given["kind"], folder)} if "kind" in given else given
        for name, table in _choices(options, _whole_lists(options, word)):
            whole = ", ".join([label, *name])
            if whole in found:
                raise ValueError(f"two {word}s have the label {whole!r}")
            found[whole] = table
    return found


def _choices(options: dict[str, Any], kept: set[str]) -> list[tuple[list[str], dict[str, Any]]]:
    """Return every combination of one value per list, with words for its label."""
    axes = []
    for key, value in options.items():
        if isinstance(value, dict):
            axes.append([(words, (key, inner)) for words, inner in _choices(value, set())])
        elif isinstance(value, list) and key not in kept:
            if not value:
                raise ValueError(f"the list of {key} is empty; give at least one value, or leave it out")
            axes.append([([f"{key} {_word(one)}"], (key, one)) for one in value])
        else:
            axes.append([([], (key, value))])
    return [
        ([word for words, _ in choice for word in words], dict(pair for _, pair in choice))
        for choice in itertools.product(*axes)
    ]


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _whole_lists(options: dict[str, Any], word: str) -> set[str]:
    """Return the names of options whose value is a list."""
    kind = options.get("kind")
    maker: Callable[..., Any] | None = None
    if is_user_kind(kind) and any(isinstance(value, list) for value in options.values()):
        maker = load_object(str(kind))
    elif word == "algorithm":
        maker = algorithms().get(str(kind))
    if maker is None or not callable(maker):
        return set() if word == "algorithm" else WHOLE_LISTS
    parameters = inspect.signature(maker).parameters.values()
    return {one.name for one in parameters if any(name in str(one.annotation) for name in SEQUENCES)}
