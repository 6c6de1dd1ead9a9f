"""What is answered with a safe arm, and what never is, while nothing can be stored."""

from pathlib import Path
from typing import Any

import pytest

from bothworlds.service.messages import Activate, Change, Decide, Reward
from bothworlds.service.service import Service
from bothworlds.service.verifying import verify
from services import locked, settings, until


@pytest.mark.parametrize("remembered", [True, False], ids=["remembered", "looked up"])
def test_no_safe_arm_stands_in_for_a_decision_that_is_stored(tmp_path: Path, remembered: bool) -> None:
    service = Service(settings(tmp_path, told={"safe_arm": "blue"}))
    made = (service.ask(Decide("mobile", f"{number}"))[1] for number in range(100))
    first: Any = next(answer for answer in made if getattr(answer, "arm", None) != "blue")
    service.ask(Decide("mobile", "mail", active=False))
    if not remembered:
        service.clerk.memory.clear()
    asked: list[Any] = [Decide("mobile", first.id), Decide("desktop", first.id), Activate("mail")]
    asked += [Reward(first.id, 1.0), Decide("mobile", "new"), Decide("mobile", "new")]
    with locked(tmp_path):
        answers = service.ask_all(asked)
    assert answers[0] == (200, first)
    assert [status for status, _ in answers] == [200, 409, 503, 503, 200, 200]
    for _, answer in answers[4:]:
        safe: Any = answer
        assert (safe.arm, safe.stored) == ("blue", False), "nothing stands in the store about it"
    until(lambda: not service.failures)
    assert service.ask(Reward("mail", 1.0))[0] == 409, "it was not activated"
    assert service.ask(Reward(first.id, 0.5))[0] == 200, "it was not rewarded"
    service.close()
    assert verify(tmp_path / "bothworlds.sqlite", processes=1).faults == []


def test_a_safe_arm_that_was_retired_is_not_answered(tmp_path: Path) -> None:
    service = Service(settings(tmp_path, told={"safe_arm": "blue"}))
    with locked(tmp_path):
        assert service.ask(Decide("mobile", "a"))[0] == 200
    until(lambda: not service.failures)
    assert service.change(Change(retire=["blue"]))[0] == 200
    with locked(tmp_path):
        assert service.ask(Decide("mobile", "a"))[0] == 503
    service.close()
