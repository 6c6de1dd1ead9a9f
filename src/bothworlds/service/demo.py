"""The demo: example settings and simulated visitors."""

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
from bothworlds.service.settings import Settings

EXAMPLE = """\
# Settings of a decision service.
#     bothworlds serve --check ads.toml    check this file
#     bothworlds serve ads.toml            serve; the dashboard is at http://127.0.0.1:8080/

store = "ads.sqlite"       # the store; the path is relative to this file
durability = "full"        # answers wait for the disk; "process" survives a crash of the process, not of the machine
host = "127.0.0.1"         # any other address requires tokens; use TLS there, too
port = 8080
# certificate = "cert.pem" # TLS: certificate and key, two files
# key = "key.pem"
# most_bytes = 1_000_000   # largest body of a request
# log_format = "json"      # log lines for machines; access_log = true adds a line per request

# [[tokens]]: bothworlds service token shop --scope decide --scope reward >> ads.toml

[experiments.banners]      # one table per experiment
arms = ["summer sale", "free shipping", "new arrivals", "loyalty card"]
algorithm = "matched"      # a tuning of LCTsallisINF, or a table as in a study: { kind = "LinUCB" }
reward_range = [0.0, 1.0]
window = "10 minutes"      # a decision without a reward after this time
default_reward = 0.0       # gets this reward; default 0; "none": it is not learned from
# learn = "at once"        # do not wait until earlier decisions are answered or closed
holdout = 0.05             # this share of the decisions is uniform, for comparison
# safe_arm = "loyalty card"  # the answer while nothing can be stored; otherwise 503
# other = "mobile evening" # the context that stands for unknown ones; otherwise they are refused
# problem = "ads.json"     # instead of arms and contexts: a problem with your own features

[experiments.banners.contexts]  # shares of the traffic; or names with equal shares: contexts = ["a", "b"]
"mobile morning" = 0.3
"mobile evening" = 0.3
"desktop morning" = 0.2
"desktop evening" = 0.2
"""


VISITS = 30.0  # per second
ANSWERED = 0.95  # share of visits with a reward; the others get the default reward
DELAY = 1.0  # mean seconds from decision to reward
CHANGES_AFTER = 180.0  # seconds until tastes change, and until they change back
WINDOW = "10 seconds"
POLL = 0.2  # seconds between two looks whether the service answers
# Click rates by context, one per arm: the tastes at first, and after a change.
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
    """Return the example settings for a folder and a port, with a window of ten seconds."""
    content = tomllib.loads(EXAMPLE)
    content["experiments"]["banners"]["window"] = WINDOW
    return msgspec.convert({**content, "folder": str(folder), "port": port}, Settings)


class Visitors:
    """Simulated visitors: a thread that requests decisions and reports clicks over HTTP.

    They come once the service answers; from then on, the time until their taste changes is counted.
    """

    def __init__(self, client: Client, experiment: str, settings: Settings, *, seed: int = 7) -> None:
        options = settings.experiments[experiment]
        self.client, self.arms = client, options.arms
        self.shares = options.contexts if isinstance(options.contexts, dict) else dict.fromkeys(options.contexts, 1.0)
        self._rng = random.Random(seed)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="visitors", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and wait for its end."""
        self._stopping.set()
        self._thread.join()

    def _wait_for_service(self) -> bool:
        """Wait until the service answers; return False if the visitors are stopped before."""
        while not self._stopping.wait(POLL):
            with contextlib.suppress(ServiceError):
                self.client.plan()
                return True
        return False

    def _work(self) -> None:
        if not self._wait_for_service():
            return
        start = time.monotonic()
        run = secrets.token_hex(3)  # keeps the ids of different runs apart
        rewards: list[tuple[float, str, float]] = []
        for visit in itertools.count(1):
            if self._stopping.wait(max(0.0, start + visit / VISITS - time.monotonic())):
                return
            with contextlib.suppress(ServiceError):  # the service is stopping
                self._visit(f"visit {run}-{visit}", time.monotonic() - start, rewards)
                while rewards and rewards[0][0] <= time.monotonic():
                    _, name, reward = heapq.heappop(rewards)
                    self.client.reward(name, reward)

    def _visit(self, name: str, elapsed: float, rewards: list[tuple[float, str, float]]) -> None:
        """Request a decision for one visitor; queue its reward, if there is one."""
        rng = self._rng
        context = rng.choices(list(self.shares), list(self.shares.values()))[0]
        decided = self.client.decide(context, id=name)
        tastes = TASTES[int(elapsed / CHANGES_AFTER) % len(TASTES)]
        clicks = rng.random() < tastes[context][self.arms.index(decided.arm)]
        if rng.random() < ANSWERED:
            heapq.heappush(rewards, (time.monotonic() + rng.expovariate(1.0 / DELAY), name, float(clicks)))
