"""Full disk, locked store, failing trainer thread: the service reports it and recovers."""

import contextlib
import shutil
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
from bothworlds.service import commits, trainer, writer
from bothworlds.service.messages import Arm, Change, Decide, Refusal, Reward, Rollback
from bothworlds.service.records import Kind
from bothworlds.service.service import Service
from bothworlds.service.sqlite import SQLiteStore
from support.services import assert_verified, locked, settings, shorten_pauses, wait_until, wait_until_learned


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_pauses(monkeypatch)


def full(service: Service, *, pages: int = 0) -> None:
    """Limit the growth of the file to ``pages`` pages; a negative number removes the limit."""
    writer = service.store._writer  # type: ignore[attr-defined]
    limit = writer.execute("PRAGMA page_count").fetchone()[0] + pages if pages >= 0 else 2**30
    writer.execute(f"PRAGMA max_page_count = {limit}")


def decide_until_refused(service: Service) -> dict[str, Any]:
    """Decide until the disk is full; return what was acknowledged."""
    acknowledged: dict[str, Any] = {}
    for number in range(20_000):
        status, answer = service.ask(Decide("mobile", f"visit {number}"))
        if status != 200 or not getattr(answer, "stored", True):
            return acknowledged
        acknowledged[f"visit {number}"] = answer
    raise AssertionError("the disk was never full")


@pytest.mark.parametrize("safe", [None, "blue"])
def test_a_full_disk_is_reported_and_loses_nothing_acknowledged(tmp_path: Path, safe: str | None) -> None:
    service = Service(settings(tmp_path, overrides={"safe_arm": safe}))
    full(service, pages=8)
    acknowledged = decide_until_refused(service)
    status, answer = service.ask(Decide("desktop", "lost"))
    said: Any = answer
    if safe is None:
        assert status == 503
        assert "nothing was stored, try again" in said.error
    else:
        assert (status, said.arm, said.propensity, said.stored, said.context) == (200, "blue", None, False, "desktop")
    assert service.ask(Reward(next(iter(acknowledged)), 1.0))[0] == 503, "there is no safe answer to a reward"
    assert "full" in " ".join(service.failures)
    assert str(tmp_path) not in " ".join([*service.failures, getattr(said, "error", "")]), "paths are not disclosed"
    for name, before in acknowledged.items():
        assert service.store.find(1, [name]), f"{before} is lost"
    assert service.store.find(1, ["lost"]) == []
    full(service, pages=-1)
    wait_until(lambda: not service.failures)  # without anybody asking
    status, answer = service.ask(Decide("desktop", "lost"))
    assert (status, getattr(answer, "stored", None)) == (200, safe is None), "an answer stays what it was"
    for name, before in acknowledged.items():
        assert service.ask(Decide("mobile", name)) == (200, before)
    assert service.ask(Reward(next(iter(acknowledged)), 1.0))[0] == 200
    wait_until_learned(service)
    service.close()
    assert_verified(tmp_path)


def test_a_disk_that_fills_while_learning_loses_no_reward(tmp_path: Path) -> None:
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
    wait_until_learned(service)
    assert service.plan(None).version == len(ids), "each was learned once"
    service.close()
    assert_verified(tmp_path)


def test_closing_windows_continues_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overrides = {"window": "0.001 seconds", "default_reward": 0.0}
    service = Service(settings(tmp_path, overrides=overrides))
    for place in range(20):
        service.ask(Decide("mobile", f"{place}"))
    wait_until(lambda: service.writer.counts[1]["defaults"] == 20)
    service.close()
    starts: list[int] = []
    overdue = SQLiteStore.overdue

    def recorded(store: SQLiteStore, experiment: int, **options: Any) -> tuple[list[str], int]:
        starts.append(options["after"])
        return overdue(store, experiment, **options)

    monkeypatch.setattr(SQLiteStore, "overdue", recorded)
    service = Service(settings(tmp_path, overrides=overrides))
    wait_until(lambda: starts)
    service.ask(Decide("mobile", "new"))
    wait_until(lambda: service.writer.counts[1]["defaults"] == 1)
    service.close()
    assert min(starts) >= 20
    assert_verified(tmp_path)


def test_a_service_with_a_full_disk_can_be_stopped(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    service.ask(Decide("mobile", "a"))
    append = service.store.append

    def broken(records: Any, **more: Any) -> int:
        if any(record.kind == Kind.VERSION for record in records):
            raise sqlite3.OperationalError("database or disk is full")
        return append(records, **more)

    service.store.append = broken  # type: ignore[method-assign]
    assert service.ask(Reward("a", 1.0))[0] == 200
    wait_until(lambda: service.failures)
    closing = threading.Thread(target=service.close)
    closing.start()
    closing.join(20)
    assert not closing.is_alive()
    again = Service(settings(tmp_path))
    wait_until_learned(again)
    assert again.plan(None).version == 1, "acknowledged rewards are learned in the end"
    again.close()
    assert_verified(tmp_path)


@pytest.fixture(params=["memory", "loop device"])
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A small file system with a large file, where mounting is allowed."""
    folder, image = tmp_path / "disk", tmp_path / "image"
    folder.mkdir()
    commands = [["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(folder)]]
    if request.param == "loop device":
        with image.open("wb") as file:
            file.truncate(40 * 2**20)
        commands = [["mkfs.ext4", "-q", "-F", "-m", "0", str(image)], ["mount", "-o", "loop", str(image), str(folder)]]
    for command in commands:
        if shutil.which(command[0]) is None or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("a disk of its own cannot be mounted here")
    free = shutil.disk_usage(folder).free
    with (folder / "large").open("wb") as file:
        file.write(bytes(free - 2**20))
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_file_system_that_is_full(small_disk: Path) -> None:
    service = Service(settings(small_disk))
    acknowledged = decide_until_refused(service)
    assert len(acknowledged) > 20
    assert service.failures
    wait_until(lambda: service.ask(Decide("mobile", "one more"))[0] == 503)
    service.close()
    (small_disk / "large").unlink()
    again = Service(settings(small_disk))
    for name, before in acknowledged.items():
        assert again.ask(Decide("mobile", name)) == (200, before)
    assert again.ask(Decide("mobile", "one more"))[0] == 200
    assert not again.failures
    again.close()
    assert_verified(small_disk)


def test_a_store_locked_by_another_program(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    first = service.ask(Decide("mobile", "a"))
    with locked(tmp_path):
        assert service.ask(Decide("mobile", "b"))[0] == 503
        assert service.ask(Reward("a", 1.0))[0] == 503
        assert "locked" in " ".join(service.failures)
        assert service.ask(Decide("mobile", "a")) == first, "what needs no writing is answered"
        assert "locked" in " ".join(service.failures), "and has not shown that anything can be written"
    wait_until(lambda: not service.failures)
    assert [service.ask(asked)[0] for asked in (Decide("mobile", "b"), Reward("a", 1.0))] == [200, 200]
    wait_until_learned(service)
    service.close()
    assert_verified(tmp_path)


def test_requests_that_write_nothing_probe_a_failed_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "PROBE_INTERVAL", 1000.0)
    service = Service(settings(tmp_path))
    first = service.ask(Decide("mobile", "a"))
    with locked(tmp_path):
        assert service.ask(Decide("mobile", "b"))[0] == 503
    assert service.failures
    assert service.ask(Decide("mobile", "a")) == first
    wait_until(lambda: not service.failures)
    service.close()


def test_a_store_that_is_unreadable_for_a_moment_loses_nothing(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    first = service.ask(Decide("mobile", "a"))
    service.writer.cache.clear()
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
def test_a_trainer_that_fails_recovers_from_the_store(
    tmp_path: Path, algorithm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(settings(tmp_path, overrides={"algorithm": algorithm}))
    ids = [f"{number}" for number in range(60)]
    service.ask_all([Decide("mobile", name) for name in ids])
    service.ask_all([Reward(name, 1.0) for name in ids[:20]])
    wait_until_learned(service)
    learn, failing = Policy.learn, threading.Event()
    failing.set()

    def sometimes(policy: Policy, *given: Any, **more: Any) -> None:
        learn(policy, *given, **more)
        if failing.is_set() and policy is service.experiment(None).policy:
            raise MemoryError("no more of it")

    monkeypatch.setattr(Policy, "learn", sometimes)
    for name in ids[20:40]:
        assert service.ask(Reward(name, 1.0))[0] == 200
    wait_until(lambda: service.failures)
    assert "learning has failed and is retried: MemoryError" in service.failures[0]
    assert service.ask(Decide("mobile", "meanwhile"))[0] == 200, "deciding goes on"
    failing.clear()
    for name in ids[40:]:
        assert service.ask(Reward(name, 1.0))[0] == 200
    wait_until(lambda: not service.failures)
    wait_until_learned(service)
    assert service.plan(None).version == 60, "each reward was learned once"
    before = service.plan(None)
    service.close()
    assert_verified(tmp_path)
    again = Service(settings(tmp_path, overrides={"algorithm": algorithm}))
    assert again.plan(None) == before
    again.close()


def test_a_change_that_fails_half_way_has_no_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(settings(tmp_path))
    service.ask(Decide("mobile", "a"))
    before = service.plan(None)

    def broken(*_: Any) -> Any:
        raise OSError("no space left on device")

    for asked in (Change(add=[Arm("violet")]), Rollback(0)):
        with monkeypatch.context() as patched:
            patched.setattr(trainer, "snapshot_of", broken)
            with contextlib.suppress(OSError):
                assert service.change(asked)[0] != 200
        wait_until(lambda: not service.failures)
        service.ask(Reward("a", 1.0))
        wait_until_learned(service)
    assert service.plan(None).arms == before.arms
    service.ask(Decide("mobile", "b"))
    service.ask(Reward("b", 1.0))
    wait_until_learned(service)
    assert service.change(Change(add=[Arm("violet")]))[0] == 200
    service.close()
    assert_verified(tmp_path)


def test_an_answer_that_cannot_be_delivered_blocks_no_other_request(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    given = service.deliver
    service.deliver = lambda _: (_ for _ in ()).throw(RuntimeError("the loop is closed"))
    service.writer.submit([commits.PendingRequest(service.experiment(None), Decide("mobile", "a"), object())])
    wait_until(lambda: service.failures)
    service.deliver = given
    wait_until(lambda: not service.failures)
    assert service.ask(Decide("mobile", "a"))[0] == 200
    service.close()


def test_a_batch_after_the_end_is_refused_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(settings(tmp_path))
    service.close()
    refuse, waiter = service.writer._unavailable, Future[None]()
    asked = [commits.PendingRequest(service.experiment(None), Decide("mobile", name)) for name in ("slow", "quick")]
    asked[-1].waiter = waiter

    def slowly(one: commits.PendingRequest) -> Any:
        time.sleep(0.2 if one.request.id == "slow" else 0.0)
        return refuse(one)

    monkeypatch.setattr(service.writer, "_unavailable", slowly)
    service.writer._jobs.extend(asked)
    with ThreadPoolExecutor(2) as several:
        several.map(lambda _: service.writer._refuse_jobs(), range(2))
        waiter.result()
        assert [one.status for one in asked] == [503, 503]


def test_a_change_with_a_numerical_error_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(settings(tmp_path))
    before = service.plan(None)

    def broken(*_: Any, **__: Any) -> None:
        raise NumericalError("the covariance matrix is not positive definite")

    with monkeypatch.context() as patched:
        patched.setattr(Policy, "change_as_prepared", broken)
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
def test_a_damaged_snapshot_is_skipped(tmp_path: Path, damage: str) -> None:
    service = Service(settings(tmp_path))
    for number in range(30):
        service.ask(Decide("mobile", f"{number}"))
        service.ask(Reward(f"{number}", 1.0))
    wait_until_learned(service)
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
