"""Notifications to systemd (sd_notify): ready, alive, stopping. Without systemd they do nothing."""

import contextlib
import math
import os
import socket


def notify(state: str) -> None:
    """Send a state such as "READY=1" to the socket that systemd names in ``NOTIFY_SOCKET``."""
    path = os.environ.get("NOTIFY_SOCKET")
    if path:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
            connection.setblocking(False)
            connection.sendto(state.encode(), f"\0{path[1:]}" if path.startswith("@") else path)


def watchdog_seconds() -> float:
    """Return after how many seconds without "WATCHDOG=1" systemd restarts the service; inf if it does not.

    >>> watchdog_seconds()
    inf
    """
    text = os.environ.get("WATCHDOG_USEC", "")
    return int(text) / 1e6 if text.isdigit() and int(text) > 0 else math.inf
