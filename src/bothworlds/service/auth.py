"""Access control: tokens stored as hashes, scopes, and rate limits."""

import base64
import binascii
import hashlib
import secrets
import time
from collections.abc import Callable, Sequence

from bothworlds.service.settings import LOCAL, Scope, Token

FORBIDDEN, UNAUTHORIZED, TOO_MANY = 403, 401, 429


def new_token() -> tuple[str, str]:
    """Return a new secret of 256 random bits, and its hash for the settings."""
    secret = secrets.token_urlsafe(32)
    return secret, hash_of(secret)


def hash_of(secret: str) -> str:
    """Return the SHA-256 hash of a secret, in hexadecimal."""
    return hashlib.sha256(secret.encode()).hexdigest()


class RateLimiter:
    """A token bucket that fills with ``rate`` units per second and holds max(1, ``rate``).

    A request that costs more than a full bucket is allowed when the bucket is full; later requests wait until the debt
    is paid.

    >>> limiter = RateLimiter(2.0, clock=iter([0.0, 0.0, 0.0, 0.1, 0.6, 2.0, 2.4, 3.9]).__next__)
    >>> [limiter.allows(1) for _ in range(4)]
    [True, True, False, True]
    >>> [limiter.allows(cost) for cost in (4, 1, 1)]
    [True, False, True]
    """

    def __init__(self, rate: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.clock = rate, clock
        self._level, self._updated = max(1.0, rate), clock()

    def allows(self, cost: int, *, refund: int = 0) -> bool:
        """Return whether a request of this cost fits, and charge it; ``refund`` is credited first."""
        now = self.clock()
        self._level = min(max(1.0, self.rate), self._level + refund + (now - self._updated) * self.rate)
        self._updated = now
        if self._level < min(cost, max(1.0, self.rate)):
            return False
        self._level -= cost
        return True


def cross_site_refusal(host: str | None, origin: str | None) -> str | None:
    """Return why a service without tokens refuses a request with these headers, or None if it does not.

    A page of another site can make a browser post to this machine (``origin``), or point its own domain at this machine
    (``host``, DNS rebinding).

    >>> cross_site_refusal("localhost:8080", None), cross_site_refusal("[::1]:8080", None)
    (None, None)
    >>> cross_site_refusal("evil.example:8080", None)
    "this service has no tokens and answers only to this machine's own names, not to 'evil.example'"
    """
    if origin is not None:
        return "this service has no tokens and refuses requests from web pages; add tokens to its settings"
    name = (host or LOCAL[0]).rpartition("]")[0].strip("[") or (host or LOCAL[0]).partition(":")[0]
    if name.lower() not in LOCAL:
        return f"this service has no tokens and answers only to this machine's own names, not to {name[:60]!r}"
    return None


class Access:
    """Checks tokens, scopes and rates. Without any token, every request is allowed."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = {token.sha256: token for token in tokens}
        self._limiters = {token.sha256: RateLimiter(token.rate) for token in tokens if token.rate is not None}

    def refusal(
        self, header: str | None, scope: Scope | None, cost: int = 1, *, refund: int = 0, browser: bool = False
    ) -> tuple[int, str] | None:
        """Return status and message if the request is refused, else None.

        ``header`` is the Authorization header. Without a ``scope`` any token is enough. With ``browser``, the token may
        also be the password of HTTP Basic authentication. Browsers attach that to requests which other sites trigger,
        so it is for pages that change nothing. ``cost`` and ``refund`` are those of `RateLimiter.allows`.
        """
        if not self._tokens:
            return None
        hashed = hash_of(secret_in(header or "", browser=browser))
        token = self._tokens.get(hashed)
        if token is None:
            return UNAUTHORIZED, "missing or unknown token; send the header Authorization: Bearer TOKEN"
        if scope is not None and scope not in token.scopes:
            return FORBIDDEN, f"token {token.name!r} lacks the scope {scope!r}"
        limiter = self._limiters.get(hashed)
        if limiter is not None and not limiter.allows(cost, refund=refund):
            return TOO_MANY, f"token {token.name!r} is limited to {token.rate:g} requests per second"
        return None


def secret_in(header: str, *, browser: bool) -> str:
    """Return the secret in an Authorization header, or "" if there is none.

    >>> secret_in("Bearer a9x", browser=False), secret_in("Basic bWU6YTl4", browser=True)
    ('a9x', 'a9x')
    """
    scheme, _, credentials = header.partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip()
    if browser and scheme.lower() == "basic":
        try:
            return base64.b64decode(credentials.strip(), validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return ""
