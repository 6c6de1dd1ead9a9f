"""Rewards are learned in the order of their decisions: clicks, which are heard first, do not come before silence."""

from pathlib import Path

import numpy as np
import pytest

from bothworlds.policy import Policy
from bothworlds.service import trainer
from bothworlds.service.experiment import learn
from bothworlds.service.maintenance import erase_decisions
from bothworlds.service.messages import Activate, Arm, Change, Decide, Decided, Reward, Rollback
from bothworlds.service.reward_events import RewardEvent
from bothworlds.service.service import Service
from bothworlds.service.settings import ExperimentSettings
from support.services import (
    ARMS,
    CONTEXTS,
    Clock,
    assert_verified,
    close_overdue_windows,
    set_clock,
    settings,
    wait_until,
    wait_until_learned,
)
from support.soak import size

HOUR = 3600.0
TRUTH = np.array([[0.02, 0.04, 0.13], [0.03, 0.12, 0.05]])  # of clicks, by context and arm


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return set_clock(monkeypatch)


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """Ids and rewards, as they are learned."""
    order = list[tuple[str, float]]()

    def recorded(policy: Policy, events: list[RewardEvent]) -> None:
        order.extend((event.id, event.reward) for event in events)
        learn(policy, events)

    monkeypatch.setattr(trainer, "learn", recorded)
    return order


def finish(service: Service, *, versions: int) -> None:
    """Close what is overdue and wait for a version."""
    close_overdue_windows(service)
    wait_until(lambda: service.plan(None).version >= versions)
    wait_until_learned(service)


def test_a_reward_waits_for_earlier_decisions(tmp_path: Path, clock: Clock, learned: list[tuple[str, float]]) -> None:
    service, start = Service(settings(tmp_path)), clock.now
    try:
        service.ask_all([Decide("mobile", name) for name in "abcd"])
        service.ask_all([Decide("mobile", "hidden", active=False), Decide("mobile", "e")])
        for name in "dbe":
            assert service.ask(Reward(name, 1.0))[1].learned  # type: ignore[union-attr]
        finish(service, versions=0)
        assert learned == []
        service.ask(Reward("a", 0.0))  # nothing waits for c alone
        finish(service, versions=2)
        assert learned == [("a", 0.0), ("b", 1.0)]
        clock.now = start + HOUR / 2
        service.ask(Activate("hidden"))
        service.ask(Decide("mobile", "f"))
        service.ask(Reward("f", 1.0))
        clock.now = start + HOUR + 1.0
        finish(service, versions=5)
        assert learned[2:] == [("c", 0.0), ("d", 1.0), ("e", 1.0)]
        service.ask(Reward("hidden", 0.5))
        finish(service, versions=7)
        assert learned[5:] == [("hidden", 0.5), ("f", 1.0)]
        known = [service.decision(name, None) for name in "abcf"]
        assert [one and one.learned_in for one in known] == [2, 2, 5, 7]
    finally:
        service.close()
    assert_verified(tmp_path)


def test_unanswered_decisions_are_passed_over(tmp_path: Path, clock: Clock, learned: list[tuple[str, float]]) -> None:
    service, start = Service(settings(tmp_path, overrides={"default_reward": "none"})), clock.now
    service.ask_all([Decide("mobile", name) for name in "ab"])
    service.ask(Reward("b", 1.0))
    finish(service, versions=0)
    assert learned == []
    clock.now = start + HOUR + 1.0
    finish(service, versions=1)
    assert learned == [("b", 1.0)]
    service.close()
    assert_verified(tmp_path)


def test_at_once_does_not_wait(tmp_path: Path, clock: Clock, learned: list[tuple[str, float]]) -> None:
    for number, overrides in enumerate(({"learn": "at once"}, {"default_reward": None})):
        folder = tmp_path / str(number)
        folder.mkdir()
        service = Service(settings(folder, overrides=overrides))
        service.ask_all([Decide("mobile", name) for name in "ab"])
        service.ask(Reward("b", 1.0))
        wait_until(lambda service=service: service.plan(None).version == 1)  # type: ignore[misc]
        service.close()
    assert learned == [("b", 1.0)] * 2


def test_a_window_that_never_closes_cannot_be_waited_for(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r'learn = "in order" needs a default_reward.*or learn = "at once"'):
        settings(tmp_path, overrides={"default_reward": None, "learn": "in order"}).check()


@pytest.mark.parametrize("first", ["in order", "at once"])
def test_the_order_may_change_at_a_restart(
    tmp_path: Path, clock: Clock, learned: list[tuple[str, float]], first: str
) -> None:
    second = {"in order": "at once", "at once": "in order"}[first]
    for part, when in enumerate((first, second, first, second)):
        service = Service(settings(tmp_path, overrides={"learn": when}))
        names = [f"{part}{i}" for i in range(10)]
        service.ask_all([Decide(CONTEXTS[int(name) % 2], name) for name in names])
        service.ask_all([Reward(name, 1.0) for name in names[::3]])
        if part:
            service.ask_all([Reward(f"{part - 1}{i}", 0.25) for i in (1, 7)])
        wait_until_learned(service)
        service.close()
        assert_verified(tmp_path)
    service = Service(settings(tmp_path, overrides={"learn": first}))
    clock.now += HOUR + 1.0
    finish(service, versions=40)
    digest = service.plan(None).digest
    service.close()
    assert len(learned) == len(dict(learned)) == 40, "each decision once"
    assert_verified(tmp_path)
    service = Service(settings(tmp_path, overrides={"learn": first}))
    assert service.plan(None).digest == digest
    service.close()


def test_what_waits_is_learned_after_a_restart_and_a_change(
    tmp_path: Path, clock: Clock, learned: list[tuple[str, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "MAX_BATCH", 7)
    monkeypatch.setattr("bothworlds.service.reward_events.SPAN", 5)
    start = clock.now
    names = [f"{i}" for i in range(60)]
    for begin in (0, 30):
        service = Service(settings(tmp_path))
        service.ask_all([Decide(CONTEXTS[int(name) % 2], name) for name in names[begin : begin + 30]])
        service.ask_all([Reward(name, 1.0) for name in names[begin : begin + 30] if int(name) % 4 == 3])
        service.ask(Reward(str(begin), 0.5))
        wait_until_learned(service)
        assert service.change(Change(add=[Arm(f"gold {begin}")]))[0] == 200
        if begin:
            assert service.change(Rollback(service.plan(None).version))[0] == 422
        service.close()
    assert learned == [("0", 0.5)]
    service = Service(settings(tmp_path))
    clock.now = start + HOUR + 1.0
    finish(service, versions=62)
    service.close()
    assert [name for name, _ in learned] == names
    assert_verified(tmp_path)


def test_what_was_learned_in_order_can_be_erased(tmp_path: Path, clock: Clock) -> None:
    service, start = Service(settings(tmp_path)), clock.now
    service.ask_all([Decide("mobile", name) for name in "abcd"])
    service.ask_all([Reward(name, 1.0) for name in "abd"])
    finish(service, versions=2)
    service.close()
    assert erase_decisions(tmp_path / "bothworlds.sqlite").records == 4, "a and b; d is not learned yet"
    service = Service(settings(tmp_path))
    clock.now = start + HOUR + 1.0
    finish(service, versions=4)
    service.close()
    assert_verified(tmp_path)


def worth_of(service: Service) -> float:
    """Return the share of clicks that the current plan leads to."""
    return float((np.array(service.plan(None).probabilities) * TRUTH).sum(axis=1).mean())


def worth_after(folder: Path, clock: Clock, when: str, visits: int) -> tuple[float, float]:
    """Return what the plan is worth at the end of the first window, and after it; visitors come in the first half."""
    options = {"learn": when, "algorithm": {"kind": "LinUCB"}}
    service, start = Service(settings(folder, overrides=options)), clock.now
    try:
        random, group = np.random.default_rng(5), 50
        for first in range(0, visits, group):
            clock.now = start + HOUR / 2 * first / visits
            contexts = random.integers(2, size=group).tolist()
            requests = [Decide(CONTEXTS[x], f"visit {first + i}") for i, x in enumerate(contexts)]
            made = [answer for _, answer in service.ask_all(requests)]
            arms = [ARMS.index(answer.arm) for answer in made if isinstance(answer, Decided)]
            clicks = random.random(group) < TRUTH[contexts, arms]
            service.ask_all([Reward(f"visit {first + i}", 1.0) for i in np.flatnonzero(clicks)])
            wait_until_learned(service)
        before = worth_of(service)
        clock.now = start + 2 * HOUR
        finish(service, versions=visits)
        return before, worth_of(service)
    finally:
        service.close()


@pytest.mark.soak
def test_the_first_window_does_not_mislead(tmp_path: Path, clock: Clock, learned: list[tuple[str, float]]) -> None:
    """With LinUCB; learned at once, all rewards are 1 until the window closes, whatever the arm."""
    results = {}
    for when in ("at once", "in order"):
        (tmp_path / when).mkdir()
        learned.clear()
        results[when] = worth_after(tmp_path / when, clock, when, size(4_000, 10_000))
        first = [reward for _, reward in learned[: len(learned) // 50]]
        assert set(first) == ({1.0} if when == "at once" else {0.0, 1.0})
    assert results["in order"][0] > 0.99 * TRUTH.mean(), "nothing is learned yet"
    assert results["in order"][1] > 0.95 * TRUTH.max(axis=1).mean()


def test_default_order() -> None:
    assert ExperimentSettings().in_order
    assert ExperimentSettings(default_reward="none").in_order
    assert not ExperimentSettings(default_reward=None).in_order
