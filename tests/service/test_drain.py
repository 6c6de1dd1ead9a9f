"""The end of a service behind a load balancer: not ready first, then it ends."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from support.service_process import UNIFORM
from support.services import wait_until


@contextlib.contextmanager
def started(folder: Path, drain: float) -> Iterator[tuple[subprocess.Popen[str], int]]:
    (folder / "ads.toml").write_text(f"drain = {drain}\n{UNIFORM}")
    command = [sys.executable, "-m", "bothworlds", "serve", "ads.toml", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "listening on " in line)
        try:
            yield process, int(line.rpartition(":")[2])
        finally:
            process.kill()


def asked(port: int, path: str, body: object = None) -> tuple[int, str | None]:
    """Return the status of an answer, and whether its connection is closed."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.getheader("connection")
    finally:
        connection.close()


def test_a_draining_service_answers_but_is_not_ready(tmp_path: Path) -> None:
    with started(tmp_path, 3000) as (process, port):
        assert asked(port, "/v1/ready") == (200, None)
        process.terminate()
        wait_until(lambda: asked(port, "/v1/ready") == (503, "close"))
        assert asked(port, "/v1/live")[0] == 200, "it needs no restart"
        assert asked(port, "/v1/decide", {"context": "mobile"}) == (200, "close")
        process.terminate()  # now
        assert process.wait(60) == 0


def test_a_drained_service_ends(tmp_path: Path) -> None:
    with started(tmp_path, 0.3) as (process, port):
        assert asked(port, "/v1/decide", {"context": "mobile", "id": "visit 9"})[0] == 200
        began = time.monotonic()
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(60) == 0
        assert time.monotonic() - began >= 0.3
