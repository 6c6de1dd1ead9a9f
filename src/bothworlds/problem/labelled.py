"""Numbers for contexts and arms: by position, or by names where they have them, as those of pandas have."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.problem.checks import is_number

if TYPE_CHECKING:
    from bothworlds.problem.core import Problem


def numbers_in_order(given: Any, names: tuple[str, ...], what: str) -> Any:
    """Return a number for each context, or arm: those of a dictionary and of a Series with names in that order.

    >>> numbers_in_order({"desktop": 0.2, "mobile": 0.8}, ("mobile", "desktop"), "context").tolist()
    [0.8, 0.2]
    >>> numbers_in_order([0.2, 0.8], ("mobile", "desktop"), "context")
    [0.2, 0.8]
    """
    if isinstance(given, Mapping):
        labels, values = list(given), np.array(list(given.values()))
        places = _places(labels, names, "name", what)
        return values if places is None else values[places]
    places = _places(getattr(given, "index", None), names, "label", what)
    return given if places is None else np.asarray(given)[places]


def columns_in_order(given: Any, arms: tuple[str, ...]) -> Any:
    """Return rows of a number for each arm: those of a DataFrame with names of columns in the order of the arms."""
    places = _places(getattr(given, "columns", None), arms, "column", "arm")
    return given if places is None else np.asarray(given)[:, places]


def table_in_order(given: Any, contexts: tuple[str, ...], arms: tuple[str, ...]) -> Any:
    """Return a table (contexts, arms) in their order: of a DataFrame, columns are the arms, an index the contexts."""
    table = columns_in_order(given, arms)
    index = getattr(given, "index", None)
    if callable(index) or index is None or len(index) != len(contexts):
        return table
    places = _places(index, contexts, "row", "context")
    return table if places is None else np.asarray(table)[places]


def table_of(given: Any, problem: "Problem") -> Floats:
    """Return a table (contexts, arms) of numbers in the problem's order.

    Of a DataFrame whose columns are named, they are the arms; an index with names has the contexts.

    >>> import pandas as pd
    >>> from bothworlds import Problem
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["red", "blue"], contexts=["home"])
    >>> table_of(pd.DataFrame({"blue": [0.8], "red": [0.2]}, index=["home"]), problem).tolist()
    [[0.2, 0.8]]
    """
    return np.array(table_in_order(given, problem.contexts, problem.arms), dtype=np.float64)


def by_place(given: Any, name: str) -> Any:
    """Return numbers whose places count; refuse those with names, which would be taken in their own order.

    >>> import pandas as pd
    >>> by_place(pd.Series({"mobile": 3, "desktop": 4}), "counts")
    Traceback (most recent call last):
    ValueError: counts go by place, and these have names: give counts.reindex(problem.contexts, fill_value=0)
    """
    labels = list(given) if isinstance(given, Mapping) else getattr(given, "index", ())
    if not callable(labels) and any(not is_number(label) for label in labels):
        raise ValueError(
            f"{name} go by place, and these have names: give {name}.reindex(problem.contexts, fill_value=0)"
        )
    return given


def _places(labels: Any, wanted: tuple[str, ...], part: str, what: str) -> list[int] | None:
    """Return where the wanted names stand among labels; None where there are none, or they only count.

    A label of several values is the name of a context that stands for a row with these values.
    """
    if labels is None or callable(labels) or type(labels).__name__ == "RangeIndex":
        return None
    names = [", ".join(map(str, label)) if isinstance(label, tuple) else str(label) for label in labels]
    if all(is_number(label) for label in labels) and not set(names) & set(wanted):
        return None
    strange = sorted(set(names) ^ set(wanted))
    if strange or len(names) != len(wanted):
        told = f"no {what}" if strange and strange[0] in names else "missing"
        which = f"{strange[0]!r} is {told}" if strange else "one is there twice"
        raise ValueError(f"each {part} of the table is the name of one {what}; {which}")
    return [names.index(name) for name in wanted]
