"""A service started by its command, and HTTP requests to it."""

import contextlib
import http.client
import json
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Answer(NamedTuple):
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def said(self) -> Any:
        """The body, as JSON."""
        return json.loads(self.body)


class Web(NamedTuple):
    """Address of a service, with methods that send requests."""

    port: int
    context: ssl.SSLContext | None = None

    def ask(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """Send a request on a new connection; a body that is not bytes is sent as JSON."""
        where, patience = ("127.0.0.1", self.port), 30.0
        connection: http.client.HTTPConnection
        if self.context is None:
            connection = http.client.HTTPConnection(*where, timeout=patience)
        else:
            connection = http.client.HTTPSConnection("localhost", self.port, timeout=patience, context=self.context)
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method, path, body=content, headers=dict(headers or {}))
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        """Post a body."""
        return self.ask("POST", path, body, headers)

    def raw(self, content: bytes) -> bytes:
        """Send bytes, and return all that comes back until the service closes or is silent."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=0.5) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(content)
            pieces = []
            with contextlib.suppress(OSError):
                while piece := connection.recv(65536):
                    pieces.append(piece)
                    if b"}" in piece:
                        break
            return b"".join(pieces)


@contextlib.contextmanager
def served(
    folder: Path, settings: str, *, context: ssl.SSLContext | None = None, before: str = "pass"
) -> Iterator[Web]:
    """Run `bothworlds serve` on a free port, after some Python code in its process; stop it by SIGTERM."""
    port = free_port()
    path = folder / "ads.toml"
    path.write_text(f"port = {port}\n{settings}", encoding="utf-8")
    code = f"import runpy\n{before}\nrunpy.run_module('bothworlds', run_name='__main__')"
    process = subprocess.Popen([sys.executable, "-c", code, "serve", str(path)], stderr=subprocess.PIPE)
    try:
        listening(port, process)
        yield Web(port, context)
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 0, said.decode()


def listening(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a service listens."""
    end = time.monotonic() + 120  # the first start on a machine compiles
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.01)
    raise AssertionError("the service does not listen")
