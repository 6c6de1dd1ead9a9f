"""A service log whose lines a test can read."""

import json
from collections.abc import Callable
from typing import Any

from bothworlds.service.service_log import ServiceLog


def kept() -> tuple[ServiceLog, Callable[[], list[dict[str, Any]]]]:
    """Return a log, and a function that returns its lines."""
    written: list[bytes] = []
    log = ServiceLog(log_format="json", level="debug", write=written.append)

    def lines() -> list[dict[str, Any]]:
        return [json.loads(line) for content in written for line in content.splitlines()]

    return log, lines
