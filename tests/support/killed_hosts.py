"""Hosts of one service that are killed, paused and started again: a process that forks them, and clients of all.

Run as a script, it reads a line of JSON per host: ``settings``, the path of a TOML file, and ``role``. It forks the
service, which takes a tenth of a second, and prints its process number.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from support.service_clients import BATCH, Notes, ask, text_of

UNAVAILABLE = 503
SETTINGS = """
port = {port}
store = "{dsn}"
refresh = 0.005
drain = 0.5
[experiments.ads]
arms = ["red", "blue", "green"]
contexts = ["mobile", "desktop"]
window = "2 seconds"
holdout = 0.1
"""
LEARNER = (
    "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
    "WHERE l.locktype = 'advisory' AND l.granted AND l.classid::bigint = 1651995512"
)


@dataclass
class Host:
    """One host: its role, its port, and the number of its process."""

    role: str
    port: int
    settings: Path
    process: int = 0


@dataclass
class Hosts:
    """Hosts on one store, with the process that forks them."""

    folder: Path
    dsn: str
    hosts: list[Host] = field(default_factory=list)

    def __post_init__(self) -> None:
        command = [sys.executable, "-m", "support.killed_hosts"]
        place = Path(__file__).parents[1]
        self.forks = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=place)
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self.forks.stdout is not None
        return self.forks.stdout.readline().strip()

    def add(self, role: str, *, dsn: str | None = None) -> Host:
        """Start a host on a free port, and wait until it listens; ``dsn`` is another way to the same store."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        file = self.folder / f"{port}.toml"
        file.write_text(SETTINGS.format(port=port, dsn=dsn or self.dsn))
        host = Host(role, port, file)
        self.hosts.append(host)
        self.start(host)
        return host

    def start(self, host: Host) -> None:
        """Start a host that does not run, and wait until it listens."""
        assert self.forks.stdin is not None
        end = time.monotonic() + 120
        while time.monotonic() < end:
            self.forks.stdin.write(json.dumps({"settings": str(host.settings), "role": host.role}) + "\n")
            self.forks.stdin.flush()
            host.process = int(self._line())
            while time.monotonic() < end and _runs(host.process):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", host.port), timeout=1):
                    return
                time.sleep(0.01)
        raise AssertionError("the host does not start")

    def upgrade(self, host: Host) -> None:
        """Ask a host to end, wait until it has, and start it again."""
        os.kill(host.process, signal.SIGTERM)
        end = time.monotonic() + 120
        while _runs(host.process):
            assert time.monotonic() < end, "the host does not end"
            time.sleep(0.01)
        self.start(host)

    @property
    def ports(self) -> list[int]:
        """The ports of those that decide."""
        return [host.port for host in self.hosts if host.role != "learn"]

    def learner(self) -> Host:
        """Return the host that learns; wait until one does."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with contextlib.suppress(psycopg.Error), psycopg.connect(self.dsn) as connection:
                row = connection.execute(LEARNER).fetchone()
                for host in self.hosts if row else ():
                    if row and row[0].endswith(f" {host.process}"):
                        return host
            time.sleep(0.01)
        raise AssertionError("no host learns")

    def versions(self) -> int:
        """Return the number of versions in the log."""
        with psycopg.connect(self.dsn) as connection:
            row = connection.execute("SELECT count(*) FROM log WHERE id IS NULL").fetchone()
        return int(row[0]) if row else 0

    def close(self) -> None:
        """Kill all hosts."""
        while self.hosts:
            os.kill(self.hosts.pop().process, signal.SIGKILL)
        assert self.forks.stdin is not None
        assert self.forks.stdout is not None
        self.forks.stdin.close()
        self.forks.wait(20)
        self.forks.stdout.close()


def _runs(process: int) -> bool:
    """Return whether a process runs; one that ended and was not waited for does not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@dataclass
class Visitors:
    """Clients that repeat a request, at any host, until it is answered: what is acknowledged is noted."""

    notes: Notes
    ports: list[int]
    ending: bool = False
    refused: int = 0

    async def visit(self, number: int) -> None:
        """Decide, reward and ask again until the end."""
        streams: dict[int, Any] = {}
        notes, place = self.notes, number
        while not self.ending:
            bodies = [{**notes.new(), "active": True} for _ in range(notes.random.choice([1, BATCH]))]
            notes.asked.update((body["id"], body) for body in bodies)
            place = await self._all(streams, place, "decide", "decisions", bodies, notes.decided)
            paid = [body["id"] for body in bodies if notes.random.random() < 0.9]  # the others get the default
            notes.rewards.update((name, notes.random.choice([0.0, 0.5, 1.0])) for name in paid)
            rewards = [{"id": name, "reward": notes.rewards[name]} for name in paid]
            if rewards:
                place = await self._all(streams, place + 1, "reward", "rewards", rewards, notes.rewarded)
            if notes.random.random() < 0.2:
                notes.repeated += len(bodies)
                place = await self._all(streams, place + 1, "decide", "decisions", bodies, notes.decided)
        for _, writer in streams.values():
            writer.close()

    async def _all(
        self, streams: dict[int, Any], place: int, path: str, field: str, bodies: list[Any], noted: dict[str, bytes]
    ) -> int:
        """Ask for many things until all are answered; return at which host."""
        while bodies:
            port = self.ports[place % len(self.ports)]
            try:
                if port not in streams:
                    streams[port] = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), 5)
                status, answer = await asyncio.wait_for(ask(streams[port], f"/v1/{path}/batch", {field: bodies}), 5)
            except (OSError, TimeoutError):
                if port in streams:
                    streams.pop(port)[1].close()
                status, answer = UNAVAILABLE, b""
            left = bodies
            if status != UNAVAILABLE:
                left = []
                for body, part in zip(bodies, json.loads(answer)["answers"], strict=True):
                    if part["status"] == UNAVAILABLE:
                        left.append(body)
                    else:
                        self.notes.note(noted, body["id"], part["status"], text_of(part["body"]))
            if left:
                self.refused += 1
                place += 1
                await asyncio.sleep(0.05)
            bodies = left
        return place


def main() -> None:
    """Fork services as requested on stdin."""
    from bothworlds.precompile import warm_up
    from bothworlds.service import server, trainer
    from bothworlds.service.service import Service
    from bothworlds.service.service_log import ServiceLog
    from bothworlds.service.settings import ExperimentSettings, read_settings

    experiment = ExperimentSettings(arms=["a", "b"], contexts=["x"])
    warm_up(experiment.make_problem(Path()), experiment.make_algorithm())
    trainer.SNAPSHOT_EVERY = 300
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended hosts leave nothing behind
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if not child:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            code = 1
            try:
                server.serve(
                    Service(read_settings(asked["settings"]), role=asked["role"]), log=ServiceLog(level="error")
                )
                code = 0
            finally:
                os._exit(code)
        print(child, flush=True)


if __name__ == "__main__":
    main()
