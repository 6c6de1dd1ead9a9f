"""CSV files with columns named by the caller."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from bothworlds.logs.column_mapping import Cells, Columns, mapped_rows, missing_column
from bothworlds.logs.schema import Row
from bothworlds.logs.validation import TOLERANCE, Limits, LogError, checked_rows

TRUNCATED = "does not end with a line feed: the file may be truncated. Add one if it is complete"


def read_csv(
    path: str | Path,
    *,
    reward_range: Limits = None,
    tolerance: float = TOLERANCE,
    delimiter: str = ",",
    **columns: Any,
) -> Iterator[Row]:
    r"""Read a CSV file with a header lazily; the caller names its columns. Rows are counted without the header.

    Parameters
    ----------
    path
        A file in UTF-8. Its last line must end with a line feed, so that truncated files are detected.
    reward_range, tolerance
        Those of `checked`.
    delimiter
        The character between two cells.
    columns
        ``arm="banner"`` and ``propensity="p"`` (a column, or a number), or ``probabilities={"red": "p_red", ...}``;
        also ``context`` (a column, or several), ``reward``, ``reward_time``, ``arms`` (names), ``features``
        (columns), ``id``, ``time``, ``policy``, ``version``, ``holdout``, and ``zone`` for times without one.

    >>> _ = Path("clicks.csv").write_text("device,banner,click,p\nmobile,red,1,0.25\ndesktop,blue,,0.5\n")
    >>> for row in read_csv("clicks.csv", context="device", arm="banner", reward="click", propensity="p"):
    ...     print(row.id, row.context, row.arm, row.propensity, row.reward)
    1 mobile red 0.25 1.0
    2 desktop blue 0.5 None
    """
    if len(delimiter) != 1 or delimiter in '\r\n"':
        raise ValueError(f"delimiter must be one character, such as ',' or ';'; got {delimiter!r}")
    named = Columns(**columns)
    rows = mapped_rows(csv_records(path, delimiter, required=named.used()), named, path)
    return checked_rows(rows, path, reward_range, tolerance)


def csv_records(
    path: str | Path, delimiter: str = ",", required: list[str] | None = None
) -> Iterator[tuple[int, Cells]]:
    """Yield the numbered records of a CSV file; refuse missing or extra cells, and truncated files."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            yield from _records(file, path, delimiter, required or [])
    except OSError as error:
        raise LogError(path, None, f"cannot be read: {error.strerror or error}") from None


def _records(file: IO[str], path: str | Path, delimiter: str, required: list[str]) -> Iterator[tuple[int, Cells]]:
    lines = _Lines(file)
    reader, number = csv.reader(lines, delimiter=delimiter, strict=True), 0
    try:
        header = next(reader, [])
        _check_header(header, required, path)
        if not lines.finished:
            raise LogError(path, None, f"the header {TRUNCATED}")
        for number, values in enumerate((line for line in reader if line), 1):
            if len(values) != len(header):
                what = f"{len(values)} cells, but the header has {len(header)}"
                raise LogError(path, number, f"{what} (line {reader.line_num}): is the file truncated or mixed?")
            if not lines.finished:
                raise LogError(path, number, f"the last line {TRUNCATED}")
            yield number, dict(zip(header, values, strict=True))
    except (csv.Error, UnicodeDecodeError) as error:
        raise LogError(path, number + 1, f"not CSV in UTF-8, {error} (line {reader.line_num})") from None


def _check_header(header: list[str], required: list[str], path: str | Path) -> None:
    if not header:
        raise LogError(path, None, "the file is empty; its first line must name the columns")
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise LogError(path, None, f"two columns are called {twice!r}")
    missing = [name for name in required if name not in header]
    if missing:
        raise LogError(path, None, missing_column(missing[0], list(header)))


class _Lines:
    """The lines of a file, and whether the latest one ends with a line feed."""

    def __init__(self, file: IO[str]) -> None:
        self._file, self.finished = file, True

    def __iter__(self) -> Iterator[str]:
        for line in self._file:
            self.finished = line.endswith(("\n", "\r"))
            yield line
