"""Files by the end of their name."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from bothworlds.logs.csv_files import read_csv
from bothworlds.logs.dsjson import read_dsjson, write_dsjson
from bothworlds.logs.json_lines import read_jsonl, write_jsonl
from bothworlds.logs.parquet import read_parquet, write_parquet
from bothworlds.logs.schema import Row

READERS: dict[str, Callable[..., Iterator[Row]]] = {
    ".jsonl": read_jsonl,
    ".parquet": read_parquet,
    ".dsjson": read_dsjson,
    ".csv": read_csv,
}
WRITERS: dict[str, Callable[[Iterable[Row], str | Path], int]] = {
    ".jsonl": write_jsonl,
    ".parquet": write_parquet,
    ".dsjson": write_dsjson,
}


def read(path: str | Path, **options: Any) -> Iterator[Row]:
    """Read a log lazily, by the end of its name: .jsonl and .parquet of this schema, .dsjson, or .csv.

    ``options`` are those of `read_jsonl`, `read_parquet`, `read_dsjson` and `read_csv`; a CSV file needs the names of
    its columns.

    >>> write([Row(id="visit 9", arm="red", propensity=0.5, reward=1.0)], "log.jsonl")
    1
    >>> [row.arm for row in read("log.jsonl", reward_range=(0, 1))]
    ['red']
    """
    return READERS[_suffix(path, READERS)](path, **options)


def write(rows: Iterable[Row], path: str | Path) -> int:
    """Write rows by the end of the file's name, .jsonl, .parquet or .dsjson; return how many."""
    return WRITERS[_suffix(path, WRITERS)](rows, path)


def _suffix(path: str | Path, known: Iterable[str]) -> str:
    """Return the end of a file's name if it is known."""
    suffix = Path(path).suffix
    if suffix not in known:
        raise ValueError(f"{path}: unknown kind of log {suffix!r}; known are {', '.join(known)}")
    return suffix
