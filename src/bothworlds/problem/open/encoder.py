"""Rows of columns, or of plain numbers, as features of contexts or candidates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.problem.checks import is_number
from bothworlds.problem.frames import frame_of
from bothworlds.problem.open.columns import Column
from bothworlds.problem.rows import has_names

LARGEST = 1e30  # of a feature: products of four of them do not overflow


@dataclass(frozen=True)
class Encoder:
    """Turns rows into features: by ``columns``, or ``width`` numbers as they are. ``word`` names a row in messages.

    >>> Encoder("context", (Column.number("age", 18, 90), Column.boolean("member"))).row({"age": 90, "member": False})
    array([ 1., -1.])
    """

    word: str
    columns: tuple[Column, ...] = ()
    width: int = 0

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"two columns of the {self.word} are called {twice!r}; give each a different name")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        if self.columns:
            return tuple(name for column in self.columns for name in column.features)
        return tuple(f"{self.word} {i}" for i in range(self.width))

    def blank(self) -> list[Any]:
        """Return a row without values: missing ones, or zeros."""
        return [None] * len(self.columns) or [0.0] * self.width

    def row(self, given: Any) -> Floats:
        """Return the features of one row: a dictionary, a row of a DataFrame, or values in the order of the columns."""
        if frame_of(given) is not None:
            raise ValueError(f"a table has several rows, and one {self.word} is needed: give a dictionary or one row")
        if np.ma.is_masked(given):
            raise ValueError(f"a {self.word} is {self.width} numbers: masked entries have no value")
        return np.asarray(self.table([given])[0])

    def table(self, given: Any) -> Floats:
        """Return the features of many rows, (rows, features): a DataFrame, a list of rows, or an array of numbers."""
        if not self.columns:
            return self._numbers(given)
        frame = frame_of(given)
        if frame is not None:
            rows, places = list(frame.rows), [self._place(name, frame.names) for name in self.names]
            cells = [[row[place] for row in rows] for place in places]
        else:
            cells = self._cells(given)
        return np.hstack([column.encode(part) for column, part in zip(self.columns, cells, strict=True)])

    def _cells(self, given: Any) -> list[list[Any]]:
        """Return the cells of rows, column by column."""
        if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__len__"):
            raise ValueError(f"{self.word}s come as a table or as a list of rows; got {given!r:.80}")
        rows = [self._values(row) for row in given]
        return [[row[i] for row in rows] for i in range(len(self.columns))]

    def _values(self, row: Any) -> Sequence[Any]:
        """Return the values of a row in the order of the columns."""
        if has_names(row):
            keys = row.keys()
            return [row[self._key(name, keys)] for name in self.names]
        if len(self.columns) == 1 and (isinstance(row, str) or is_number(row) or row is None):
            return [row]
        if isinstance(row, str | bytes) or not hasattr(row, "__len__"):
            raise ValueError(f"a {self.word} is a dictionary or a row of {len(self.columns)} values; got {row!r:.80}")
        if len(row) != len(self.columns):
            raise ValueError(
                f"a {self.word} has {len(self.columns)} values, {', '.join(self.names)}; got {len(row)}: {row!r:.80}"
            )
        return list(row)

    def _key(self, name: str, known: Any) -> str:
        if name not in known:
            raise ValueError(
                f"the {self.word} has no {name!r}; its columns are {', '.join(self.names)}. Give None for a value that "
                "you do not know"
            )
        return name

    def _place(self, name: str, known: tuple[str, ...]) -> int:
        return known.index(self._key(name, known))

    def _numbers(self, given: Any) -> Floats:
        """Return rows of plain numbers."""
        try:
            table = np.array(given.to_numpy() if hasattr(given, "to_numpy") else given)
            if np.ma.is_masked(given):
                raise ValueError("masked entries have no value")
            if table.dtype.kind not in "biuf":
                raise ValueError(f"its type is {table.dtype}")
            table = table.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"a {self.word} is {self.width} numbers: {error}") from None
        if table.ndim != 2 or table.shape[1] != self.width:
            raise ValueError(f"a {self.word} is {self.width} numbers; got an array of shape {table.shape[1:]}")
        if not (np.abs(table) <= LARGEST).all():
            worst = table[~(np.abs(table) <= LARGEST)][0]
            raise ValueError(
                f"a {self.word} has the number {worst:g}: all must be finite and at most {LARGEST:g}. With columns, "
                "missing values are served"
            )
        return table


def encoder_of(given: Any, word: str) -> Encoder | None:
    """Return the encoder for columns, or for a number of features; None for None."""
    if given is None:
        return None
    if is_number(given):
        if given != int(given) or given < 1:
            raise ValueError(f"{word} must be columns, or the number of features, at least 1; got {given!r}")
        return Encoder(word, width=int(given))
    columns = () if isinstance(given, str) or not hasattr(given, "__iter__") else tuple(given)
    if not columns or not all(isinstance(column, Column) for column in columns):
        raise ValueError(f"{word} must be a list of Column, or the number of features; got {given!r:.80}")
    return Encoder(word, columns)
