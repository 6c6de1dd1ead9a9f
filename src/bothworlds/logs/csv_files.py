"""CSV files whose columns the caller names."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from bothworlds.logs.checking import TOLERANCE, Limits, checked_rows
from bothworlds.logs.faults import LogError
from bothworlds.logs.named import Cells, Columns, named_rows, no_column
from bothworlds.logs.schema import Row

CUT = "does not end with a line feed: the file may be cut off. Add one if it is whole"


def read_csv(
    path: str | Path,
    *,
    reward_range: Limits = None,
    tolerance: float = TOLERANCE,
    delimiter: str = ",",
    **columns: Any,
) -> Iterator[Row]:
    r"""Read a CSV file with a header lazily; the caller says which column is what. Rows are counted without the header.

    Parameters
    ----------
    path
        A file in UTF-8; its last line must end with a line feed, for a file that was cut off has none.
    reward_range, tolerance
        As `checked` has them.
    delimiter
        What stands between two cells.
    columns
        ``arm="banner"`` and ``propensity="p"`` (a column, or a number), or ``probabilities={"red": "p_red", ...}``;
        further ``context`` (a column, or several), ``reward``, ``reward_time``, ``arms`` (names), ``features``
        (columns), ``id``, ``time``, ``policy``, ``version``, ``holdout``, and ``zone`` for times that do not say
        theirs.

    >>> _ = Path("clicks.csv").write_text("device,banner,click,p\nmobile,red,1,0.25\ndesktop,blue,,0.5\n")
    >>> for row in read_csv("clicks.csv", context="device", arm="banner", reward="click", propensity="p"):
    ...     print(row.id, row.context, row.arm, row.propensity, row.reward)
    1 mobile red 0.25 1.0
    2 desktop blue 0.5 None
    """
    if len(delimiter) != 1 or delimiter in '\r\n"':
        raise ValueError(f"delimiter is the one character between two cells, ',' or ';' say; got {delimiter!r}")
    named = Columns(**columns)
    rows = named_rows(csv_records(path, delimiter, required=named.used()), named, path)
    return checked_rows(rows, path, reward_range, tolerance)


def csv_records(
    path: str | Path, delimiter: str = ",", required: list[str] | None = None
) -> Iterator[tuple[int, Cells]]:
    """Yield the numbered records of a CSV file; refuse cells that are missing or too many, and a file cut off."""
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
        if not lines.whole:
            raise LogError(path, None, f"the header {CUT}")
        for number, values in enumerate((line for line in reader if line), 1):
            if len(values) != len(header):
                what = f"{len(values)} cells, where the header has {len(header)}"
                raise LogError(path, number, f"{what} (line {reader.line_num}): is the file cut off or mixed?")
            if not lines.whole:
                raise LogError(path, number, f"the last line {CUT}")
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
        raise LogError(path, None, no_column(missing[0], list(header)))


class _Lines:
    """The lines of a file, and whether the last one was finished."""

    def __init__(self, file: IO[str]) -> None:
        self._file, self.whole = file, True

    def __iter__(self) -> Iterator[str]:
        for line in self._file:
            self.whole = line.endswith(("\n", "\r"))
            yield line
