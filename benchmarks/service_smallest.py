"""A minimal handler that responds after committing a row: the baseline of `benchmarks/service.py`.

python benchmarks/service_smallest.py rows.sqlite 8090
"""

import asyncio
import sqlite3
import sys
import threading
from collections import deque
from typing import Any

from granian.constants import Interfaces
from granian.server.embed import Server

from bothworlds.service.server import quick_loop


class Handler:
    """Writes bodies to a table, many in one commit, and responds."""

    def __init__(self, path: str) -> None:
        self.rows: deque[tuple[bytes, Any]] = deque()
        self.arrived = threading.Event()
        self.store = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for setting in ("journal_mode = WAL", "synchronous = FULL"):
            self.store.execute(f"PRAGMA {setting}").fetchall()
        self.store.execute("CREATE TABLE rows (seq INTEGER PRIMARY KEY, body BLOB)")

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to write."""
        self.loop = loop
        threading.Thread(target=self.write, daemon=True).start()

    def write(self) -> None:
        """Commit queued bodies in a loop."""
        while True:
            self.arrived.wait()
            self.arrived.clear()
            rows = [self.rows.popleft() for _ in range(len(self.rows))]
            if rows:
                self.store.execute("BEGIN IMMEDIATE")
                self.store.executemany("INSERT INTO rows (body) VALUES (?)", [(body,) for body, _ in rows])
                self.store.execute("COMMIT")
                self.loop.call_soon_threadsafe(answer, rows)

    async def __rsgi__(self, _: Any, protocol: Any) -> None:
        """Answer one request."""
        waiter = self.loop.create_future()
        self.rows.append((await protocol(), waiter))
        self.arrived.set()
        await waiter
        protocol.response_bytes(200, [("content-type", "application/json")], b'{"ok":true}')


def answer(rows: list[tuple[bytes, Any]]) -> None:
    """Answer those who wait."""
    for _, waiter in rows:
        if not waiter.done():
            waiter.set_result(None)


if __name__ == "__main__":
    handler = Handler(sys.argv[1])
    server = Server(handler, port=int(sys.argv[2]), interface=Interfaces.RSGI, log_enabled=False)
    with asyncio.Runner(loop_factory=quick_loop) as runner:
        runner.run(server.serve())
