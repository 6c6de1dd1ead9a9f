"""A service listening on the network, until it is told to stop."""

import asyncio
import contextlib
import errno
import gc
import importlib
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import msgspec
from granian.constants import Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from bothworlds.service.app import App
from bothworlds.service.service import Service
from bothworlds.service.settings import Settings

BACKLOG = 1024
YOUNG = 20_000  # new objects between two searches for cycles: the requests under way alone are thousands


def address(told: Settings) -> str:
    """Return where a service is found."""
    host = f"[{told.host}]" if ":" in told.host else told.host
    return f"{'http' if told.certificate is None else 'https'}://{host}:{told.port}"


def placed(told: Settings, port: int | None) -> Settings:
    """Return settings with a port, a free one for 0; refuse one that another program listens on."""
    asked = told.port if port is None else port
    kind = socket.AF_INET6 if ":" in told.host else socket.AF_INET
    with socket.socket(kind) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((told.host, asked))
        except OSError as error:
            why = "another program listens there" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
            raise OSError(f"cannot listen on {told.host}:{asked}: {why}") from None
        return msgspec.structs.replace(told, port=tried.getsockname()[1])


def serve(service: Service, *, say: Callable[[str], None]) -> None:
    """Answer requests until a signal comes, then do what has come in and close the service."""
    before = gc.get_threshold()
    try:
        placed(service.settings, None)
        gc.collect()
        gc.set_threshold(YOUNG)
        gc.freeze()  # what is there stays: to look at it again would hold up everybody for a tenth of a second
        with asyncio.Runner(loop_factory=quick_loop) as runner:
            runner.run(_serve(service, say))
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
        service.close()


def quick_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop: uvloop's, which takes less time for each request, where there is one."""
    try:
        uvloop = importlib.import_module("uvloop")
    except ImportError:  # there is none for Windows
        return asyncio.new_event_loop()
    made: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return made


async def _serve(service: Service, say: Callable[[str], None]) -> None:
    told = service.settings
    folder = Path(told.folder)
    server = Server(
        App(service),
        address=told.host,
        port=told.port,
        interface=Interfaces.RSGI,
        websockets=False,
        backlog=BACKLOG,
        http1_settings=HTTP1Settings(),
        log_enabled=False,
        ssl_cert=None if told.certificate is None else folder / told.certificate,
        ssl_key=None if told.key is None else folder / told.key,
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.stop)
    told_when_ready = loop.create_task(_tell(told, say))
    try:
        await server.serve()
    finally:
        told_when_ready.cancel()


async def _tell(told: Settings, say: Callable[[str], None]) -> None:
    """Say where the service listens, once it does."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(told.host, told.host)
    while True:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(host, told.port)
            writer.close()
            break
        await asyncio.sleep(0.01)
    say(f"listening on {address(told)}")
