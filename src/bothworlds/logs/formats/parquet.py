"""The schema as Parquet, through pyarrow (``pip install '.[parquet]'``), read and written in batches."""

import importlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from bothworlds.errors import MissingPackageError, not_installed
from bothworlds.logs.column_mapping import Cells, Columns, mapped_rows
from bothworlds.logs.lines import atomic_file
from bothworlds.logs.schema import FIELDS, SCHEMA, Row
from bothworlds.logs.validation import TOLERANCE, Limits, LogError, Numbered, checked_rows, shown, writable_rows
from bothworlds.problem.file_format import migration

BATCH = 1 << 14  # rows read into memory at a time
ROW_GROUP = 1 << 15  # rows compressed together
METADATA_KEY = b"bothworlds"  # of the schema's version in a file's metadata
TEXTS, REALS = (
    ("id", "context", "arm", "policy", "digest", "fingerprint"),
    ("time", "propensity", "reward", "reward_time"),
)
LISTS = ("probabilities", "direction", "baseline")


def read_parquet(
    path: str | Path, *, reward_range: Limits = None, tolerance: float = TOLERANCE, **columns: Any
) -> Iterator[Row]:
    """Read a Parquet file lazily: one of `write_parquet`, or any other, if the caller names its columns.

    Parameters
    ----------
    path
        The file.
    reward_range, tolerance
        Those of `checked`.
    columns
        For other files, the column names as for `read_csv`: ``arm="banner", propensity="p", ...``.
    """
    if columns:
        named = Columns(**columns)
        rows = mapped_rows(_records(path, named.used()), named, path)
    else:
        rows = _native_rows(path)
    return checked_rows(rows, path, reward_range, tolerance)


def write_parquet(rows: Iterable[Row], path: str | Path) -> int:
    """Write rows as Parquet, with a column for each field and the schema's version in the metadata.

    Return the number of rows. An existing file is replaced atomically.
    """
    arrow, files = _pyarrow()
    schema = _schema(arrow)
    count, remaining = 0, writable_rows(rows, "the rows")
    try:
        with atomic_file(path) as temporary, files.ParquetWriter(temporary, schema, write_page_checksum=True) as writer:
            while group := list(islice(remaining, ROW_GROUP)):
                columns = {name: [getattr(row, name) for _, row in group] for name in FIELDS[Row]}
                writer.write_table(arrow.Table.from_pydict(columns, schema=schema))
                count += len(group)
    except UnicodeEncodeError as error:
        raise LogError("the rows", None, f"a text cannot be encoded in UTF-8, {shown(error.object)}") from None
    return count


def _pyarrow() -> tuple[Any, Any]:
    """Return pyarrow; raise an error that says how to install it."""
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise MissingPackageError(not_installed("Parquet needs", "pyarrow", "parquet")) from None


def _schema(arrow: Any) -> Any:
    """Return the columns of a log with their types."""
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
    return arrow.schema([(name, kinds[name]) for name in FIELDS[Row]], metadata={METADATA_KEY: SCHEMA.encode()})


def _batches(
    path: str | Path, columns: list[str] | None, *, native: bool
) -> Iterator[tuple[int, int, dict[str, list[Any]]]]:
    """Yield batches of rows: the number of the first row, the number of rows, and the columns."""
    arrow, files = _pyarrow()
    first = 1
    try:
        with files.ParquetFile(path, page_checksum_verification=True) as file:
            if native:
                _check_schema(file, path)
            for name in columns or []:
                if name not in file.schema_arrow.names:
                    raise LogError(
                        path, None, f"there is no column {name!r}; the columns are {shown(file.schema_arrow.names)}"
                    )
            for batch in file.iter_batches(batch_size=BATCH, columns=columns):
                yield first, batch.num_rows, batch.to_pydict()
                first += batch.num_rows
    except OSError as error:  # also raised by pyarrow for damaged files
        raise LogError(path, None, f"cannot be read: {shown(str(error))}") from None
    except arrow.ArrowException as error:
        raise LogError(path, None, f"not a Parquet file, or damaged from row {first} on: {shown(str(error))}") from None


def _check_schema(file: Any, path: str | Path) -> None:
    """Refuse a file that is not of this schema."""
    schema = (file.schema_arrow.metadata or {}).get(METADATA_KEY, b"none").decode(errors="replace")
    if schema != SCHEMA:
        advice = migration(schema, SCHEMA) or "; for a file of another program name the columns: arm=..., ..."
        raise LogError(path, None, f"its schema is {schema}, not {SCHEMA}{advice}")
    missing = [name for name in ("id", "arm", "propensity") if name not in file.schema_arrow.names]
    if missing:
        raise LogError(path, None, f"there is no column {missing[0]!r}, which every log must have")


def _native_rows(path: str | Path) -> Numbered:
    """Yield the numbered rows of a file of this schema."""
    for first, count, columns in _batches(path, None, native=True):
        known = [name for name in columns if name in FIELDS[Row]]
        for i in range(count):
            values = {name: value for name in known if (value := columns[name][i]) is not None}
            for name in ("offered", *LISTS):
                if name in values:
                    values[name] = tuple(values[name])
            if "features" in values:
                values["features"] = tuple(tuple(line or ()) for line in values["features"])
            if not values.keys() >= {"id", "arm", "propensity"}:
                raise LogError(path, first + i, "id, arm or propensity is missing")
            yield first + i, Row(**values)


def _records(path: str | Path, columns: list[str]) -> Iterator[tuple[int, Cells]]:
    """Yield the numbered records of a file with another schema."""
    for first, count, table in _batches(path, list(dict.fromkeys(columns)), native=False):
        for i in range(count):
            yield first + i, {name: values[i] for name, values in table.items()}
