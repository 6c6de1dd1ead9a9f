"""Run the cells of a study on an executor: processes or a Dask cluster."""

import contextlib
import importlib
import logging
import os
import signal
import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures import Executor, Future, as_completed
from functools import lru_cache
from typing import Any

import numba
import numpy as np

from bothworlds.errors import MissingPackageError, not_installed
from bothworlds.kernels.jit.compile import source_hash
from bothworlds.simulation.engine import Progress, collect, play
from bothworlds.simulation.replication import Outcome
from bothworlds.simulation.results import Results
from bothworlds.studies.study import Cell, setting_of

TASK_ROUNDS = 10_000_000  # per task, about ten to thirty seconds of work
Slice = tuple[list[Outcome], float]  # outcomes of replications, and their processor time in seconds
Finished = tuple[Cell, Results | Exception]


def run_on(executor: Executor, cells: list[Cell], *, threads: int | None, progress: Progress) -> Generator[Finished]:
    """Run cells on an executor; yield each finished cell with its results or its exception.

    A task is a slice of the replications of a cell. The outcome of a replication depends on its number only, and slices
    are joined in order, so that results are bit for bit those of a run without an executor.
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
    """Split the replications of a cell into slices of about `TASK_ROUNDS` rounds, at least one replication each."""
    step = max(1, TASK_ROUNDS // cell.settings["horizon"])
    count = cell.settings["replications"]
    return [range(first, min(first + step, count)) for first in range(0, count, step)]


def play_slice(cell: Cell, first: int, count: int, threads: int, expected: tuple[str, ...]) -> Slice:
    """Play a slice of a cell in a worker process; refuse if its code differs from that of the main process."""
    if versions() != expected:
        raise ValueError(
            f"a worker has other code than the main process: (sources, numba, numpy) = {versions()}, "
            f"not {expected}; install the same versions everywhere"
        )
    return play(cell.make_algorithm(), setting_of(cell), range(first, first + count), threads=threads)


@lru_cache(maxsize=1)
def versions() -> tuple[str, ...]:
    """Return the versions that results depend on: a hash of the package's sources, numba and numpy."""
    return source_hash(), numba.__version__, np.__version__


def _put_together(cell: Cell, slices: list[Slice], seconds: float) -> Results:
    """Make the results of a cell from its slices."""
    outcomes = [outcome for some, _ in slices for outcome in some]
    processor = {"cell": sum(took for _, took in slices)}
    return collect(setting_of(cell), {"cell": cell.make_algorithm()}, {"cell": outcomes}, processor, seconds)


PREFIX = "dask://"
PATIENCE = 15.0  # seconds to wait for a scheduler


@contextlib.contextmanager
def engine(address: str | None, *, threads: int | None = None) -> Iterator[Executor | None]:
    """Open the executor of an address, and close it afterwards.

    ``None`` means this process, without an executor; ``"dask"`` a cluster of processes on this machine, one for every
    ``threads`` cores (by default one per core); ``"dask://HOST:PORT"`` the scheduler of a running cluster.

    >>> with engine(None) as executor:
    ...     print(executor)
    None
    """
    if address is None:
        yield None
        return
    host = address.removeprefix(PREFIX)
    if address != "dask" and (host == address or not host.rpartition(":")[2].isdigit()):
        raise ValueError(f"unknown engine {address!r}; use dask or dask://HOST:PORT, or omit it to use this process")
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise MissingPackageError(not_installed(f"the engine {address!r} needs", "Dask", "cluster")) from None
    with contextlib.ExitStack() as stack:
        if address == "dask":
            where = stack.enter_context(_local(distributed, max(1, (os.cpu_count() or 1) // (threads or 1))))
        else:
            where = f"tcp://{host}"
        try:
            client = stack.enter_context(distributed.Client(where, timeout=PATIENCE, set_as_default=False))
        except OSError as error:
            raise OSError(f"no Dask scheduler answers at {address}: {error}") from None
        yield client.get_executor()


def _local(distributed: Any, workers: int) -> Any:
    """Start a cluster of processes on this machine; Ctrl-C reaches this process only, which then stops the workers."""
    mine = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if mine else None  # workers inherit SIG_IGN
    try:
        return distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,  # a task starts its own threads
            processes=True,
            dashboard_address=None,
            silence_logs=logging.ERROR,
        )
    finally:
        if mine:
            signal.signal(signal.SIGINT, before)
