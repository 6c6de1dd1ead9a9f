"""Services that are killed: a process that starts them, one after the other, and the points where they are killed.

Run as a script, it reads a line of JSON per service: ``settings``, the path of a TOML file, and ``kill``, such as
``after-commit:37``. It forks the service, which takes a tenth of a second, prints its process number, and then how it
ended.
"""

import json
import os
import random
import signal
import sqlite3
import sys
import threading
import time
from pathlib import Path
from typing import Any

POINTS = ("before-commit", "after-commit", "in-snapshot", "in-checkpoint")
SNAPSHOT_EVERY, CHECKPOINT = 150, 600  # lower than in production, so that every run has some


class Deadly:
    """A connection that kills its process when it reaches a point for the n-th time."""

    def __init__(self, connection: sqlite3.Connection, kill: str) -> None:
        self._connection = connection
        self._point, _, count = kill.partition(":")
        self._left = int(count)
        assert self._point in POINTS

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: str, values: Any = ()) -> sqlite3.Cursor:
        """Execute a statement; kill the process before, after or during it."""
        if statement == "COMMIT":
            self._reach("before-commit")
        if statement.startswith("PRAGMA wal_checkpoint"):
            self._reach("in-checkpoint", after=random.random() * 0.01)
        done = self._connection.execute(statement, values)
        if statement == "COMMIT":
            self._reach("after-commit")
        if statement.startswith("INSERT OR REPLACE INTO snapshots"):
            self._reach("in-snapshot")
        return done

    def _reach(self, point: str, *, after: float = 0.0) -> None:
        self._left -= point == self._point
        if self._left or point != self._point:
            return
        if after:  # during a long statement
            threading.Timer(after, os.kill, (os.getpid(), signal.SIGKILL)).start()
        else:
            os.kill(os.getpid(), signal.SIGKILL)


def live(path: str, kill: str | None) -> None:
    """Serve until killed."""
    from bothworlds.service import server, sqlite, trainer
    from bothworlds.service.service import Service
    from bothworlds.service.service_log import ServiceLog
    from bothworlds.service.settings import read_settings

    trainer.SNAPSHOT_EVERY, sqlite.CHECKPOINT = SNAPSHOT_EVERY, CHECKPOINT
    settings = read_settings(path)
    store = sqlite.SQLiteStore(Path(settings.folder) / settings.store, durability=settings.durability)
    if kill is not None:
        store._writer = Deadly(store._writer, kill)  # type: ignore[assignment]
    server.serve(Service(settings, store=store), log=ServiceLog(level="error"))


def main() -> None:
    """Start services as requested on stdin."""
    import bothworlds.service.server  # noqa: F401  # once, for all services
    from bothworlds.precompile import warm_up
    from bothworlds.service.settings import ExperimentSettings

    experiment = ExperimentSettings(arms=["a", "b"], contexts=["x"])
    warm_up(experiment.make_problem(Path()), experiment.make_algorithm())
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        began = time.monotonic()
        child = os.fork()
        if not child:
            try:
                live(asked["settings"], asked.get("kill"))
            finally:
                os._exit(0)
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(f"{os.waitstatus_to_exitcode(status)} after {time.monotonic() - began:.3f} s", flush=True)


if __name__ == "__main__":
    main()
