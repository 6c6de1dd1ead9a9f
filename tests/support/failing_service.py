"""A server that fails in scripted ways, and a client of it."""

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bothworlds.service.client import Client


class Failing(ThreadingHTTPServer):
    """Follows a script: each step drops the connection or answers with a status and a body."""

    def __init__(self, script: list[Any]) -> None:
        self.script, self.received = list(script), list[tuple[str | None, Any]]()
        self.callers, self.paths = list[Any](), list[str]()
        self.connections = 0
        self._context: ssl.SSLContext | None = None
        super().__init__(("127.0.0.1", 0), Answering)

    def secure(self, context: ssl.SSLContext) -> None:
        """Expect TLS from now on."""
        self._context = context

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection."""
        connection, caller = super().get_request()
        self.connections += 1
        if self._context is None:
            return connection, caller
        return self._context.wrap_socket(connection, server_side=True), caller


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Failing

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.callers.append(self.client_address)
        self.server.paths.append(self.path)
        self.server.received.append((self.headers["authorization"], body))
        step = self.server.script.pop(0)
        if step == "drop":
            self.close_connection = True
            return
        status, answer, *headers = step
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def failing_service(script: list[Any]) -> Iterator[Failing]:
    """Serve a script."""
    server = Failing(script)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))  # how often it looks whether to end
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def asking(server: Failing, **options: Any) -> Client:
    """Return a client of a server that fails."""
    return Client(f"http://127.0.0.1:{server.server_address[1]}", token="secret", pause=0.001, **options)
