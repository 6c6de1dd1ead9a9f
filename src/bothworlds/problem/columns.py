"""What the columns of a sample are, numbers or categories, and features made of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bothworlds.kernels.arrays import Bools, Floats
from bothworlds.problem.checks import whole
from bothworlds.problem.sample import Support

MOST_ALIKE = 2  # two numbers are as good as two categories: the same functions are linear in them


def numeric_columns(support: Support, numeric: Sequence[str | int]) -> list[bool]:
    """Tell for every column whether it enters the features as a number; the others are categories.

    Numbers with a fraction are numbers. Whole numbers are names as often as amounts (a product, a postal code, an
    hour), so they are categories unless declared in ``numeric``, by name or position.
    """
    declared = {_position(support, column) for column in ([numeric] if isinstance(numeric, str) else numeric)}
    columns = list(zip(*support.rows, strict=True))
    for i in sorted(declared):
        word = next((value for value in columns[i] if not isinstance(value, int | float)), None)
        if word is not None:
            raise ValueError(f"column {_name(support, i)} is declared numeric, but has {word!r}")
    return [i in declared or _is_amount(column) for i, column in enumerate(columns)]


def _is_amount(column: Sequence[Any]) -> bool:
    if not all(isinstance(value, int | float) for value in column):
        return False
    return any(isinstance(value, float) for value in column) or len(set(column)) <= MOST_ALIKE


def _position(support: Support, column: str | int) -> int:
    """Return which column is meant by a name or a position."""
    width = len(support.rows[0])
    if isinstance(column, str):
        known = support.columns or ()
        if column not in known:
            raise ValueError(f"numeric names a column {column!r}; the sample has {', '.join(known) or 'no names'}")
        return known.index(column)
    place = whole(column, 0, "a column of numeric, by its position,")
    if place >= width:
        raise ValueError(f"numeric names column {column}; the sample has columns 0 to {width - 1}")
    return place


def _name(support: Support, i: int) -> str:
    return repr(support.columns[i]) if support.columns else str(i)


def category_notes(support: Support, is_number: Sequence[bool]) -> tuple[str, ...]:
    """Say which columns of whole numbers were taken for categories, and how to have it otherwise.

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
    """Return arm-independent features of the rows: a constant, numbers as they are, one indicator per category.

    Categories of ``rare`` rows alone have none.

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
            words = list(dict.fromkeys(word for word, out in zip(column, rare, strict=True) if not out))
            parts.append(
                np.array([[float(value == word) for word in words] for value in column]).reshape(len(column), -1)
            )
    return np.hstack(parts)
