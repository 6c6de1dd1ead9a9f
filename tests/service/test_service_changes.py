"""Changes are prepared beside the trainer: learning, decisions and the end of the service do not wait for them."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bothworlds.policy.spec import PolicySpec
from bothworlds.service import changes
from bothworlds.service.messages import Arm, Change, Decide, Reward, Rollback
from bothworlds.service.service import Service
from bothworlds.service.store import StoreError
from bothworlds.service.supervision import ThreadError
from support.services import assert_verified, settings, wait_until, wait_until_learned


class Design:
    """An exploration design that takes as long as a test wants."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.done, self.designs = threading.Event(), threading.Event(), 0
        for_problem = PolicySpec.for_problem

        def slowly(spec: PolicySpec, problem: Any) -> PolicySpec:
            self.designs += 1
            self.begun.set()
            wait_until(self.done.is_set, seconds=60)  # it computes
            return for_problem(spec, problem)

        monkeypatch.setattr(PolicySpec, "for_problem", slowly)


@pytest.fixture
def design(monkeypatch: pytest.MonkeyPatch) -> Design:
    return Design(monkeypatch)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


def visit(service: Service, names: str) -> None:
    """Decide, reward, and wait until the rewards are learned."""
    version = service.plan(None).version
    assert {status for status, _ in service.ask_all([Decide("mobile", name) for name in names])} == {200}
    service.ask_all([Reward(name, 1.0) for name in names])
    wait_until(lambda: service.plan(None).version == version + len(names))


def test_the_trainer_learns_while_a_change_is_prepared(
    tmp_path: Path, design: Design, pool: ThreadPoolExecutor
) -> None:
    service = Service(settings(tmp_path))
    changing = [pool.submit(service.change, Change(add=[Arm(name)])) for name in ("violet", "gold")]
    assert design.begun.wait(20)
    visit(service, "abc")
    assert not any(one.done() for one in changing)
    assert not service.failures
    design.done.set()
    assert [one.result()[0] for one in changing] == [200, 200]
    assert design.designs == 2, "each is designed once, not again in the trainer thread"
    assert {"violet", "gold"} < set(service.plan(None).arms)
    visit(service, "de")
    assert service.plan(None).version == 7
    service.close()
    assert_verified(tmp_path)


def test_the_end_does_not_wait_for_a_change(tmp_path: Path, design: Design, pool: ThreadPoolExecutor) -> None:
    service = Service(settings(tmp_path))
    changing = [pool.submit(service.change, Change(add=[Arm(name)])) for name in ("violet", "gold")]
    assert design.begun.wait(20)
    service.close()
    for one in changing:
        with pytest.raises(StoreError, match="the service has ended"):
            one.result()
    with pytest.raises(StoreError, match="the service has ended"):
        service.change(Change(retire=["red"]))
    design.done.set()
    assert_verified(tmp_path)


def test_a_rollback_during_the_preparation_is_kept(tmp_path: Path, design: Design, pool: ThreadPoolExecutor) -> None:
    service = Service(settings(tmp_path))
    visit(service, "ab")
    changing = pool.submit(service.change, Change(add=[Arm("violet")]))
    assert design.begun.wait(20)
    service.change(Rollback(0))
    visit(service, "c")
    design.done.set()
    assert changing.result()[0] == 200
    assert service.plan(None).version == 5
    service.close()
    assert_verified(tmp_path)


def test_a_preparation_beyond_its_limit_is_refused_and_does_not_come_later(
    tmp_path: Path, design: Design, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "PREPARE_LIMIT", 0.3)
    service = Service(settings(tmp_path))
    with pytest.raises(ThreadError, match="nothing was changed: the change thread is stuck: it prepares a change"):
        service.change(Change(add=[Arm("violet")]))
    visit(service, "a")
    design.done.set()
    wait_until(lambda: not service.failures)
    wait_until_learned(service)
    assert service.change(Change(add=[Arm("gold")]))[0] == 200
    assert set(service.plan(None).arms) == {"red", "blue", "green", "gold"}
    service.close()
    assert_verified(tmp_path)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_dead_change_thread_is_reported_and_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    service = Service(settings(tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr(changes, "prepared_change", dies)
        with pytest.raises(ThreadError, match="nothing was changed: the change thread is dead, restart the service"):
            service.change(Change(add=[Arm("violet")]))
    assert service.reasons_to_restart == service.failures != []
    with pytest.raises(ThreadError, match="the change thread is dead"):
        service.change(Change(add=[Arm("gold")]))
    visit(service, "ab")
    service.close()
    assert_verified(tmp_path)
