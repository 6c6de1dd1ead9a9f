"""Windows close by time that has passed: a clock that is set forward does not close them early."""

from pathlib import Path

import pytest

from bothworlds.service.messages import Decide, Reward
from bothworlds.service.service import Service
from support.services import Clock, close_overdue_windows, set_clock, settings

HOUR = 3600.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return set_clock(monkeypatch)


def closed(service: Service, clock: Clock, seconds: float) -> set[str]:
    """Let time pass; return the decisions whose window has closed."""
    for _ in range(10):
        clock.now += seconds / 10
        close_overdue_windows(service)
    known = (service.decision(name, None) for name in ("early", "late"))
    return {told.id for told in known if told is not None and told.by_default}


@pytest.mark.parametrize("jump", [2 * HOUR, 0.5 * HOUR, 86400.0])
def test_a_clock_that_jumps_forward_closes_nothing_early(tmp_path: Path, clock: Clock, jump: float) -> None:
    service = Service(settings(tmp_path))
    service.ask(Decide("mobile", "early"))
    assert closed(service, clock, 0.25 * HOUR) == set()
    clock.jump(jump)
    close_overdue_windows(service)  # the service looks five times a second
    service.ask(Decide("mobile", "late"))
    assert closed(service, clock, 0.7 * HOUR) == set()
    assert closed(service, clock, 0.1 * HOUR) == {"early"}, "an hour after its decision"
    assert closed(service, clock, 0.15 * HOUR) == {"early"}
    assert closed(service, clock, 0.1 * HOUR) == {"early", "late"}
    service.close()


def test_a_clock_that_is_set_right_again_closes_on_time(tmp_path: Path, clock: Clock) -> None:
    service = Service(settings(tmp_path))
    service.ask(Decide("mobile", "early"))
    clock.jump(5 * HOUR)
    assert closed(service, clock, 0.1 * HOUR) == set()
    clock.jump(-5 * HOUR)
    assert closed(service, clock, 0.1 * HOUR) == set()
    service.ask(Decide("mobile", "late"))
    assert closed(service, clock, 0.7 * HOUR) == set()
    assert service.ask(Reward("early", 1.0))[1].learned  # type: ignore[union-attr]
    assert closed(service, clock, 0.4 * HOUR) == {"late"}
    service.close()
