"""Dead and stuck threads: they are reported, requests are refused, and nothing hangs."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bothworlds.kernels.jit import background_compile
from bothworlds.service import supervision, trainer
from bothworlds.service.app import App
from bothworlds.service.experiment import learn
from bothworlds.service.messages import Arm, Change, Decide, Reward, Rollback
from bothworlds.service.service import Service
from bothworlds.service.supervision import LONGEST_GAP, SupervisedThread, Supervisor, ThreadError
from support.services import assert_verified, locked, settings, shorten_pauses, wait_until, wait_until_learned

SOON = 2.0  # seconds


class Protocol:
    """One request to an app, without a server."""

    def __init__(self, body: Any) -> None:
        self.body = json.dumps(body).encode()
        self.status, self.headers = 0, dict[str, str]()
        self.said: Any = None

    async def __call__(self) -> bytes:
        return self.body

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.status, self.headers, self.said = status, dict(headers), json.loads(body)


async def requested(app: App, method: str, path: str, body: Any = None) -> Protocol:
    protocol = Protocol(body)
    headers = {"content-length": str(len(protocol.body)), "host": "localhost"}
    scope = SimpleNamespace(method=method, path=path, query_string="", headers=headers)
    async with asyncio.timeout(10):
        await app.__rsgi__(scope, protocol)
    return protocol


@cache
def event_loop() -> asyncio.AbstractEventLoop:
    """One event loop in a thread of its own for all requests, as in a server."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="event-loop", daemon=True).start()
    return loop


def ask(service: Service, method: str, path: str, body: Any = None) -> Protocol:
    """Send a request to the app of a service, and return its response."""
    app, loop = App(service), event_loop()
    app.__rsgi_init__(loop)
    return asyncio.run_coroutine_threadsafe(requested(app, method, path, body), loop).result()


def statuses(service: Service) -> dict[str, int]:
    """Return the statuses of live, ready and health."""
    return {name: ask(service, "GET", f"/v1/{name}").status for name in ("live", "ready", "health")}


def blocked(service: Service) -> threading.Event:
    """Make the store block in its next commits until an event."""
    append, released = service.store.append, threading.Event()

    def blocks(*records: Any, **more: Any) -> int:
        released.wait(60)
        return append(*records, **more)

    service.store.append = blocks  # type: ignore[method-assign]
    return released


def raises(*_: Any, **__: Any) -> Any:
    raise SystemExit("no way on")


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as made:
        yield made


WELL = {"live": 200, "ready": 200, "health": 200}
FAILING = {"live": 503, "ready": 503, "health": 503}


def test_a_writer_stuck_in_a_write_fails_health_and_refuses_requests(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    service = Service(settings(tmp_path, overrides={"safe_arm": "blue"}))
    assert statuses(service) == WELL
    released = blocked(service)
    begun = pool.submit(ask, service, "POST", "/v1/decide", {"context": "mobile", "id": "a"})
    start = time.monotonic()
    wait_until(lambda: statuses(service) == FAILING)
    assert time.monotonic() - start < 15.0  # about 2 s on an idle machine
    answer = begun.result()
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert "it is not known whether this was stored" in answer.said["error"], "the safe arm could contradict the log"
    assert "the writer thread is stuck: it writes to the store" in service.failures[0]
    later = ask(service, "POST", "/v1/decide", {"context": "mobile", "id": "b"})
    assert (later.status, later.said["arm"], later.said["stored"]) == (200, "blue", False)
    later = ask(service, "POST", "/v1/reward", {"id": "b", "reward": 1})
    assert (later.status, later.headers["retry-after"]) == (503, "1")
    assert "nothing was stored, try again: the writer thread is stuck" in later.said["error"]
    assert service.ask(Decide("mobile", "a"))[0] == 200
    released.set()
    wait_until(lambda: statuses(service) == WELL)
    status, stored = service.ask(Decide("mobile", "a"))
    assert (status, getattr(stored, "stored", None)) == (200, True)
    assert service.store.find(1, ["b"]) == [], "the refused ones are not stored later"
    service.close()
    assert_verified(tmp_path)


def test_waiting_requests_and_batches_do_not_hang(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    service = Service(settings(tmp_path))
    released = blocked(service)
    begun = pool.submit(service.ask_all, [Decide("mobile", "a"), Decide("mobile", "b")])
    wait_until(lambda: service.writer._in_progress)
    queued = pool.submit(service.ask_all, [Decide("mobile", "c"), Decide("mobile", "d")])
    assert [status for status, _ in begun.result(5)] == [503, 503]
    assert [status for status, _ in queued.result(5)] == [503, 503]
    released.set()
    wait_until(lambda: not service.failures)
    service.close()
    assert_verified(tmp_path)


def test_a_service_with_a_stuck_writer_can_be_closed(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    assert service.ask(Decide("mobile", "a"))[0] == 200
    append, released, stuck = service.store.append, threading.Event(), threading.Event()

    def blocks(records: Any, **more: Any) -> int:
        if len(service.writer._in_progress) and not hasattr(service.writer._in_progress[0], "waiter"):
            stuck.set()
            released.wait(60)  # the version of the trainer thread
        return append(records, **more)

    service.store.append = blocks  # type: ignore[method-assign]
    assert service.ask(Reward("a", 1.0))[0] == 200
    assert stuck.wait(10)
    closing = threading.Thread(target=service.close)
    closing.start()
    closing.join(20)
    assert not closing.is_alive()
    released.set()
    assert service.writer.thread.join()
    service.store.close()


def test_a_dead_writer_is_reported_and_requests_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(settings(tmp_path))
    service.ask(Decide("mobile", "a"))
    monkeypatch.setattr(service.writer.cache, "trim", raises)
    start = time.monotonic()
    answer = ask(service, "POST", "/v1/decide", {"context": "mobile", "id": "b"})
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert "it is not known whether this was stored, repeat it: the writer thread is dead" in answer.said["error"]
    assert time.monotonic() - start < 15.0
    assert statuses(service) == FAILING
    assert "SystemExit" in service.failures[0]
    assert service.ask(Reward("a", 1.0))[0] == 503
    with pytest.raises(Exception, match="the writer thread is dead"):
        service.change(Change(add=[Arm("violet")]))
    service.close()
    again = Service(settings(tmp_path))
    assert again.ask(Decide("mobile", "b"))[0] == 200
    again.close()
    assert_verified(tmp_path)


def test_a_trainer_whose_version_is_lost_with_the_writer_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(settings(tmp_path))
    service.ask(Decide("mobile", "a"))
    trim = service.writer.cache.trim
    monkeypatch.setattr(
        service.writer.cache, "trim", lambda: trim() if hasattr(service.writer._in_progress[0], "waiter") else raises()
    )
    service.ask(Reward("a", 1.0))
    wait_until(lambda: service.failures)
    closing = threading.Thread(target=service.close)
    closing.start()
    closing.join(20)
    assert not closing.is_alive()


def test_a_dead_trainer_is_reported_and_decisions_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(settings(tmp_path))
    monkeypatch.setattr(service.trainer, "change", raises)
    start = time.monotonic()
    with pytest.raises(ThreadError, match="not known whether the change was made: the trainer thread is dead"):
        service.change(Change(add=[Arm("violet")]))
    assert time.monotonic() - start < 15.0
    assert statuses(service) == {"live": 503, "ready": 200, "health": 503}
    assert ask(service, "POST", "/v1/decide", {"context": "mobile", "id": "a"}).status == 200
    assert ask(service, "POST", "/v1/reward", {"id": "a", "reward": 1}).status == 200
    answer = ask(service, "POST", "/v1/change", {"add": [{"name": "violet"}]})
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert "nothing was changed: the trainer thread is dead" in answer.said["error"]
    service.close()
    again = Service(settings(tmp_path))
    wait_until_learned(again)
    assert again.plan(None).version == 1
    again.close()
    assert_verified(tmp_path)


def busy(service: Service, monkeypatch: pytest.MonkeyPatch, *, seconds: float) -> None:
    """Make changes take longer."""
    change: Callable[..., Any] = service.trainer.change

    def slowly(*given: Any) -> Any:
        time.sleep(seconds)
        return change(*given)

    monkeypatch.setattr(service.trainer, "change", slowly)


def test_a_long_change_is_not_called_stuck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool: ThreadPoolExecutor
) -> None:
    service = Service(settings(tmp_path))
    busy(service, monkeypatch, seconds=2 * SOON)
    changing = pool.submit(service.change, Change(add=[Arm("violet")]))
    while not changing.done():
        assert not service.failures
        time.sleep(0.05)
    assert changing.result()[0] == 200
    service.close()


def test_a_change_beyond_its_limit_is_refused_and_may_still_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "CHANGE_LIMIT", 0.5)
    service = Service(settings(tmp_path))
    busy(service, monkeypatch, seconds=3.0)
    with pytest.raises(ThreadError, match="the trainer thread is stuck: it changes an experiment"):
        service.change(Change(add=[Arm("violet")]))
    with pytest.raises(ThreadError, match="nothing was changed"):
        service.change(Rollback(0))
    wait_until(lambda: "violet" in service.plan(None).arms)
    wait_until(lambda: not service.failures)
    service.ask(Decide("mobile", "a"))
    service.ask(Reward("a", 1.0))
    wait_until_learned(service)
    service.close()
    assert_verified(tmp_path)


def test_a_store_that_cannot_be_written_is_no_reason_to_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_pauses(monkeypatch)
    service = Service(settings(tmp_path))
    with locked(tmp_path):
        assert ask(service, "POST", "/v1/decide", {"context": "mobile"}).status == 503
        assert statuses(service) == {"live": 200, "ready": 503, "health": 503}
        assert "locked" in ask(service, "GET", "/v1/ready").said["failures"][0]
    wait_until(lambda: statuses(service) == WELL)
    assert set(ask(service, "GET", "/v1/live").said) == {"status", "failures"}
    service.close()


def test_only_time_that_the_supervisor_has_seen_counts() -> None:
    thread = SupervisedThread("writer", lambda: None)
    calls: list[str] = []
    supervisor = Supervisor({thread: lambda: calls.append(str(thread.fault))})
    with thread.doing("writes", 1.5 * LONGEST_GAP):
        supervisor.check(0.1)
        supervisor.check(1000.0)  # the machine was asleep
        assert not supervisor.faults
        supervisor.check(LONGEST_GAP)
        assert supervisor.faults == calls == ["the writer thread is stuck: it writes for more than 1.5 seconds"]
    supervisor.check(1000.0)
    assert not supervisor.faults
    for _ in range(5):  # each activity is short
        with thread.doing("writes", 1.5 * LONGEST_GAP):
            supervisor.check(LONGEST_GAP)
    assert not supervisor.faults
    assert supervision.IDLE.limit > 1e9


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_dead_supervisor_is_reported() -> None:
    thread = SupervisedThread("writer", raises)
    supervisor = Supervisor({thread: raises})
    supervisor.start()
    assert not supervisor.faults
    thread.start()
    wait_until(lambda: len(supervisor.faults) == 2)
    assert supervisor.faults[1] == "the supervisor thread is dead, restart the service"


def test_a_stuck_step_shows_soon_once_steps_have_been_quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer, "LEARN_LIMIT", 0.6)
    service, free = Service(settings(tmp_path)), threading.Event()

    def slowly(*given: Any) -> None:
        wait_until(free.is_set, seconds=60)  # it computes
        learn(*given)

    monkeypatch.setattr(trainer, "learn", slowly)
    service.ask(Decide("mobile", "first"))
    service.ask(Reward("first", 1.0))
    time.sleep(1.5)
    assert not service.failures, "the first step may compile"
    free.set()
    wait_until(lambda: service.plan(None).version == 1)
    wait_until(lambda: service.experiment(None).slowest_step)
    service.experiment(None).slowest_step = 0.01  # as if it had not waited
    free.clear()
    service.ask(Decide("mobile", "second"))
    service.ask(Reward("second", 1.0))
    wait_until(lambda: service.failures)
    assert service.failures == ["the trainer thread is stuck: it learns for more than 0.6 seconds"]
    assert service.reasons_not_ready == []
    free.set()
    wait_until(lambda: not service.failures)
    wait_until_learned(service)
    service.close()
    assert_verified(tmp_path)


def test_a_step_that_computes_nothing_shows_soon_even_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, begun, free = Service(settings(tmp_path)), threading.Event(), threading.Event()

    def hangs(*given: Any) -> None:
        begun.set()
        assert free.wait(60)
        learn(*given)

    monkeypatch.setattr(trainer, "learn", hangs)
    service.ask(Decide("mobile", "a"))
    service.ask(Reward("a", 1.0))
    assert begun.wait(20)
    start = time.monotonic()
    wait_until(lambda: service.failures)
    assert time.monotonic() - start < 15.0  # about 2 s on an idle machine
    assert service.failures == ["the trainer thread is stuck: it learns, without a step for 1.4 seconds"]
    assert statuses(service) == {"live": 503, "ready": 200, "health": 503}
    free.set()
    wait_until(lambda: not service.failures)
    wait_until_learned(service)
    service.close()
    assert_verified(tmp_path)


class Stub:
    """In place of a function with machine code: compiling hangs until an event."""

    def __init__(self) -> None:
        self.begun, self.free = threading.Event(), threading.Event()
        self._cache = None

    def typeof_pyval(self, value: object) -> str:
        return type(value).__name__

    def compile(self, _: object) -> None:
        self.begun.set()
        assert self.free.wait(60)

    def __call__(self, number: int) -> int:
        return number + 1


def test_a_compiler_that_hangs_fails_health_and_one_that_dies_is_not_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(background_compile.SWITCH, raising=False)
    service, hanging, dying = Service(settings(tmp_path)), Stub(), Stub()
    assert service.failures == []
    function = background_compile.BackgroundCompiled(lambda number: number + 1, hanging)
    assert function(1) == 2
    start = time.monotonic()
    wait_until(lambda: service.failures)
    assert time.monotonic() - start < 15.0  # about 2 s on an idle machine
    assert service.failures == ["the compiler thread is stuck: it compiles, without a step for 1.4 seconds"]
    assert statuses(service) == {"live": 503, "ready": 200, "health": 503}
    hanging.free.set()
    wait_until(lambda: not service.failures)
    assert function(1) == 2
    monkeypatch.setattr(dying, "compile", raises)
    function = background_compile.BackgroundCompiled(lambda number: number + 1, dying)
    assert [function(1) for _ in range(3)] == [2, 2, 2]
    wait_until(lambda: not background_compile.compilers())
    assert (function(1), function.ready, service.failures) == (2, True, [])
    service.close()


def test_a_learner_that_waits_for_a_compiler_that_works_is_not_stuck() -> None:
    """What the compiler computes counts for those who wait for it."""
    done, free = threading.Event(), threading.Event()
    thread = SupervisedThread("trainer", lambda: None)

    def wait() -> None:
        thread.native_id = threading.get_native_id()
        done.wait(60)

    def work() -> None:
        while not done.is_set():
            free.wait(60)
            sum(range(1000))

    waiting, compiler = threading.Thread(target=wait), threading.Thread(target=work)
    supervisor = Supervisor({thread: lambda: None})
    background_compile._compilers.add(compiler)
    try:
        waiting.start()
        compiler.start()
        free.set()
        with thread.doing("learns", 100.0, computes=True):
            for _ in range(4):
                supervisor.check(1.0)
                time.sleep(0.1)
            assert not supervisor.faults
            free.clear()

            for _ in range(5):
                supervisor.check(100.0)  # the process was paused
            assert not supervisor.faults

            def words() -> list[str]:
                supervisor.check(1.0)
                return [fault.split()[1] for fault in supervisor.faults]

            wait_until(lambda: words() == ["trainer", "compiler"])
    finally:
        done.set()
        free.set()
        compiler.join()
        waiting.join()
        background_compile._compilers.discard(compiler)
