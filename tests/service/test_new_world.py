"""A world that changes while the service runs: its page, its log and `verify` say when learning began again."""

from pathlib import Path

import numpy as np
import pytest

from bothworlds.service.dashboard_data import OverviewCache
from bothworlds.service.failure_log import FailureLog
from bothworlds.service.messages import Decide, Decided, Reward
from bothworlds.service.records import Kind, Versioned, unpacked
from bothworlds.service.service import Service
from bothworlds.service.verification import verify
from support.service_log_lines import kept
from support.services import ARMS, CONTEXTS, settings, wait_until_learned


def visit(service: Service, visits: int, *, best: int, seed: int) -> None:
    """Let visitors come who click nine times in ten on one arm, once in ten on another."""
    random = np.random.default_rng(seed)
    for first in range(0, visits, 50):
        requests = [Decide(context=CONTEXTS[i % 2], id=f"{seed} {first + i}") for i in range(50)]
        made = [answer for _, answer in service.ask_all(requests)]
        rewards = []
        for one in made:
            assert isinstance(one, Decided)
            clicks = random.random() < (0.9 if one.arm == ARMS[best] else 0.1)
            rewards.append(Reward(one.id, float(clicks)))
        assert all(status == 200 for status, _ in service.ask_all(rewards))
        wait_until_learned(service)


def test_page_log_and_verification_say_when_learning_began_again(tmp_path: Path) -> None:
    service = Service(settings(tmp_path, overrides={"algorithm": {"kind": "LCTsallisINF"}, "learn": "at once"}))
    log, lines = kept()
    watch = FailureLog(service, log)
    try:
        visit(service, 600, best=0, seed=1)
        watch.check()
        visit(service, 300, best=1, seed=2)
        watch.check()
        watch.check()
        overview = OverviewCache(service).overview(service.experiment(None))
        marks = [unpacked(Versioned, mark.body) for mark in service.store.marks(1) if mark.kind == Kind.VERSION]
    finally:
        log.close()
        service.close()
    events = [event for event in overview.events if event.word == "new world"]
    assert len(events) == 1
    version = next(mark.version for mark in marks if mark.restarts == 1)
    assert events[0].sentence == (
        f"what was learned stopped predicting rewards; it is forgotten from version {version:,} on"
    )
    assert 600 < version < 900
    changes = overview.health.changes
    assert changes is not None
    assert "stopped predicting rewards once" in changes.sentence
    assert [line["event"] for line in lines()] == ["new world"]
    assert "ads: what was learned stopped predicting rewards" in lines()[0]["message"]
    found = verify(tmp_path / "bothworlds.sqlite", processes=1)
    assert (found.faults, found.versions) == ([], len(marks))


def test_a_mark_with_other_restarts_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(settings(tmp_path, overrides={"algorithm": {"kind": "LCTsallisINF"}, "learn": "at once"}))
    monkeypatch.setattr("bothworlds.service.trainer.restarts_of", lambda plan: 3)
    visit(service, 50, best=0, seed=1)
    service.close()
    faults = verify(tmp_path / "bothworlds.sqlite", processes=1).faults
    assert faults
    assert "is marked with 3 restarts" in faults[0]
