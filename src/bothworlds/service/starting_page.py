"""What the demo's address shows while the service is not there yet: what it does, and for how long."""

import base64
import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bothworlds.report.assets import asset
from bothworlds.service.dashboard.page import document, headers

UNAVAILABLE = 503


@cache
def script() -> str:
    """Return the script of the page: it counts the seconds, and loads the page anew once the service answers."""
    return asset("bothworlds.service", "starting_page.js")


def starting_html(seconds: float) -> str:
    """Return the page, ``seconds`` after the start."""
    body = (
        "<h1>The service is starting</h1>"
        '<p class="lead">It prepares the algorithm for this machine. The first time it compiles for a minute or two; '
        "later starts take a few seconds.</p>"
        f'<p>So far: <b id="elapsed" data-seconds="{seconds:.0f}">{seconds:.0f} s</b>. This page changes by itself.</p>'
        '<p class="soft">Then simulated visitors come, 30 a second. Ten seconds after the first one, when the first '
        "reward windows have closed, the curve of rewards begins. Three minutes after the first one, tastes change.</p>"
    )
    return document("starting", f"{body}<script>{script()}</script>", refresh=False)


def starting_headers() -> list[tuple[str, str]]:
    """Return the headers of the page: those of all pages, and its script is allowed by its hash."""
    hashed = base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()
    more = f"; script-src 'sha256-{hashed}'; connect-src 'self'"
    return [(name, f"{value}{more * (name == 'content-security-policy')}") for name, value in headers()]


@contextmanager
def starting_page(host: str, port: int) -> Iterator[None]:
    """Answer every request with the page and status 503 while a block runs."""
    began = time.monotonic()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = starting_html(time.monotonic() - began).encode()
            self.send_response(UNAVAILABLE)
            for name, value in (*starting_headers(), ("retry-after", "1"), ("content-length", str(len(content)))):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="starting page", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
