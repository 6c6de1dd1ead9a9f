"""A log as a file of JSON lines that any number of processes add to, and none ever changes."""

import os
from collections.abc import Iterator
from pathlib import Path

from bothworlds.logs.schema import BEGINNING, Record, RewardError, line_of, record_of

PIECE = 1 << 22


class Log:
    """An append-only file of JSON lines.

    Records that are added together go out in one write at the end of the file, which the operating system keeps apart
    from those of other processes (on a local disk, not on a network drive). A process that is killed in the middle
    leaves at most the beginning of a line: readers pass over it, since nobody was told that it was written.

    ``durable`` waits until the disk has it: without it, what was added survives the death of every process, but not
    that of the machine.

    >>> from bothworlds.logs import Reward
    >>> log = Log("clicks.jsonl")
    >>> log.append(Reward(id="visit 9", time=5.0, reward=1.0))
    >>> [record.id for record, _ in log.read()]
    ['visit 9']
    """

    def __init__(self, path: str | Path, *, durable: bool = False) -> None:
        self.path, self.durable = Path(path), durable

    def append(self, *records: Record) -> None:
        """Add records, all of them in one write."""
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
        """Yield every whole record from a byte on, each with the byte at which the next one begins.

        A line that is not finished yet is left for the next time; empty ones are passed over, and rewards that cannot
        be those of any decision.
        """
        for line, end in self._lines(start):
            record = self._record_of(line, end)
            if record is not None:
                yield record, end

    def _record_of(self, line: bytes, end: int) -> Record | None:
        """Return the record in a line, or the one that stands behind what a killed process has left of another."""
        begins = line.rfind(BEGINNING)
        for part in (line, line[begins:]) if begins > 0 else (line,):
            try:
                return record_of(part)
            except RewardError:
                return None
            except (ValueError, RecursionError) as found:
                error = found
        raise ValueError(f"{self.path}, line that ends at byte {end}: {error}") from None

    def _lines(self, start: int) -> Iterator[tuple[bytes, int]]:
        """Yield every finished line that is not empty, and where it ends."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(start)
            rest = b""
            while piece := file.read(PIECE):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    start += len(line) + 1
                    if line.strip():
                        yield line, start
