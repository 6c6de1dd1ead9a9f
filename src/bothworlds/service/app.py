"""The HTTP application (RSGI, run by granian): paths, bodies and statuses."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import parse_qs

import msgspec

from bothworlds.service import local_rows, messages, rules
from bothworlds.service.auth import FORBIDDEN, UNAUTHORIZED, Access, cross_site_refusal
from bothworlds.service.commits import PendingRequest
from bothworlds.service.dashboard.page import headers, page
from bothworlds.service.dashboard.view import view_of
from bothworlds.service.dashboard_data import OverviewCache
from bothworlds.service.experiment import Experiment
from bothworlds.service.messages import Answered, Refusal, Several, encode
from bothworlds.service.metrics import metrics_text
from bothworlds.service.openapi import openapi
from bothworlds.service.request_stats import RequestStats
from bothworlds.service.routes import DECISIONS, GOT, POSTED, PROBES, Path, route_of
from bothworlds.service.service import Service
from bothworlds.service.service_log import ServiceLog
from bothworlds.service.settings import Scope
from bothworlds.service.store import StoreError
from bothworlds.service.supervision import ThreadError
from bothworlds.service.tracing import RequestIds, valid_traceparent
from bothworlds.service.writer import UNAVAILABLE

JSON = [("content-type", "application/json")]
BEARER = [("www-authenticate", "Bearer")]
BROWSER = [("www-authenticate", 'Basic realm="bothworlds: a token as the password", charset="UTF-8"')]
CLOSE = [("connection", "close")]
RETRY = [("retry-after", "1")]
BAD_BODY, TOO_SLOW, TOO_LARGE, NOT_ALLOWED, FAILED = 400, 408, 413, 405, 500
BODY_SECONDS = 10.0  # to receive a body


CHANGES: dict[type, str] = {
    messages.Change: "change",
    messages.SettingsChange: "settings",
    messages.Rollback: "rollback",
}  # in the log
METRICS = [("content-type", "text/plain; version=0.0.4; charset=utf-8")]


class RefusedError(Exception):
    """A refused request: status, message, and additional headers of the response."""

    def __init__(self, status: int, sentence: str, headers: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(sentence)
        self.status, self.headers = status, headers


class App:
    """Answers HTTP requests; the service decides, stores and learns."""

    def __init__(self, service: Service, log: ServiceLog | None = None) -> None:
        self.service, self.access = service, Access(service.settings.tokens)
        self.log = log or ServiceLog(level="error")
        self.stats, self._ids, self._logs_requests = RequestStats(), RequestIds(), service.settings.access_log
        self.overviews, self._open = OverviewCache(service), not service.settings.tokens
        self._writer, self._most_waiting = service.writer, service.settings.most_waiting
        self._most_bytes = service.settings.most_bytes
        self._digits = len(str(self._most_bytes))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._known_host: str | None = None  # has passed the cross-site check

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Deliver answers to this event loop."""
        self._loop = loop

        def deliver(pending: list[PendingRequest]) -> None:
            loop.call_soon_threadsafe(_deliver, pending)

        self.service.deliver = deliver

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        """Answer one request, count it, and log it if that is wanted."""
        start, headers = time.perf_counter(), scope.headers
        request_id = self._ids.of(headers.get("x-request-id"))
        status, body, response_headers = await self._answer(scope, headers, protocol, request_id)
        protocol.response_bytes(status, [*response_headers, ("x-request-id", request_id)], body)
        seconds, route = time.perf_counter() - start, route_of(scope.path)
        self.stats.observe(route, status, seconds)
        if status >= BAD_BODY:
            self.log.add("debug", "refused", body.decode(), request_id=request_id, route=route, status=status)
        if self._logs_requests:
            self.log.add(
                "info",
                "request",
                f"{scope.method} {scope.path} {status}",
                method=scope.method,
                path=scope.path,
                status=status,
                ms=round(1e3 * seconds, 3),
                bytes=len(body),
                client=scope.client,
                request_id=request_id,
                traceparent=valid_traceparent(headers.get("traceparent")),
            )

    async def _answer(self, scope: Any, headers: Any, protocol: Any, request_id: str) -> tuple[int, bytes, Any]:
        """Return status, body and headers of the response to a request."""
        response_headers, unread = JSON, scope.method == "POST"
        try:
            if scope.method != "POST":
                status, body, response_headers = await self._get(scope)
            else:
                path = self._authorized_path(scope.path, headers)
                is_short, unread = self._is_short(headers), False
                request = _decode(path, await self._read(protocol, is_short=is_short))
                if path.is_single:
                    pending = PendingRequest(self._experiment(request.experiment), request)
                    pending.traceparent = valid_traceparent(headers.get("traceparent"))
                    await self._submit([pending])
                    status, body = pending.status, encode(pending.answer)
                else:
                    status, answer = await self._post_other(path, request, headers, request_id)
                    body = encode(answer)
        except RefusedError as fault:
            challenge = [] if fault.status != UNAUTHORIZED else BEARER if scope.method == "POST" else BROWSER
            status, body = fault.status, encode(Refusal(str(fault)))
            response_headers = [*JSON, *challenge, *fault.headers]
            if unread and status != TOO_LARGE:
                await self._discard(headers, protocol)
        except ThreadError as error:
            status, body = UNAVAILABLE, encode(Refusal(str(error)))
        except (StoreError, OSError) as error:
            status, body = UNAVAILABLE, encode(Refusal(f"the store does not answer: {_without_path(error)}"))
        except Exception as error:  # our mistake: report it rather than break the connection
            self.log.add_error("internal error", repr(error), error, request_id=request_id, route=route_of(scope.path))
            status, body = FAILED, encode(Refusal(f"internal error: {error!r}"))
        if status == UNAVAILABLE:
            response_headers = [*response_headers, *RETRY]
        if self.service.draining:
            response_headers = [*response_headers, *CLOSE]
        return status, body, response_headers

    def _authorized_path(self, name: str, headers: Any) -> Path:
        """Return the path for POST of this name; refuse unknown paths and requests without the scope."""
        if self._open:
            self._check_same_site(headers.get("host"), headers.get("origin"))
        path = POSTED.get(name)
        if path is None:
            raise _wrong_method(name, "POST")
        if not self._open:
            self._authorize(headers.get("authorization"), path.scope)
        if self.service.role == "learn" and path.scope != "admin":
            raise RefusedError(UNAVAILABLE, "this host only learns; send requests to those that decide")
        return path

    async def _post_other(self, path: Path, request: Any, headers: Any, request_id: str) -> tuple[int, Any]:
        """Answer a batch or a change."""
        if path.parts is None:
            return await self._change(request, request_id)
        parts = path.parts(request)
        self._authorize(headers.get("authorization"), path.scope, len(parts), refund=1)
        traceparent = valid_traceparent(headers.get("traceparent"))
        return await (self._store_local if path.scope == "local" else self._submit_batch)(parts, traceparent)

    async def _change(self, request: Any, request_id: str) -> tuple[int, Any]:
        """Answer and log a change or a rollback."""
        name, kind = self._experiment(request.experiment).name, CHANGES[type(request)]
        status, answer = await asyncio.to_thread(self.service.change, request)
        if isinstance(answer, Refusal):
            self.log.add("warning", kind, f"{name}: {answer.error}", experiment=name, request_id=request_id)
        else:
            self.log.add("info", kind, encode(answer).decode(), experiment=name, request_id=request_id)
        return status, answer

    def _experiment(self, name: str | None) -> Experiment:
        """Return an experiment by name; refuse unknown names."""
        try:
            return self.service.experiment(name)
        except KeyError as error:
            raise RefusedError(rules.MISSING, str(error.args[0])) from None

    def _authorize(
        self, header: str | None, scope: Scope | None, cost: int = 1, *, refund: int = 0, browser: bool = False
    ) -> None:
        refusal = None if self._open else self.access.refusal(header, scope, cost, refund=refund, browser=browser)
        if refusal is not None:
            raise RefusedError(*refusal)

    def _check_same_site(self, host: str | None, origin: str | None) -> None:
        """Refuse requests that a page of another site makes a browser send."""
        if host != self._known_host or origin is not None:
            refusal = cross_site_refusal(host, origin)
            if refusal is not None:
                raise RefusedError(FORBIDDEN, refusal)
            self._known_host = host

    def _is_short(self, headers: Any) -> bool:
        """Return whether the headers give the length of the body; refuse a body that is too long."""
        length = headers.get("content-length")
        if length is None or not length.isdigit():
            return False
        if len(length) >= self._digits and int(length) > self._most_bytes:
            raise self._too_long()
        return True

    async def _read(self, protocol: Any, *, is_short: bool) -> bytes:
        """Return the body; refuse one that is too long or takes too long."""
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await (protocol() if is_short else self._read_chunks(protocol))
        except TimeoutError:
            raise RefusedError(TOO_SLOW, f"the body did not arrive within {BODY_SECONDS:g} seconds") from None

    async def _discard(self, headers: Any, protocol: Any) -> None:
        """Read the body of a refused request, as the connection can only be kept if nothing is left on it.

        A client that waits for permission to send the body, and one whose body is too long or slow, is disconnected.
        """
        if "expect" not in headers:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(BODY_SECONDS):
                    if self._is_short(headers) or "transfer-encoding" in headers:
                        length = 0
                        async for chunk in protocol:
                            length += len(chunk)
                            if length > self._most_bytes:
                                break

    async def _read_chunks(self, protocol: Any) -> bytes:
        """Return a body of unknown length; refuse one that is too long."""
        chunks, length = [], 0
        async for chunk in protocol:
            length += len(chunk)
            if length > self._most_bytes:
                raise self._too_long()
            chunks.append(chunk)
        return b"".join(chunks)

    def _too_long(self) -> RefusedError:
        return RefusedError(TOO_LARGE, f"a body has at most {self._most_bytes:,} bytes")

    def _submit(self, pending: list[PendingRequest]) -> asyncio.Future[None]:
        """Submit requests for one commit; they have their answers once the returned future is done."""
        assert self._loop is not None
        writer = self._writer
        if writer.waiting >= self._most_waiting:
            raise RefusedError(UNAVAILABLE, "too many requests wait; try again")
        waiter: asyncio.Future[None] = self._loop.create_future()
        pending[-1].waiter = waiter
        writer.submit(pending)
        return waiter

    async def _submit_batch(self, requests: list[Any], traceparent: str | None) -> tuple[int, Several]:
        """Answer a batch in one commit; requests to unknown experiments are refused one by one."""
        accepted, refused = [], {}
        for index, request in enumerate(requests):
            try:
                experiment = self._experiment(request.experiment)
                accepted.append(PendingRequest(experiment, request, traceparent=traceparent))
            except RefusedError as fault:
                refused[index] = fault.status, Refusal(str(fault))
        if accepted:
            await self._submit(accepted)
        stored = ((pending.status, pending.answer) for pending in accepted)
        answers = [refused.get(index) or next(stored) for index in range(len(requests))]
        status = UNAVAILABLE if all(part == UNAVAILABLE for part, _ in answers) else rules.OK
        return status, Several([Answered(part, answer) for part, answer in answers])

    async def _store_local(self, rows: list[messages.Local], traceparent: str | None) -> tuple[int, Several]:
        """Answer a batch of decisions that a client has taken; all are of one experiment."""
        if len({row.experiment for row in rows}) > 1:
            raise RefusedError(rules.INVALID, "the rows of a batch must be of one experiment")
        experiment = self._experiment(rows[0].experiment)
        work = partial(local_rows.prepare, experiment, rows, self.service.store, traceparent=traceparent)
        prepared = await asyncio.to_thread(work)
        accepted = [one for one in prepared if isinstance(one, PendingRequest)]
        if accepted:
            await self._submit(accepted)
        answers = [local_rows.answer_of(one) if isinstance(one, PendingRequest) else one for one in prepared]
        status = UNAVAILABLE if all(part == UNAVAILABLE for part, _ in answers) else rules.OK
        return status, Several([Answered(part, answer) for part, answer in answers])

    async def _get(self, scope: Any) -> tuple[int, bytes, Any]:
        if scope.method not in ("GET", "HEAD"):
            raise _wrong_method(scope.path, scope.method)
        if self._open:
            self._check_same_site(scope.headers.get("host"), None)
        path, query = scope.path, parse_qs(scope.query_string)
        name = query["experiment"][0] if "experiment" in query else None
        if path in PROBES:
            return self._probe(path)
        if path == "/openapi.json":
            return rules.OK, openapi(), JSON
        header = None if self._open else scope.headers.get("authorization")
        try:
            if path == "/":
                self._authorize(header, "admin", browser=True)
                text = await asyncio.to_thread(page, self.overviews, self.stats, view_of(query))
                return rules.OK, text.encode(), headers()
            if path == "/metrics":
                self._authorize(header, None, browser=True)
                return rules.OK, await asyncio.to_thread(metrics_text, self), METRICS
            if path == "/v1/plan/file":
                self._authorize(header, "local")
                known, version = query.get("fingerprint", [None])[0], query.get("version", ["-1"])[0]
                plan = self.service.experiment(name).plan
                number = int(version) if version.isascii() and version.isdigit() else None
                body = await asyncio.to_thread(local_rows.plan_file, plan, fingerprint=known, version=number)
                return rules.OK, encode(body), JSON
            return await self._get_authorized(path, name, header)
        except KeyError as error:
            raise RefusedError(rules.MISSING, str(error.args[0])) from None

    def _probe(self, path: str) -> tuple[int, bytes, Any]:
        """Say what fails; alone what needs a restart (live), or keeps decisions from being taken (ready)."""
        service = self.service
        if path == "/v1/health":
            failures = service.failures
        else:
            failures = service.reasons_to_restart if path == "/v1/live" else service.reasons_not_ready
        body: dict[str, Any] = {"status": "failing" if failures else "ok", "failures": failures}
        if path == "/v1/health":
            body["versions"] = {name: experiment.plan.version for name, experiment in service.experiments.items()}
        return (UNAVAILABLE if failures else rules.OK), encode(body), JSON

    async def _get_authorized(self, path: str, name: str | None, header: str | None) -> tuple[int, bytes, Any]:
        """Answer the paths for GET that need a token."""
        if path == "/v1/plan":
            self._authorize(header, "decide", browser=True)
            return rules.OK, encode(self.service.plan(name)), JSON
        if path.startswith(DECISIONS):
            self._authorize(header, "admin", browser=True)
            identifier = path.removeprefix(DECISIONS)
            known = await asyncio.to_thread(self.service.decision, identifier, name)
            if known is None:
                raise RefusedError(rules.MISSING, f"there is no decision {identifier[:200]!r}")
            return rules.OK, encode(known), JSON
        raise _wrong_method(path, "GET")


def _decode(path: Path, body: bytes) -> Any:
    """Return the decoded body; refuse an invalid one."""
    try:
        return path.decoder(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise RefusedError(BAD_BODY, f"invalid request body: {error}") from None


def _without_path(error: StoreError | OSError) -> str:
    """Return the text of an error without the paths of files on this machine."""
    return (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__


def _wrong_method(path: str, method: str) -> RefusedError:
    """Return the refusal of an unknown path, or of a path with another method."""
    allowed = "POST" if path in POSTED else "GET, HEAD" if path in GOT or path.startswith(DECISIONS) else None
    if allowed is None:
        return RefusedError(rules.MISSING, f"there is nothing at {path[:100]}")
    return RefusedError(NOT_ALLOWED, f"use {allowed} for this path, not {method[:20]}", [("allow", allowed)])


def _deliver(pending: list[PendingRequest]) -> None:
    """Wake the clients whose requests are stored, or will never be; cancelled ones are skipped."""
    for request in pending:
        waiter = request.waiter
        if waiter is not None and not waiter.done():
            if request.error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(request.error)
