"""Several hosts on one store in PostgreSQL: deciders, one learner, and others that stand by."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from bothworlds.service.messages import Activate, Arm, Change, Decide, Reward, Rollback
from bothworlds.service.postgres import term
from bothworlds.service.service import Service
from bothworlds.service.store import StoreError
from bothworlds.service.supervision import ThreadError
from bothworlds.service.verification import verify
from support.hosts import Host, open_hosts, verified, versions_in, visit, wait_for_version
from support.postgres import QUICK, PostgresServer, needs_postgres, schema_for
from support.services import settings, shorten_pauses, wait_until

pytestmark = needs_postgres


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with open_hosts(tmp_path) as start:
        yield start


def test_deciders_answer_with_what_another_host_learns(host: Host, tmp_path: Path) -> None:
    first, second, learner = host("decide"), host("decide"), host("learn")
    visit(first, second, range(60))
    for service in (first, second, learner):
        wait_for_version(service, 60)
    assert first.plan(None) == second.plan(None) == learner.plan(None)
    assert versions_in(first) == sorted(set(versions_in(first)))
    assert [service.failures for service in (first, second, learner)] == [[], [], []]
    assert verified(tmp_path) == 60


def test_hosts_that_decide_with_an_earlier_plan_are_verified_with_it(host: Host, tmp_path: Path) -> None:
    late, other = host("decide"), host("both")
    assert late.hosting is not None
    late.hosting.follower.look = lambda: None  # type: ignore[method-assign]  # it has no newer plan
    visit(other, other, range(100))
    wait_for_version(other, 100)
    visit(late, other, range(100, 150))
    assert late.plan(None).version < 100
    wait_for_version(other, 150)
    assert other.change(Change(add=[Arm("new")], retire=["red"]))[0] == 200
    visit(late, late, range(150, 170))
    assert verified(tmp_path) == 170


def test_every_host_knows_what_the_others_have_answered(host: Host, tmp_path: Path) -> None:
    first, second = host("decide"), host("both")
    status, made = first.ask(Decide("mobile", "a", active=False))
    assert (status, made) == second.ask(Decide("mobile", "a", active=False))
    assert first.ask(Decide("desktop", "a", active=False))[0] == 409
    assert first.ask(Reward("a", 1.0))[0] == 409, "not active yet"
    assert second.ask(Activate("a"))[0] == 200
    assert first.ask(Reward("a", 1.0)) == second.ask(Reward("a", 1.0)) == first.ask(Reward("a", 1.0))
    assert [one.ask(Reward("a", 0.0))[0] for one in (first, second)] == [409, 409]
    assert len(second.store.find(1, ["a"])) == 3


def test_hosts_that_are_asked_the_same_at_once_answer_the_same(host: Host, tmp_path: Path) -> None:
    hosts = [host("decide"), host("decide"), host("decide")]
    with ThreadPoolExecutor(9) as pool:
        for group in range(10):
            body = [Decide("mobile", f"{group} {place}") for place in range(20)]
            answers = list(pool.map(lambda one, body=body: hosts[one % 3].ask_all(body), range(9)))
            assert all(status == 200 for answer in answers for status, _ in answer)
            assert len({msgspec.json.encode(answer) for answer in answers}) == 1
    assert verified(tmp_path) == 200


def test_another_host_takes_over_from_a_learner_that_ends(host: Host, tmp_path: Path) -> None:
    learner = host("both")
    wait_until(lambda: learner.learns)
    standby, decider = host("both"), host("decide")
    visit(decider, decider, range(30))
    wait_for_version(decider, 30)
    assert [standby.learns] == [False]
    learner.close()
    visit(decider, decider, range(30, 60))
    wait_for_version(decider, 60)
    assert standby.learns
    assert standby.failures == []
    assert verified(tmp_path) == 60


def test_a_learner_that_was_paused_writes_nothing_after_another_took_over(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_pauses(monkeypatch)
    monkeypatch.setattr(term, "LEASE", 0.3)
    paused = host("both")
    wait_until(lambda: paused.learns)
    visit(paused, paused, range(20))
    wait_for_version(paused, 20)
    renew, resumed = term.renew, threading.Event()

    def hang(connection: Any, epoch: int) -> int | None:
        assert resumed.wait(60)
        return renew(connection, epoch)

    monkeypatch.setattr(term, "renew", hang)
    standby = host("both")
    wait_until(lambda: standby.learns, seconds=60)
    assert paused.learns, "it does not know yet"
    visit(standby, paused, range(20, 60))
    wait_for_version(standby, 60)
    resumed.set()
    wait_until(lambda: not paused.learns or not standby.learns, seconds=60)
    visit(standby, paused, range(60, 80))
    wait_for_version(paused, 80)
    assert versions_in(standby) == sorted(set(versions_in(standby))), "each version has one learner"
    assert verified(tmp_path) == 80


def test_a_change_reaches_all_hosts_and_is_refused_where_nothing_is_learned(host: Host, tmp_path: Path) -> None:
    learner = host("learn")
    wait_until(lambda: learner.learns)
    decider, standby = host("decide"), host("both")
    with pytest.raises(ThreadError, match="does not learn"):
        decider.change(Change(add=[Arm("new")]))
    with pytest.raises(ThreadError, match="does not learn"):
        standby.change(Rollback(0))
    status, made = learner.change(Change(add=[Arm("new")], retire=["red"]))
    assert status == 200
    for service in (decider, standby):
        wait_for_version(service, made.version)  # type: ignore[union-attr]
        assert service.plan(None).arms == ["blue", "green", "new"]
    visit(decider, standby, range(30), best="new")
    wait_for_version(decider, made.version + 30)  # type: ignore[union-attr]
    known = decider.decision("3", None)
    assert known is not None
    assert set(known.probabilities) == {"blue", "green", "new"}
    status, back = learner.change(Rollback(made.version))  # type: ignore[union-attr]
    for service in (decider, standby):
        wait_for_version(service, back.version)  # type: ignore[union-attr]
    assert decider.plan(None) == standby.plan(None) == learner.plan(None)
    assert verified(tmp_path) == 30


def test_windows_are_closed_by_the_learner_for_all_hosts(host: Host, tmp_path: Path) -> None:
    decider, _ = host("decide", window="0.2 seconds"), host("learn", window="0.2 seconds")
    for name in map(str, range(20)):
        decider.ask(Decide("mobile", name))
    wait_until(lambda: len(list(decider.store.rewards(1, after=0))) == 20, seconds=60)
    status, answer = decider.ask(Reward("3", 1.0))
    assert (status, answer.learned) == (200, False)  # type: ignore[union-attr]
    wait_for_version(decider, 20)
    assert verified(tmp_path) == 20


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT])
def test_all_hosts_find_a_database_again(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    shorten_pauses(monkeypatch)
    server = PostgresServer(*QUICK)
    try:
        dsn = server.schema()
        decider, learner = host("decide", dsn=dsn), host("learn", dsn=dsn)
        visit(decider, decider, range(20))
        wait_for_version(decider, 20)
        server.stop(number)
        status, answer = decider.ask(Decide("mobile", "20"))
        assert (status, "connection to the database was lost" in answer.error) == (503, True)  # type: ignore[union-attr]
        assert decider.reasons_not_ready
        server.start()
        wait_until(lambda: not decider.reasons_not_ready, seconds=60)
        visit(decider, decider, range(20, 40))
        wait_for_version(decider, 40)
        wait_until(lambda: not decider.failures and not learner.failures, seconds=60)
        assert verify(dsn, processes=1).faults == []
        learner.close()
        decider.close()
    finally:
        server.remove()


def test_hosts_start_one_policy_together(tmp_path: Path) -> None:
    chosen = settings(tmp_path, store=schema_for(tmp_path))
    with ThreadPoolExecutor(4) as pool:
        hosts = list(pool.map(lambda _: Service(chosen), range(4)))
    assert len({one.plan(None).digest for one in hosts}) == 1
    assert len({one.experiments["ads"].plan.secret for one in hosts}) == 1
    for one in hosts:
        one.close()


def test_roles_need_a_shared_store(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="role 'decide' needs a store in PostgreSQL"):
        Service(settings(tmp_path), role="decide")


def test_a_learner_refuses_a_store_of_a_later_term_in_plain_words(host: Host, tmp_path: Path) -> None:
    service = host("both")
    wait_until(lambda: service.learns)
    assert service.hosting is not None
    with psycopg.connect(schema_for(tmp_path)) as connection:
        connection.execute("UPDATE learner SET epoch = epoch + 5")
    with pytest.raises(StoreError, match="another host has begun to learn"):
        service.hosting.learner_store.append([], notes={"expired 1": 3})
    wait_until(lambda: service.learns, seconds=60)


def test_connections_are_closed_after_threads_that_were_stuck_at_the_end(tmp_path: Path) -> None:
    chosen = settings(tmp_path, store=schema_for(tmp_path))
    service = Service(chosen)
    wait_until(lambda: service.learns)
    assert service.ask(Decide("mobile", "a"))[0] == 200
    assert service.hosting is not None
    store = service.hosting.learner_store
    append, released, begun = store.append, threading.Event(), threading.Event()

    def blocks(*given: Any, **more: Any) -> int:
        begun.set()
        assert released.wait(60)
        return append(*given, **more)

    store.append = blocks  # type: ignore[method-assign]
    assert service.ask(Reward("a", 1.0))[0] == 200
    assert begun.wait(20)
    service.close()
    assert open_connections(tmp_path)
    released.set()
    wait_until(lambda: not open_connections(tmp_path))
    again = Service(chosen)
    wait_until(lambda: again.plan(None).version == 1)
    again.close()
    wait_until(lambda: not open_connections(tmp_path))


def test_threads_that_die_close_their_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: Any) -> None:
        raise SystemExit("no way on")

    service = Service(settings(tmp_path, store=schema_for(tmp_path)))
    wait_until(lambda: service.learns)
    assert service.hosting is not None
    with monkeypatch.context() as patched:
        patched.setattr(term, "renew", dies)
        patched.setattr(service.hosting.follower, "look", dies)
        wait_until(lambda: len(service.supervisor.faults) == 2)
    assert service.reasons_to_restart
    service.close()
    wait_until(lambda: not open_connections(tmp_path))


@pytest.fixture
def small_server() -> Iterator[PostgresServer]:
    """A server on a small disk, where mounting is allowed."""
    mounted: list[Path] = []

    def mount(folder: Path) -> None:
        command = ["mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", str(folder)]
        if sys.platform != "linux" or subprocess.run(command, capture_output=True, check=False).returncode:
            folder.rmdir()
            pytest.skip("a disk of its own cannot be mounted here")
        mounted.append(folder)

    try:
        server = PostgresServer(*QUICK, "max_wal_size=32MB", mount=mount)
        yield server
        server.stop(signal.SIGQUIT)
    finally:
        for folder in mounted:
            subprocess.run(["umount", str(folder)], check=True)
            folder.rmdir()


def test_a_full_disk_of_the_database_loses_nothing_acknowledged(
    small_server: PostgresServer, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_pauses(monkeypatch)
    dsn = small_server.schema()
    service = host("both", dsn=dsn, learn="at once")
    visit(service, service, range(20))
    wait_for_version(service, 20)
    large = small_server.folder / "large"
    with large.open("wb") as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(2**16))
    known: list[tuple[str, Any]] = []
    for number in range(100_000):
        status, answer = service.ask(Decide("mobile", f"more {number}"))
        if status != 200:
            break
        known.append((f"more {number}", answer))
    assert status == 503, "perhaps less than a commit still fits, so that it counts as ready"
    large.unlink()
    if small_server.process is not None and small_server.process.poll() is not None:
        small_server.process = None  # it has given up
        small_server.start()
    wait_until(lambda: service.ask(Decide("mobile", "after"))[0] == 200, seconds=60)
    visit(service, service, range(20, 40))
    for name, before in known:
        assert service.ask(Decide("mobile", name)) == (200, before)
    wait_for_version(service, 40)
    assert verify(dsn, processes=1).faults == []
    service.close()


def open_connections(folder: Path) -> int:
    """Return how many connections of services in this process are open."""
    with psycopg.connect(schema_for(folder)) as connection:
        name = f"bothworlds % {os.getpid()}"
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE %s"
        row = connection.execute(query, (name,)).fetchone()
    return int(row[0]) if row else 0
