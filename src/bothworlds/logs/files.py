"""Log files: reading and writing by suffix, and appending whole lines."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from bothworlds.logs.formats.csv_files import read_csv
from bothworlds.logs.formats.dsjson import read_dsjson, write_dsjson
from bothworlds.logs.formats.parquet import read_parquet, write_parquet
from bothworlds.logs.json_lines import read_jsonl, write_jsonl
from bothworlds.logs.schema import BEGINNING, Record, RewardError, Row, line_of, record_of

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
    """Read a log lazily, in the format of its suffix: .jsonl and .parquet in this schema, .dsjson, or .csv.

    ``options`` are those of `read_jsonl`, `read_parquet`, `read_dsjson` and `read_csv`; a CSV file needs the names of
    its columns.

    >>> write([Row(id="visit 9", arm="red", propensity=0.5, reward=1.0)], "log.jsonl")
    1
    >>> [row.arm for row in read("log.jsonl", reward_range=(0, 1))]
    ['red']
    """
    return READERS[_suffix(path, READERS)](path, **options)


def write(rows: Iterable[Row], path: str | Path) -> int:
    """Write rows in the format of the suffix, .jsonl, .parquet or .dsjson; return their number."""
    return WRITERS[_suffix(path, WRITERS)](rows, path)


def _suffix(path: str | Path, known: Iterable[str]) -> str:
    """Return the suffix of a file if it is known."""
    suffix = Path(path).suffix
    if suffix not in known:
        raise ValueError(f"{path}: unknown format of a log {suffix!r}; the formats are {', '.join(known)}")
    return suffix


READ_SIZE = 1 << 22  # bytes


class Log:
    """An append-only file of JSON lines.

    Records appended together are written at the end of the file in one system call, which does not interleave with
    those of other processes (on a local disk, not on a network drive). A process killed during the call leaves at most
    the beginning of a line; readers ignore it, because the call did not return.

    ``durable`` waits until the records are on disk. Without it they survive the end of any process, but not a crash of
    the machine.

    >>> from bothworlds.logs import Reward
    >>> log = Log("clicks.jsonl")
    >>> log.append(Reward(id="visit 9", time=5.0, reward=1.0))
    >>> [record.id for record, _ in log.read()]
    ['visit 9']
    """

    def __init__(self, path: str | Path, *, durable: bool = False) -> None:
        self.path, self.durable = Path(path), durable

    def append(self, *records: Record) -> None:
        """Append records in one system call."""
        content = b"".join(line_of(record) for record in records)
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            written = os.write(file, content)
            if written < len(content):
                raise OSError(f"{self.path}: {written} of {len(content)} bytes could be written; is the disk full?")
            if self.durable:
                os.fsync(file)
        finally:
            os.close(file)

    def read(self, start: int = 0) -> Iterator[tuple[Record, int]]:
        """Yield the records from byte ``start`` on, each with the byte at which the next one begins.

        An unfinished last line is not read. Empty lines, and rewards that cannot belong to any decision, are ignored.
        """
        for line, end in self._lines(start):
            record = self._record_of(line, end)
            if record is not None:
                yield record, end

    def _record_of(self, line: bytes, end: int) -> Record | None:
        """Return the record in a line, which may follow the fragment that a killed process has left."""
        begins = line.rfind(BEGINNING)
        for part in (line, line[begins:]) if begins > 0 else (line,):
            try:
                return record_of(part)
            except RewardError:
                return None
            except (ValueError, RecursionError) as fault:
                error = fault
        raise ValueError(f"{self.path}, line that ends at byte {end}: {error}") from None

    def _lines(self, start: int) -> Iterator[tuple[bytes, int]]:
        """Yield every finished line that is not empty, and the byte behind it."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(start)
            rest = b""
            while block := file.read(READ_SIZE):
                *lines, rest = (rest + block).split(b"\n")
                for line in lines:
                    start += len(line) + 1
                    if line.strip():
                        yield line, start
