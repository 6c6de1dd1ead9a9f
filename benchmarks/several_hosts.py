"""Several hosts on one machine: two that decide, one that learns, PostgreSQL, and the load generator.

    python benchmarks/several_hosts.py               closed loop, open loop, time until a new version is everywhere
    python benchmarks/several_hosts.py --seconds 30 --runs 5

Needs PostgreSQL's programs, as the tests do. The time until a version is everywhere begins when a reward is sent to one
host, or when the learner has the version, and ends when both decide with it. One host with an SQLite file is measured
by turns with them: on a shared machine the ratio says more than the rates.
"""

import argparse
import contextlib
import http.client
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import bothworlds as bw
from service import free_port
from service_load import Load, opened

SIZES = (100, 20, 20)
SETTINGS = """
store = "{dsn}"
port = {port}
[experiments.ads]
problem = "ads.npz"
algorithm = "matched"
learn = "at once"
"""


@contextlib.contextmanager
def database() -> Iterator[str]:
    """Run a server that waits for the disk in a temporary folder; give the DSN of an empty schema."""
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from support.postgres import PostgresServer

    server = PostgresServer()
    try:
        yield server.schema()
    finally:
        server.remove()


def write_problem(folder: Path) -> None:
    """Write a problem with random features."""
    contexts, _, dimension = SIZES
    features = np.random.default_rng(0).normal(size=SIZES) / np.sqrt(dimension)
    names = [f"c{i}" for i in range(contexts)]
    problem = bw.Problem(
        features=features, probabilities=np.full(contexts, 1 / contexts), contexts=names, reward_range=(0, 1)
    )
    problem.save(folder / "ads.npz")


@contextlib.contextmanager
def host(folder: Path, dsn: str, role: str) -> Iterator[int]:
    """Run a host with a role; give its port once it is ready."""
    port = free_port()
    settings = folder / f"{port}.toml"
    settings.write_text(SETTINGS.format(dsn=dsn, port=port), encoding="utf-8")
    command = [sys.executable, "-m", "bothworlds", "serve", str(settings), "--role", role]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 300
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/ready"):
                break
            assert process.poll() is None, "the host has ended"
            assert time.monotonic() < end, "the host does not start"
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


def processor_seconds() -> float:
    """Return the processor time that this process and all that it has started have used."""
    parents, used = dict[int, int](), dict[int, int]()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "stat").read_text().rpartition(")")[2].split()
            parents[int(folder.name)], used[int(folder.name)] = int(words[1]), sum(map(int, words[11:15]))
    ours, edge = set[int](), {os.getpid()}
    while edge:
        ours |= edge
        edge = {number for number, parent in parents.items() if parent in edge} - ours
    return sum(used.get(number, 0) for number in ours) / os.sysconf("SC_CLK_TCK")


def together(loads: list[Load]) -> Load:
    """Return the loads of several generators as one."""
    latencies = [latency for load in loads for latency in load.latencies]
    return Load(loads[0].seconds, latencies, sum(load.errors for load in loads))


def closed_loops(ports: list[int], *, seconds: float, run: str) -> Load:
    """Play pairs as fast as the hosts answer: 64 connections in all, and a process for each host."""
    code = (
        "import sys, json; from service_load import closed; p, s, r, n = sys.argv[1:]; "
        "o = closed(int(p), seconds=float(s), connections=64 // int(n), contexts=100, run=r); "
        "print(json.dumps([o.latencies, o.errors]))"
    )
    commands = [
        [sys.executable, "-c", code, str(port), str(seconds), f"{run}{port}", str(len(ports))] for port in ports
    ]
    here = Path(__file__).parent
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, cwd=here) for command in commands]
    said = [json.loads(process.communicate()[0]) for process in processes]
    return together([Load(seconds, latencies, errors) for latencies, errors in said])


def open_loops(ports: list[int], *, rate: float, seconds: float, run: str) -> Load:
    """Send ``rate`` decisions a second to all hosts together, each with its reward half a second later."""

    def play(port: int) -> Load:
        return opened(
            port,
            rate=rate / len(ports),
            seconds=seconds,
            connections=64 // len(ports),
            contexts=SIZES[0],
            run=f"{run}{port}",
        )

    with ThreadPoolExecutor(len(ports)) as pool:
        return together(list(pool.map(play, ports)))


class Line:
    """One persistent connection to a host."""

    def __init__(self, port: int) -> None:
        self._line = http.client.HTTPConnection("127.0.0.1", port)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send a request, and return its answer."""
        self._line.request(method, path, None if body is None else json.dumps(body))
        return json.loads(self._line.getresponse().read())

    @property
    def version(self) -> int:
        """The version with which the host decides now."""
        return int(self.ask("GET", "/v1/health")["versions"]["ads"])


def until_everywhere(ports: list[int], learner: int, *, seconds: float, run: str) -> tuple[Load, Load]:
    """Measure the time until all hosts decide with a new version: since its reward was sent, and since it was there."""
    since_reward, since_version, learning = Load(seconds), Load(seconds), Line(learner)
    lines = [Line(port) for port in ports]
    end, names = time.perf_counter() + seconds, (f"{run}-{i}" for i in itertools.count())
    while time.perf_counter() < end:
        name = next(names)
        lines[0].ask("POST", "/v1/decide", {"id": name, "context": "c0"})
        before, sent = learning.version, time.perf_counter()
        lines[-1].ask("POST", "/v1/reward", {"id": name, "reward": 1})
        while learning.version <= before:
            time.sleep(0.001)
        there = time.perf_counter()
        while min(line.version for line in lines) <= before:
            time.sleep(0.001)
        now = time.perf_counter()
        since_reward.latencies.append(now - sent)
        since_version.latencies.append(now - there)
        time.sleep(0.05)
    return since_reward, since_version


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each part of a run")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rate", type=float, default=2000.0, help="decisions a second in the open loop")
    options = parser.parse_args()
    seconds, found = options.seconds, dict[str, list[float]]()

    def note(what: str, value: float, load: Load) -> None:
        found.setdefault(what, []).append(value)
        print(f"  {what}: {value:,.1f}; {load}", flush=True)

    with database() as dsn, tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as hosts:
        folder = Path(name)
        write_problem(folder)
        learner = hosts.enter_context(host(folder, dsn, "learn"))
        several = [hosts.enter_context(host(folder, dsn, "decide")) for _ in range(2)]
        kinds = {"several": several, "one": [hosts.enter_context(host(folder, "ads.sqlite", "both"))]}
        for ports in kinds.values():
            closed_loops(ports, seconds=3.0, run="warm")
        for run in range(options.runs):
            print(f"run {run + 1}, load average {os.getloadavg()[0]:.1f}", flush=True)
            for kind, ports in kinds.items():
                before = processor_seconds()
                load = closed_loops(ports, seconds=seconds, run=f"closed{run}")
                used = processor_seconds() - before
                note(f"{kind}: closed loop, pairs/s", load.rate / 2, load)
                note(f"{kind}: pairs in a second of a processor", len(load.latencies) / 2 / used, load)
            for kind, ports in kinds.items():
                load = open_loops(ports, rate=options.rate, seconds=seconds, run=f"open{run}")
                note(f"{kind}: open loop, p99 in ms", load.quantile(0.99), load)
                time.sleep(2.0)
            load, since = until_everywhere(several, learner, seconds=seconds, run=f"new{run}")
            note("several: from a reward to a version everywhere, p99 in ms", load.quantile(0.99), load)
            note("several: from the learner to all, p99 in ms", since.quantile(0.99), since)
            load = until_everywhere(kinds["one"], kinds["one"][0], seconds=seconds, run=f"new{run}")[0]
            note("one: from a reward to a version, p99 in ms", load.quantile(0.99), load)
    print(f"medians of {options.runs} runs, {os.cpu_count()} processors, open loop {options.rate:,.0f} decisions/s")
    for what, values in found.items():
        print(f"  {what}: {statistics.median(values):,.1f}")


if __name__ == "__main__":
    main()
