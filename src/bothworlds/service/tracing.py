"""Request ids and trace headers: what ties a request to the logs of other programs."""

import itertools
import re
import secrets

TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
REQUEST_ID = re.compile(r"[!-~]{1,128}")  # printable ASCII without spaces


def valid_traceparent(header: str | None) -> str | None:
    """Return a traceparent header (W3C Trace Context), or None if it is missing or not valid.

    >>> valid_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    >>> valid_traceparent("00-00000000000000000000000000000000-00f067aa0ba902b7-01")
    """
    return header if header is not None and TRACEPARENT.fullmatch(header) else None


class RequestIds:
    r"""Ids of requests: the client's ``x-request-id``, or one that is made here.

    >>> RequestIds().of("from-the-proxy")
    'from-the-proxy'
    >>> RequestIds("8f3a").of("not\nvalid")
    '8f3a-1'
    """

    def __init__(self, prefix: str | None = None) -> None:
        self._prefix, self._numbers = prefix or secrets.token_hex(6), itertools.count(1)

    def of(self, header: str | None) -> str:
        """Return the id of a request with this header."""
        if header is not None and REQUEST_ID.fullmatch(header):
            return header
        return f"{self._prefix}-{next(self._numbers):x}"
