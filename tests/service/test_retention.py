"""Retention: decisions older than the settings keep them are erased while the service runs."""

import sqlite3
from pathlib import Path

import pytest

from bothworlds.service import trainer
from bothworlds.service.dashboard_data import OverviewCache
from bothworlds.service.locations import open_store
from bothworlds.service.messages import Decide, Reward, Rollback
from bothworlds.service.records import Snapshot
from bothworlds.service.service import Service
from bothworlds.service.sqlite import SQLiteStore
from bothworlds.service.verification import verify
from support.postgres import needs_postgres, schema_for
from support.services import (
    CONTEXTS,
    Clock,
    assert_verified,
    close_overdue_windows,
    set_clock,
    settings,
    wait_until,
    wait_until_learned,
)

HOUR, DAY = 3600.0, 86400.0
HOURLY = 10  # decisions


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(trainer, "SNAPSHOT_AFTER", 0.0)
    monkeypatch.setattr(trainer, "ERASE_INTERVAL", 0.0)
    monkeypatch.setattr(trainer, "ERASE_RECORDS", 7)
    return set_clock(monkeypatch)


def visit(service: Service, clock: Clock, hours: range) -> None:
    """Let visitors come each hour, of whom every third clicks."""
    for hour in hours:
        names = [f"{hour}-{i}" for i in range(HOURLY)]
        service.ask_all([Decide(CONTEXTS[i % 2], name) for i, name in enumerate(names)])
        service.ask_all([Reward(name, 1.0) for name in names[::3]])
        clock.now += HOUR
        close_overdue_windows(service)
        wait_until_learned(service)


def hours_in(location: Path | str) -> set[int]:
    """Return the hours of which decisions are in a store."""
    store = open_store(location, writes=False)
    hours = {int(str(record.id).partition("-")[0]) for record in store.read() if record.id is not None}
    store.close()
    return hours


@pytest.fixture(params=["file", pytest.param("database", marks=needs_postgres)])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where the store is: in a file, or in a database."""
    return tmp_path / "bothworlds.sqlite" if request.param == "file" else schema_for(tmp_path)


def finish_erasure(service: Service) -> None:
    """Wait until nothing is left to erase."""
    searched = service.trainer._erased["ads"]
    wait_until(lambda: service.trainer._erased["ads"] > searched and service.trainer._erasures.get("ads") is None)
    wait_until(lambda: service.trainer._erased["ads"] > searched and service.trainer._erasures.get("ads") is None)


@pytest.mark.parametrize("learn", ["in order", "at once"])
def test_old_decisions_are_erased_and_what_they_taught_stays(
    tmp_path: Path, clock: Clock, location: Path | str, learn: str
) -> None:
    overrides = {"keep": "20 hours", "learn": learn, "window": "30 minutes", "holdout": 0.2}
    chosen = settings(tmp_path, overrides=overrides, store=str(location))
    service = Service(chosen)
    wait_until(lambda: service.learns)
    visit(service, clock, range(60))
    finish_erasure(service)
    assert not service.failures
    assert hours_in(location) >= set(range(40, 60))
    assert min(hours_in(location)) >= 36, "at most a tenth longer, and an hour until the next snapshot"
    digest, version = service.plan(None).digest, service.plan(None).version
    assert service.ask(Reward("3-1", 1.0))[0] == 404 or "3-1" in service.writer.cache._states[1]
    assert service.change(Rollback(1))[0] == 422
    service.close()
    report = verify(location, processes=1)
    assert report.faults == []
    assert report.erased_through > 200
    assert f"after version {report.erased_through}, through which rewarded decisions were erased" in str(report)
    service = Service(chosen)
    wait_until(lambda: service.learns)
    assert (service.plan(None).digest, service.plan(None).version) == (digest, version)
    visit(service, clock, range(60, 70))
    overview = OverviewCache(service).overview(service.experiment(None))
    assert overview.in_window == 0
    closed = sum(rate.decisions for rate in overview.health.who)
    assert 200 <= closed <= 10 * len(hours_in(location)), "those that are left"
    service.close()
    assert verify(location, processes=1).faults == []


def test_an_erasure_goes_on_after_a_restart(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    overrides = {"keep": "20 hours", "window": "30 minutes"}
    path = tmp_path / "bothworlds.sqlite"
    service = Service(settings(tmp_path, overrides={"window": "30 minutes"}))
    visit(service, clock, range(30))
    service.close()
    assert hours_in(path) == set(range(30)), "without keep all decisions stay"
    clock.now += 30 * HOUR
    erase_part, parts = SQLiteStore.erase_part, list[int]()

    def interrupted(store: SQLiteStore, snapshot: Snapshot, *, after: int, through: int) -> int:
        if len(parts) == 20:
            raise sqlite3.OperationalError("the machine goes down")
        parts.append(erase_part(store, snapshot, after=after, through=through))
        return parts[-1]

    with monkeypatch.context() as patched:
        patched.setattr(SQLiteStore, "erase_part", interrupted)
        service = Service(settings(tmp_path, overrides=overrides))
        wait_until(lambda: service.failures)
        service.close()
    assert sum(parts) > 20
    assert_verified(tmp_path)
    left = hours_in(path)
    service = Service(settings(tmp_path, overrides=overrides))
    finish_erasure(service)
    service.close()
    assert 0 not in left
    assert len(left) > len(hours_in(path)) == 0
    assert_verified(tmp_path)


def test_a_store_that_cannot_erase_says_so_and_goes_on(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    overrides = {"keep": "20 hours", "window": "30 minutes"}
    service = Service(settings(tmp_path, overrides=overrides))
    erase_part, tried = service.store.erase_part, list[int]()

    def broken(*_: object, **parts: int) -> int:
        tried.append(parts["after"])
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(service.store, "erase_part", broken)
    visit(service, clock, range(30))
    wait_until(lambda: len(tried) > 3)
    assert set(tried) == {0}
    monkeypatch.setattr(service.store, "erase_part", erase_part)
    finish_erasure(service)
    wait_until(lambda: not service.failures)
    service.close()
    assert 0 not in hours_in(tmp_path / "bothworlds.sqlite")
    assert_verified(tmp_path)


def test_decisions_are_kept_for_longer_than_a_window(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="keep must be longer than the window of 1 hour; got '1 hour'"):
        settings(tmp_path, overrides={"keep": "1 hour"}).check()
