"""Erasing old decisions: what was learned stays, and the rest is verified from a snapshot on."""

import sqlite3
from pathlib import Path

import pytest

from bothworlds.service.maintenance import erase_decisions, roll_back
from bothworlds.service.messages import Decide, Reward, Rollback
from bothworlds.service.records import Kind
from bothworlds.service.service import Service
from bothworlds.service.sqlite import NEWEST_KEPT, SQLiteStore
from bothworlds.service.verification import verify
from support.services import rows_of, settings, wait_until, wait_until_learned

AT_ONCE = {"learn": "at once"}


def visited(folder: Path, visits: range) -> str:
    """Decide, reward all but every tenth visit, and learn; return the digest of the last plan."""
    service = Service(settings(folder, overrides=AT_ONCE))
    for first in visits[::20]:
        ids = [f"{i}" for i in range(first, first + 20)]
        service.ask_all([Decide("mobile", name) for name in ids])
        service.ask_all([Reward(name, float(int(name) % 3 == 0)) for name in ids if int(name) % 10])
        wait_until_learned(service)
    digest = service.plan(None).digest
    service.close()
    return digest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    visited(tmp_path, range(200))
    visited(tmp_path, range(200, 400))
    return tmp_path / "bothworlds.sqlite"


def names_in(path: Path) -> set[str]:
    store = SQLiteStore(path, writes=False)
    found = {str(one.id) for one in store.read() if one.id is not None}
    store.close()
    return found


def test_erasing_keeps_what_was_learned_and_decisions_without_a_reward(path: Path, tmp_path: Path) -> None:
    before = verify(path, processes=1)
    first = erase_decisions(path, through=180)
    assert (first.version, first.records) == (180, 360)
    found = verify(path, processes=1)
    assert (found.decisions, found.versions, found.faults) == (200, before.versions // 2, [])
    assert "after version 180, through which rewarded decisions were erased, all equal to the log" in str(found)
    assert names_in(path) == {f"{i}" for i in range(400) if i >= 200 or i % 10 == 0}
    assert rows_of(path).keys() == names_in(path)
    digest = visited(tmp_path, range(400, 600))
    assert verify(path, processes=1).faults == []
    second = erase_decisions(path)
    assert second.version == 540
    service = Service(settings(tmp_path, overrides=AT_ONCE))
    assert service.plan(None).digest == digest
    assert service.ask(Reward("200", 1.0))[0] == 200, "it waited for that"
    assert service.ask(Reward("201", 1.0))[0] == 404
    service.close()
    assert verify(path, processes=1).faults == []
    assert names_in(path) == {f"{i}" for i in range(0, 600, 10)}


def test_unrewarded_decisions_from_before_the_erasure_are_not_evaluated(path: Path) -> None:
    erase_decisions(path, through=180)
    assert rows_of(path, current_only=True).keys() == {f"{i}" for i in range(200, 400)}
    assert "0" in rows_of(path)


def test_erased_bytes_are_not_in_the_file(path: Path) -> None:
    service = Service(settings(path.parent, overrides=AT_ONCE))
    service.ask(Decide("mobile", "someone@example.org"))
    service.ask(Reward("someone@example.org", 1.0))
    wait_until_learned(service)
    service.close()
    body = b"someone@example.org"
    assert body in path.read_bytes()
    size = path.stat().st_size
    erase_decisions(path)
    wal = path.with_name(f"{path.name}-wal")
    assert body not in path.read_bytes() + (wal.read_bytes() if wal.exists() else b"")
    assert path.stat().st_size < size


def test_what_remains_is_still_verified(path: Path) -> None:
    erase_decisions(path, through=180)
    store = sqlite3.connect(path)
    store.execute(
        "UPDATE log SET body = (SELECT body FROM log WHERE id = '390' AND kind = 1) WHERE id = '211' AND kind = 1"
    )
    store.commit()
    store.close()
    assert "decision '211'" in str(verify(path, processes=1))


@pytest.mark.parametrize(
    "spoil", ["DELETE FROM snapshots WHERE version = 180", "UPDATE snapshots SET digest = 'x' WHERE version = 180"]
)
def test_the_first_snapshot_must_match_the_log(path: Path, spoil: str) -> None:
    erase_decisions(path, through=180)
    store = sqlite3.connect(path)
    store.execute(spoil)
    store.commit()
    store.close()
    with pytest.raises(
        ValueError, match="the snapshot of version 180, with which the log begins, is missing or altered"
    ):
        verify(path, processes=1)


def test_the_snapshot_of_an_erasure_is_never_dropped(path: Path) -> None:
    erase_decisions(path, through=180)
    store = SQLiteStore(path)
    [sealed] = [one for one in store.snapshots(1) if one.version == 180]
    for version in range(1000, 1000 + 2 * NEWEST_KEPT):
        store.append([], snapshots=[sealed._replace(version=version)])
    assert {180, 0} <= {one.version for one in store.snapshots(1)}
    assert len(store.snapshots(1)) < 2 * NEWEST_KEPT
    store.close()


def test_erasing_needs_a_readable_snapshot(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the oldest has version 180"):
        erase_decisions(path, through=5)
    store = sqlite3.connect(path)
    store.execute("UPDATE snapshots SET content = x'00'")
    store.commit()
    store.close()
    before = names_in(path)
    with pytest.raises(ValueError, match=r"\S"):
        erase_decisions(path)
    assert names_in(path) == before
    with pytest.raises(FileNotFoundError):
        erase_decisions(tmp_path / "nothing.sqlite")


def test_erased_versions_cannot_be_restored(path: Path) -> None:
    erase_decisions(path, through=180)
    with pytest.raises(ValueError, match="no snapshot in the store"):
        roll_back(path, None, 90)
    assert roll_back(path, None, 180).version > 360
    assert verify(path, processes=1).faults == []
    store = SQLiteStore(path, writes=False)
    assert [one.kind for one in store.marks(1)][-1] == Kind.ROLLBACK
    store.close()


def split_by_holdout(service: Service, count: int) -> tuple[list[str], list[str]]:
    """Return ``count`` ids of decisions outside the holdout, and of others inside."""
    held = {f"{i}": service.experiment(None).plan.holds_out(f"{i}") for i in range(20 * count)}
    return tuple([name for name in held if held[name] is part][:count] for part in (False, True))  # type: ignore[return-value]


def test_rewards_after_an_erased_end_of_the_log_are_learned(tmp_path: Path) -> None:
    overrides = {"holdout": 0.5, "window": "0.1 seconds", **AT_ONCE}
    service = Service(settings(tmp_path, overrides=overrides))
    own, held = split_by_holdout(service, 4)
    for name in [own[0], *held]:  # the log ends with records from which no version comes
        service.ask(Decide("mobile", name))
        service.ask(Reward(name, 1.0))
        wait_until_learned(service)
    wait_until(lambda: service.experiment(None).expired_through == service.store.last())
    service.close()
    erase_decisions(tmp_path / "bothworlds.sqlite")
    service = Service(settings(tmp_path, overrides=overrides))
    assert service.store.last() < service.experiment(None).through
    for name in own[1:]:
        service.ask(Decide("mobile", name))
    service.ask(Reward(own[1], 1.0))
    wait_until(lambda: service.writer.counts[1]["defaults"] == 2)
    wait_until_learned(service)
    wait_until(lambda: service.plan(None).version == 4)
    service.close()
    assert verify(tmp_path / "bothworlds.sqlite", processes=1).faults == []


def test_versions_that_a_rollback_needs_are_not_erased(tmp_path: Path) -> None:
    for first, back in ((0, None), (2, None), (4, 1)):
        service = Service(settings(tmp_path))
        for name in (f"{first}", f"{first + 1}"):
            service.ask(Decide("mobile", name))
            service.ask(Reward(name, 1.0))
            wait_until_learned(service)
        if back is not None:
            assert service.change(Rollback(back))[0] == 200
        service.close()
    path = tmp_path / "bothworlds.sqlite"
    before = names_in(path)
    with pytest.raises(ValueError, match=r"version 7 is a rollback to version 1.*erase through 7 or later"):
        erase_decisions(path, through=4)
    assert names_in(path) == before
    assert verify(path, processes=1).faults == []
    assert erase_decisions(path, through=7).version == 7
    assert verify(path, processes=1).faults == []


def test_erasing_reports_a_reader_that_keeps_the_bytes(path: Path) -> None:
    service = Service(settings(path.parent, overrides=AT_ONCE))
    service.ask(Decide("mobile", "someone@example.org"))
    service.ask(Reward("someone@example.org", 1.0))
    wait_until_learned(service)
    service.close()
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM log").fetchall()
    with pytest.raises(OSError, match=r"records are erased, but their bytes stay in the file.*erase again"):
        erase_decisions(path)
    assert b"someone@example.org" in path.read_bytes()
    reader.close()
    assert erase_decisions(path).records == 0
    assert b"someone@example.org" not in path.read_bytes()
