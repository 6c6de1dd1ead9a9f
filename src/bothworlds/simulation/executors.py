"""Cells of a study as tasks for an executor: slices of replications, put together as if they had run here."""

import time
from collections.abc import Generator
from concurrent.futures import Executor, Future, as_completed
from functools import lru_cache
from typing import Any

import numba
import numpy as np

from bothworlds.kernels.jit.compile import source_hash
from bothworlds.simulation.engine import Progress, collect, play
from bothworlds.simulation.replication import Outcome
from bothworlds.simulation.results import Results
from bothworlds.simulation.study import Cell, setting_of

TASK_ROUNDS = 10_000_000  # about ten to thirty seconds of work
Slice = tuple[list[Outcome], float]  # what replications leave, and the processor time they took
Finished = tuple[Cell, Results | Exception]


def run_on(executor: Executor, cells: list[Cell], *, threads: int | None, progress: Progress) -> Generator[Finished]:
    """Run cells on an executor; yield each when it is finished, with its results or with what went wrong.

    A task is a slice of the replications of a cell. What a replication leaves depends on its number only, and slices
    are put together in their order, so that the results are those of a run without an executor, bit for bit.
    """
    began = time.time()
    waiting: dict[Future[Slice], tuple[int, int]] = {}
    parts: dict[int, dict[int, Slice | None]] = {}
    try:
        for n, cell in enumerate(cells):
            parts[n] = {indices.start: None for indices in slices(cell)}
            for indices in slices(cell):
                task = executor.submit(play_slice, cell, indices.start, len(indices), threads or 1, versions())
                waiting[task] = (n, indices.start)
        for task in as_completed(list(waiting)):
            n, start = waiting.pop(task)
            if n not in parts:  # another slice of the cell has failed
                continue
            try:
                parts[n][start] = task.result()
            except Exception as error:
                _cancel([other for other, (m, _) in waiting.items() if m == n])
                del parts[n]
                yield cells[n], error
                continue
            ready = [part for part in parts[n].values() if part is not None]
            progress(cells[n].settings["horizon"] * len(task.result()[0]))
            if len(ready) == len(parts[n]):
                del parts[n]
                yield cells[n], _put_together(cells[n], ready, time.time() - began)
    finally:
        _cancel(list(waiting))


def _cancel(tasks: list[Future[Any]]) -> None:
    for task in tasks:
        task.cancel()


def slices(cell: Cell) -> list[range]:
    """Return the replications of a cell in slices of about `TASK_ROUNDS` rounds, at least one replication each."""
    step = max(1, TASK_ROUNDS // cell.settings["horizon"])
    count = cell.settings["replications"]
    return [range(first, min(first + step, count)) for first in range(0, count, step)]


def play_slice(cell: Cell, first: int, count: int, threads: int, expected: tuple[str, ...]) -> Slice:
    """Play a slice of a cell in whatever process this is; refuse to where other code would give other numbers."""
    if versions() != expected:
        raise ValueError(
            f"a worker has other code than the process that gave it work: (sources, numba, numpy) = {versions()}, "
            f"not {expected}; install the same versions everywhere"
        )
    return play(cell.make_algorithm(), setting_of(cell), range(first, first + count), threads=threads)


@lru_cache(maxsize=1)
def versions() -> tuple[str, ...]:
    """Return what results depend on: a hash of the package's sources, and the versions of numba and numpy."""
    return source_hash(), numba.__version__, np.__version__


def _put_together(cell: Cell, slices: list[Slice], seconds: float) -> Results:
    """Make the results of a cell from its replications."""
    outcomes = [outcome for some, _ in slices for outcome in some]
    processor = {"cell": sum(took for _, took in slices)}
    return collect(setting_of(cell), {"cell": cell.make_algorithm()}, {"cell": outcomes}, processor, seconds)
