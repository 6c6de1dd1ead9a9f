"""Studies on a Dask cluster (optional: pip install 'bothworlds[cluster]')."""

import contextlib
import importlib
import logging
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor
from typing import Any

from bothworlds.errors import MissingPackageError, not_installed

PREFIX = "dask://"
PATIENCE = 15.0  # seconds in which a scheduler must answer


@contextlib.contextmanager
def engine(address: str | None, *, threads: int | None = None) -> Iterator[Executor | None]:
    """Open the executor that an address stands for, and close it afterwards.

    ``None`` is this process, without an executor; ``"dask"`` a cluster of processes on this machine, one for every
    core, or for every ``threads`` cores; ``"dask://HOST:PORT"`` the scheduler of a running cluster.

    >>> with engine(None) as executor:
    ...     print(executor)
    None
    """
    if address is None:
        yield None
        return
    host = address.removeprefix(PREFIX)
    if address != "dask" and (host == address or not host.rpartition(":")[2].isdigit()):
        raise ValueError(f"unknown engine {address!r}; give dask or dask://HOST:PORT, or leave it out for this process")
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
    """Start a cluster of processes on this machine; a Ctrl-C is for this process only, which then stops them."""
    mine = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if mine else None  # inherited by what starts meanwhile
    try:
        return distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,  # a task has its own threads; more tasks at a time would share the cores
            processes=True,
            dashboard_address=None,
            silence_logs=logging.ERROR,
        )
    finally:
        if mine:
            signal.signal(signal.SIGINT, before)
