"""Columns of a context or of candidates, and how they become features: numbers, categories, truth values."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, get_args

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.problem.checks import is_number
from bothworlds.problem.rows import Plain, plain_row

Kind = Literal["number", "category", "boolean"]
FARTHEST = 8.0  # scales from the centre: a number further away counts as this far
MOST_CATEGORIES = 50  # the most frequent; all others share one place
TRUTH: dict[Any, float] = {True: 1.0, False: -1.0, "true": 1.0, "false": -1.0, "1": 1.0, "0": -1.0}
NO_VALUES = ("", "nan", "na", "nat", "none", "null", "<na>")  # of cells of text files, and of missing values as text


@dataclass(frozen=True)
class Column:
    """A column of a context or of candidates. Make one with `number`, `category` or `boolean`.

    Missing values (None, NaN, an empty text) and categories never seen are served: they have features of their own, or
    those of the centre.

    >>> age, device = Column.number("age", 18, 90), Column.category("device", ["mobile", "desktop"])
    >>> age.encode([90, 54, None]).tolist(), age.features
    ([[1.0], [0.0], [0.0]], ('age',))
    >>> device.encode(["mobile", "desktop", "tablet"]).tolist(), device.features
    ([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], ('device = desktop', 'device, other'))
    """

    name: str
    kind: Kind
    values: tuple[str, ...] = ()
    centre: float = 0.0
    scale: float = 1.0
    missing: bool = False

    def __post_init__(self) -> None:
        given: Any = self.name
        if not isinstance(given, str) or not given:
            raise ValueError(f"the name of a column must be a text that is not empty; got {self.name!r}")
        if self.kind not in get_args(Kind):
            raise ValueError(
                f"column {self.name!r}: kind must be one of {', '.join(get_args(Kind))}; got {self.kind!r}"
            )
        object.__setattr__(self, "values", tuple(self.values))

    @classmethod
    def number(cls, name: str, lowest: float, highest: float, *, missing: bool = False) -> Self:
        """Return a column of numbers, one feature: -1 at ``lowest``, 1 at ``highest``.

        ``missing`` adds a feature that is 1 where the value is missing; without it such a value counts as the centre.
        """
        if not (is_number(lowest) and is_number(highest) and -math.inf < lowest < highest < math.inf):
            raise ValueError(f"column {name!r} needs numbers lowest < highest; got {lowest!r} and {highest!r}")
        centre, scale = (lowest + highest) / 2.0, (highest - lowest) / 2.0
        return cls(name, "number", centre=float(centre), scale=float(scale), missing=missing)

    @classmethod
    def category(cls, name: str, values: Iterable[Any]) -> Self:
        """Return a column of categories: a feature for each value but the first, and one for all other values."""
        if isinstance(values, str):
            raise ValueError(f"column {name!r}: values come as a list; got a single text, {values!r}")
        texts = tuple(text_of(value) for value in values)
        if not texts or len(set(texts)) < len(texts):
            raise ValueError(f"column {name!r} needs categories, each once; got {texts}")
        return cls(name, "category", values=texts)

    @classmethod
    def boolean(cls, name: str) -> Self:
        """Return a column of truth values, one feature: 1 for true, -1 for false, 0 where missing."""
        return cls(name, "boolean")

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        if self.kind == "category":
            return (*(f"{self.name} = {value}" for value in self.values[1:]), f"{self.name}, other")
        return (self.name, f"{self.name} is missing") if self.missing else (self.name,)

    def encode(self, cells: Iterable[Any]) -> Floats:
        """Return the features of cells, (cells, features); raise ValueError for a cell of another type."""
        if self.kind == "category":
            return self._encode_categories(cells)
        rows = [self._amount(cell) for cell in cells]
        amounts = np.array([[math.nan if amount is None else amount] for amount in rows]).reshape(-1, 1)
        absent = np.isnan(amounts)
        amounts[absent] = 0.0
        return np.hstack([amounts, absent]) if self.missing else amounts

    def _encode_categories(self, cells: Iterable[Any]) -> Floats:
        places, last = {value: i - 1 for i, value in enumerate(self.values)}, len(self.values) - 1
        found = [last if is_missing(cell) else places.get(text_of(cell), last) for cell in cells]
        table = np.zeros((len(found), last + 1))
        for row, place in zip(table, found, strict=True):
            if place >= 0:
                row[place] = 1.0
        return table

    def _amount(self, cell: Any) -> float | None:
        """Return a number or truth value as a feature; None where it is missing."""
        if is_missing(cell):
            return None
        if self.kind == "boolean":
            truth = TRUTH.get(text_of(cell).lower())
            if truth is None:
                raise ValueError(f"column {self.name!r} has truth values; got {cell!r}: give True or False")
            return truth
        number = as_number(cell)
        if number is None or math.isinf(number):
            raise ValueError(
                f"column {self.name!r} has numbers; got {cell!r}: give a finite number, or None if missing"
            )
        return min(max((number - self.centre) / self.scale, -FARTHEST), FARTHEST)

    def to_dict(self) -> dict[str, Any]:
        """Return the column as plain values."""
        return asdict(self)


def is_missing(cell: Any) -> bool:
    """Return whether a cell has no value."""
    if cell is None or (isinstance(cell, float | np.floating) and math.isnan(cell)):
        return True
    return str(cell).strip().lower() in NO_VALUES if isinstance(cell, str) or not is_number(cell) else False


def as_number(cell: Any) -> float | None:
    """Return a cell as a float, also from a text such as "25"; None if it is not a number."""
    if isinstance(cell, bool | np.bool_):
        return None
    try:
        return float(cell) if is_number(cell) or isinstance(cell, str) or hasattr(cell, "__float__") else None
    except (TypeError, ValueError, OverflowError):
        return None


def text_of(cell: Any) -> str:
    """Return the name of a category: whole numbers without a fraction, so that 25, 25.0 and "25" are the same.

    >>> text_of(25.0), text_of("25"), text_of(True)
    ('25', '25', 'True')
    """
    value: Plain = plain_row((cell,))[0]
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def infer_column(name: str, cells: Sequence[Any], categories: Iterable[str]) -> tuple[Column, tuple[str, ...]]:
    """Return the column of a sample of cells, and notes on what was assumed.

    Truth values are booleans, numbers and texts that are all numbers are numbers, everything else is a category.
    """
    present = [cell for cell in cells if not is_missing(cell)]
    if not present:
        raise ValueError(f"column {name!r} has no values: leave it out")
    if name not in categories:
        if all(isinstance(cell, bool | np.bool_) for cell in present):
            return Column.boolean(name), ()
        numbers = [as_number(cell) for cell in present]
        if None not in numbers:
            amounts = np.array(numbers, dtype=np.float64)
            if not np.isfinite(amounts).all():
                raise ValueError(f"column {name!r} has a number that is not finite")
            scale = float(amounts.std()) or 1.0
            column = Column(name, "number", (), float(amounts.mean()), scale, len(present) < len(cells))
            whole = bool((amounts == np.round(amounts)).all())
            hint = (
                f"column {name!r} has whole numbers, taken for an amount; categories=[{name!r}] makes each a category"
            )
            return column, (hint,) if whole and len(set(numbers)) > 2 else ()
    counts = Counter(text_of(cell) for cell in present)
    common = [value for value, _ in counts.most_common(MOST_CATEGORIES)]
    rest = f"column {name!r} has {len(counts)} categories; the {len(common)} most frequent have features of their own"
    return Column.category(name, common), (rest,) if len(counts) > len(common) else ()


def columns_from(tables: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """Return columns from what `Column.to_dict` wrote."""
    return tuple(Column(**table) for table in tables)
