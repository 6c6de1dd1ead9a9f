"""Compile ahead: a second process makes machine code for the cells to come, from the last one backwards.

On a new machine a study of many algorithms compiles for minutes, and in one process one thing at a time. As soon as
something has to be compiled a second process begins at the other end; each finds on disk what the other has made, and
they meet on the way. No number depends on it. ``BOTHWORLDS_AHEAD=no`` does without.
"""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence

from bothworlds.kernels.jit.apart import begun, told
from bothworlds.kernels.jit.compile import cache_folder
from bothworlds.kernels.jit.telling import noticed
from bothworlds.simulation.engine import make_ready
from bothworlds.simulation.study import Cell, setting_of

SWITCH = "BOTHWORLDS_AHEAD"
POLITE = 5  # whoever plays comes first


@contextlib.contextmanager
def compiled_ahead(cells: Sequence[Cell], threads: int | None) -> Iterator[None]:
    """Let a second process compile for cells that are played here in turn, once anything is compiled here."""
    helpers: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        if not helpers:
            helpers.append(_begun(cells, threads))

    if len(cells) < 2 or threads == 1 or not _has_means():
        yield
        return
    try:
        with noticed(begin):
            yield
    finally:
        for helper in helpers:
            helper.kill()
            helper.wait()


def _has_means() -> bool:
    """Tell whether there is a processor for it, and a place where others find what it makes."""
    return (os.cpu_count() or 1) > 1 and os.environ.get(SWITCH) != "no" and cache_folder() is not None


def _begun(cells: Sequence[Cell], threads: int | None) -> subprocess.Popen[bytes]:
    """Start the second process."""
    return begun(__name__, (list(cells), threads), silent=True)


def compile_for(cells: Sequence[Cell], threads: int | None) -> None:
    """Make machine code for cells, from the last one backwards; what cannot be played says so when it is."""
    for cell in reversed(cells):
        with contextlib.suppress(Exception):
            make_ready(cell.make_algorithm(), setting_of(cell), range(cell.settings["replications"]), threads=threads)


if __name__ == "__main__":
    os.nice(POLITE)
    compile_for(*told())
