"""What operators read: log lines, request ids, traces, and notifications to systemd."""

import json
import re
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothworlds.service import service_log, systemd
from bothworlds.service.failure_log import FailureLog
from bothworlds.service.messages import Decide
from bothworlds.service.service import Service
from bothworlds.service.service_log import LogLine, ServiceLog, json_line, text_line
from bothworlds.service.verification import verify
from support.service_http import served
from support.service_log_lines import kept
from support.services import locked, settings, wait_until

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
EXPERIMENT = """
durability = "process"
[experiments.ads]
arms = ["red", "blue"]
contexts = ["mobile", "desktop"]
algorithm = { kind = "uniform" }
holdout = 0.5
"""
FROM_OUTSIDE = st.text(max_size=30)  # without halves of surrogate pairs


@given(FROM_OUTSIDE, FROM_OUTSIDE)
def test_every_log_line_is_one_line(message: str, value: str) -> None:
    line = LogLine(12.0, "info", "change", message, {"path": value, "absent": None})
    assert text_line(line).isprintable()
    parsed = json.loads(json_line(line))
    assert "\n" not in json_line(line)
    assert parsed["message"] == message
    assert parsed["path"] == value
    assert "absent" not in parsed


def test_lines_below_the_level_are_left_out() -> None:
    written: list[bytes] = []
    log = ServiceLog(level="warning", write=written.append)
    for level in service_log.LEVELS:
        log.add(level, "event", level)
    log.close()
    assert [line.split()[1] for content in written for line in content.splitlines()] == [b"WARNING", b"ERROR"]


def test_a_reader_that_is_stuck_does_not_hold_up_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_log, "MOST_WAITING", 5)
    monkeypatch.setattr(service_log, "FLUSH_SECONDS", 0.01)
    released = threading.Event()
    log = ServiceLog(write=lambda _: released.wait(60))
    for number in range(20):
        log.add("info", "event", str(number))
    log.close()
    assert 10 <= log.dropped <= 15  # five wait, and as many may be in the hand of the thread
    released.set()


def test_a_line_that_cannot_be_written_is_counted_and_later_ones_are_written() -> None:
    written: list[bytes] = []

    def write(content: bytes) -> None:
        if b"first" in content:
            raise OSError("stderr is closed")
        written.append(content)

    log = ServiceLog(write=write)
    log.add("info", "event", "first")
    log.close()
    log.add("info", "event", "half a pair \ud800 is written", value=1.5)
    log.add("info", "event", "second", value=object())
    log.close()
    assert (len(written), log.dropped) == (1, 1)
    assert written[0].count(b"\n") == 2


def test_a_failure_has_a_line_when_it_begins_and_when_it_ends(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    log, lines = kept()
    watch = FailureLog(service, log)
    try:
        watch.check()
        with locked(tmp_path):
            assert service.ask(Decide(context="mobile"))[0] == 503
            watch.check()
            watch.check()
        wait_until(lambda: service.ask(Decide(context="mobile"))[0] == 200)
        wait_until(lambda: not service.failures)
        watch.check()
        log.close()
        assert [(line["level"], line["event"]) for line in lines()] == [("error", "failing"), ("info", "recovered")]
        assert "locked" in lines()[0]["message"]
    finally:
        service.close()


def test_a_dead_thread_is_logged_once_with_its_traceback(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    log, lines = kept()

    def failing(_: Any) -> None:
        raise MemoryError("no room")

    service.writer._process = failing  # type: ignore[method-assign,assignment]
    service.ask(Decide(context="mobile"))
    wait_until(lambda: service.writer.thread.fault is not None)
    watch = FailureLog(service, log)
    watch.check()
    watch.check()
    log.close()
    died = [line for line in lines() if line["event"] == "thread died"]
    assert len(died) == 1
    assert "in failing" in died[0]["traceback"]
    service.close()


def test_requests_are_logged_and_traced(tmp_path: Path) -> None:
    options = 'log_format = "json"\nlog_level = "debug"\naccess_log = true\n'
    before = f"import sys; sys.stderr = open({str(tmp_path / 'log')!r}, 'w', encoding='utf-8')"
    with served(tmp_path, f"{options}{EXPERIMENT}", before=before) as web:
        decided = web.ask(
            "POST", "/v1/decide", {"context": "mobile", "id": "one"}, {"x-request-id": "mine-7", "traceparent": TRACE}
        )
        batch = {"decisions": [{"context": "mobile", "id": f"b{i}"} for i in range(20)]}
        web.ask("POST", "/v1/decide/batch", batch, {"traceparent": TRACE})
        invalid = web.ask("POST", "/v1/decide", {"context": "mobile", "id": "two"}, {"traceparent": TRACE.upper()})
        missing = web.ask("GET", "/nothing?secret=1", None, {"x-request-id": "two words"})
        web.post("/v1/rollback", {"version": 7})
        known = {name: web.ask("GET", f"/v1/decisions/{name}").said.get("traceparent") for name in ("one", "b3", "two")}
        page = web.ask("GET", "/?decision=one").body.decode()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text(encoding="utf-8").splitlines()]
    assert known == {"one": TRACE, "b3": TRACE, "two": None}
    assert TRACE in page
    assert decided.headers["x-request-id"] == "mine-7"
    made = [invalid.headers["x-request-id"], missing.headers["x-request-id"]]
    assert all(re.fullmatch(r"[0-9a-f]{12}-[0-9a-f]+", one) for one in made)
    assert made[0] != made[1]
    requests = [line for line in lines if line["event"] == "request"]
    assert len(requests) == 9
    first = requests[0]
    assert (first["request_id"], first["traceparent"], first["status"], first["path"]) == (
        "mine-7",
        TRACE,
        200,
        "/v1/decide",
    )
    assert first["ms"] > 0.0
    assert "secret" not in json.dumps(lines)
    events = [(line["level"], line["event"]) for line in lines]
    for expected in (
        ("info", "start"),
        ("info", "listening"),
        ("debug", "refused"),
        ("warning", "rollback"),
        ("info", "stopped"),
    ):
        assert expected in events
    assert not verify(tmp_path / "bothworlds.sqlite", processes=1).faults  # the trace is part of the request


def test_an_internal_error_is_logged_with_its_request(tmp_path: Path) -> None:
    before = (
        f"import sys; sys.stderr = open({str(tmp_path / 'log')!r}, 'w', encoding='utf-8')\n"
        "from bothworlds.service.service import Service\n"
        "def plan(self, name): raise ZeroDivisionError('of ours')\n"
        "Service.plan = plan\n"
    )
    with served(tmp_path, f'log_format = "json"\n{EXPERIMENT}', before=before) as web:
        answer = web.ask("GET", "/v1/plan")
    lines = [json.loads(line) for line in (tmp_path / "log").read_text(encoding="utf-8").splitlines()]
    (error,) = [line for line in lines if line["event"] == "internal error"]
    assert answer.status == 500
    assert error["request_id"] == answer.headers["x-request-id"]
    assert "of ours" in error["traceback"]
    assert not [line for line in lines if line["event"] == "request"]  # access_log is off


def test_systemd_hears_that_the_service_is_ready_alive_and_stopping(tmp_path: Path) -> None:
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(path))
        receiver.settimeout(30)
        before = f"import os; os.environ.update(NOTIFY_SOCKET={str(path)!r}, WATCHDOG_USEC='300000')"
        with served(tmp_path, EXPERIMENT, before=before):
            heard = {receiver.recv(100) for _ in range(6)}
        receiver.settimeout(0.1)
        end = time.monotonic() + 20
        while b"STOPPING=1" not in heard and time.monotonic() < end:
            heard.add(receiver.recv(100))
    assert heard == {b"READY=1", b"WATCHDOG=1", b"STOPPING=1"}


def test_without_systemd_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere/at/all")
    systemd.notify("READY=1")
    monkeypatch.delenv("NOTIFY_SOCKET")
    systemd.notify("READY=1")
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    assert systemd.watchdog_seconds() == 30.0
