"""The first minute of the demo: a page that says what it does, and visitors that wait for the service."""

import base64
import hashlib
import html
import http.client
import re
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest

from bothworlds.service import demo
from bothworlds.service.client import Client, ServiceError
from bothworlds.service.client_types import Decided
from bothworlds.service.demo import Visitors, demo_settings
from bothworlds.service.starting_page import script, starting_headers, starting_html, starting_page
from support.browser import BROWSER
from support.service_http import free_port


def fetched(port: int) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/?experiment=banners")
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()
    finally:
        connection.close()


def test_the_page_says_what_the_demo_does_until_the_service_is_there() -> None:
    port = free_port()
    with starting_page("127.0.0.1", port):
        status, headers, text = fetched(port)
    assert status == 503
    assert "retry-after" in headers
    assert "compiles for a minute or two" in text
    with pytest.raises(ConnectionRefusedError):
        fetched(port)


def test_the_policy_of_the_page_allows_its_script_and_no_other() -> None:
    policy = dict(starting_headers())["content-security-policy"]
    (content,) = re.findall(r"<script>(.*?)</script>", starting_html(7.0), flags=re.DOTALL)
    hashed = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    assert f"script-src 'sha256-{hashed}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "data-seconds" in starting_html(7.0)
    assert "<script" not in script()


@pytest.mark.soak
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_a_browser_counts_the_seconds_without_errors() -> None:
    port = free_port()
    with starting_page("127.0.0.1", port):
        command = [*BROWSER, "--virtual-time-budget=5000", f"http://127.0.0.1:{port}/"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    shown = re.search(r'id="elapsed"[^>]*>(\d+) s<', html.unescape(done.stdout))
    assert shown is not None
    assert int(shown[1]) >= 3
    assert "Content Security Policy" not in done.stderr


class Absent:
    """A client of a service that answers after some attempts."""

    def __init__(self, attempts: int) -> None:
        self.left, self.elapsed = attempts, list[float]()
        self.answered: float | None = None
        self.decided = threading.Event()

    def plan(self) -> None:
        self.left -= 1
        if self.left > 0:
            raise ServiceError(0, "the service does not answer")
        self.answered = time.monotonic()

    def decide(self, context: str, *, id: str) -> Any:
        self.elapsed.append(time.monotonic())
        if len(self.elapsed) >= 3:
            self.decided.set()
        return Decided(id, "banners", context, "summer sale", 0.25, 0)

    def reward(self, *_: Any) -> None:
        """Take a reward."""


def test_visitors_come_once_the_service_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "POLL", 0.05)
    client = Absent(attempts=6)
    starts: list[float] = []
    monkeypatch.setattr(Visitors, "_visit", noted(Visitors._visit, starts))
    visitors = Visitors(cast(Client, client), "banners", demo_settings(tmp_path, port=0))
    visitors.start()
    assert client.decided.wait(60)
    visitors.stop()
    assert client.left == 0
    assert client.answered is not None
    assert client.elapsed[0] > client.answered  # nobody came before
    assert starts[0] < client.elapsed[0] - client.answered  # the clock of tastes begins with the visitors


def noted(visit: Any, starts: list[float]) -> Any:
    """Return a method that notes how much time has passed at each visit."""

    def with_note(self: Visitors, name: str, elapsed: float, rewards: Any) -> None:
        starts.append(elapsed)
        visit(self, name, elapsed, rewards)

    return with_note


def test_visitors_can_be_stopped_before_the_service_answers(tmp_path: Path) -> None:
    visitors = Visitors(cast(Client, Absent(attempts=10**9)), "banners", demo_settings(tmp_path, port=0))
    visitors.start()
    visitors.stop()
