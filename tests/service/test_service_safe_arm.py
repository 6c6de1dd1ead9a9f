"""The safe arm: which requests get it while nothing can be stored."""

from pathlib import Path
from typing import Any

import pytest

from bothworlds.service import writer
from bothworlds.service.messages import Activate, Change, Decide, Reward
from bothworlds.service.service import Service
from bothworlds.service.verification import verify
from support.services import locked, settings, wait_until


@pytest.mark.parametrize("remembered", [True, False], ids=["remembered", "looked up"])
def test_the_safe_arm_does_not_replace_a_stored_decision(tmp_path: Path, remembered: bool) -> None:
    service = Service(settings(tmp_path, overrides={"safe_arm": "blue"}))
    made = (service.ask(Decide("mobile", f"{number}"))[1] for number in range(100))
    first: Any = next(answer for answer in made if getattr(answer, "arm", None) != "blue")
    service.ask(Decide("mobile", "mail", active=False))
    if not remembered:
        service.writer.cache.clear()
    asked: list[Any] = [Decide("mobile", first.id), Decide("desktop", first.id), Activate("mail")]
    asked += [Reward(first.id, 1.0), Decide("mobile", "new"), Decide("mobile", "new")]
    with locked(tmp_path):
        answers = service.ask_all(asked)
    assert answers[0] == (200, first)
    assert [status for status, _ in answers] == [200, 409, 503, 503, 200, 200]
    for _, answer in answers[4:]:
        safe: Any = answer
        assert (safe.arm, safe.stored) == ("blue", False), "the store has no record of it"
    wait_until(lambda: not service.failures)
    assert service.ask(Reward("mail", 1.0))[0] == 409, "it was not activated"
    assert service.ask(Reward(first.id, 0.5))[0] == 200, "it was not rewarded"
    service.close()
    assert verify(tmp_path / "bothworlds.sqlite", processes=1).faults == []


def test_a_retired_safe_arm_is_not_used(tmp_path: Path) -> None:
    service = Service(settings(tmp_path, overrides={"safe_arm": "blue"}))
    with locked(tmp_path):
        assert service.ask(Decide("mobile", "a"))[0] == 200
    wait_until(lambda: not service.failures)
    assert service.change(Change(retire=["blue"]))[0] == 200
    with locked(tmp_path):
        assert service.ask(Decide("mobile", "b"))[0] == 503
    service.close()


def test_a_repeated_request_gets_the_safe_arm_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "CACHED_SAFE", 40)
    service = Service(settings(tmp_path, overrides={"safe_arm": "blue"}))
    asked = [Decide("mobile", f"{number}") for number in range(41)]
    with locked(tmp_path):
        safe = service.ask_all(asked)
        assert service.ask_all(asked[1:]) == safe[1:]
    wait_until(lambda: not service.failures)
    assert service.change(Change(retire=["blue"]))[0] == 200
    again = service.ask_all(asked)
    assert again[1:] == safe[1:], "what was shown stays what it was, also if drawn anew it would be another arm"
    first: Any = again[0][1]
    assert first.stored, "only so many are kept"
    assert service.ask(Decide("desktop", "7"))[0] == 409
    assert service.ask(Reward("7", 1.0))[0] == 404
    assert service.ask(Decide("mobile"))[0] == 200
    service.close()
    assert verify(tmp_path / "bothworlds.sqlite", processes=1).decisions == 2
