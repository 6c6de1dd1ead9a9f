"""Rows from tables with arbitrary column names: a CSV file, a Parquet file, a query, a DataFrame."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from datetime import time as clock
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np

from bothworlds.logs.schema import Row
from bothworlds.logs.validation import TOLERANCE, Limits, LogError, Numbered, checked_rows, shown
from bothworlds.problem.checks import is_number
from bothworlds.problem.frames import frame_of

Cells: TypeAlias = Mapping[str, Any]
MISSING = ("NAType", "NaTType")  # types of pandas' missing values: equal to nothing, neither true nor false
LATEST = 1e11  # seconds since 1970: the year 5138; as milliseconds it would be in 1973
BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of a table, by the field they hold.

    Attributes
    ----------
    arm
        Column of the chosen arm.
    context
        Column of the context, or several: their values, joined by commas, are its name, as in `Problem.from_sample`.
    reward, reward_time
        Columns of the reward and of its time; an empty cell means that there is none.
    propensity
        Column of the probability of the chosen arm; or a number, if it was the same in all rows.
    probabilities
        Columns of the whole vector, by arm: ``{"red": "p_red", "blue": "p_blue"}``. An empty cell means that the arm
        was not offered.
    arms
        Names of the arms, if all were offered in every row and there are no ``probabilities``.
    features
        Columns of numbers that describe the context, the same for all arms.
    id, time, policy, version, holdout
        Columns of these fields; without ``id`` a row's number is its id.
    zone
        Time zone of times without one: "UTC", "Europe/Paris".
    """

    arm: str = ""
    context: str | Sequence[str] | None = None
    reward: str | None = None
    propensity: str | float | None = None
    probabilities: Mapping[str, str] | None = None
    arms: Sequence[str] | None = None
    features: Sequence[str] | None = None
    id: str | None = None
    time: str | None = None
    policy: str | None = None
    version: str | None = None
    holdout: str | None = None
    reward_time: str | None = None
    zone: str | None = None

    def __post_init__(self) -> None:
        if not self.arm:
            raise ValueError("arm= is missing: name the column of the chosen arm, for example arm='banner'")
        if self.propensity is None and self.probabilities is None:
            raise ValueError(
                "a log without propensities cannot be evaluated, and they cannot be guessed: name the column, "
                "propensity='p', or give the number if it was the same in all rows, propensity=1/3"
            )
        if not hasattr(self.probabilities or {}, "items"):
            example = "{'red': 'p_red', 'blue': 'p_blue'}"
            raise ValueError(f"probabilities= must name a column for each arm, {example}; got {self.probabilities!r}")
        if not (self.propensity is None or isinstance(self.propensity, str) or is_number(self.propensity)):
            raise ValueError(f"propensity= must be the name of a column, or a number; got {self.propensity!r}")
        if self.probabilities is not None and self.arms is not None:
            raise ValueError("arms= is for logs without probabilities=, whose columns name the offered arms")
        if self.zone is not None:
            _zone_of(self.zone)

    def used(self) -> list[str]:
        """Return the names of all used columns."""
        names: list[str] = []
        for part in fields(self):
            value = getattr(self, part.name)
            if part.name in ("arms", "zone") or value is None or is_number(value):
                continue
            names += [value] if isinstance(value, str) else value.values() if isinstance(value, Mapping) else value
        return names


def from_records(
    records: Any,
    *,
    reward_range: Limits = None,
    tolerance: float = TOLERANCE,
    source: str | Path = "the table",
    **columns: Any,
) -> Iterator[Row]:
    """Yield rows from records with arbitrary field names, such as those of a query, or from a data frame.

    Parameters
    ----------
    records
        Mappings from column names to values: numbers, texts, None or an empty text. Or a data frame (pandas, Polars,
        Arrow).
    reward_range, tolerance, source
        Those of `checked`.
    columns
        Column names, as for `read_csv`.

    >>> table = [{"device": "mobile", "banner": "red", "click": 1, "p": 0.25}]
    >>> row = next(from_records(table, context="device", arm="banner", reward="click", propensity="p"))
    >>> row.id, row.context, row.arm, row.propensity, row.reward
    ('1', 'mobile', 'red', 0.25, 1.0)
    """
    frame = frame_of(records)
    if frame is not None:
        names = frame.names
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise LogError(source, None, f"two columns are called {twice!r}")
        records = (dict(zip(names, row, strict=True)) for row in frame.rows)
    rows = mapped_rows(enumerate(records, 1), Columns(**columns), source)
    return checked_rows(rows, source, reward_range, tolerance)


def missing_column(name: str, columns: list[str]) -> str:
    """Return the message for a missing column, with advice if the file has another delimiter than commas."""
    delimiters = [mark for mark in ";\t|" if len(columns) == 1 and mark in columns[0]]
    option = f'delimiter="{delimiters[0]}"'.replace("\t", "\\t") if delimiters else ""
    advice = f". Columns must be separated by commas: pass {option}, or use commas in the file" if delimiters else ""
    return f"there is no column {name!r}; the columns are {shown(columns)}{advice}"


def mapped_rows(records: Iterable[tuple[int, Cells]], columns: Columns, source: str | Path) -> Numbered:
    """Yield numbered rows from numbered records."""
    for number, cells in records:
        try:
            yield number, _row_of(cells, columns, number)
        except KeyError as error:
            raise LogError(source, number, missing_column(error.args[0], list(cells))) from None
        except ValueError as error:
            raise LogError(source, number, str(error)) from None


def _row_of(cells: Cells, columns: Columns, number: int) -> Row:
    """Return the row of one record."""
    zone = columns.zone
    offered, probabilities = _vector_of(cells, columns)
    arm = text_of(cells, columns.arm)
    return Row(
        id=str(number) if columns.id is None else text_of(cells, columns.id),
        time=_optional(cells, columns.time, lambda value: time_of(value, zone)),
        context=_context_of(cells, columns.context),
        features=None if columns.features is None else (tuple(number_in(cells, name) for name in columns.features),),
        offered=offered,
        probabilities=probabilities,
        arm=arm,
        propensity=_propensity_of(cells, columns, arm, dict(zip(offered, probabilities, strict=False))),
        policy="unknown" if columns.policy is None else text_of(cells, columns.policy),
        version=0 if columns.version is None else _integer(number_in(cells, columns.version)),
        holdout=False if columns.holdout is None else _boolean_of(cells, columns.holdout),
        reward=_optional(cells, columns.reward, _reward_of),
        reward_time=_optional(cells, columns.reward_time, lambda value: time_of(value, zone)),
    )


def _vector_of(cells: Cells, columns: Columns) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return the offered arms and their probabilities; each is empty if it is not known."""
    if columns.probabilities is None:
        return tuple(map(str, columns.arms or ())), ()
    names = columns.probabilities.items()
    by_arm = {str(arm): number_of(cells[name]) for arm, name in names if not _empty(cells[name])}
    return tuple(by_arm), tuple(by_arm.values())


def _propensity_of(cells: Cells, columns: Columns, arm: str, probabilities: Mapping[str, float]) -> float:
    """Return the propensity from its column, the constant, or the probabilities."""
    if isinstance(columns.propensity, str):
        return number_in(cells, columns.propensity)
    if columns.propensity is not None:
        return float(columns.propensity)
    if arm not in probabilities:
        raise ValueError(f"the chosen arm {shown(arm)} has no probability; those with one are {shown(probabilities)}")
    return probabilities[arm]


def _context_of(cells: Cells, context: str | Sequence[str] | None) -> str | None:
    if context is None:
        return None
    names = (context,) if isinstance(context, str) else context
    return ", ".join(text_of(cells, name) for name in names)


def _optional(cells: Cells, name: str | None, convert: Callable[[Any], float]) -> float | None:
    """Return a converted cell, or None if there is no such column or the cell is empty."""
    return None if name is None or _empty(cells[name]) else convert(cells[name])


def _empty(value: Any) -> bool:
    if value is None or isinstance(value, str):
        return not value
    return type(value).__name__ in MISSING or (isinstance(value, Real) and math.isnan(value))


def text_of(cells: Cells, name: str) -> str:
    """Return a cell as a text; raise a ValueError if it is empty."""
    value = cells[name]
    if _empty(value):
        raise ValueError(f"column {name!r} is empty")
    return str(value)


def number_in(cells: Cells, name: str) -> float:
    """Return a cell as a number; raise a ValueError if it is empty."""
    value = cells[name]
    if _empty(value):
        raise ValueError(f"column {name!r} is empty; a number is required")
    return number_of(value)


def number_of(value: Any) -> float:
    """Return a value as a float; raise a ValueError for booleans and other values that are not finite numbers."""
    try:
        if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
            raise ValueError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{shown(value)} is not a number") from None
    if not math.isfinite(number):
        raise ValueError(f"{shown(value)} is not finite")
    return number


def _reward_of(value: Any) -> float:
    """Return a reward as a float; it may be a boolean, such as a click."""
    return float(value) if isinstance(value, bool | np.bool_) else number_of(value)


def _integer(value: float) -> int:
    if value != int(value):
        raise ValueError(f"version {value!r} is not a whole number")
    return int(value)


def _boolean_of(cells: Cells, name: str) -> bool:
    value = text_of(cells, name).strip().lower()
    if value not in BOOLEANS:
        raise ValueError(f"{shown(value)} in column {name!r} is neither true nor false")
    return BOOLEANS[value]


def time_of(value: Any, zone: str | None = None) -> float:
    """Return a time in seconds since 1970, from such a number, a text in ISO 8601, or a date.

    >>> time_of("1970-01-01 01:00:00+01:00"), time_of("1970-01-01T00:01", "UTC"), time_of("17.5")
    (0.0, 60.0, 17.5)
    """
    if isinstance(value, str):
        try:
            value = number_of(value)
        except ValueError:
            value = _date_of(value)
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, clock.min)
    if not isinstance(value, datetime):
        return _seconds_of(number_of(value))
    if value.tzinfo is None:
        if zone is None:
            raise ValueError(
                f"time {value.isoformat()} has no time zone; give zone='UTC' or another one "
                "(of a command: --column zone=UTC)"
            )
        value = value.replace(tzinfo=_zone_of(zone))
    return float(value.timestamp())


def _seconds_of(number: float) -> float:
    if abs(number) >= LATEST:
        raise ValueError(f"time {number:.17g} is out of range for seconds since 1970; are these milliseconds?")
    return number


def _date_of(value: str) -> datetime:
    try:
        return datetime.fromisoformat(value.strip())
    except ValueError:
        raise ValueError(
            f"{shown(value)} is not a time: give seconds since 1970, or ISO 8601 like 2025-01-31T12:00:00Z"
        ) from None


def _zone_of(zone: str) -> ZoneInfo:
    try:
        return ZoneInfo(zone)
    except (ValueError, OSError, KeyError):  # an invalid name, a folder, an unknown name
        raise ValueError(f"unknown time zone {zone!r}; use one such as 'UTC' or 'Europe/Paris'") from None
