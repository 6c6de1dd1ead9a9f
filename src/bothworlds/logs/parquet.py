"""The schema as Parquet, through pyarrow (``pip install 'bothworlds[parquet]'``): read and written piece by piece."""

import importlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from bothworlds.errors import MissingPackageError, not_installed
from bothworlds.logs.checking import TOLERANCE, Limits, Numbered, checked_rows, sound_rows
from bothworlds.logs.faults import LogError, shown
from bothworlds.logs.lines import appearing
from bothworlds.logs.named import Cells, Columns, named_rows
from bothworlds.logs.schema import NAMES, SCHEMA, Row
from bothworlds.problem.storage import migration

BATCH = 1 << 14  # rows in memory at once
GROUP = 1 << 15  # rows that are compressed together
MARK = b"bothworlds"  # the key of the schema's version in a file's metadata
TEXTS, REALS = ("id", "context", "arm", "policy", "digest", "footing"), ("time", "propensity", "reward", "reward_time")
LISTS = ("probabilities", "direction", "baseline")


def read_parquet(
    path: str | Path, *, reward_range: Limits = None, tolerance: float = TOLERANCE, **columns: Any
) -> Iterator[Row]:
    """Read a Parquet file lazily: one of `write_parquet`, or any, if the caller says which column is what.

    Parameters
    ----------
    path
        The file.
    reward_range, tolerance
        As `checked` has them.
    columns
        For files from elsewhere, as `read_csv` has it: ``arm="banner", propensity="p", ...``.
    """
    if columns:
        named = Columns(**columns)
        rows = named_rows(_records(path, named.used()), named, path)
    else:
        rows = _own_rows(path)
    return checked_rows(rows, path, reward_range, tolerance)


def write_parquet(rows: Iterable[Row], path: str | Path) -> int:
    """Write rows as Parquet with a column for each field of the schema, whose version stands in the metadata.

    Return how many. A file that is there is replaced as a whole.
    """
    arrow, files = _pyarrow()
    schema = _schema(arrow)
    count, remaining = 0, sound_rows(rows, "the rows")
    try:
        with appearing(path) as place, files.ParquetWriter(place, schema, write_page_checksum=True) as writer:
            while some := list(islice(remaining, GROUP)):
                columns = {name: [getattr(row, name) for _, row in some] for name in NAMES[Row]}
                writer.write_table(arrow.Table.from_pydict(columns, schema=schema))
                count += len(some)
    except UnicodeEncodeError as error:
        raise LogError("the rows", None, f"a text that UTF-8 cannot have, {shown(error.object)}") from None
    return count


def _pyarrow() -> tuple[Any, Any]:
    """Return pyarrow, or say how to get it."""
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise MissingPackageError(not_installed("Parquet needs", "pyarrow", "parquet")) from None


def _schema(arrow: Any) -> Any:
    """Return the columns of a log and their types."""
    reals = arrow.list_(arrow.float64())
    kinds = {
        **dict.fromkeys(TEXTS, arrow.string()),
        **dict.fromkeys(REALS, arrow.float64()),
        **dict.fromkeys(LISTS, reals),
        "features": arrow.list_(reals),
        "offered": arrow.list_(arrow.string()),
        "version": arrow.int64(),
        "holdout": arrow.bool_(),
    }
    return arrow.schema([(name, kinds[name]) for name in NAMES[Row]], metadata={MARK: SCHEMA.encode()})


def _batches(
    path: str | Path, columns: list[str] | None, *, own: bool
) -> Iterator[tuple[int, int, dict[str, list[Any]]]]:
    """Yield the number of the first row, how many there are, and their columns, batch by batch."""
    arrow, files = _pyarrow()
    first = 1
    try:
        with files.ParquetFile(path, page_checksum_verification=True) as file:
            if own:
                _check_own(file, path)
            for name in columns or []:
                if name not in file.schema_arrow.names:
                    raise LogError(
                        path, None, f"there is no column {name!r}; the columns are {shown(file.schema_arrow.names)}"
                    )
            for batch in file.iter_batches(batch_size=BATCH, columns=columns):
                yield first, batch.num_rows, batch.to_pydict()
                first += batch.num_rows
    except OSError as error:  # pyarrow's own for damaged files are of this kind, too
        raise LogError(path, None, f"cannot be read: {shown(str(error))}") from None
    except arrow.ArrowException as error:
        raise LogError(path, None, f"is no Parquet file, or damaged from row {first} on: {shown(str(error))}") from None


def _check_own(file: Any, path: str | Path) -> None:
    """Refuse a file that is not of this schema."""
    found = (file.schema_arrow.metadata or {}).get(MARK, b"none").decode(errors="replace")
    if found != SCHEMA:
        advice = migration(found, SCHEMA) or "; of a file from elsewhere say which column is what: arm=..., ..."
        raise LogError(path, None, f"its schema is {found}, not {SCHEMA}{advice}")
    missing = [name for name in ("id", "arm", "propensity") if name not in file.schema_arrow.names]
    if missing:
        raise LogError(path, None, f"there is no column {missing[0]!r}, which every log has")


def _own_rows(path: str | Path) -> Numbered:
    """Yield the numbered rows of a file of this schema."""
    for first, count, columns in _batches(path, None, own=True):
        known = [name for name in columns if name in NAMES[Row]]
        for place in range(count):
            values = {name: value for name in known if (value := columns[name][place]) is not None}
            for name in ("offered", *LISTS):
                if name in values:
                    values[name] = tuple(values[name])
            if "features" in values:
                values["features"] = tuple(tuple(line or ()) for line in values["features"])
            if not values.keys() >= {"id", "arm", "propensity"}:
                raise LogError(path, first + place, "id, arm or propensity is missing")
            yield first + place, Row(**values)


def _records(path: str | Path, columns: list[str]) -> Iterator[tuple[int, Cells]]:
    """Yield the numbered records of a file from elsewhere."""
    for first, count, found in _batches(path, list(dict.fromkeys(columns)), own=False):
        for place in range(count):
            yield first + place, {name: values[place] for name, values in found.items()}
