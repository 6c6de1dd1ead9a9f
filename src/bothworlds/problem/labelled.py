"""Tables of a number for each context and arm: by position, or by names where they have them, as a DataFrame has."""

from typing import Any

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.problem.core import Problem


def table_of(given: Any, problem: Problem) -> Floats:
    """Return a table (contexts, arms) in the problem's order.

    Of a DataFrame whose columns are named, they are the arms; an index with names has the contexts.

    >>> import pandas as pd
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["red", "blue"], contexts=["home"])
    >>> table_of(pd.DataFrame({"blue": [0.8], "red": [0.2]}, index=["home"]), problem).tolist()
    [[0.2, 0.8]]
    """
    columns, index = (_names(getattr(given, part, None)) for part in ("columns", "index"))
    table = np.array(given, dtype=np.float64)
    if columns is not None:
        table = table[:, _order(columns, problem.arms, "column", "arm")]
    if index is not None and len(index) == problem.n_contexts:
        table = table[_order(index, problem.contexts, "row", "context")]
    return table


def _names(labels: Any) -> list[str] | None:
    """Return labels as names; None where they only count."""
    if labels is None or callable(labels) or type(labels).__name__ == "RangeIndex":
        return None
    return [str(label) for label in labels]


def _order(names: list[str], wanted: tuple[str, ...], part: str, what: str) -> list[int]:
    """Return where the wanted names stand."""
    strange = sorted(set(names) ^ set(wanted))
    if strange or len(names) != len(wanted):
        which = (
            f"{strange[0]!r} is {'no ' + what if strange[0] in names else 'missing'}"
            if strange
            else "one is there twice"
        )
        raise ValueError(f"each {part} of the table is the name of one {what}; {which}")
    return [names.index(name) for name in wanted]
