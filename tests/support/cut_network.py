"""A network that can be cut: connections to a socket, whose content is held back while it is cut."""

import asyncio
from pathlib import Path

from support.forwarding import Forwarding


def link_to(socket: Path) -> Forwarding:
    """Return a port that forwards to a socket; what is sent while it is ``cut`` arrives when it is mended."""
    return Forwarding(lambda: asyncio.open_unix_connection(str(socket)))
