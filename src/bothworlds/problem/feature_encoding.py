"""Encoding of the columns of a sample, numbers or categories, as features."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bothworlds.arrays import Bools, Floats
from bothworlds.problem.checks import whole
from bothworlds.problem.sample import Support

TWO_VALUES = 2  # a column with two values gives the same linear functions as number or as category


def numeric_columns(support: Support, numeric: Sequence[str | int]) -> list[bool]:
    """Return for every column whether it is encoded as a number; other columns are categories.

    Columns of floats are numbers. Whole numbers are often identifiers (a product, a postal code, an hour), so such
    columns are categories unless declared in ``numeric``, by name or position.
    """
    declared = {_position(support, column) for column in ([numeric] if isinstance(numeric, str) else numeric)}
    columns = list(zip(*support.rows, strict=True))
    for i in sorted(declared):
        text = next((value for value in columns[i] if not isinstance(value, int | float)), None)
        if text is not None:
            raise ValueError(f"column {_name(support, i)} is declared numeric, but has {text!r}")
    return [i in declared or _is_amount(column) for i, column in enumerate(columns)]


def _is_amount(column: Sequence[Any]) -> bool:
    if not all(isinstance(value, int | float) for value in column):
        return False
    return any(isinstance(value, float) for value in column) or len(set(column)) <= TWO_VALUES


def _position(support: Support, column: str | int) -> int:
    """Return the index of a column given by name or position."""
    width = len(support.rows[0])
    if isinstance(column, str):
        known = support.columns or ()
        if column not in known:
            raise ValueError(f"numeric names a column {column!r}; the sample has {', '.join(known) or 'no names'}")
        return known.index(column)
    position = whole(column, 0, "a column of numeric, by its position,")
    if position >= width:
        raise ValueError(f"numeric names column {column}; the sample has columns 0 to {width - 1}")
    return position


def _name(support: Support, i: int) -> str:
    return repr(support.columns[i]) if support.columns else str(i)


def category_notes(support: Support, is_number: Sequence[bool]) -> tuple[str, ...]:
    """Return a note for each column of whole numbers that is encoded as categories, with the option to change it.

    >>> from bothworlds.problem.sample import support_of
    >>> category_notes(support_of([(18, "a"), (25, "b"), (40, "a")]), [False, False])[0]
    'column 0 has whole numbers, taken for 3 categories; with numeric=[0] they are amounts, one feature'
    """
    notes = []
    for i, column in enumerate(zip(*support.rows, strict=True)):
        if not is_number[i] and all(isinstance(value, int | float) for value in column):
            name = _name(support, i)
            notes.append(
                f"column {name} has whole numbers, taken for {len(set(column))} categories; with numeric=[{name}] they "
                "are amounts, one feature"
            )
    return tuple(notes)


def indicator_features(support: Support, is_number: Sequence[bool], rare: Bools) -> Floats:
    """Return arm-independent features of the rows: a constant, numbers unchanged, one indicator per category.

    Categories that occur in ``rare`` rows only have no indicator.

    >>> from bothworlds.problem.sample import support_of
    >>> support = support_of([("young", 1.5), ("old", 0.5)])
    >>> indicator_features(support, [False, True], np.zeros(2, dtype=bool)).tolist()
    [[1.0, 1.0, 0.0, 1.5], [1.0, 0.0, 1.0, 0.5]]
    """
    parts = [np.ones((len(support.rows), 1))]
    for column, number in zip(zip(*support.rows, strict=True), is_number, strict=True):
        if number:
            parts.append(np.array(column, dtype=np.float64)[:, None])
        else:
            categories = list(dict.fromkeys(value for value, out in zip(column, rare, strict=True) if not out))
            indicators = [[float(value == category) for category in categories] for value in column]
            parts.append(np.array(indicators).reshape(len(column), -1))
    return np.hstack(parts)
