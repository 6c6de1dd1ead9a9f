"""Lookup of contexts and arms by names, rows and tables."""

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.errors import ManyContextsWarning, user_stacklevel
from bothworlds.problem.checks import is_number
from bothworlds.problem.frames import frame_of, names_of_columns, values_of
from bothworlds.problem.rows import ContextRows, has_names

MANY, MOSTLY = 500, 0.9  # smallest number of contexts, and share of the sample's rows, for a warning
MOST_SHOWN, MOST_LETTERS = 4, 24  # names in a message, and characters of each
# types of values of a column, never of an index
VALUES = (bool, np.bool_, float, np.float64, np.float32, np.float16, np.longdouble)


def warn_of_numbers(rows: ContextRows) -> None:
    """Warn if contexts are whole numbers that differ from their indices, because whole numbers are read as indices."""
    values = [row[0] for row in rows.rows if rows.width == 1]
    value = next((v for i, v in enumerate(values) if type(v) is int and 0 <= v < len(values) and v != i), None)
    if value is not None:
        warnings.warn(
            f"contexts are whole numbers, and whole numbers are indices: act({value}) is context {value} of the list, "
            f"not the one called {value}. Give names, act('{value}'), or rows, act(({value},))",
            stacklevel=user_stacklevel(),
        )


def warn_of_many(n_rows: int, shape: tuple[int, ...], rows: ContextRows, *, weighted: bool) -> None:
    """Warn if nearly every row of a sample of floats is a different context; ``shape`` is the shape of the features.

    Rows with weights are a list of contexts, not a sample, and give no warning.
    """
    n_contexts = len(rows.rows)
    if weighted or n_contexts < MANY or n_contexts < MOSTLY * n_rows or not any(map(_has_fraction, rows.rows)):
        return
    megabytes = 8e-6 * math.prod(shape)
    warnings.warn(
        f"{n_contexts:,} of {n_rows:,} rows of the sample are different, and each is a separate context: rows that are "
        f"not in the sample are refused, every update computes the probabilities of all {n_contexts:,} contexts, and "
        f"their features take {megabytes:,.0f} MB. Round or bin the columns of floats, so that rows repeat. If the "
        "rows are a list of all contexts, give weights=",
        ManyContextsWarning,
        stacklevel=user_stacklevel(),
    )


def _has_fraction(row: tuple[Any, ...]) -> bool:
    return any(isinstance(value, float) and not value.is_integer() for value in row)


def find_unlisted(context: Any, contexts: tuple[str, ...], rows: ContextRows | None, other: str | None) -> int:
    """Return the index of a context given as a row, or of ``other``; raise ValueError for an unknown context."""
    if _is_several(context, rows):
        raise ValueError(f"this takes one context, and got {len(context):,} of them; call it for each")
    is_value = type(context) in VALUES and rows is not None and rows.width == 1
    is_row = is_value or (rows is not None and hasattr(context, "__iter__") and not isinstance(context, str))
    index = rows.index_of((context,) if is_value else context) if is_row and rows is not None else None
    if index is not None:
        return index
    if other is not None and (is_row or isinstance(context, str)):
        return contexts.index(other)
    some = ", ".join(map(_short, contexts[:MOST_SHOWN])) + (", ..." if len(contexts) > MOST_SHOWN else "")
    last = len(contexts) - 1
    word = repr(context.tolist() if isinstance(context, np.ndarray | np.generic) else context)
    raise ValueError(f"unknown context {word:.60}; the contexts are {some} (or an index from 0 to {last})")


def _short(name: str) -> str:
    return repr(name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 3]}...")


def _is_several(given: Any, rows: ContextRows | None) -> bool:
    """Return whether this is several contexts: a table, or a list or array where contexts have a single value."""
    if hasattr(given, "keys") or isinstance(given, str | bytes) or not hasattr(given, "__len__"):
        return False
    axes = getattr(given, "ndim", 1)
    return axes > 1 or (axes == 1 and len(given) != 1 and (rows is None or rows.width == 1))


def find_all(
    contexts: Any, index_of: Callable[[Any], int], *, names: tuple[str, ...], rows: ContextRows | None
) -> int | list[int]:
    """Return the index of one context, or the indices of several; ``index_of`` finds a single one."""
    if isinstance(contexts, str | int | np.integer) or (isinstance(contexts, VALUES) and rows and rows.width == 1):
        return index_of(contexts)
    frame = frame_of(contexts)
    if frame is not None:
        return [index_of(dict(zip(frame.names, row, strict=True))) for row in frame.rows]
    contexts = values_of(contexts)
    if is_one_row(contexts, names, rows):
        return index_of(contexts)
    if getattr(contexts, "ndim", 1) == 0 or not hasattr(contexts, "__len__"):
        raise ValueError(f"a context is a name, an index, a row, or a sequence of those; got {contexts!r}")
    try:
        return [index_of(context) for context in contexts]
    except ValueError as error:
        if rows is None or not _is_listed_row(contexts, rows):
            raise
        raise ValueError(f"a list is several contexts; one row is a tuple: {tuple(contexts)!r:.80}") from error


def _is_listed_row(contexts: Any, rows: ContextRows) -> bool:
    """Return whether a list has the values of one row."""
    single = all(isinstance(part, str) or not hasattr(part, "__len__") for part in contexts)
    return single and len(contexts) == rows.width and rows.index_of(tuple(contexts)) is not None


def is_one_row(given: Any, names: tuple[str, ...], rows: ContextRows | None) -> bool:
    """Return whether this is one row, not several contexts.

    One row is a dictionary, a row of a data frame, or a tuple that does not consist of context names. Where rows have
    several values, it is also a one-dimensional array that consists neither of names nor of whole numbers (indices).
    """
    if isinstance(given, Mapping):
        return True
    if rows is None:
        return False
    if isinstance(given, np.ndarray):  # a row of a two-dimensional array; whole numbers are indices
        if given.ndim != 1 or given.dtype.kind in "iu" or rows.width in (None, 1):
            return False
        return given.dtype.kind == "f" or (len(given) == rows.width and _is_plain(given.tolist(), names))
    if has_names(given):  # a row of a DataFrame; a column of contexts has other labels
        return rows.columns is not None and any(name in given for name in rows.columns)
    return isinstance(given, tuple) and not all(isinstance(part, str) and part in names for part in given)


def _is_plain(parts: list[Any], names: tuple[str, ...]) -> bool:
    """Return whether these are the values of a row, not rows and not context names."""
    single = all(isinstance(part, str) or not hasattr(part, "__len__") for part in parts)
    return single and not all(isinstance(part, str) and part in names for part in parts)


def numbers_in_order(given: Any, names: tuple[str, ...], what: str) -> Any:
    """Return one number per name; a dictionary, or a Series with names, is put into the order of ``names``.

    ``what`` is "context" or "arm" in messages.

    >>> numbers_in_order({"desktop": 0.2, "mobile": 0.8}, ("mobile", "desktop"), "context").tolist()
    [0.8, 0.2]
    >>> numbers_in_order([0.2, 0.8], ("mobile", "desktop"), "context")
    [0.2, 0.8]
    """
    if isinstance(given, Mapping):
        labels, values = list(given), np.array(list(given.values()))
        positions = _positions(labels, names, "name", what)
        return values if positions is None else values[positions]
    positions = _positions(getattr(given, "index", None), names, "label", what)
    return given if positions is None else np.asarray(given)[positions]


def columns_in_order(given: Any, arms: tuple[str, ...]) -> Any:
    """Return rows with one number per arm; named columns of a DataFrame are put into the order of the arms."""
    positions = _positions(names_of_columns(given), arms, "column", "arm")
    return given if positions is None else np.asarray(given)[:, positions]


def table_in_order(given: Any, contexts: tuple[str, ...], arms: tuple[str, ...]) -> Any:
    """Return a table (contexts, arms); a DataFrame with names is put into the order of the contexts and arms."""
    table = columns_in_order(given, arms)
    index = getattr(given, "index", None)
    if callable(index) or index is None or len(index) != len(contexts):
        return table
    positions = _positions(index, contexts, "row", "context")
    return table if positions is None else np.asarray(table)[positions]


def table_of(given: Any, contexts: tuple[str, ...], arms: tuple[str, ...]) -> Floats:
    """Return a float table (contexts, arms) in the order of the problem.

    Named columns of a DataFrame are arms, a named index is contexts.

    >>> import pandas as pd
    >>> table_of(pd.DataFrame({"blue": [0.8], "red": [0.2]}, index=["home"]), ("home",), ("red", "blue")).tolist()
    [[0.2, 0.8]]
    """
    return np.array(table_in_order(given, contexts, arms), dtype=np.float64)


def by_position(given: Any, name: str) -> Any:
    """Return numbers that are matched by position; raise ValueError if they have names, whose order may differ.

    >>> import pandas as pd
    >>> by_position(pd.Series({"mobile": 3, "desktop": 4}), "counts")
    Traceback (most recent call last):
    ValueError: counts go by position, but these have names: give counts.reindex(problem.contexts, fill_value=0)
    """
    labels = list(given) if isinstance(given, Mapping) else getattr(given, "index", ())
    if not callable(labels) and any(not is_number(label) for label in labels):
        raise ValueError(
            f"{name} go by position, but these have names: give {name}.reindex(problem.contexts, fill_value=0)"
        )
    return given


def _positions(labels: Any, wanted: tuple[str, ...], part: str, what: str) -> list[int] | None:
    """Return the position of each wanted name among labels; None if there are no labels, or they are a plain index.

    A tuple as a label is the name of the context with these values.
    """
    if labels is None or callable(labels) or type(labels).__name__ == "RangeIndex":
        return None
    names = [", ".join(map(str, label)) if isinstance(label, tuple) else str(label) for label in labels]
    if all(is_number(label) for label in labels) and not set(names) & set(wanted):
        return None
    strange = sorted(set(names) ^ set(wanted))
    if strange or len(names) != len(wanted):
        status = f"no {what}" if strange and strange[0] in names else "missing"
        reason = f"{strange[0]!r} is {status}" if strange else "one is there twice"
        raise ValueError(f"each {part} of the table is the name of one {what}; {reason}")
    return [names.index(name) for name in wanted]
