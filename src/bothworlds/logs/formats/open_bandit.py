"""The CSV of the Open Bandit Dataset: items shown in positions of a shop's page, clicks, propensities.

Columns: a number, ``timestamp``, ``item_id``, ``position``, ``click``, ``propensity_score``, ``user_feature_0``, ...
and one ``user-item_affinity_k`` for each item k.

It cannot express `LOST`, names of arms (they are numbers), rows without a reward, or features other than one number for
each arm. The dataset's file of item features (item_context.csv) is not read.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

from bothworlds.logs.column_mapping import Cells, number_in, text_of, time_of
from bothworlds.logs.formats.csv_files import csv_records
from bothworlds.logs.lines import write_lines
from bothworlds.logs.schema import Row
from bothworlds.logs.validation import TOLERANCE, Limits, LogError, Numbered, checked_rows, shown, writable_rows

LOST = (
    "probabilities",
    "policy",
    "version",
    "digest",
    "fingerprint",
    "holdout",
    "direction",
    "baseline",
    "reward_time",
)
AFFINITY = "user-item_affinity_"
NEEDED = ["timestamp", "item_id", "position", "click", "propensity_score"]
SOURCE = "the rows for an Open Bandit CSV"


def read_open_bandit(
    path: str | Path,
    *,
    context: Sequence[str] | None = None,
    uniform: bool = False,
    reward_range: Limits = (0.0, 1.0),
    tolerance: float = TOLERANCE,
) -> Iterator[Row]:
    """Read a log of the Open Bandit Dataset lazily.

    Each position is a separate decision. Items are the arms, by their numbers; the affinity of the user to each item is
    its feature.

    Parameters
    ----------
    path
        ``all.csv``, ``men.csv`` or ``women.csv``.
    context
        Columns whose values, joined by commas, name the context; by default position and all user features.
    uniform
        Whether the logging policy was uniform ("random"): then the whole vector is known, and checked against the
        propensity. Otherwise ``probabilities`` is empty, because the file has that of the chosen item only.
    reward_range, tolerance
        Those of `checked`.
    """
    return checked_rows(_rows(path, context, uniform), path, reward_range, tolerance)


def write_open_bandit(rows: Iterable[Row], path: str | Path) -> int:
    """Write rows as a CSV of the Open Bandit Dataset; return their number. See `LOST` for what it cannot express.

    All rows must offer the same arms and have a time and a reward. The context becomes ``user_feature_0``; the position
    is 1.

    >>> row = Row(id="9", time=0.0, context="day", offered=("0", "1"), arm="1", propensity=0.75, reward=1.0)
    >>> write_open_bandit([row], "log.csv")
    1
    >>> next(read_open_bandit("log.csv", context=["user_feature_0"])) == row
    True
    """
    return max(write_lines(_lines(writable_rows(rows, SOURCE)), path) - 1, 0)  # without the header


def _rows(path: str | Path, context: Sequence[str] | None, uniform: bool) -> Numbered:
    items: tuple[str, ...] | None = None
    for number, cells in csv_records(path, required=[*NEEDED, *(context or [])]):
        if items is None:
            items = _items(cells, path)
            names = context or ["position", *(name for name in cells if name.startswith("user_feature_"))]
        try:
            yield number, _row(cells, number, items, names, uniform)
        except ValueError as error:
            raise LogError(path, number, str(error)) from None


def _items(cells: Cells, path: str | Path) -> tuple[str, ...]:
    """Return the items, in the order of their columns."""
    items = [name.removeprefix(AFFINITY) for name in cells if name.startswith(AFFINITY)]
    if not items or sorted(items, key=lambda name: (len(name), name)) != [str(k) for k in range(len(items))]:
        raise LogError(path, None, f"the columns {AFFINITY}0, {AFFINITY}1, ... of the items are missing or incomplete")
    return tuple(str(k) for k in range(len(items)))


def _row(cells: Cells, number: int, items: tuple[str, ...], names: Sequence[str], uniform: bool) -> Row:
    has_features = any(cells[AFFINITY + item] for item in items)
    return Row(
        id=cells.get("") or str(number),
        time=time_of(text_of(cells, "timestamp")),
        context=", ".join(str(cells[name]) for name in names) or None,
        features=tuple((number_in(cells, AFFINITY + item),) for item in items) if has_features else None,
        offered=items,
        probabilities=(1.0 / len(items),) * len(items) if uniform else (),
        arm=text_of(cells, "item_id"),
        propensity=number_in(cells, "propensity_score"),
        reward=number_in(cells, "click"),
    )


def _lines(rows: Numbered) -> Iterator[bytes]:
    """Yield the lines of a file, the header first."""
    offered: tuple[str, ...] | None = None
    for number, row in rows:
        if offered is None:
            offered = row.offered
            if not offered or offered != tuple(str(k) for k in range(len(offered))):
                raise LogError(
                    SOURCE, number, f"arms must be named 0, 1, 2, ..., and all be offered; got {shown(offered)}"
                )
            yield _csv_line(["", *NEEDED, "user_feature_0", *(AFFINITY + item for item in offered)])
        yield _csv_line([row.id, *_cells(row, number, offered)])


def _cells(row: Row, number: int, offered: tuple[str, ...]) -> list[Any]:
    if row.offered != offered:
        raise LogError(SOURCE, number, f"it offers {shown(row.offered)}, but the first row other arms")
    if row.time is None or row.reward is None:
        raise LogError(SOURCE, number, "time or reward is missing, which the format requires; leave such rows out")
    if row.features is not None and (len(row.features), len(row.features[0])) != (len(offered), 1):
        raise LogError(SOURCE, number, "features must be one number for each arm, or None")
    try:
        stamp = datetime.fromtimestamp(row.time, UTC).isoformat(sep=" ", timespec="microseconds")
    except (ValueError, OverflowError, OSError):
        raise LogError(SOURCE, number, f"time {row.time!r} is not a date") from None
    affinity = [""] * len(offered) if row.features is None else [repr(line[0]) for line in row.features]
    return [stamp, row.arm, 1, repr(row.reward), repr(row.propensity), row.context or "", *affinity]


def _csv_line(cells: Sequence[Any]) -> bytes:
    out = StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue().encode()
