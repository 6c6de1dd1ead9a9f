"""Tables of a number for each context and arm: by position, or by names where they have them, as a DataFrame has."""

from typing import Any

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.problem.checks import is_number
from bothworlds.problem.core import Problem


def table_of(given: Any, problem: Problem) -> Floats:
    """Return a table (contexts, arms) in the problem's order.

    Of a DataFrame whose columns are named, they are the arms; an index with names has the contexts.

    >>> import pandas as pd
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["red", "blue"], contexts=["home"])
    >>> table_of(pd.DataFrame({"blue": [0.8], "red": [0.2]}, index=["home"]), problem).tolist()
    [[0.2, 0.8]]
    """
    columns, index = (getattr(given, part, None) for part in ("columns", "index"))
    table = np.array(given, dtype=np.float64)
    places = _places(columns, problem.arms, "column", "arm")
    if places is not None:
        table = table[:, places]
    rows = _places(index, problem.contexts, "row", "context") if len(table) == problem.n_contexts else None
    return table if rows is None else table[rows]


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
