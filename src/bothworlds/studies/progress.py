"""Progress of a study on stderr: a bar on a terminal, a plain line from time to time elsewhere."""

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Protocol

from bothworlds.kernels.jit.compile_notice import silence_notices

FIRST_LINE, OTHER_LINES = 4.0, 15.0  # seconds
ROOM_FOR_A_BAR, ROOM_FOR_SPEED = 50, 80  # characters


class Watch(Protocol):
    """Receives the progress of a study."""

    def begin(self, name: str, weight: float) -> None:
        """Start a cell; ``weight`` is the work per round."""

    def advance(self, rounds: int) -> None:
        """Count more rounds; may be called from any thread."""


class Count:
    """Counts the work done, and describes it in words."""

    def __init__(self, work: float, cells: int) -> None:
        self.work, self.cells = work, cells
        self.done, self.rounds, self.number = 0.0, 0, 0
        self.name, self._weight = "", 1.0
        self._began = self._last = time.monotonic()
        self._starting = True
        self._playing = 0.0
        self._lock = threading.Lock()

    def begin(self, name: str, weight: float) -> None:
        """Record the start of a cell."""
        self.name, self._weight = name, weight
        self.number += 1
        self._starting, self._last = True, time.monotonic()

    def advance(self, rounds: int) -> None:
        """Record more rounds."""
        with self._lock:
            now = time.monotonic()
            if not self._starting:  # the first slice includes compilation, which does not predict the time left
                self._playing += now - self._last
            self._starting, self._last = False, now
            self.done += rounds * self._weight
            self.rounds += rounds

    @property
    def speed(self) -> str:
        """Rounds per second so far."""
        return f"{self.rounds / max(time.monotonic() - self._began, 1e-9):,.0f} rounds/s"

    @property
    def line(self) -> str:
        """The progress as one plain line."""
        share = self.done / max(self.work, 1e-9)
        where = f"simulating: {share:.0%}, cell {self.number} of {self.cells}"
        if self._starting:
            return f"{where} ({self.name}, compiling if necessary)"
        left = f", about {self._playing * (1.0 - share) / share:,.0f} s left" if share > 0.02 else ""
        return f"{where} ({self.name}){left}"


@contextlib.contextmanager
def shown(work: float, cells: int, *, quiet: bool) -> Iterator[Watch]:
    """Show the progress of some work; nothing if quiet, without cells, or without stderr."""
    count = Count(work, cells)
    with silence_notices():
        if quiet or not cells or sys.stderr is None:
            yield count
        elif sys.stderr.isatty() and shutil.get_terminal_size().columns >= ROOM_FOR_A_BAR:
            with _bar(count) as watch:
                yield watch
        else:
            with _lines(count):
                yield count


@contextlib.contextmanager
def _lines(count: Count) -> Iterator[None]:
    """Print a line after FIRST_LINE seconds, then every OTHER_LINES seconds, from a separate thread."""
    over = threading.Event()

    def report() -> None:
        pause = FIRST_LINE
        while not over.wait(pause):
            print(count.line, file=sys.stderr, flush=True)
            pause = OTHER_LINES

    reporter = threading.Thread(target=report, daemon=True)
    reporter.start()
    try:
        yield
    finally:
        over.set()
        reporter.join()


@contextlib.contextmanager
def _bar(count: Count) -> Iterator[Watch]:
    """Show a live bar; its spinner and clock also move during compilation."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.table import Column

    wide = shutil.get_terminal_size().columns >= ROOM_FOR_SPEED
    columns: list[Any] = [
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=20),
        TextColumn("{task.percentage:>3.0f} %"),
        *([TextColumn("{task.fields[speed]}", markup=False)] if wide else []),
        TimeElapsedColumn(),
        TimeRemainingColumn(compact=True),
    ]
    with Progress(*columns, console=Console(stderr=True), expand=True) as bar:
        task = bar.add_task("simulating", total=count.work, speed="")

        class Shown:
            """Passes the progress on to the bar."""

            def begin(self, name: str, weight: float) -> None:
                count.begin(name, weight)
                bar.update(task, description=f"{count.number}/{count.cells} compiling {name} if necessary")

            def advance(self, rounds: int) -> None:
                count.advance(rounds)
                description = f"{count.number}/{count.cells} {count.name}"
                bar.update(task, completed=count.done, speed=count.speed, description=description)

        yield Shown()
