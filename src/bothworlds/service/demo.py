"""The demonstration: the settings to begin with, and visitors who see banners, click later or never, and change."""

import contextlib
import heapq
import itertools
import random
import secrets
import threading
import time
import tomllib
from pathlib import Path

import msgspec

from bothworlds.service.client import Client, ServiceError
from bothworlds.service.example import EXAMPLE
from bothworlds.service.settings import Settings

VISITS = 30.0  # a second
ANSWERED = 0.95  # the others never answer, and get the default reward
DELAY = 1.0  # seconds, on average, until a visitor clicks or has gone
CHANGES_AFTER = 180.0  # seconds until tastes change, and change back
WINDOW = "10 seconds"
# How often visitors click: by context, one rate for each arm; first as they are, then as they become.
TASTES = (
    {
        "mobile morning": (0.10, 0.45, 0.15, 0.05),
        "mobile evening": (0.50, 0.15, 0.10, 0.10),
        "desktop morning": (0.05, 0.15, 0.20, 0.55),
        "desktop evening": (0.15, 0.10, 0.45, 0.20),
    },
    {
        "mobile morning": (0.10, 0.15, 0.50, 0.05),
        "mobile evening": (0.15, 0.15, 0.10, 0.45),
        "desktop morning": (0.05, 0.15, 0.20, 0.55),
        "desktop evening": (0.50, 0.10, 0.15, 0.20),
    },
)


def demo_settings(folder: Path, *, port: int) -> Settings:
    """Return the settings to begin with, for a folder and a port, with a window that closes while one watches."""
    content = tomllib.loads(EXAMPLE)
    content["experiments"]["banners"]["window"] = WINDOW
    return msgspec.convert({**content, "folder": str(folder), "port": port}, Settings)


class Visitors:
    """Visitors of a service, in a thread: they ask over HTTP as any client does."""

    def __init__(self, client: Client, experiment: str, settings: Settings, *, seed: int = 7) -> None:
        told = settings.experiments[experiment]
        self.client, self.arms = client, told.arms
        self.shares = told.contexts if isinstance(told.contexts, dict) else dict.fromkeys(told.contexts, 1.0)
        self._rng = random.Random(seed)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="visitors", daemon=True)

    def start(self) -> None:
        """Let them come."""
        self._thread.start()

    def stop(self) -> None:
        """Let no more come."""
        self._stopping.set()
        self._thread.join()

    def _work(self) -> None:
        began = time.monotonic()
        life = secrets.token_hex(3)  # ids of their own in every run
        waiting: list[tuple[float, str, float]] = []
        for visit in itertools.count(1):
            if self._stopping.wait(max(0.0, began + visit / VISITS - time.monotonic())):
                return
            with contextlib.suppress(ServiceError):  # the service is not there yet, or no more
                self._visit(f"visit {life}-{visit}", time.monotonic() - began, waiting)
                while waiting and waiting[0][0] <= time.monotonic():
                    _, name, reward = heapq.heappop(waiting)
                    self.client.reward(name, reward)

    def _visit(self, name: str, since: float, waiting: list[tuple[float, str, float]]) -> None:
        """Have a banner chosen for a visitor, who answers later or never."""
        rng = self._rng
        context = rng.choices(list(self.shares), list(self.shares.values()))[0]
        decided = self.client.decide(context, id=name)
        tastes = TASTES[int(since / CHANGES_AFTER) % len(TASTES)]
        clicks = rng.random() < tastes[context][self.arms.index(decided.arm)]
        if rng.random() < ANSWERED:
            heapq.heappush(waiting, (time.monotonic() + rng.expovariate(1.0 / DELAY), name, float(clicks)))
