"""Files of lines: reading line by line, and atomic writing."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from bothworlds.logs.validation import LogError


def numbered_lines(path: str | Path) -> Iterator[tuple[int, bytes, bool]]:
    """Yield each line that is not empty: its number, its content, and whether it ends with a line feed."""
    try:
        with Path(path).open("rb") as file:
            for number, line in enumerate(file, 1):
                if content := line.strip():
                    yield number, content, line.endswith(b"\n")
    except OSError as error:
        raise LogError(path, None, f"cannot be read: {error.strerror or error}") from None


def write_lines(lines: Iterable[bytes], path: str | Path) -> int:
    """Write lines, which include their line feeds, and replace the file atomically; return their number."""
    count = 0
    with atomic_file(path) as unfinished, unfinished.open("wb") as file:
        for line in lines:
            file.write(line)
            count += 1
    return count


@contextlib.contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path that replaces ``path`` on success, and is deleted on failure."""
    unfinished = Path(f"{path}.unfinished")
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
