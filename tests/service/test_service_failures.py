"""What a service does when its disk is full, its store is locked or its learner fails: it says so, and recovers."""

import contextlib
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bothworlds.errors import NumericalError
from bothworlds.policy import Policy
from bothworlds.service import clerk, jobs, learner
from bothworlds.service.messages import Arm, Change, Decide, Refusal, Reward, Rollback
from bothworlds.service.records import Kind
from bothworlds.service.service import Service
from bothworlds.service.sqlite import SQLiteStore
from services import learnt, locked, settings, shorten_pauses, until, verified


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_pauses(monkeypatch)


def full(service: Service, *, pages: int = 0) -> None:
    """Let the file grow by so many pages at most; ``pages`` below 0 lifts the limit."""
    writer = service.store._writer  # type: ignore[attr-defined]
    limit = writer.execute("PRAGMA page_count").fetchone()[0] + pages if pages >= 0 else 2**30
    writer.execute(f"PRAGMA max_page_count = {limit}")


def decide_until_refused(service: Service) -> dict[str, Any]:
    """Decide until the disk is full; return what was acknowledged."""
    kept: dict[str, Any] = {}
    for number in range(20_000):
        status, answer = service.ask(Decide("mobile", f"visit {number}"))
        if status != 200 or not getattr(answer, "stored", True):
            return kept
        kept[f"visit {number}"] = answer
    raise AssertionError("the disk was never full")


@pytest.mark.parametrize("safe", [None, "blue"])
def test_a_full_disk_is_told_and_what_was_acknowledged_stays(tmp_path: Path, safe: str | None) -> None:
    service = Service(settings(tmp_path, told={"safe_arm": safe}))
    full(service, pages=8)
    kept = decide_until_refused(service)
    status, answer = service.ask(Decide("desktop", "lost"))
    said: Any = answer
    if safe is None:
        assert status == 503
        assert "nothing was stored, try again" in said.error
    else:
        assert (status, said.arm, said.propensity, said.stored, said.context) == (200, "blue", None, False, "desktop")
    assert service.ask(Reward(next(iter(kept)), 1.0))[0] == 503, "there is no safe answer to a reward"
    assert "full" in " ".join(service.failures)
    assert str(tmp_path) not in " ".join([*service.failures, getattr(said, "error", "")]), "files are nobody's business"
    for name, before in kept.items():
        assert service.store.find(1, [name]), f"{before} is lost"
    assert service.store.find(1, ["lost"]) == []
    full(service, pages=-1)
    until(lambda: not service.failures)  # without anybody asking
    status, answer = service.ask(Decide("desktop", "lost"))
    assert (status, getattr(answer, "stored", None)) == (200, True)
    for name, before in kept.items():
        assert service.ask(Decide("mobile", name)) == (200, before)
    assert service.ask(Reward(next(iter(kept)), 1.0))[0] == 200
    learnt(service)
    service.close()
    verified(tmp_path)


def test_a_disk_that_fills_while_it_learns_loses_no_reward(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    ids = [f"{number}" for number in range(40)]
    service.ask_all([Decide("mobile", name) for name in ids])
    append = service.store.append

    def no_versions(records: Any, **more: Any) -> int:
        if any(record.kind == Kind.VERSION for record in records):
            full(service)
        return append(records, **more)

    service.store.append = no_versions  # type: ignore[method-assign]
    rewarded = [name for name in ids if service.ask(Reward(name, 1.0))[0] == 200]
    assert rewarded
    service.store.append = append  # type: ignore[method-assign]
    full(service, pages=-1)
    for name in ids:
        assert service.ask(Reward(name, 1.0))[0] == 200
    learnt(service)
    assert service.plan(None).version == len(ids), "each was learnt once"
    service.close()
    verified(tmp_path)


def test_windows_are_closed_from_where_they_were_before_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"window": "0.001 seconds", "default_reward": 0.0}
    service = Service(settings(tmp_path, told=told))
    for place in range(20):
        service.ask(Decide("mobile", f"{place}"))
    until(lambda: service.clerk.counts[1]["defaults"] == 20)
    service.close()
    begun: list[int] = []
    overdue = SQLiteStore.overdue

    def seen(store: SQLiteStore, experiment: int, **how: Any) -> tuple[list[str], int]:
        begun.append(how["after"])
        return overdue(store, experiment, **how)

    monkeypatch.setattr(SQLiteStore, "overdue", seen)
    service = Service(settings(tmp_path, told=told))
    until(lambda: begun)
    service.ask(Decide("mobile", "new"))
    until(lambda: service.clerk.counts[1]["defaults"] == 1)
    service.close()
    assert min(begun) >= 20
    verified(tmp_path)


def test_a_service_on_a_full_disk_ends_when_it_is_told_to(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    service.ask(Decide("mobile", "a"))
    append = service.store.append

    def broken(records: Any, **more: Any) -> int:
        if any(record.kind == Kind.VERSION for record in records):
            raise sqlite3.OperationalError("database or disk is full")
        return append(records, **more)

    service.store.append = broken  # type: ignore[method-assign]
    assert service.ask(Reward("a", 1.0))[0] == 200
    until(lambda: service.failures)
    closing = threading.Thread(target=service.close)
    closing.start()
    closing.join(20)
    assert not closing.is_alive()
    again = Service(settings(tmp_path))
    learnt(again)
    assert again.plan(None).version == 1, "what was acknowledged is learnt at last"
    again.close()
    verified(tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own that is soon full, where this is allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a disk of its own cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    service = Service(settings(small_disk))
    kept = decide_until_refused(service)
    assert len(kept) > 20
    assert service.failures
    until(lambda: service.ask(Decide("mobile", "one more"))[0] == 503)
    service.close()
    subprocess.run(["mount", "-o", "remount,size=40m", str(small_disk)], check=True)
    again = Service(settings(small_disk))
    for name, before in kept.items():
        assert again.ask(Decide("mobile", name)) == (200, before)
    assert again.ask(Decide("mobile", "one more"))[0] == 200
    assert not again.failures
    again.close()
    verified(small_disk)


def test_a_store_that_another_program_locks(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    first = service.ask(Decide("mobile", "a"))
    with locked(tmp_path):
        assert service.ask(Decide("mobile", "b"))[0] == 503
        assert service.ask(Reward("a", 1.0))[0] == 503
        assert "locked" in " ".join(service.failures)
        assert service.ask(Decide("mobile", "a")) == first, "what needs no writing is answered"
        assert "locked" in " ".join(service.failures), "and has not shown that anything can be written"
    until(lambda: not service.failures)
    assert [service.ask(asked)[0] for asked in (Decide("mobile", "b"), Reward("a", 1.0))] == [200, 200]
    learnt(service)
    service.close()
    verified(tmp_path)


def test_a_store_that_works_again_is_found_out_by_those_who_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clerk, "PROBED", 1000.0)
    service = Service(settings(tmp_path))
    first = service.ask(Decide("mobile", "a"))
    with locked(tmp_path):
        assert service.ask(Decide("mobile", "b"))[0] == 503
    assert service.failures
    assert service.ask(Decide("mobile", "a")) == first
    until(lambda: not service.failures)
    service.close()


def test_a_store_that_cannot_be_read_for_a_moment_forgets_nothing(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    first = service.ask(Decide("mobile", "a"))
    service.clerk.memory.clear()
    find = service.store.find

    def broken(*_: Any) -> Any:
        raise sqlite3.OperationalError("disk I/O error")

    service.store.find = broken  # type: ignore[method-assign,assignment]
    assert service.ask(Reward("a", 1.0))[0] == 503
    assert service.ask(Decide("mobile", "a"))[0] == 503
    service.store.find = find  # type: ignore[method-assign]
    assert service.ask(Decide("mobile", "a")) == first
    assert service.ask(Reward("a", 1.0))[0] == 200
    service.close()


@pytest.mark.parametrize("algorithm", [{"kind": "LinUCB"}, "matched"])
def test_a_learner_that_fails_begins_again_from_the_store(
    tmp_path: Path, algorithm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(settings(tmp_path, told={"algorithm": algorithm}))
    ids = [f"{number}" for number in range(60)]
    service.ask_all([Decide("mobile", name) for name in ids])
    service.ask_all([Reward(name, 1.0) for name in ids[:20]])
    learnt(service)
    learn, failing = Policy.learn, threading.Event()
    failing.set()

    def sometimes(policy: Policy, *given: Any, **more: Any) -> None:
        learn(policy, *given, **more)
        if failing.is_set() and policy is service.of(None).policy:
            raise MemoryError("no more of it")

    monkeypatch.setattr(Policy, "learn", sometimes)
    for name in ids[20:40]:
        assert service.ask(Reward(name, 1.0))[0] == 200
    until(lambda: service.failures)
    assert "learning has stopped, and begins again: MemoryError" in service.failures[0]
    assert service.ask(Decide("mobile", "meanwhile"))[0] == 200, "deciding goes on"
    failing.clear()
    for name in ids[40:]:
        assert service.ask(Reward(name, 1.0))[0] == 200
    until(lambda: not service.failures)
    learnt(service)
    assert service.plan(None).version == 60, "each reward was learnt once"
    before = service.plan(None)
    service.close()
    verified(tmp_path)
    again = Service(settings(tmp_path, told={"algorithm": algorithm}))
    assert again.plan(None) == before
    again.close()


def test_a_change_that_fails_half_way_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(settings(tmp_path))
    service.ask(Decide("mobile", "a"))
    before = service.plan(None)

    def broken(*_: Any) -> Any:
        raise OSError("no space left on device")

    for asked in (Change(add=[Arm("violet")]), Rollback(0)):
        with monkeypatch.context() as patched:
            patched.setattr(learner, "snapshot_of", broken)
            with contextlib.suppress(OSError):
                assert service.change(asked)[0] != 200
        until(lambda: not service.failures)
        service.ask(Reward("a", 1.0))
        learnt(service)
    assert service.plan(None).arms == before.arms
    service.ask(Decide("mobile", "b"))
    service.ask(Reward("b", 1.0))
    learnt(service)
    assert service.change(Change(add=[Arm("violet")]))[0] == 200
    service.close()
    verified(tmp_path)


def test_an_answer_that_cannot_be_given_stops_nobody(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    given = service.deliver
    service.deliver = lambda _: (_ for _ in ()).throw(RuntimeError("the loop is closed"))
    service.clerk.submit([jobs.Asking(service.of(None), Decide("mobile", "gone"), object())])
    until(lambda: service.failures)
    service.deliver = given
    until(lambda: not service.failures)
    assert service.ask(Decide("mobile", "gone"))[0] == 200
    service.close()


def test_a_batch_that_comes_after_the_end_is_refused_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(settings(tmp_path))
    service.close()
    refuse, waiter = service.clerk._unavailable, Future[None]()
    asked = [jobs.Asking(service.of(None), Decide("mobile", name)) for name in ("slow", "quick")]
    asked[-1].waiter = waiter

    def slowly(one: jobs.Asking) -> Any:
        time.sleep(0.2 if one.request.id == "slow" else 0.0)
        return refuse(one)

    monkeypatch.setattr(service.clerk, "_unavailable", slowly)
    service.clerk._jobs.extend(asked)
    with ThreadPoolExecutor(2) as several:
        several.map(lambda _: service.clerk._turn_away(), range(2))
        waiter.result()
        assert [one.status for one in asked] == [503, 503]


def test_a_change_that_arithmetic_refuses_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(settings(tmp_path))
    before = service.plan(None)

    def broken(*_: Any, **__: Any) -> None:
        raise NumericalError("the covariance matrix is not positive definite")

    with monkeypatch.context() as patched:
        patched.setattr(Policy, "change", broken)
        assert service.change(Change(add=[Arm("violet")])) == (
            422,
            Refusal("the covariance matrix is not positive definite"),
        )
    assert service.plan(None) == before
    service.close()


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut": lambda content: content[: len(content) // 2],
    "not a file of ours": lambda _: b"something else",
    "one byte": lambda content: content[: len(content) // 2] + b"?" + content[len(content) // 2 + 1 :],
    "zeros": lambda content: bytes(len(content)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_snapshot_that_is_damaged_is_passed_over(tmp_path: Path, damage: str) -> None:
    service = Service(settings(tmp_path))
    for number in range(30):
        service.ask(Decide("mobile", f"{number}"))
        service.ask(Reward(f"{number}", 1.0))
    learnt(service)
    plan = service.plan(None)
    service.close()
    connection = sqlite3.connect(tmp_path / "bothworlds.sqlite")
    with connection:
        newest = "(SELECT max(version) FROM snapshots)"
        content = connection.execute(f"SELECT content FROM snapshots WHERE version = {newest}").fetchone()[0]
        connection.execute(f"UPDATE snapshots SET content = ? WHERE version = {newest}", (DAMAGES[damage](content),))
    connection.close()
    again = Service(settings(tmp_path))
    assert again.plan(None) == plan
    again.close()
