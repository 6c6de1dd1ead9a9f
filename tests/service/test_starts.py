"""Starts and stops of the service, noted in its store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bothworlds.service.dashboard_data import OverviewCache
from bothworlds.service.messages import Arm, Change, Decide, Reward, Rollback
from bothworlds.service.service import Service
from bothworlds.service.sqlite import SQLiteStore
from bothworlds.service.starts import MOST_STARTS, Start, note_start, note_stop, read_starts
from support.services import locked, settings, wait_until_learned


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    opened = SQLiteStore(tmp_path / "log.sqlite")
    yield opened
    opened.close()


def test_the_newest_starts_are_kept(store: SQLiteStore) -> None:
    assert read_starts(store) == []
    for number in range(MOST_STARTS + 5):
        assert note_start(store, 10.0 * number) == number
        if number % 2:
            note_stop(store, number, 10.0 * number + 5.0)
    starts = read_starts(store)
    assert len(starts) == MOST_STARTS
    assert starts[0] == Start(50, 55)
    assert starts[-1] == Start(10 * (MOST_STARTS + 4), None)
    assert starts[-2] == Start(10 * (MOST_STARTS + 3), 10 * (MOST_STARTS + 3) + 5)
    note_stop(store, MOST_STARTS + 2, 7.0)
    assert read_starts(store)[-3:] == [Start(10 * (MOST_STARTS + 2), 7.0), *starts[-2:]], "of several hosts one stops"


def test_a_store_that_cannot_be_written_is_no_reason_not_to_start(tmp_path: Path) -> None:
    Service(settings(tmp_path)).close()
    with locked(tmp_path):
        service = Service(settings(tmp_path))
    assert len(read_starts(service.store)) == 1
    service.close()


def test_changes_rollbacks_and_restarts_are_told_newest_first(tmp_path: Path) -> None:
    first = Service(settings(tmp_path))
    for number in range(3):
        first.ask(Decide(context="mobile", id=f"{number}"))
        first.ask(Reward(f"{number}", 1.0))
        wait_until_learned(first)
    assert first.change(Rollback(version=1))[0] == 200
    assert first.change(Change(add=[Arm("violet")]))[0] == 200
    first.close()
    again = Service(settings(tmp_path))
    try:
        events = OverviewCache(again).overview(again.experiment(None)).events
    finally:
        again.close()
    assert [event.word for event in events] == ["restart", "change", "rollback", "start"]
    assert events[2].sentence == "to version 1; it continues as version 4"
    assert events[1].sentence == "violet added, in version 5"
    assert "after the service was stopped" in events[0].sentence
