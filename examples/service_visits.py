"""A decision service in a process of its own, and visitors who come over HTTP.

    python examples/service_visits.py

Needs pip install '.[serve]'. The service keeps everything in one SQLite file; here it is killed half-way, as
machines do, and goes on where its store ends. Every visit has an id of its own, so that the client can ask again
without deciding twice.
"""

import random
import subprocess
import sys
import tempfile
from pathlib import Path

from bothworlds.service.client import Client

SETTINGS = """
[experiments.banners]
arms = ["red", "blue", "green"]
contexts = ["morning", "evening"]
window = "1 minute"
holdout = 0.05
"""
CLICK_RATES = {"morning": {"red": 0.1, "blue": 0.5, "green": 0.2}, "evening": {"red": 0.6, "blue": 0.2, "green": 0.1}}
VISITS = 1000
SEED = 3


def started(folder: Path) -> tuple["subprocess.Popen[str]", str]:
    """Start the service on a free port; return it and its address, once it listens."""
    command = [sys.executable, "-m", "bothworlds", "serve", str(folder / "ads.toml"), "--port", "0"]
    service = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert service.stderr is not None
    for line in service.stderr:
        if " listening on " in line:
            return service, line.split("listening on ")[1].split()[0]
    raise RuntimeError("the service did not start")


def play(client: Client, visits: range, rng: random.Random) -> int:
    """Let visitors come, and return how many click; one in ten never answers."""
    clicks = 0
    for visit in visits:
        context = rng.choice(["morning", "evening"])
        decided = client.decide(context, id=f"visit {visit}")
        clicked = rng.random() < CLICK_RATES[context][decided.arm]
        if rng.random() < 0.9:
            client.reward(decided.id, float(clicked))
            clicks += clicked
    client.close()
    return clicks


def main() -> None:
    """Serve, be killed, serve again, and tell what was learnt."""
    rng = random.Random(SEED)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "ads.toml").write_text(SETTINGS)
        service, address = started(folder)
        clicks = play(Client(address), range(VISITS // 2), rng)
        service.kill()
        service.communicate()
        service, address = started(folder)
        client = Client(address)
        again = client.decide(client.decision("visit 0").context, id="visit 0")
        print(f"after a kill, visit 0 is still shown {again.arm}, from version {again.version}")
        clicks += play(client, range(VISITS // 2, VISITS), rng)
        plan = client.plan()
        for context, row in zip(plan.contexts, plan.probabilities, strict=True):
            print(context, *(f"{arm} {p:.0%}" for arm, p in zip(plan.arms, row, strict=True)))
        print(f"{VISITS} visits, {clicks} clicks, version {plan.version}")
        client.close()
        service.terminate()
        service.communicate()


if __name__ == "__main__":
    main()
