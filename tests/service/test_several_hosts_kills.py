"""Several hosts whose learner, deciders and database are killed or paused: nothing acknowledged is lost or changed."""

import asyncio
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bothworlds.service.client import Client
from bothworlds.service.locations import open_store
from bothworlds.service.records import MARKS, unpacked
from bothworlds.service.verification import verify
from support.cut_network import link_to
from support.forwarding import Forwarding
from support.killed_hosts import Hosts, Visitors
from support.load_balancer import LoadBalancer
from support.postgres import QUICK, PostgresServer, needs_postgres
from support.service_clients import Notes
from support.services import wait_until
from support.soak import size
from support.stored_answers import faults_in, versions_from_the_first

pytestmark = [pytest.mark.soak, needs_postgres]
VISITORS = 4
LOAD_SECONDS = 1.0  # between two incidents
SHOPPERS, PACE = 8, 0.025  # threads, and seconds that each one waits between two pairs of requests
PAUSE_SECONDS = 2.5  # of a learner: longer than its lease
CUT_SECONDS = size(3, 5)  # longer than a commit may take


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    made = PostgresServer(*QUICK)
    yield made
    made.remove()


@pytest.fixture
def hosts(server: PostgresServer, tmp_path: Path) -> Iterator[Hosts]:
    made = Hosts(tmp_path, server.schema())
    yield made
    made.close()


@pytest.fixture
def link(server: PostgresServer) -> Iterator[Forwarding]:
    with link_to(server.socket) as made:
        yield made


class Incidents:
    """What happens to the hosts, and how long it took until another one learned."""

    def __init__(self, hosts: Hosts, server: PostgresServer, link: Forwarding, chance: random.Random) -> None:
        self.hosts, self.server, self.link, self.chance = hosts, server, link, chance
        self.terms: list[float] = []  # seconds until another host has begun a term
        self.takeovers: list[float] = []  # seconds until it has published a version

    def _until_another_learns(self, process: int) -> None:
        began, versions = time.monotonic(), self.hosts.versions()
        while self.hosts.learner().process == process:
            assert time.monotonic() < began + 60, "no host takes over"
            time.sleep(0.01)
        self.terms.append(time.monotonic() - began)
        while self.hosts.versions() == versions:
            assert time.monotonic() < began + 60, "the host that has taken over does not learn"
            time.sleep(0.01)
        self.takeovers.append(time.monotonic() - began)

    def kill_learner(self) -> None:
        """Kill the learner; another one takes over before it is back."""
        learner = self.hosts.learner()
        process = learner.process
        os.kill(process, signal.SIGKILL)
        self._until_another_learns(process)
        self.hosts.start(learner)

    def pause_learner(self) -> None:
        """Pause the learner until another one has taken over; then it goes on, and must write nothing."""
        learner = self.hosts.learner()
        os.kill(learner.process, signal.SIGSTOP)
        try:
            self._until_another_learns(learner.process)
            time.sleep(PAUSE_SECONDS)
        finally:
            os.kill(learner.process, signal.SIGCONT)

    def kill_decider(self) -> None:
        """Kill a decider and start it again."""
        decider = self.chance.choice([host for host in self.hosts.hosts if host.role == "decide"])
        os.kill(decider.process, signal.SIGKILL)
        time.sleep(0.2)
        self.hosts.start(decider)

    def cut_decider(self) -> None:
        """Cut the network between one decider and the database: what it has sent is committed late."""
        self.link.cut()
        time.sleep(CUT_SECONDS)
        self.link.mend()

    def crash_database(self) -> None:
        """End the database at once, and start it again."""
        self.server.stop(signal.SIGQUIT)
        time.sleep(self.chance.random())
        self.server.start()

    def stop_database(self) -> None:
        """End the database in order, and start it again."""
        self.server.stop(signal.SIGINT)
        self.server.start()


class Shoppers:
    """Threads with the default client that decide and reward at a fixed pace; any error ends them."""

    def __init__(self, port: int) -> None:
        self.url, self.ending = f"http://127.0.0.1:{port}", threading.Event()
        self.requests, self.slowest = 0, 0.0

    def shop(self, number: int) -> None:
        """Decide and reward until the end."""
        with Client(self.url) as client:
            while not self.ending.wait(PACE):
                began = time.monotonic()
                decided = client.decide("mobile")
                client.reward(decided.id, float(decided.arm == "blue"))
                self.slowest = max(self.slowest, time.monotonic() - began)
                self.requests += 2


def test_a_rolling_upgrade_fails_no_request(hosts: Hosts) -> None:
    for role in ("learn", "decide", "decide"):
        hosts.add(role)
    with LoadBalancer(hosts.ports) as balancer, ThreadPoolExecutor(SHOPPERS) as pool:
        shoppers = Shoppers(balancer.port)
        wait_until(lambda: len(balancer.ready) == 2)
        running = [pool.submit(shoppers.shop, number) for number in range(SHOPPERS)]
        began = time.monotonic()
        try:
            for host in hosts.hosts * size(1, 3):
                time.sleep(LOAD_SECONDS)
                hosts.upgrade(host)
                wait_until(lambda: len(balancer.ready) == 2, seconds=60)
        finally:
            shoppers.ending.set()
        for one in running:
            one.result()
        seconds = time.monotonic() - began
    versions = hosts.versions()
    hosts.close()
    found = verify(hosts.dsn, processes=1)
    assert found.faults == []
    assert found.decisions >= shoppers.requests // 2, "more if an answer was lost"
    assert versions > 0
    print(
        f"\n{shoppers.requests:,} requests in {seconds:.0f} s ({shoppers.requests / seconds:.0f}/s) while every host "
        f"was ended and started: none failed, the slowest pair took {shoppers.slowest:.2f} s"
    )


async def under_load(visitors: Visitors, incidents: list[Callable[[], None]]) -> None:
    """Run visitors while one incident after the other happens."""
    running = [asyncio.create_task(visitors.visit(number)) for number in range(VISITORS)]
    await asyncio.sleep(LOAD_SECONDS)
    try:
        for incident in incidents:
            await asyncio.to_thread(incident)
            await asyncio.sleep(LOAD_SECONDS)
            assert not any(one.done() for one in running), [one for one in running if one.done()]
    finally:
        visitors.ending = True
        await asyncio.gather(*running)


def test_incidents_lose_nothing(hosts: Hosts, server: PostgresServer, link: Forwarding) -> None:
    for role in ("learn", "learn", "decide"):
        hosts.add(role)
    hosts.add("decide", dsn=f"postgresql://service@127.0.0.1:{link.port}/postgres?{hosts.dsn.partition('&')[2]}")
    chance = random.Random(11)
    notes, incidents = Notes(chance), Incidents(hosts, server, link, chance)
    visitors = Visitors(notes, hosts.ports)
    every = [incidents.kill_learner, incidents.kill_decider, incidents.pause_learner] * size(1, 20)
    every += [incidents.crash_database, incidents.stop_database, incidents.cut_decider] * size(1, 10)
    chance.shuffle(every)
    began = time.monotonic()
    asyncio.run(under_load(visitors, every))
    seconds = time.monotonic() - began
    hosts.close()
    assert notes.faults == []
    assert faults_in(hosts.dsn, notes) == []
    store = open_store(hosts.dsn, writes=False)
    versions = [unpacked(MARKS[mark.kind], mark.body).version for mark in store.marks(1)]
    store.close()
    assert versions == sorted(set(versions)), "each version was published once"
    found = verify(hosts.dsn, processes=1)
    assert found.faults == []
    assert versions_from_the_first(hosts.dsn) == len(versions)
    terms, takeovers = sorted(incidents.terms), sorted(incidents.takeovers)
    print(
        f"\n{len(every)} incidents in {seconds:.0f} s; {len(notes.decided):,} decisions and {len(notes.rewarded):,} "
        f"rewards acknowledged ({notes.repeated:,} asked again, {visitors.refused:,} repeated elsewhere), none lost, "
        f"changed or doubled; {found.versions:,} versions and {found.decisions:,} decisions computed again; another "
        f"host has the term after {terms[len(terms) // 2]:.2f} s (median; longest {terms[-1]:.2f} s), and its first "
        f"version is published after {takeovers[len(takeovers) // 2]:.2f} s (longest {takeovers[-1]:.2f} s)"
    )
