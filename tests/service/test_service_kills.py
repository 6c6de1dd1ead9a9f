"""Services killed at random moments and at named points: nothing acknowledged is lost or changed."""

import asyncio
import contextlib
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bothworlds.service.verification import verify
from support import killed_services
from support.service_clients import Notes, visit
from support.soak import size
from support.stored_answers import faults_in, versions_from_the_first

VISITORS = 4
RUN_SECONDS = 1.0  # seconds of load, at most, before a kill from outside
SETTINGS = """
port = {port}
store = "log.sqlite"
durability = "{durability}"
refresh = 0.005
[experiments.ads]
arms = ["red", "blue", "green"]
contexts = ["mobile", "desktop"]
window = "2 seconds"
holdout = 0.1
"""


class ServiceRuns:
    """Runs services one after the other on one store, and reports how each ended."""

    def __init__(self, folder: Path, durability: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.settings = folder / "ads.toml"
        self.settings.write_text(SETTINGS.format(port=self.port, durability=durability))
        command = [sys.executable, killed_services.__file__]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.read() == "ready"
        self.ready: list[float] = []

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def begin(self, kill: str | None) -> int:
        """Start a service, and return its process number once it listens."""
        assert self.process.stdin is not None
        began = time.monotonic()
        self.process.stdin.write(json.dumps({"settings": str(self.settings), "kill": kill}) + "\n")
        self.process.stdin.flush()
        number = int(self.read())
        while time.monotonic() < began + 60:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                break
            if Path(f"/proc/{number}").exists() and "Z" in Path(f"/proc/{number}/stat").read_text().split(")")[1][:3]:
                break  # killed before it listened
            time.sleep(0.005)
        self.ready.append(time.monotonic() - began)
        return number

    def end(self) -> str:
        """Wait for the end of a service, and return how it ended."""
        return self.read()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[ServiceRuns]:
    made = ServiceRuns(tmp_path, "full")
    yield made
    made.close()


def killings(count: int, chance: random.Random) -> Iterator[str | None]:
    """Yield where to kill: one third at a random moment, the others at the named points in turn."""
    points = itertools.cycle(killed_services.POINTS)
    for number in range(count):
        if number % 3 == 0:
            yield None
            continue
        point = next(points)
        most = {"before-commit": 120, "after-commit": 120, "in-snapshot": 6, "in-checkpoint": 2}[point]
        yield f"{point}:{chance.randint(1, most)}"


async def visited(notes: Notes, port: int, process: int, kill: str | None) -> bool:
    """Run visitors until the service is killed; return whether that happened at the named point."""
    visitors = [asyncio.create_task(visit(notes, port)) for _ in range(VISITORS)]
    _, left = await asyncio.wait(
        visitors, timeout=notes.random.random() * RUN_SECONDS if kill is None else RUN_SECONDS * 5
    )
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    for ended in await asyncio.gather(*visitors, return_exceptions=True):
        if isinstance(ended, BaseException) and not isinstance(ended, OSError):
            raise ended
    return not left


@pytest.mark.soak
def test_kills_lose_nothing(runs: ServiceRuns, tmp_path: Path) -> None:
    kills, wanted = size(6, 200), size(1_000, 200_000)
    chance = random.Random(7)
    notes, ends, path = Notes(chance), Counter[str](), tmp_path / "log.sqlite"
    began, count = time.monotonic(), 0
    every = iter(killings(10 * kills, chance))
    while count < kills or notes.acknowledged < wanted:
        kill = next(every)
        process = runs.begin(kill)
        alone = asyncio.run(visited(notes, runs.port, process, kill))
        end = runs.end()
        assert end.startswith("-9 "), end
        count += 1
        ends[kill.partition(":")[0] if kill is not None and alone else "any moment"] += 1
        assert notes.faults == []
        if count % size(2, 20) == 0:
            assert faults_in(path, notes) == []
            versions_from_the_first(path)
    assert set(ends) == {"any moment", *killed_services.POINTS}
    assert faults_in(path, notes) == []
    versions = versions_from_the_first(path)
    found = verify(path, processes=1)
    assert found.faults == []
    print(
        f"\n{count} kills ({', '.join(f'{number} at {name}' for name, number in ends.items())}), "
        f"{len(notes.decided):,} decisions, {len(notes.rewarded):,} rewards and {len(notes.activated):,} activations "
        f"acknowledged ({notes.repeated:,} asked again), none lost, changed or doubled; {versions:,} versions learned "
        f"again from the first snapshot, {found.decisions:,} decisions drawn again; a service listens after "
        f"{sorted(runs.ready)[count // 2]:.2f} s (median); {time.monotonic() - began:.0f} s in all"
    )
