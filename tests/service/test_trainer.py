"""The trainer thread: failures, changes, and pauses."""

import sqlite3
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import bothworlds as bw
from bothworlds.service import trainer
from bothworlds.service.changes import changed_problem
from bothworlds.service.experiment import learn
from bothworlds.service.messages import Arm, Change, Decide, Refusal, Reward, Rollback
from bothworlds.service.records import DecisionBody, Kind
from bothworlds.service.reward_events import RewardEvent
from bothworlds.service.service import Service
from bothworlds.service.store import StoreError
from support.services import assert_verified, settings, shorten_pauses, wait_until, wait_until_learned


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_pauses(monkeypatch)


@pytest.mark.parametrize("asked", [Change(add=[Arm("violet")]), Rollback(0)])
def test_changes_start_from_the_state_in_the_log(
    tmp_path: Path, asked: Change | Rollback, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(settings(tmp_path))
    service.ask_all([Decide("mobile", name) for name in ("a", "b")])
    service.ask(Reward("a", 1.0))
    wait_until_learned(service)
    publish, failing = trainer.TrainerThread._publish_once, threading.Event()
    failing.set()

    def no_version(one: trainer.TrainerThread, experiment: Any, marks: list[Any], *given: Any, **more: Any) -> None:
        if marks[0].kind == Kind.VERSION and failing.is_set():
            raise OSError("no space left on device")
        publish(one, experiment, marks, *given, **more)

    monkeypatch.setattr(trainer.TrainerThread, "_publish_once", no_version)
    service.ask(Reward("b", 1.0))
    wait_until(lambda: service.failures)
    assert service.change(asked)[0] == 200
    failing.clear()
    wait_until(lambda: not service.failures)
    wait_until_learned(service)
    assert [mark.kind for mark in service.store.marks(1)] == [
        Kind.VERSION,
        Kind.CHANGE if isinstance(asked, Change) else Kind.ROLLBACK,
        Kind.VERSION,
    ]
    service.close()
    assert_verified(tmp_path)


@pytest.mark.parametrize("learning", [False, True])
def test_a_change_is_refused_while_nothing_can_be_stored(tmp_path: Path, learning: bool) -> None:
    service = Service(settings(tmp_path))
    service.ask(Decide("mobile", "a"))
    before = service.plan(None)
    append, full_now = service.store.append, threading.Event()

    def broken(records: Any, **more: Any) -> int:
        if full_now.is_set() and any(record.id is None for record in records):
            raise sqlite3.OperationalError("database or disk is full")
        return append(records, **more)

    service.store.append = broken  # type: ignore[method-assign]
    full_now.set()
    if learning:
        service.ask(Reward("a", 1.0))
        wait_until(lambda: service.failures)
    results: list[Any] = []

    def change(what: Change | Rollback) -> None:
        try:
            results.append(service.change(what))
        except StoreError as error:
            results.append(str(error))

    asking = threading.Thread(target=change, args=(Change(add=[Arm("violet")]),), daemon=True)
    asking.start()
    asking.join(10)
    waits = asking.is_alive()
    full_now.clear()
    assert (waits, results) == (False, ["nothing was changed, try again: database or disk is full"])
    wait_until(lambda: not service.failures)
    wait_until_learned(service)
    assert (service.plan(None).arms, service.plan(None).version) == (before.arms, int(learning)), "nothing half done"
    assert service.change(Change(add=[Arm("violet")]))[0] == 200
    service.close()
    assert_verified(tmp_path)


def test_one_change_may_replace_arms() -> None:
    problem = bw.Problem(features=[[[1, 0.2], [1, 0.9]]], probabilities=[1], arms=["spring", "summer"])
    new = [Arm("autumn", [1.0, -0.4]), Arm("winter", [1.0, 1.2])]
    changed = changed_problem(problem, Change(add=new, retire=["spring"]))
    assert changed.arms == ("summer", "autumn", "winter")
    assert changed == problem.with_arms({arm.name: arm.features for arm in new}).without_arms(["spring"])
    with pytest.raises(ValueError, match="there are no arms: nothing to decide"):
        changed_problem(problem, Change(retire=["spring", "summer"]))


def test_a_failure_is_reported_until_learning_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(settings(tmp_path))
    service.ask(Decide("mobile", "a"))
    failing, reported = threading.Event(), list[bool]()
    failing.set()
    expire = trainer.TrainerThread.expire

    def broken(*given: Any) -> None:
        if failing.is_set():
            raise MemoryError("no more of it")
        learn(*given)

    def recorded(one: trainer.TrainerThread, experiment: Any) -> None:
        reported.append(bool(service.failures))
        expire(one, experiment)

    monkeypatch.setattr(trainer, "learn", broken)
    service.ask(Reward("a", 1.0))
    wait_until(lambda: service.failures)
    monkeypatch.setattr(trainer.TrainerThread, "expire", recorded)
    wait_until(lambda: len(reported) > 3)
    assert all(reported)
    failing.clear()
    wait_until(lambda: not service.failures)
    wait_until_learned(service)
    service.close()
    assert_verified(tmp_path)


def test_a_failure_to_close_windows_is_reported_until_it_works(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    overdue = service.store.overdue
    failures: list[list[str]] = []

    def broken(*_: Any, **__: Any) -> Any:
        failures.append(service.failures)
        raise sqlite3.OperationalError("disk I/O error")

    service.store.overdue = broken  # type: ignore[method-assign]
    wait_until(lambda: len(failures) > 3)
    assert all(failures[1:])
    service.store.overdue = overdue  # type: ignore[method-assign]
    wait_until(lambda: not service.failures)
    service.close()


def test_the_trainer_does_not_pause_while_full_batches_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MAX_BATCH", 10), ("PAUSE_RATIO", 10**6), ("LONGEST_PAUSE", 4.0)):
        monkeypatch.setattr(trainer, name, value)
    service = Service(settings(tmp_path))
    ids = [f"{number}" for number in range(100)]
    service.ask_all([Decide("mobile", name) for name in ids])
    service.ask_all([Reward(name, 1.0) for name in ids])
    wait_until(lambda: service.plan(None).version == 100, seconds=3.0)
    service.close()
    assert_verified(tmp_path)


@pytest.mark.parametrize(
    ("waiting", "took", "pauses"),
    [
        (0, 0.005, [0.015]),
        (0, 1.0, [0.0]),
        (999, 0.005, [0.075]),
        (999, 0.001, [0.019]),
        (999, 1.0, [0.15]),
        (1000, 1.0, []),
    ],
)
def test_pauses_grow_with_the_work_while_rewards_wait(
    monkeypatch: pytest.MonkeyPatch, waiting: int, took: float, pauses: list[float]
) -> None:
    experiments: Any = {name: SimpleNamespace(unlearned=count) for name, count in (("few", 0), ("ads", waiting))}
    slept: list[float] = []
    monkeypatch.setattr(trainer, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=slept.append))
    writer: Any = None
    trainer.TrainerThread(experiments, writer, refresh=0.02)._rest(took)
    assert slept == pytest.approx(pauses)


def test_new_arms_must_all_have_features_or_none(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    status, answer = service.change(Change(add=[Arm("violet"), Arm("white", [1.0] * 9)]))
    assert (status, answer) == (
        422,
        Refusal("arm 'violet' has no features, but others have: give features for all new arms or none"),
    )
    assert service.plan(None).version == 0
    service.close()


def test_rewards_that_wait_together_are_learned_row_by_row() -> None:
    """The default rule has the same bits for one batch, for batches of five, and for rewards one by one."""
    problem = bw.Problem.from_sample(["mobile", "desktop"], arms=["red", "blue"], reward_range=(0, 1))
    start = bw.LCTsallisINF().start(problem, rng=1)
    plan, events = start.plan(), []
    start.save("start.npz")
    for i in range(16):
        made = plan.act(i % 2, id=f"visit {i}")
        assert made.baseline is not None
        vectors = made.direction.tobytes(), made.baseline.tobytes()
        context, arm = str(made.context_name), str(made.arm_name)
        body = DecisionBody(b"", context, None, arm, made.propensity, 0, False, None, made.fingerprint, b"", *vectors)
        events.append(RewardEvent(i, f"visit {i}", body, float(i % 3 == 0)))
    found = set()
    for size in (1, 5, 16):
        policy: Any = bw.load("start.npz")
        for first in range(0, 16, size):
            learn(policy, events[first : first + size])
        found.add((policy.digest, policy.probabilities().tobytes()))
    assert len(found) == 1
