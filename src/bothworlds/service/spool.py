"""A queue of lines on disk: appended by a process, acknowledged in order, and kept over its death."""

import contextlib
import fcntl
import os
import threading
from pathlib import Path
from typing import NamedTuple

SEGMENT_BYTES = 8_000_000  # a new file begins after these
POSITION = "acknowledged"


class Position(NamedTuple):
    """A place in the queue: the number of a segment, and the bytes before it there."""

    segment: int
    offset: int


class SpoolFullError(Exception):
    """The lines that are not acknowledged take as much room as they may."""


class Spool:
    """Lines in the files of a folder; one process at a time uses it.

    ``append`` hands a line to the operating system: it survives the death of the process, not of the machine.

    >>> spool = Spool(Path("spool"))
    >>> for line in (b"one", b"two"):
    ...     spool.append(line)
    >>> lines, end = spool.peek(10)
    >>> spool.close()
    >>> again = Spool(Path("spool"))
    >>> again.peek(10)[0] == lines == [b"one", b"two"]
    True
    >>> again.close()
    """

    def __init__(self, folder: Path, *, most_bytes: int = 1_000_000_000) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.most_bytes = folder, most_bytes
        self._lock_file = (folder / "lock").open("wb")
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock_file.close()
            raise ValueError(f"{folder} is in use: another process spools there") from None
        self._appending = threading.Lock()
        numbers = sorted(int(path.stem) for path in folder.glob("*.lines"))
        self._begin = self._stored_position(numbers)
        self._segment = numbers[-1] if numbers else self._begin.segment
        self._file = os.open(self._path(self._segment), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._size = self._drop_torn_line()
        self.waiting_bytes = sum(self._path(number).stat().st_size for number in numbers) - self._begin.offset

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08d}.lines"

    def _stored_position(self, numbers: list[int]) -> Position:
        first = Position(numbers[0] if numbers else 1, 0)
        with contextlib.suppress(FileNotFoundError):
            segment, offset = (self.folder / POSITION).read_text().split()
            return max(first, Position(int(segment), int(offset)))
        return first

    def _drop_torn_line(self) -> int:
        """Cut off what follows the last whole line; return the size of the segment."""
        path = self._path(self._segment)
        content = path.read_bytes()
        size = content.rfind(b"\n") + 1
        os.truncate(path, size)
        return size

    def append(self, line: bytes) -> None:
        """Add a line; raises SpoolFullError if too much waits."""
        with self._appending:
            if self.waiting_bytes >= self.most_bytes:
                raise SpoolFullError(f"{self.folder} is full: {self.waiting_bytes:,} bytes wait to be sent")
            if self._size >= SEGMENT_BYTES:
                os.close(self._file)
                self._segment, self._size = self._segment + 1, 0
                self._file = os.open(self._path(self._segment), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            self._size += os.write(self._file, line + b"\n")
            self.waiting_bytes += len(line) + 1

    def peek(self, most: int) -> tuple[list[bytes], Position]:
        """Return the first lines that are not acknowledged, and the position after them."""
        segment, offset = self._begin
        with self._appending:
            newest, size = self._segment, self._size
        if segment < newest and offset >= self._path(segment).stat().st_size:
            segment, offset = segment + 1, 0
        end = size if segment == newest else self._path(segment).stat().st_size
        with self._path(segment).open("rb") as file:
            file.seek(offset)
            lines: list[bytes] = []
            while len(lines) < most and file.tell() < end:
                lines.append(file.readline().rstrip(b"\n"))
            return lines, Position(segment, file.tell())

    def acknowledge(self, end: Position) -> None:
        """Note that all lines before a position have arrived; remove segments that are not needed any more."""
        if end.segment == self._begin.segment:
            done = end.offset - self._begin.offset
        else:
            done = self._path(self._begin.segment).stat().st_size - self._begin.offset + end.offset
        new = self.folder / f"{POSITION}.new"
        new.write_text(f"{end.segment} {end.offset}")
        new.replace(self.folder / POSITION)
        for number in range(self._begin.segment, end.segment):
            self._path(number).unlink()
        self._begin = end
        with self._appending:
            self.waiting_bytes -= done

    def close(self) -> None:
        """Close the files; lines that are not acknowledged stay."""
        os.close(self._file)
        self._lock_file.close()
