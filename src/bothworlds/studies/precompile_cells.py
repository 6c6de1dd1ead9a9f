"""Compile the cells of a study ahead of time, in a second process that starts from the last cell.

With an empty cache, a study of many algorithms compiles for minutes, one function at a time. As soon as something has
to be compiled, a second process starts at the other end of the list of cells; the two share the cache on disk. Results
do not depend on it. ``BOTHWORLDS_PRECOMPILE=no`` turns it off.
"""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence

from bothworlds.kernels.jit.compile import cache_folder
from bothworlds.kernels.jit.compile_notice import on_compile
from bothworlds.kernels.jit.subprocess_compile import read_task, start_compile_process
from bothworlds.simulation.engine import make_ready
from bothworlds.studies.study import Cell, setting_of

SWITCH = "BOTHWORLDS_PRECOMPILE"
POLITE = 5  # lower priority than the process that plays


@contextlib.contextmanager
def compiled_ahead(cells: Sequence[Cell], threads: int | None) -> Iterator[None]:
    """Start a second process that compiles for these cells as soon as this process compiles anything."""
    helpers: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        if not helpers:
            helpers.append(_begun(cells, threads))

    if len(cells) < 2 or threads == 1 or not _has_means():
        yield
        return
    try:
        with on_compile(begin):
            yield
    finally:
        for helper in helpers:
            helper.kill()
            helper.wait()


def _has_means() -> bool:
    """Whether there are several cores and a cache folder, and precompilation is not turned off."""
    return (os.cpu_count() or 1) > 1 and os.environ.get(SWITCH) != "no" and cache_folder() is not None


def _begun(cells: Sequence[Cell], threads: int | None) -> subprocess.Popen[bytes]:
    """Start the second process."""
    return start_compile_process(__name__, (list(cells), threads), silent=True)


def compile_for(cells: Sequence[Cell], threads: int | None) -> None:
    """Compile for cells from the last to the first; errors are ignored, and reported when the cell is played."""
    for cell in reversed(cells):
        with contextlib.suppress(Exception):
            make_ready(cell.make_algorithm(), setting_of(cell), range(cell.settings["replications"]), threads=threads)


if __name__ == "__main__":
    os.nice(POLITE)
    compile_for(*read_task())
