"""Files of lines: read one by one, written as a whole."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from bothworlds.logs.faults import LogError


def numbered_lines(path: str | Path) -> Iterator[tuple[int, bytes, bool]]:
    """Yield number, content and end of every line that is not empty: without its line feed, and whether it had one."""
    try:
        with Path(path).open("rb") as file:
            for number, line in enumerate(file, 1):
                if content := line.strip():
                    yield number, content, line.endswith(b"\n")
    except OSError as error:
        raise LogError(path, None, f"cannot be read: {error.strerror or error}") from None


def written_lines(lines: Iterable[bytes], path: str | Path) -> int:
    """Write lines, each with its line feed, to a file that appears, or is replaced, only when all are there."""
    count = 0
    with appearing(path) as unfinished, unfinished.open("wb") as file:
        for line in lines:
            file.write(line)
            count += 1
    return count


@contextlib.contextmanager
def appearing(path: str | Path) -> Iterator[Path]:
    """Give a place to write to; what is there at the end becomes the file, and nothing does where writing failed."""
    unfinished = Path(f"{path}.unfinished")
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
