"""The HTTP server: listens until SIGINT or SIGTERM."""

import asyncio
import contextlib
import errno
import gc
import importlib
import resource
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import msgspec
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from bothworlds.service.app import App
from bothworlds.service.service import Service
from bothworlds.service.settings import Settings

BACKLOG = 1024
IDLE_SECONDS = 10  # to receive the head of a request, also of the next one on a connection
MAX_CONNECTIONS = 8192
OTHER_FILES = 256  # file descriptors kept for the store
GC_THRESHOLD = 20_000  # new objects between two collections; the requests in progress alone are thousands


def address(settings: Settings) -> str:
    """Return the URL of a service."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{'http' if settings.certificate is None else 'https'}://{host}:{settings.port}"


def placed(settings: Settings, port: int | None) -> Settings:
    """Return settings with the port to listen on: ``port``, or the one in the settings; 0 picks a free one.

    Raises
    ------
    OSError
        If the address does not exist or another program listens on the port.
    """
    wanted = settings.port if port is None else port
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, wanted))
        except OSError as error:
            why = "another program listens there" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
            raise OSError(f"cannot listen on {settings.host}:{wanted}: {why}") from None
        return msgspec.structs.replace(settings, port=probe.getsockname()[1])


def serve(service: Service, *, say: Callable[[str], None]) -> None:
    """Serve until SIGINT, or until the service is drained after SIGTERM; then close it."""
    before = gc.get_threshold()
    try:
        placed(service.settings, None)
        gc.collect()
        gc.set_threshold(GC_THRESHOLD)
        gc.freeze()  # scanning what exists now would pause all requests for a tenth of a second
        with asyncio.Runner(loop_factory=quick_loop) as runner:
            runner.run(_serve(service, say))
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
        service.close()


def quick_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop, of uvloop if it is installed: it takes less time per request."""
    try:
        uvloop = importlib.import_module("uvloop")
    except ImportError:  # not available on Windows
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def connection_limit() -> int:
    """Return the most connections at a time; more wait to be accepted.

    The limit on open files of this process is raised as far as it may be.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + OTHER_FILES
    files = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return max(files - OTHER_FILES, files // 2)


async def _serve(service: Service, say: Callable[[str], None]) -> None:
    settings = service.settings
    folder = Path(settings.folder)
    server = Server(
        App(service),
        address=settings.host,
        port=settings.port,
        interface=Interfaces.RSGI,
        http=HTTPModes.http1,  # while it is not known which protocol a client speaks, no time limit holds
        websockets=False,
        backlog=BACKLOG,
        backpressure=connection_limit(),
        http1_settings=HTTP1Settings(header_read_timeout=IDLE_SECONDS * 1000),
        log_enabled=False,
        ssl_cert=None if settings.certificate is None else folder / settings.certificate,
        ssl_key=None if settings.key is None else folder / settings.key,
    )
    loop = asyncio.get_running_loop()

    def drain() -> None:
        """Stop later, or at the second signal now."""
        delay, service.draining = (0.0 if service.draining else settings.drain), True
        loop.call_later(delay, server.stop)

    loop.add_signal_handler(signal.SIGINT, server.stop)
    loop.add_signal_handler(signal.SIGTERM, drain)
    announcement = loop.create_task(_announce(settings, say))
    try:
        await server.serve()
    finally:
        announcement.cancel()


async def _announce(settings: Settings, say: Callable[[str], None]) -> None:
    """Say where the service listens once it accepts connections."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
    while True:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(host, settings.port)
            writer.close()
            break
        await asyncio.sleep(0.01)
    say(f"listening on {address(settings)}")
