"""When the client repeats a request: which failures pass, and how long it waits. Needs only the standard library."""

import random
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_PAUSE = 2.0  # seconds
REPEATED = (429, 502, 503, 504)  # rate limit; nothing was stored; a proxy does not reach the service
NOTHING_DONE = (429, 503)  # of these, the statuses after which the request has certainly had no effect


def pauses(first: float, *, draw: Callable[[], float] = random.random) -> Iterator[float]:
    """Yield the seconds to wait between attempts: doubling up to ``LONGEST_PAUSE``, of which half is random.

    The random half keeps clients apart that failed at the same moment. ``draw`` returns a number in [0, 1).

    >>> waits = pauses(0.1, draw=lambda: 0.5)
    >>> [round(next(waits), 3) for _ in range(7)]
    [0.075, 0.15, 0.3, 0.6, 1.2, 1.5, 1.5]
    """
    pause = first
    while True:
        pause = min(pause, LONGEST_PAUSE)
        yield pause * (1.0 + draw()) / 2.0
        pause *= 2.0


def retry_after_seconds(header: str | None, *, now: float) -> float:
    """Return the seconds that a ``Retry-After`` header asks to wait; 0 if it is missing or invalid.

    The header is a number of seconds or a date; ``now`` is in seconds since 1970.

    >>> retry_after_seconds("3", now=0.0), retry_after_seconds(None, now=0.0), retry_after_seconds("soon", now=0.0)
    (3.0, 0.0, 0.0)
    >>> retry_after_seconds("Thu, 01 Jan 1970 00:01:00 GMT", now=50.0)
    10.0
    """
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.fromtimestamp(now, UTC)).total_seconds())


def is_certificate_error(error: BaseException) -> bool:
    """Return whether a certificate of either side is refused, which no repetition changes."""
    reason = (error.reason or "") if isinstance(error, ssl.SSLError) else ""
    return isinstance(error, ssl.SSLCertVerificationError) or "CERTIFICATE" in reason or "UNKNOWN_CA" in reason
