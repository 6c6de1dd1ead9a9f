"""Contexts as rows of a table: lookup by dictionary, tuple, or row of a DataFrame."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

Plain = str | int | float | bool


class Labelled(Protocol):
    """A row with column names: a dictionary, or a row of a DataFrame."""

    def keys(self) -> Any:
        """Return the column names."""

    def __getitem__(self, name: Any, /) -> Any: ...


Context: TypeAlias = str | int | float | tuple[Any, ...] | Labelled  # one context, in the forms that callers may give


@dataclass(frozen=True)
class ContextRows:
    """The rows of the first contexts of a problem, and the names of the columns, if there are any.

    Values are numbers or strings; other values, such as dates, are stored as their str(), so that files can hold them.
    A number given as a string, as in text files, matches the same number unless a row has that string.

    >>> rows = ContextRows(("device", "age"), (("mobile", 25), ("desktop", 40)))
    >>> rows.index_of({"age": 40, "device": "desktop", "hour": 17}), rows.index_of(("mobile", 25.0))
    (1, 0)
    >>> rows.index_of(("mobile", "25")), rows.index_of(("mobile", 40)) is None
    (0, True)
    """

    columns: tuple[str, ...] | None
    rows: tuple[tuple[Plain, ...], ...]

    def __post_init__(self) -> None:
        columns = None if self.columns is None else tuple(str(name) for name in self.columns)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "rows", tuple(plain_row(row) for row in self.rows))
        self._check_widths()
        if len(self._index) < len(self.rows):
            twice = next(row for row in self.rows if self.rows.count(row) > 1)
            raise ValueError(f"two contexts have the same row, {twice}: give every row once")

    def _check_widths(self) -> None:
        """Raise ValueError for duplicate column names, and for rows of different lengths."""
        if self.columns is not None and len(set(self.columns)) < len(self.columns):
            twice = next(name for name in self.columns if self.columns.count(name) > 1)
            raise ValueError(f"two columns of the contexts are called {twice!r}; give each a different name")
        odd = next((row for row in self.rows if len(row) != self.width), None)
        if odd is not None or (self.columns is not None and self.width != len(self.columns)):
            expected = f"{self.width} values" if self.columns is None else f"a value for each of {self.columns}"
            raise ValueError(f"every row of contexts has {expected}; got {odd or self.rows[0]}")

    @cached_property
    def _index(self) -> dict[tuple[Plain, ...], int]:
        return {row: i for i, row in enumerate(self.rows)}

    @cached_property
    def _printed(self) -> dict[tuple[str, ...], int]:
        """Index of the row for each row of str() values, except values that several rows share."""
        printed = [_printed_row(row) for row in self.rows]
        often = Counter(printed)
        return {texts: i for i, texts in enumerate(printed) if often[texts] == 1}

    @property
    def width(self) -> int | None:
        """Number of values of a row; None if all rows are rare and columns have no names."""
        example = self.rows[0] if self.rows else self.columns
        return None if example is None else len(example)

    def index_of(self, row: Any) -> int | None:
        """Return the index of the context of a row, or None; raise ValueError for a row of another shape."""
        values = plain_row(self._values(row))
        if self.width is not None and len(values) != self.width:
            raise ValueError(f"a row of contexts has {self.width} values; got {len(values)}: {values}")
        index = self._index.get(values)
        return self._printed.get(_printed_row(values)) if index is None else index

    def _values(self, row: Any) -> Sequence[Any]:
        """Return the values of a row in the order of the columns."""
        if not has_names(row):
            return tuple(row)
        if self.columns is None:
            raise ValueError("the contexts have no column names: give a row as a tuple, in the order of the sample")
        missing = [name for name in self.columns if name not in row]
        if missing:
            raise ValueError(f"the row has no {missing[0]!r}; the columns of contexts are {', '.join(self.columns)}")
        return [row[name] for name in self.columns]


def header_of(rows: ContextRows | None, other: str | None) -> dict[str, Any]:
    """Return ``rows`` and ``other`` of a problem for the header of a file, without keys that are None."""
    return {
        **({"other": other} if other is not None else {}),
        **({"rows": {"columns": rows.columns, "rows": rows.rows}} if rows is not None else {}),
    }


def from_header(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``rows`` and ``other`` from the header of a file, as arguments of `Problem`.

    >>> from_header(header_of(ContextRows(None, (("mobile", 25),)), "the rest"))
    {'rows': ContextRows(columns=None, rows=(('mobile', 25),)), 'other': 'the rest'}
    >>> from_header({})
    {'rows': None, 'other': None}
    """
    rows = header.get("rows")
    return {"rows": None if rows is None else ContextRows(**rows), "other": header.get("other")}


def has_names(row: Any) -> bool:
    """Return whether a row has column names: a dictionary, or a row of a DataFrame."""
    return hasattr(row, "keys") and hasattr(row, "__getitem__")


def plain_row(row: Any) -> tuple[Plain, ...]:
    """Return a row as plain values: str, int, float or bool."""
    return tuple(_plain(value) for value in row)


def _printed_row(row: tuple[Plain, ...]) -> tuple[str, ...]:
    """Return values as strings, 25.0 as "25"."""
    return tuple(str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in row)


def _plain(value: Any) -> Plain:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, str | int | float) else str(value)
