"""Rows of values from pandas, Polars and Arrow data frames, without importing these packages."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from bothworlds.errors import MissingPackageError, not_installed


class Frame(NamedTuple):
    """Column names of a data frame, and its rows as tuples of values."""

    names: tuple[str, ...]
    rows: Iterable[tuple[Any, ...]]


def frame_of(given: Any) -> Frame | None:
    """Return a data frame as column names and rows; None for other objects.

    Accepts pandas and Polars data frames, Arrow tables, and other tables with the Arrow C stream interface (read with
    pyarrow). Raises ValueError for a lazy frame of Polars.

    >>> import pandas as pd
    >>> frame = frame_of(pd.DataFrame({"device": ["mobile"], "age": [25]}))
    >>> frame.names, list(frame.rows), frame_of([("mobile", 25)])
    (('device', 'age'), [('mobile', 25)], None)
    """
    if hasattr(given, "itertuples"):  # pandas
        return Frame(tuple(str(name) for name in given.columns), given.itertuples(index=False, name=None))
    if hasattr(given, "collect") and hasattr(given, "collect_schema"):
        raise ValueError("this is a lazy frame, which has no rows yet: give frame.collect()")
    if hasattr(given, "iter_rows") and hasattr(given, "columns"):  # Polars
        return Frame(tuple(given.columns), given.iter_rows())
    if hasattr(given, "column_names") and hasattr(given, "to_pydict"):  # Arrow
        return Frame(tuple(given.column_names), zip(*(part.to_pylist() for part in given.columns), strict=True))
    if hasattr(given, "__arrow_c_stream__") and hasattr(given, "columns"):
        return frame_of(_arrow_table(given))
    return None


def names_of_columns(given: Any) -> Any:
    """Return the labels of a data frame's columns; None for other objects.

    >>> import pandas as pd
    >>> list(names_of_columns(pd.DataFrame({7: [1]}))), names_of_columns([[1]])
    ([7], None)
    """
    return given.column_names if hasattr(given, "column_names") else getattr(given, "columns", None)


def values_of(column: Any) -> Any:
    """Return a column; an Arrow column as a list, because its entries are not Python values."""
    return column.to_pylist() if hasattr(column, "to_pylist") else column


def _arrow_table(given: Any) -> Any:
    """Read any table with the Arrow C stream interface."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
    except ImportError:
        raise MissingPackageError(
            not_installed(f"reading a {type(given).__name__} needs", "pyarrow", "parquet")
        ) from None
    return pa.table(given)
