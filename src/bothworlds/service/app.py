"""The service on the network: paths, bodies and statuses (RSGI, for granian)."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import msgspec

from bothworlds.service import messages, rules
from bothworlds.service.access import FORBIDDEN, UNKNOWN, Access, strange
from bothworlds.service.clerk import UNAVAILABLE
from bothworlds.service.experiment import Experiment
from bothworlds.service.glance import Watch
from bothworlds.service.jobs import Asking
from bothworlds.service.messages import Answered, Refusal, Several, encode
from bothworlds.service.metrics import metrics_text
from bothworlds.service.openapi import openapi
from bothworlds.service.page import headers, page
from bothworlds.service.service import Service
from bothworlds.service.settings import Scope
from bothworlds.service.store import StoreError

JSON = [("content-type", "application/json")]
BEARER = [("www-authenticate", "Bearer")]
BROWSER = [("www-authenticate", 'Basic realm="bothworlds: a token as the password", charset="UTF-8"')]
BAD_BODY, TOO_LARGE, NOT_ALLOWED, FAILED = 400, 413, 405, 500


class Path(NamedTuple):
    """What is asked under a path: how its body is read, which scope it needs, and what its parts are."""

    decoder: Any
    scope: Scope
    asks_one: bool = False
    parts: Callable[[Any], list[Any]] | None = None


def _read(kind: Any) -> Any:
    return msgspec.json.Decoder(kind).decode


POSTED = {
    "/v1/decide": Path(_read(messages.Decide), "decide", asks_one=True),
    "/v1/reward": Path(_read(messages.Reward), "reward", asks_one=True),
    "/v1/activate": Path(_read(messages.Activate), "reward", asks_one=True),
    "/v1/decide/batch": Path(_read(messages.Decides), "decide", parts=lambda body: body.decisions),
    "/v1/reward/batch": Path(_read(messages.Rewards), "reward", parts=lambda body: body.rewards),
    "/v1/change": Path(_read(messages.Change), "admin"),
    "/v1/rollback": Path(_read(messages.Rollback), "admin"),
}
DECISIONS = "/v1/decisions/"
GOT = ("/", "/metrics", "/openapi.json", "/v1/health", "/v1/plan")


class RefusedError(Exception):
    """A request that is refused: a status and a sentence, and further headers."""

    def __init__(self, status: int, sentence: str, headers: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(sentence)
        self.status, self.headers = status, headers


class App:
    """Answers requests; deciding, storing and learning are the service's."""

    def __init__(self, service: Service) -> None:
        self.service, self.access = service, Access(service.settings.tokens)
        self.watch, self._open = Watch(service), not service.settings.tokens
        self._clerk, self._most_waiting = service.clerk, service.settings.most_waiting
        self._most_bytes = service.settings.most_bytes
        self._digits = len(str(self._most_bytes))
        self.requests, self.refusals = 0, 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._near: str | None = None

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to answer in a loop."""
        self._loop = loop

        def deliver(asked: list[Asking]) -> None:
            loop.call_soon_threadsafe(_deliver, asked)

        self.service.deliver = deliver

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        """Answer one request."""
        self.requests += 1
        told = JSON
        try:
            if scope.method != "POST":
                status, body, told = await self._got(scope)
            else:
                headers = scope.headers
                path = self._admitted(scope.path, headers)
                asked = _decoded(path, await (protocol() if self._is_short(headers) else self._in_pieces(protocol)))
                if path.asks_one:
                    one = Asking(self._of(asked.experiment), asked)
                    await self._done([one])
                    status, body = one.status, encode(one.answer)
                else:
                    status, answer = await self._further(path, asked, headers)
                    body = encode(answer)
        except RefusedError as fault:
            asks = [] if fault.status != UNKNOWN else BEARER if scope.method == "POST" else BROWSER
            status, body, told = fault.status, encode(Refusal(str(fault))), [*JSON, *asks, *fault.headers]
        except (StoreError, OSError) as error:
            status, body = UNAVAILABLE, encode(Refusal(f"the store does not answer: {_told(error)}"))
        except Exception as error:  # a mistake of ours: told, and not hidden in a broken connection
            status, body = FAILED, encode(Refusal(f"the service failed: {error!r}"))
        if status >= 400:
            self.refusals += 1
        protocol.response_bytes(status, told, body)

    def _admitted(self, name: str, headers: Any) -> Path:
        """Return what is posted to under a name, if whoever asks may."""
        if self._open:
            self._check_nearness(headers.get("host"), headers.get("origin"))
        path = POSTED.get(name)
        if path is None:
            raise _wrong_way(name, "POST")
        if not self._open:
            self._admit(headers.get("authorization"), path.scope)
        return path

    async def _further(self, path: Path, asked: Any, headers: Any) -> tuple[int, Any]:
        """Do all that is posted beside single requests: batches, changes, rollbacks."""
        if path.parts is None:
            self._of(asked.experiment)
            return await asyncio.to_thread(self.service.change, asked)
        parts = path.parts(asked)
        self._admit(headers.get("authorization"), path.scope, len(parts), paid=1)
        return await self._several(parts)

    def _of(self, name: str | None) -> Experiment:
        """Return an experiment, or say that there is none of that name."""
        try:
            return self.service.of(name)
        except KeyError as error:
            raise RefusedError(rules.MISSING, str(error.args[0])) from None

    def _admit(
        self, header: str | None, scope: Scope | None, count: int = 1, *, paid: int = 0, looks: bool = False
    ) -> None:
        refusal = None if self._open else self.access.refusal(header, scope, count, paid=paid, browser=looks)
        if refusal is not None:
            raise RefusedError(*refusal)

    def _check_nearness(self, host: str | None, origin: str | None) -> None:
        """Refuse what a page of another site makes a browser ask."""
        if host != self._near or origin is not None:
            refusal = strange(host, origin)
            if refusal is not None:
                raise RefusedError(FORBIDDEN, refusal)
            self._near = host

    def _is_short(self, headers: Any) -> bool:
        """Tell whether a body says how long it is, and is not too long."""
        told = headers.get("content-length")
        if told is None or not told.isdigit():
            return False
        if len(told) >= self._digits and int(told) > self._most_bytes:
            raise self._too_long()
        return True

    async def _in_pieces(self, protocol: Any) -> bytes:
        """Return a body that does not say how long it is, unless it is too long."""
        pieces, length = [], 0
        async for piece in protocol:
            length += len(piece)
            if length > self._most_bytes:
                raise self._too_long()
            pieces.append(piece)
        return b"".join(pieces)

    def _too_long(self) -> RefusedError:
        return RefusedError(TOO_LARGE, f"a body has at most {self._most_bytes:,} bytes")

    def _done(self, asked: list[Asking]) -> asyncio.Future[None]:
        """Have requests done in one commit; they have their answers when what is returned is there."""
        assert self._loop is not None
        clerk = self._clerk
        if clerk.waiting >= self._most_waiting:
            raise RefusedError(UNAVAILABLE, "too many requests wait; try again")
        waiter: asyncio.Future[None] = self._loop.create_future()
        asked[-1].waiter = waiter
        clerk.submit(asked)
        return waiter

    async def _several(self, requests: list[Any]) -> tuple[int, Several]:
        """Have requests of a batch done in one commit; those to no experiment are refused one by one."""
        known, refused = [], {}
        for place, one in enumerate(requests):
            try:
                known.append(Asking(self._of(one.experiment), one))
            except RefusedError as fault:
                refused[place] = fault.status, Refusal(str(fault))
        if known:
            await self._done(known)
        each = ((one.status, one.answer) for one in known)
        found = [refused.get(place) or next(each) for place in range(len(requests))]
        status = UNAVAILABLE if all(one == UNAVAILABLE for one, _ in found) else rules.OK
        return status, Several([Answered(one, answer) for one, answer in found])

    async def _got(self, scope: Any) -> tuple[int, bytes, Any]:
        if scope.method not in ("GET", "HEAD"):
            raise _wrong_way(scope.path, scope.method)
        if self._open:
            self._check_nearness(scope.headers.get("host"), None)
        path, query = scope.path, parse_qs(scope.query_string)
        name = query["experiment"][0] if "experiment" in query else None
        if path == "/v1/health":
            failures = self.service.failures
            versions = {name: one.plan.version for name, one in self.service.experiments.items()}
            body = {"status": "failing" if failures else "ok", "failures": failures, "versions": versions}
            return (UNAVAILABLE if failures else rules.OK), encode(body), JSON
        if path == "/openapi.json":
            return rules.OK, openapi(), JSON
        header = None if self._open else scope.headers.get("authorization")
        try:
            if path == "/":
                self._admit(header, "admin", looks=True)
                text = await asyncio.to_thread(page, self.watch, name, query.get("decision", [None])[0])
                return rules.OK, text.encode(), headers()
            return self._asked(path, name, header)
        except KeyError as error:
            raise RefusedError(rules.MISSING, str(error.args[0])) from None

    def _asked(self, path: str, name: str | None, header: str | None) -> tuple[int, bytes, Any]:
        """Answer questions that need a token."""
        if path == "/v1/plan":
            self._admit(header, "decide", looks=True)
            return rules.OK, encode(self.service.plan(name)), JSON
        if path.startswith(DECISIONS):
            self._admit(header, "admin", looks=True)
            identifier = path.removeprefix(DECISIONS)
            known = self.service.known(identifier, name)
            if known is None:
                raise RefusedError(rules.MISSING, f"there is no decision {identifier[:200]!r}")
            return rules.OK, encode(known), JSON
        if path == "/metrics":
            self._admit(header, None, looks=True)
            return rules.OK, metrics_text(self), [("content-type", "text/plain; version=0.0.4; charset=utf-8")]
        raise _wrong_way(path, "GET")


def _decoded(path: Path, body: bytes) -> Any:
    """Return what a body asks for, or refuse it."""
    try:
        return path.decoder(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise RefusedError(BAD_BODY, f"the body is not what is asked for here: {error}") from None


def _told(error: StoreError | OSError) -> str:
    """Return what went wrong, without the places of files on this machine."""
    return (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__


def _wrong_way(path: str, method: str) -> RefusedError:
    """Return why a path is not answered: it is none, or one for other methods."""
    allowed = "POST" if path in POSTED else "GET, HEAD" if path in GOT or path.startswith(DECISIONS) else None
    if allowed is None:
        return RefusedError(rules.MISSING, f"there is nothing at {path[:100]}")
    return RefusedError(NOT_ALLOWED, f"{method[:20]} is not answered here, but {allowed}", [("allow", allowed)])


def _deliver(asked: list[Asking]) -> None:
    """Tell those who wait; some have gone."""
    for one in asked:
        waiter = one.waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
