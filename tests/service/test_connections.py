"""Connections: time limits, their number, and refusals that keep them open."""

import contextlib
import http.client
import json
import resource
import socket
import time
from collections.abc import Iterator

import pytest

from bothworlds.service.auth import hash_of
from support.service_http import Web, served
from support.soak import size

SETTINGS = f"""
durability = "process"
most_bytes = 60000
[[tokens]]
name = "shop"
sha256 = "{hash_of("open sesame")}"
scopes = ["decide"]
[experiments.ads]
arms = ["red", "blue"]
contexts = ["mobile", "desktop"]
algorithm = {{kind = "LinUCB"}}
"""
SHORT_LIMITS = """
import resource
from bothworlds.service import app, server
app.BODY_SECONDS, server.IDLE_SECONDS = 1.0, 2
resource.setrlimit(resource.RLIMIT_NOFILE, (400, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
"""
HEAD = b"POST /v1/decide HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer open sesame\r\n"
IDLE = 1100


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with served(tmp_path_factory.mktemp("web"), SETTINGS, before=SHORT_LIMITS) as made:
        yield made


@contextlib.contextmanager
def connected(web: Web, content: bytes = b"") -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", web.port), timeout=10) as connection:
        connection.sendall(content)
        yield connection


def received(connection: socket.socket) -> bytes:
    """Return all that comes until the server closes."""
    pieces = []
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            pieces.append(piece)
    return b"".join(pieces)


@pytest.mark.parametrize("content", [b"", b"GET / HT", b"GET /v1/live HTTP/1.1\r\nhost: localhost\r\n\r\n"])
def test_idle_connections_and_slow_headers_are_closed(web: Web, content: bytes) -> None:
    start = time.monotonic()
    with connected(web, content) as connection:
        assert received(connection).startswith(b"HTTP/1.1 200" if content.endswith(b"\r\n\r\n") else b"")
    assert time.monotonic() - start < 6


@pytest.mark.parametrize("head", [b"content-length: 30\r\n\r\n{", b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n"])
def test_a_slow_body_is_refused(web: Web, head: bytes) -> None:
    with connected(web, HEAD + head) as connection:
        answer = received(connection)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"did not arrive within 1 seconds" in answer


def test_a_slow_body_without_a_token_is_refused(web: Web) -> None:
    with connected(web, b"POST /v1/decide HTTP/1.1\r\nhost: localhost\r\ncontent-length: 30\r\n\r\n{") as connection:
        assert received(connection).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize("path", ["/v1/decide", "/v1/reward", "/v1/nowhere"])
def test_a_refusal_keeps_the_connection(web: Web, path: str) -> None:
    """The body follows the headers later, as with http.client."""
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=10)
    body = json.dumps({"context": "mobile", "id": "x" * 30_000}).encode()
    secret = "open sesame" if path == "/v1/reward" else "wrong"
    local = set()
    for _ in range(3):
        connection.putrequest("POST", path)
        connection.putheader("content-length", str(len(body)))
        connection.putheader("authorization", f"Bearer {secret}")
        connection.endheaders()
        time.sleep(0.05)
        connection.send(body[:100])
        connection.send(body[100:])
        answer = connection.getresponse()
        assert (answer.status, answer.will_close) == ({"/v1/decide": 401, "/v1/reward": 403}.get(path, 404), False)
        answer.read()
        assert connection.sock is not None
        local.add(connection.sock.getsockname())
    assert len(local) == 1
    connection.close()


@contextlib.contextmanager
def many_files(count: int) -> Iterator[None]:
    """Allow this process so many open files, or skip the test."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        pytest.skip("not enough open files are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_idle_connections_shut_nobody_out(web: Web) -> None:
    with many_files(2 * IDLE), contextlib.ExitStack() as idle:
        for _ in range(IDLE):
            idle.enter_context(connected(web))
        start = time.monotonic()
        assert web.ask("GET", "/v1/ready").status == 200
        assert time.monotonic() - start < 1.0


@pytest.mark.soak
def test_slow_connections_shut_nobody_out_and_are_closed(web: Web) -> None:
    """Half of them send a header line now and then, the others a byte of a body."""
    slow = size(200, 1000)
    body = HEAD + b"content-length: 30000\r\n\r\n{"
    with many_files(2 * slow), contextlib.ExitStack() as stack:
        opened = [stack.enter_context(connected(web, HEAD if i % 2 else body)) for i in range(slow)]
        waiting = set(opened)
        end = time.monotonic() + 60.0
        while waiting and time.monotonic() < end:
            assert web.ask("GET", "/v1/ready").status == 200
            for index, connection in enumerate(opened):
                if connection in waiting:
                    try:
                        connection.sendall(b"x: y\r\n" if index % 2 else b" ")
                    except OSError:
                        waiting.discard(connection)
            time.sleep(0.2)
        assert not waiting, "each is closed in the end"
