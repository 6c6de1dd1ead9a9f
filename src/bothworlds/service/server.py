"""The HTTP server: listens until SIGINT or SIGTERM."""

import asyncio
import contextlib
import errno
import gc
import importlib
import resource
import signal
import socket
import time
from pathlib import Path

import msgspec
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from bothworlds.service.app import App
from bothworlds.service.failure_log import FailureLog
from bothworlds.service.service import Service
from bothworlds.service.service_log import ServiceLog
from bothworlds.service.settings import Settings
from bothworlds.service.systemd import notify, watchdog_seconds

BACKLOG = 1024
IDLE_SECONDS = 10  # to receive the head of a request, also of the next one on a connection
MAX_CONNECTIONS = 8192
OTHER_FILES = 256  # file descriptors kept for the store
WATCH_SECONDS = 1.0  # between two looks for failures
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


def serve(service: Service, *, log: ServiceLog) -> None:
    """Serve until SIGINT, or until the service is drained after SIGTERM; then close it."""
    before = gc.get_threshold()
    try:
        placed(service.settings, None)
        gc.collect()
        gc.set_threshold(GC_THRESHOLD)
        gc.freeze()  # scanning what exists now would pause all requests for a tenth of a second
        with asyncio.Runner(loop_factory=quick_loop) as runner:
            runner.run(_serve(service, log))
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
        service.close()
        log.add("info", "stopped", "stopped")


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


async def _serve(service: Service, log: ServiceLog) -> None:
    settings, app = service.settings, App(service, log)
    folder = Path(settings.folder)
    server = Server(
        app,
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
        if delay:
            log.add("info", "draining", f"not ready any more; stops in {delay:g} s")
        loop.call_later(delay, server.stop)

    loop.add_signal_handler(signal.SIGINT, server.stop)
    loop.add_signal_handler(signal.SIGTERM, drain)
    tasks = [loop.create_task(_announce(settings, log)), loop.create_task(_watch(app))]
    try:
        await server.serve()
    finally:
        notify("STOPPING=1")
        for task in tasks:
            task.cancel()


async def _watch(app: App) -> None:
    """Log failures, keep samples of the request counts, and tell systemd that no restart is needed."""
    failures, interval = FailureLog(app.service, app.log), min(WATCH_SECONDS, watchdog_seconds() / 3.0)
    while True:
        with contextlib.suppress(Exception):  # the next round tries again
            failures.check()
            app.stats.sample(time.time())
            if not app.service.reasons_to_restart:
                notify("WATCHDOG=1")
        await asyncio.sleep(interval)


async def _announce(settings: Settings, log: ServiceLog) -> None:
    """Log where the service listens once it accepts connections."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
    while True:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(host, settings.port)
            writer.close()
            break
        await asyncio.sleep(0.01)
    log.add("info", "listening", f"listening on {address(settings)}", address=address(settings))
    notify("READY=1")
