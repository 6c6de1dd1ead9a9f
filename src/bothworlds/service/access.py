"""Who may ask: tokens by their hashes, scopes, and how often."""

import base64
import binascii
import hashlib
import secrets
import time
from collections.abc import Callable, Sequence

from bothworlds.service.settings import LOCAL, Scope, Token

FORBIDDEN, UNKNOWN, TOO_MANY = 403, 401, 429


def new_token() -> tuple[str, str]:
    """Return a new secret of 256 random bits, and the hash that settings keep of it."""
    made = secrets.token_urlsafe(32)
    return made, hash_of(made)


def hash_of(secret: str) -> str:
    """Return what settings keep of a secret: enough to know it again, and nothing to use."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Bucket:
    """Lets so many pass in a second, and as many at once; what counts for more waits for all, and is paid off later.

    >>> bucket = Bucket(2.0, clock=iter([0.0, 0.0, 0.0, 0.1, 0.6, 2.0, 2.4, 3.9]).__next__)
    >>> [bucket.passes(1) for _ in range(4)]
    [True, True, False, True]
    >>> [bucket.passes(count) for count in (4, 1, 1)]
    [True, False, True]
    """

    def __init__(self, rate: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.clock = rate, clock
        self._left, self._seen = max(1.0, rate), clock()

    def passes(self, count: int, *, paid: int = 0) -> bool:
        """Tell whether something passes that counts for so many; what it ``paid`` before is given back first."""
        now = self.clock()
        self._left = min(max(1.0, self.rate), self._left + paid + (now - self._seen) * self.rate)
        self._seen = now
        if self._left < min(count, max(1.0, self.rate)):
            return False
        self._left -= count
        return True


def strange(host: str | None, origin: str | None) -> str | None:
    """Return why a service without tokens, which everybody on its machine may ask, refuses a browser; else None.

    A page of another site may make a browser post to this machine, or take the name of this machine for its own.

    >>> strange("localhost:8080", None), strange("[::1]:8080", None), strange(None, None)
    (None, None, None)
    >>> strange("evil.example:8080", None)
    "this service has no tokens, and answers at this machine's own names, not as 'evil.example'"
    """
    if origin is not None:
        return "this service has no tokens, and takes nothing from pages of a browser: give it tokens"
    name = (host or LOCAL[0]).rpartition("]")[0].strip("[") or (host or LOCAL[0]).partition(":")[0]
    if name.lower() not in LOCAL:
        return f"this service has no tokens, and answers at this machine's own names, not as {name[:60]!r}"
    return None


class Access:
    """Knows tokens; without any, everybody may ask everything."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = {token.sha256: token for token in tokens}
        self._buckets = {token.sha256: Bucket(token.rate) for token in tokens if token.rate is not None}

    def refusal(
        self, header: str | None, scope: Scope | None, count: int = 1, *, paid: int = 0, browser: bool = False
    ) -> tuple[int, str] | None:
        """Return status and sentence for someone who may not, else None. Without a scope any token will do.

        A ``browser`` may send the token as a password. It sends that along with whatever other sites make it ask for,
        so that this is for pages that are only looked at. ``count`` is how many it counts for, ``paid`` how many of
        them were counted before.
        """
        if not self._tokens:
            return None
        hashed = hash_of(secret_in(header or "", browser=browser))
        token = self._tokens.get(hashed)
        if token is None:
            return UNKNOWN, "send a token that the settings know: Authorization: Bearer TOKEN"
        if scope is not None and scope not in token.scopes:
            return FORBIDDEN, f"token {token.name!r} may not: it lacks the scope {scope!r}"
        bucket = self._buckets.get(hashed)
        if bucket is not None and not bucket.passes(count, paid=paid):
            return TOO_MANY, f"token {token.name!r} may ask {token.rate:g} times a second"
        return None


def secret_in(header: str, *, browser: bool) -> str:
    """Return the token in a header ``Authorization``, or in the password that a browser sends.

    >>> secret_in("Bearer a9x", browser=False), secret_in("Basic bWU6YTl4", browser=True)
    ('a9x', 'a9x')
    """
    word, _, sent = header.partition(" ")
    if word.lower() == "bearer":
        return sent.strip()
    if browser and word.lower() == "basic":
        try:
            return base64.b64decode(sent.strip(), validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return ""
