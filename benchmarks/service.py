"""The decision service: throughput and latency of decisions and rewards, and the delay until a reward is learned.

    python benchmarks/service.py             rates, latencies, learning, memory
    python benchmarks/service.py --whole     five runs of a minute each, 40 minutes in all
    python benchmarks/service.py --contexts 500    with this number of contexts only
    python benchmarks/service.py --whole --closed  throughput only, a quarter of the time
    python benchmarks/service.py --log       a log of a million decisions: restart and verification

Everything runs on this machine, including the load generator. The baseline, measured in the same run, is a minimal
handler that commits a row: the cost of HTTP and the disk without a decision.
"""

import argparse
import gc
import http.client
import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import bothworlds as bw
from service_load import Load, closed, opened

SETTINGS = """
store = "ads.sqlite"
port = {port}
durability = "{durability}"
[experiments.ads]
problem = "ads.npz"
algorithm = "{tuning}"
"""
SIZES = (100, 20, 20)


def free_port() -> int:
    """Return an unused port."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def write_settings(folder: Path, contexts: int, *, tuning: str = "matched", durability: str = "full") -> int:
    """Write a problem with random features and the settings of a service; return its port."""
    _, arms, dimension = SIZES
    rng = np.random.default_rng(0)
    problem = bw.Problem(
        features=rng.normal(size=(contexts, arms, dimension)) / np.sqrt(dimension),
        probabilities=np.full(contexts, 1 / contexts),
        contexts=[f"c{i}" for i in range(contexts)],
        reward_range=(0, 1),
    )
    problem.save(folder / "ads.npz")
    port = free_port()
    (folder / "ads.toml").write_text(SETTINGS.format(port=port, tuning=tuning, durability=durability))
    return port


@contextmanager
def running(command: list[str], port: int) -> Any:
    """Run a server for the duration of the block, which begins when its port accepts connections."""
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        for _ in range(1200):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        process.wait()


def serving(folder: Path, port: int) -> Any:
    """Run the service."""
    return running([sys.executable, "-m", "bothworlds", "serve", str(folder / "ads.toml")], port)


def smallest(folder: Path, port: int) -> Any:
    """Run the minimal handler that commits a row."""
    beside = Path(__file__).with_name("service_smallest.py")
    return running([sys.executable, str(beside), str(folder / "rows.sqlite"), str(port)], port)


def memory(process: subprocess.Popen[bytes]) -> float:
    """Return the resident memory of a process in MB."""
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def get(port: int, path: str) -> Any:
    """Return the JSON response to a GET request."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
        return json.loads(answer.read())


def until_visible(port: int, run: str, *, seconds: float) -> Load:
    """Measure the time from sending a reward until a plan has learned it, on one persistent connection.

    The service reports the version that learned a reward, so other rewards in between do not matter.
    """
    load, line = Load(seconds), http.client.HTTPConnection("127.0.0.1", port)

    def request(method: str, path: str, body: Any = None) -> Any:
        line.request(method, path, None if body is None else json.dumps(body))
        return json.loads(line.getresponse().read())

    def is_visible(name: str) -> bool:
        version = request("GET", f"/v1/decisions/{name}").get("learned_in")
        return version is not None and version <= request("GET", "/v1/health")["versions"]["ads"]

    end, names = time.perf_counter() + seconds, (f"{run}-{i}" for i in itertools.count())
    while time.perf_counter() < end:
        name = next(names)
        request("POST", "/v1/decide", {"id": name, "context": "c0"})
        started = time.perf_counter()
        request("POST", "/v1/reward", {"id": name, "reward": 1})
        while not is_visible(name):
            time.sleep(0.001)
        load.latencies.append(time.perf_counter() - started)
        time.sleep(0.02)
    line.close()
    return load


def disk(folder: Path, times: int) -> Load:
    """Measure the time to write a page to disk."""
    load = Load(1.0)
    with (folder / "page").open("wb") as file:
        for _ in range(times):
            started = time.perf_counter()
            file.write(bytes(4096))
            file.flush()
            os.fdatasync(file.fileno())
            load.latencies.append(time.perf_counter() - started)
            time.sleep(0.01)
    return load


def page(port: int, times: int) -> Load:
    """Measure the dashboard page."""
    load = Load(1.0)
    for _ in range(times):
        started = time.perf_counter()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
            load.errors += len(answer.read()) < 1000
        load.latencies.append(time.perf_counter() - started)
    return load


def rates(contexts: int, *, seconds: float, runs: int, loop: float, closed_only: bool) -> None:
    """Print throughput and latency of the service and of the minimal handler."""
    shares = []
    for run in range(runs):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            options: dict[str, Any] = {"seconds": seconds, "connections": 128, "contexts": contexts}
            port = free_port()
            with smallest(folder, port):
                least = closed(port, **options, run="a")
            port = write_settings(folder, contexts)
            with serving(folder, port) as process:
                closed(port, seconds=2.0, connections=16, contexts=contexts, run="warm")
                before = memory(process)
                most = closed(port, **options, run="b")
                shares.append(most.rate / least.rate)
                print(f"run {run + 1}: minimal handler, closed loop: {least}")
                print(
                    f"       service, closed loop: {most}; {most.rate / 2:,.0f} pairs/s, {shares[-1]:.0%} of it",
                    flush=True,
                )
                if closed_only:
                    continue
                steady = opened(port, rate=loop, **options, run="c")
                print(f"       open loop, {loop:,.0f} decisions/s and as many rewards: {steady}")
                visit = [sys.executable, __file__, "--visit", str(port), "--seconds", str(seconds - 3.0)]
                with subprocess.Popen(visit, stdout=subprocess.PIPE) as visitor:  # starts after a second
                    opened(port, rate=loop, **options, run="e")
                    under = visitor.communicate()[0].decode().strip()
                print(f"       reward to visible plan under that load, one more generator on the same cores: {under}")
                print(f"       reward to visible plan, idle: {until_visible(port, 'd', seconds=8.0).spread}")
                print(f"       a page to the disk alone: {disk(folder, 200).spread}; page /: {page(port, 20).spread}")
                print(f"       memory {before:.0f} MB at the start, {memory(process):.0f} MB after", flush=True)
    print(f"S = {contexts}: {statistics.median(shares):.0%} of the minimal handler's rate, median of {runs}")


def long_log(decisions: int) -> None:
    """Write a log of decisions and rewards, then time restart and verification."""
    from bothworlds.service import messages, trainer
    from bothworlds.service.service import Service
    from bothworlds.service.settings import read_settings
    from bothworlds.service.verification import verify

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_settings(folder, SIZES[0], durability="process")
        trainer.PAUSE_RATIO = 0  # learns without pauses, so that the log is written quickly
        service = Service(read_settings(folder / "ads.toml"))
        service.trainer.refresh, service.writer.tick = 0.0, 0.0
        started, rng, size = time.perf_counter(), np.random.default_rng(0), 100
        for first in range(0, decisions, size):
            contexts = rng.integers(SIZES[0], size=size).tolist()
            requests = [messages.Decide(context=x, id=f"{first + i}") for i, x in enumerate(contexts)]
            service.ask_all(requests)
            clicks = (rng.random(size) < 0.1).astype(float).tolist()
            service.ask_all([messages.Reward(id=f"{first + i}", reward=click) for i, click in enumerate(clicks)])
            while service.experiments["ads"].unlearned > 0:
                time.sleep(0.0002)
        service.close()
        size_mb = (folder / "ads.sqlite").stat().st_size / 1e6
        print(
            f"{decisions:,} decisions and rewards written in {time.perf_counter() - started:.0f} s, {size_mb:,.0f} MB"
        )
        started = time.perf_counter()
        port = int((folder / "ads.toml").read_text().split("port = ")[1].split()[0])
        with serving(folder, port) as process:
            get(port, "/v1/health")
            print(f"ready {time.perf_counter() - started:.1f} s after the command, {memory(process):.0f} MB")
        started = time.perf_counter()
        print(f"{verify(folder / 'ads.sqlite')}\nin {time.perf_counter() - started:.1f} s with two processes")


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--whole", action="store_true", help="five runs of a minute each")
    parser.add_argument("--runs", type=int, help="number of runs")
    parser.add_argument("--closed", action="store_true", help="closed loops only: throughput")
    parser.add_argument("--contexts", type=int, help="number of contexts, instead of 100 and 500")
    parser.add_argument(
        "--log", type=int, nargs="?", const=1_000_000, help="measure a log with this number of decisions"
    )
    parser.add_argument("--visit", type=int, metavar="PORT", help="only time rewards at a service under load")
    parser.add_argument("--seconds", type=float, default=5.0, help="duration of a run")
    options = parser.parse_args()
    if options.visit:
        print(until_visible(options.visit, f"v{os.getpid()}", seconds=options.seconds).spread)
        return
    if options.log:
        long_log(options.log)
        return
    gc.disable()  # garbage collection of the load generator would count as latency
    runs, seconds = (5, 60.0) if options.whole else (2, 8.0)
    for contexts in [options.contexts] if options.contexts else [SIZES[0], 500]:
        rates(contexts, seconds=seconds, runs=options.runs or runs, loop=2000.0, closed_only=options.closed)


if __name__ == "__main__":
    main()
