"""A service listening on the network, until it is told to stop."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

from granian.constants import Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from bothworlds.service.app import App
from bothworlds.service.service import Service

BACKLOG = 1024


def serve(service: Service, *, say: Callable[[str], None]) -> None:
    """Answer requests until a signal comes, then do what has come in and close the service."""
    try:
        asyncio.run(_serve(service, say))
    finally:
        service.close()


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
    scheme = "http" if told.certificate is None else "https"
    say(f"listening on {scheme}://{told.host}:{told.port}")
    await server.serve()
