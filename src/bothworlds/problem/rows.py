"""Contexts as rows of a table: which one is meant by a dictionary, a tuple, or a row of a DataFrame."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

Plain = str | int | float | bool


class Labelled(Protocol):
    """A row with names of columns: a dictionary, or a row of a DataFrame."""

    def keys(self) -> Any:
        """Return the names."""

    def __getitem__(self, name: Any, /) -> Any: ...


Context: TypeAlias = str | int | float | tuple[Any, ...] | Labelled  # one context, as callers may give it


@dataclass(frozen=True)
class ContextRows:
    """The rows that the first contexts of a problem stand for, and the names of their columns, if they have some.

    Values are numbers or words; anything else, a date say, is known by what it prints as, so that a file can keep it.
    A number that comes as a text, as files of text have it, is the same number, where no row has that text.

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
            raise ValueError(f"two contexts stand for the same row, {twice}: give every row once")

    def _check_widths(self) -> None:
        """Refuse columns that cannot be told apart, and rows that have not as many values as there are columns."""
        if self.columns is not None and len(set(self.columns)) < len(self.columns):
            twice = next(name for name in self.columns if self.columns.count(name) > 1)
            raise ValueError(f"two columns of the contexts are called {twice!r}; give each a name of its own")
        odd = next((row for row in self.rows if len(row) != self.width), None)
        if odd is not None or (self.columns is not None and self.width != len(self.columns)):
            wanted = f"{self.width} values" if self.columns is None else f"a value for each of {self.columns}"
            raise ValueError(f"every row of contexts has {wanted}; got {odd or self.rows[0]}")

    @cached_property
    def _index(self) -> dict[tuple[Plain, ...], int]:
        return {row: i for i, row in enumerate(self.rows)}

    @cached_property
    def _printed(self) -> dict[tuple[str, ...], int]:
        """Which row prints as some texts do, but for texts that several rows print as."""
        printed = [_printed_row(row) for row in self.rows]
        often = Counter(printed)
        return {texts: i for i, texts in enumerate(printed) if often[texts] == 1}

    @property
    def width(self) -> int | None:
        """How many values a row has; None where nothing says so, all rows being rare."""
        said = self.rows[0] if self.rows else self.columns
        return None if said is None else len(said)

    def index_of(self, row: Any) -> int | None:
        """Return which context a row is, or None if it is none of them; what is not a row of this table is refused."""
        values = plain_row(self._values(row))
        if self.width is not None and len(values) != self.width:
            raise ValueError(f"a row of contexts has {self.width} values; got {len(values)}: {values}")
        found = self._index.get(values)
        return self._printed.get(_printed_row(values)) if found is None else found

    def _values(self, row: Any) -> Sequence[Any]:
        """Return the values of a row in the order of the columns."""
        if not has_names(row):
            return tuple(row)
        if self.columns is None:
            raise ValueError("the contexts have no column names: give a row as a tuple, in the order of the sample")
        missing = [name for name in self.columns if name not in row]
        if missing:
            raise ValueError(f"the row has no {missing[0]!r}; contexts are told apart by {', '.join(self.columns)}")
        return [row[name] for name in self.columns]


def header_of(rows: ContextRows | None, other: str | None) -> dict[str, Any]:
    """Return what a file's header says of the rows of a problem and of what stands for all others; absent if none."""
    return {
        **({"other": other} if other is not None else {}),
        **({"rows": {"columns": rows.columns, "rows": rows.rows}} if rows is not None else {}),
    }


def from_header(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return rows and other, for `Problem`, as a file's header has them.

    >>> from_header(header_of(ContextRows(None, (("mobile", 25),)), "the rest"))
    {'rows': ContextRows(columns=None, rows=(('mobile', 25),)), 'other': 'the rest'}
    >>> from_header({})
    {'rows': None, 'other': None}
    """
    rows = header.get("rows")
    return {"rows": None if rows is None else ContextRows(**rows), "other": header.get("other")}


def has_names(row: Any) -> bool:
    """Tell a row with names of columns, a dictionary or a row of a DataFrame, from one without."""
    return hasattr(row, "keys") and hasattr(row, "__getitem__")


def plain_row(row: Any) -> tuple[Plain, ...]:
    """Return a row as plain values."""
    return tuple(_plain(value) for value in row)


def _printed_row(row: tuple[Plain, ...]) -> tuple[str, ...]:
    """Return values as texts, 25.0 as 25 is."""
    return tuple(str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in row)


def _plain(value: Any) -> Plain:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, str | int | float) else str(value)
