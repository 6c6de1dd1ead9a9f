"""Which context is meant: by a name, an index, or a row, for one context or for several."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bothworlds.errors import users_line
from bothworlds.problem.rows import ContextRows, has_names

MOST_SHOWN = 8
VALUES = (bool, np.bool_, float, np.float64, np.float32, np.float16, np.longdouble)  # of a column, and no index


def warn_of_numbers(rows: ContextRows) -> None:
    """Say that whole numbers are indices where contexts are whole numbers themselves, and others than their indices."""
    alone = [row[0] for row in rows.rows if rows.width == 1]
    value = next((v for i, v in enumerate(alone) if type(v) is int and 0 <= v < len(alone) and v != i), None)
    if value is not None:
        warnings.warn(
            f"contexts are whole numbers, and whole numbers are indices: act({value}) is context {value} of the list, "
            f"not the one called {value}. Give names, act('{value}'), or rows, act(({value},))",
            stacklevel=users_line(),
        )


def find_unlisted(context: Any, contexts: tuple[str, ...], rows: ContextRows | None, other: str | None) -> int:
    """Return the index of what is neither a name nor an index: a row, or what stands for all that is not listed."""
    alone = type(context) in VALUES and rows is not None and rows.width == 1
    is_row = alone or (rows is not None and hasattr(context, "__iter__") and not isinstance(context, str))
    found = rows.index_of((context,) if alone else context) if is_row and rows is not None else None
    if found is not None:
        return found
    if other is not None and (is_row or isinstance(context, str)):
        return contexts.index(other)
    some = ", ".join(repr(name) for name in contexts[:MOST_SHOWN]) + (", ..." if len(contexts) > MOST_SHOWN else "")
    last = len(contexts) - 1
    raise ValueError(f"unknown context {context!r}; the contexts are {some} (or an index from 0 to {last})")


def find_all(
    contexts: Any, one: Callable[[Any], int], *, names: tuple[str, ...], rows: ContextRows | None
) -> int | list[int]:
    """Return the index of one context, or those of several; ``one`` finds one."""
    if isinstance(contexts, str | int | np.integer) or (isinstance(contexts, VALUES) and rows and rows.width == 1):
        return one(contexts)
    if hasattr(contexts, "itertuples"):  # a DataFrame, without importing pandas
        columns = [str(name) for name in contexts.columns]
        return [one(dict(zip(columns, row, strict=True))) for row in contexts.itertuples(index=False, name=None)]
    if is_one_row(contexts, names, rows):
        return one(contexts)
    if getattr(contexts, "ndim", 1) == 0 or not hasattr(contexts, "__len__"):
        raise ValueError(f"a context is a name, an index, a row, or a sequence of those; got {contexts!r}")
    try:
        return [one(context) for context in contexts]
    except ValueError as error:
        if rows is None or not _is_listed_row(contexts, rows):
            raise
        raise ValueError(f"{error}. A list is several contexts; one row is a tuple: {tuple(contexts)!r}") from None


def _is_listed_row(contexts: Any, rows: ContextRows) -> bool:
    """Tell whether a list of contexts has the values of one row."""
    alone = all(isinstance(part, str) or not hasattr(part, "__len__") for part in contexts)
    return alone and len(contexts) == rows.width and rows.index_of(tuple(contexts)) is not None


def is_one_row(given: Any, names: tuple[str, ...], rows: ContextRows | None) -> bool:
    """Tell one row from several contexts: a dictionary, what is labelled with columns, a tuple that is not of names."""
    if isinstance(given, Mapping):
        return True
    if rows is None:
        return False
    if has_names(given):  # a row of a DataFrame, or a column of contexts, which has other labels
        return rows.columns is not None and any(name in given for name in rows.columns)
    return isinstance(given, tuple) and not all(isinstance(part, str) and part in names for part in given)
