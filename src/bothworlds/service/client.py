"""A client of the decision service that needs only the standard library.

The service gives the same answer to a request that is repeated under the same id. The client therefore retries, with
the same id, when a connection breaks or when nothing was stored. Changes and rollbacks have no id: they are repeated
only if the first attempt had no effect.
"""

import contextlib
import http.client
import json
import math
import os
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from numbers import Real
from ssl import SSLContext
from typing import Any, NamedTuple, Self, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from bothworlds.service.client_types import Changed, Decided, Known, Planned, Rewarded
from bothworlds.service.retries import NOTHING_DONE, REPEATED, is_certificate_error, pauses, retry_after_seconds

__all__ = ["Changed", "Client", "Decided", "Known", "Planned", "Rewarded", "ServiceError"]

Context = str | int | Mapping[str, Any]
OK, FAILING = 200, 503
SHORTEST_TIMEOUT = 0.001  # seconds; 0 would mean a socket that does not wait
UNREACHABLE = "the service does not answer"
NO_VERSION = -1  # version of a fallback decision
MOST_NOT_LOGGED = 10_000  # ids of decisions that are not logged, which a client keeps
NOT_LOGGED = "the decision is a fallback: it is not logged and not learned from"


class ServiceError(Exception):
    """A refused request, with the message of the service; ``status`` is the HTTP status, 0 if there was no answer.

    With ``temporary`` the service could not be reached or could not store anything: the request itself may be valid.
    """

    def __init__(self, status: int, sentence: str, *, temporary: bool = False) -> None:
        super().__init__(sentence)
        self.status, self.temporary = status, temporary


class Reply(NamedTuple):
    """A response: status, decoded body, and the seconds that it asks to wait before the next attempt."""

    status: int
    body: Any
    wait: float


Response = TypeVar("Response", Decided, Rewarded, Planned, Known, Changed)


class Client:
    """Client of a decision service: requests decisions and reports rewards.

    Thread-safe and fork-safe: every thread and process uses its own connection.

    Parameters
    ----------
    url
        Address of the service. A path, as behind a proxy, is put before every path of the API.
    token
        The secret printed by ``bothworlds service token``.
    experiment
        Name of the experiment; needed if the service has several.
    timeout
        Seconds to wait for a response to one attempt.
    retry_for
        Seconds during which a request is repeated when the connection breaks or the service is busy; long enough for a
        restart of the service. 0 means one attempt.
    pause
        Seconds to wait after the first failed attempt; doubles after each further one, up to 2 seconds, with random
        jitter. A ``Retry-After`` header of the response makes it longer.
    ssl
        The TLS context of an https address; by default the certificates of the system are trusted. A certificate that
        is refused is not tried again.
    headers
        A function that returns more headers of a request, such as ``traceparent``; with OpenTelemetry, one that fills a
        dictionary by ``inject``. The service stores the ``traceparent`` of a decision and logs the ``x-request-id``.

    >>> client = Client("http://127.0.0.1:8080", token="...")
    >>> decided = client.decide("mobile", id="visit 9")  # doctest: +SKIP
    >>> decided.arm, decided.propensity  # doctest: +SKIP
    ('blue', 0.5)
    >>> client.reward("visit 9", 1.0).learned  # doctest: +SKIP
    True
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        *,
        token: str | None = None,
        experiment: str | None = None,
        timeout: float = 10.0,
        retry_for: float = 15.0,
        pause: float = 0.1,
        ssl: SSLContext | None = None,
        headers: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must be an address like http://127.0.0.1:8080; got {url!r}")
        if ssl is not None and parts.scheme != "https":
            raise ValueError(f"ssl needs an https address; got {url!r}")
        if not 0.0 <= retry_for < math.inf:
            raise ValueError(f"retry_for must be a number of seconds, at least 0; got {retry_for!r}")
        for name, seconds in (("timeout", timeout), ("pause", pause)):
            if not 0.0 < seconds < math.inf:
                raise ValueError(f"{name} must be a positive number of seconds; got {seconds!r}")
        self._secure, self._ssl, self._more_headers = parts.scheme == "https", ssl, headers
        self._host, self._port = str(parts.hostname), parts.port
        self._root = parts.path.rstrip("/")
        self._headers = {"content-type": "application/json"}
        if token is not None:
            if not (token.isascii() and token.isprintable()):
                raise ValueError("a token contains only printable ASCII characters; does it end with a line break?")
            self._headers["authorization"] = f"Bearer {token}"
        self.experiment, self.timeout, self.retry_for, self.pause = experiment, timeout, retry_for, pause
        self._local = threading.local()
        self._not_logged: OrderedDict[str, None] = OrderedDict()

    def decide(
        self,
        context: Context,
        *,
        id: str | None = None,
        active: bool = True,
        fallback: str | None = None,
        within: float | None = None,
    ) -> Decided:
        """Request an arm for a context: its name, its index, or a row as a mapping from columns to values.

        Without an id the client makes one, so that a retry does not decide twice. A decision with ``active=False``
        counts once it is activated.

        ``fallback`` is the arm to return when the service has not decided ``within`` seconds, by default ``retry_for``.
        Such a decision has ``stored=False``, no propensity and version -1. It is not logged and not learned from: this
        client does not send its reward, and other programs must not. Refusals and certificate errors are raised. If
        the service decided but its response was lost, it has a decision under this id that was not played; with
        ``active=False`` nothing is learned from that one.
        """
        if within is not None and fallback is None:
            raise ValueError("within= is the time after which fallback= is returned; give both, or set retry_for")
        if within is not None and not 0.0 < within < math.inf:
            raise ValueError(f"within must be a positive number of seconds; got {within!r}")
        body = self._decision(context, id, active=active)
        try:
            reply = self._request(
                "POST",
                "/v1/decide",
                _encoded(body),
                within=None if fallback is None else self.retry_for if within is None else within,
            )
        except ServiceError as error:
            if fallback is None or not error.temporary:
                raise
            decided = _fallback(body, fallback)
        else:
            decided = _response(Decided, reply)
        self._note(decided)
        return decided

    def reward(self, id: str, reward: float) -> Rewarded:
        """Report the reward of a decision."""
        body = self._reward(id, reward)
        return self._unlearned(body) if id in self._not_logged else _response(Rewarded, self._post("/v1/reward", body))

    def activate(self, id: str) -> None:
        """Activate a decision: it was shown, and its reward window begins."""
        if id not in self._not_logged:
            self._post("/v1/activate", {**self._name(), "id": id})

    def decide_all(
        self, contexts: Iterable[Context], *, ids: Sequence[str] | None = None, active: bool = True
    ) -> list[Decided | ServiceError]:
        """Request several decisions at once; a refused one is a ServiceError in the list."""
        if isinstance(contexts, str):
            raise ValueError(f"contexts must be a list with one context per decision; got the text {contexts!r}")
        listed = list(contexts)
        names: Sequence[str | None] = [None] * len(listed) if ids is None else ids
        if len(names) != len(listed):
            raise ValueError(f"{len(listed)} contexts need as many ids; got {len(names)}")
        bodies = [self._decision(context, name, active=active) for context, name in zip(listed, names, strict=True)]
        return self._batch(Decided, "/v1/decide/batch", {"decisions": bodies})

    def reward_all(self, rewards: Mapping[str, float]) -> list[Rewarded | ServiceError]:
        """Report several rewards by decision id at once; a refused one is a ServiceError in the list."""
        bodies = [self._reward(name, reward) for name, reward in rewards.items()]
        logged = [body for body in bodies if body["id"] not in self._not_logged]
        sent = {body["id"] for body in logged}
        answers = iter(self._batch(Rewarded, "/v1/reward/batch", {"rewards": logged}))
        return [next(answers) if body["id"] in sent else self._unlearned(body) for body in bodies]

    def change(
        self,
        *,
        add: Sequence[str] | Mapping[str, Sequence[Any] | None] = (),
        retire: Sequence[str] = (),
        probabilities: Sequence[float] | None = None,
        trust: float = 1.0,
        fresh: float | None = None,
        timeout: float = 120.0,
    ) -> Changed:
        """Add and retire arms, or replace the context distribution; the token needs the scope ``admin``.

        ``add`` has the names of new arms, or maps them to features: a list of numbers for all contexts, or one list per
        context. ``trust`` is the share of the learned information that is kept. If the connection breaks while the
        service works, the request is not repeated, as the change may have been made: look at `plan`.
        """
        if isinstance(add, str) or isinstance(retire, str):
            raise ValueError("add and retire must be lists of arms; got a text")
        arms = add if isinstance(add, Mapping) else dict.fromkeys(add)
        body = {
            **self._name(),
            "add": [
                {"name": name} if features is None else {"name": name, "features": features}
                for name, features in arms.items()
            ],
            "retire": list(retire),
            "trust": trust,
            **({} if probabilities is None else {"probabilities": list(probabilities)}),
            **({} if fresh is None else {"fresh": fresh}),
        }
        return _response(Changed, self._post_once("/v1/change", body, timeout))

    def change_settings(
        self,
        *,
        holdout: float | None = None,
        window: str | None = None,
        algorithm: str | Mapping[str, Any] | None = None,
        timeout: float = 120.0,
    ) -> Changed:
        """Change holdout, reward window such as "2 hours", or algorithm; the token needs the scope ``admin``.

        They hold until the settings file says something new at a start. Like `change`, it is not repeated once it may
        have been done.
        """
        given = {"holdout": holdout, "window": window, "algorithm": algorithm}
        body = {**self._name(), **{name: value for name, value in given.items() if value is not None}}
        return _response(Changed, self._post_once("/v1/settings", body, timeout))

    def rollback(self, version: int, *, timeout: float = 120.0) -> Changed:
        """Return to an earlier version: what was learned after it is forgotten; the token needs the scope ``admin``.

        Like `change`, it is not repeated once it may have been done.
        """
        return _response(Changed, self._post_once("/v1/rollback", {**self._name(), "version": version}, timeout))

    def plan(self) -> Planned:
        """Return the current plan."""
        return _response(Planned, self._get("/v1/plan"))

    def plan_file(self, known: tuple[str, int] | None = None) -> str | None:
        """Return the current plan as a file in base64, None if it has the ``known`` fingerprint and version.

        The token needs the scope ``local``. Without ``known`` the file has its frame.
        """
        query = {**self._name(), **({} if known is None else {"fingerprint": known[0], "version": known[1]})}
        content: str | None = self._request("GET", f"/v1/plan/file?{urlencode(query)}", None)["content"]
        return content

    def store_local(self, rows: Iterable[Sequence[Any]]) -> list[Decided | ServiceError]:
        """Store decisions that were taken from a plan: rows of id, context, version, arm, propensity and active."""
        names = ("id", "context", "version", "arm", "propensity", "active")
        bodies = [{**self._name(), **dict(zip(names, row, strict=True))} for row in rows]
        return self._batch(Decided, "/v1/local/batch", {"decisions": bodies})

    def decision(self, id: str) -> Known:
        """Return everything the service knows about a decision."""
        return _response(Known, self._get(f"/v1/decisions/{quote(id, safe='')}"))

    def failures(self) -> list[str]:
        """Return descriptions of what fails in the service; an empty list means that everything works."""
        return list(self._request("GET", "/v1/health", None, accepted=(OK, FAILING))["failures"])

    def close(self) -> None:
        """Close the connection of this thread; the next request opens another.

        In a forked process, the parent's connection stays open in the parent.
        """
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _name(self) -> dict[str, Any]:
        return {} if self.experiment is None else {"experiment": self.experiment}

    def _decision(self, context: Context, id: str | None, *, active: bool) -> dict[str, Any]:
        body = {**self._name(), "context": _row(context), "id": uuid.uuid4().hex if id is None else id}
        return body if active else {**body, "active": False}

    def _reward(self, id: str, reward: Any) -> dict[str, Any]:
        return {**self._name(), "id": id, "reward": _number(id, reward)}

    def _note(self, decided: Decided) -> None:
        """Remember whether a decision is not logged; only the newest ``MOST_NOT_LOGGED`` of them are kept."""
        if decided.stored:
            self._not_logged.pop(decided.id, None)
            return
        self._not_logged[decided.id] = None
        if len(self._not_logged) > MOST_NOT_LOGGED:
            with contextlib.suppress(KeyError):  # another thread was faster
                self._not_logged.popitem(last=False)

    def _unlearned(self, body: dict[str, Any]) -> Rewarded:
        """Return the answer to the reward of a decision that is not logged."""
        return Rewarded(body["id"], self.experiment or "", body["reward"], False, NOT_LOGGED)

    def _batch(self, kind: type[Response], path: str, body: dict[str, Any]) -> list[Response | ServiceError]:
        if not next(iter(body.values())):
            return []
        return [
            _response(kind, part["body"])
            if part["status"] == OK
            else ServiceError(part["status"], part["body"]["error"], temporary=part["status"] in REPEATED)
            for part in self._post(path, body)["answers"]
        ]

    def _get(self, path: str) -> Any:
        return self._request("GET", f"{path}?{urlencode(self._name())}" if self._name() else path, None)

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self._request("POST", path, _encoded(body))

    def _post_once(self, path: str, body: dict[str, Any], timeout: float) -> Any:
        """Send a request that must not be repeated once it may have had an effect."""
        return self._request("POST", path, _encoded(body), timeout=timeout, once=True)

    def _request(
        self,
        method: str,
        path: str,
        content: bytes | None,
        *,
        accepted: Sequence[int] = (OK,),
        within: float | None = None,
        timeout: float | None = None,
        once: bool = False,
    ) -> Any:
        """Send a request until it is answered or the time is used up.

        New attempts begin for ``retry_for`` seconds. With ``within``, all attempts together take at most that long.
        With ``once``, an attempt that may have had an effect is the last.
        """
        if once:
            self.close()  # an idle connection that breaks would leave it open whether the request had an effect
        deadline = time.monotonic() + (self.retry_for if within is None else within)
        longest = self.timeout if timeout is None else timeout
        for pause in pauses(self.pause):
            remaining = deadline - time.monotonic()
            limit = longest if within is None else min(longest, max(remaining, SHORTEST_TIMEOUT))
            answer, wait = self._attempt(method, path, content, limit, accepted)
            if not isinstance(answer, ServiceError):
                return answer
            if once and answer.temporary and not _had_no_effect(answer):
                raise ServiceError(answer.status, f"{answer}; it may have been done, look at the plan", temporary=True)
            remaining = deadline - time.monotonic()
            if not answer.temporary or remaining <= 0.0 or wait > remaining:
                raise answer
            time.sleep(min(max(wait, pause), remaining))
        raise AssertionError("pauses never ends")

    def _attempt(
        self, method: str, path: str, content: bytes | None, timeout: float, accepted: Sequence[int]
    ) -> tuple[Any, float]:
        """Send a request once; return the body or the error, and the seconds to wait before the next attempt."""
        try:
            status, body, wait = self._send(method, path, content, timeout)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            refused = is_certificate_error(error)
            sentence = f"a certificate of the connection to {self._host} is refused" if refused else UNREACHABLE
            failure = ServiceError(0, f"{sentence}: {error!r}", temporary=not refused)
            failure.__cause__ = error
            return failure, 0.0
        if status in accepted:
            return body, 0.0
        return ServiceError(status, body.get("error", f"status {status}"), temporary=status in REPEATED), wait

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        """Return the connection of this thread; after a fork a new one, as two processes would mix up the answers."""
        if getattr(self._local, "process", None) != os.getpid():
            self.close()
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            if self._secure:
                connection = http.client.HTTPSConnection(self._host, self._port, context=self._ssl)
            else:
                connection = http.client.HTTPConnection(self._host, self._port)
            self._local.connection, self._local.process = connection, os.getpid()
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        return connection

    def _send(self, method: str, path: str, content: bytes | None, timeout: float) -> Reply:
        connection = self._connection(timeout)
        connection.request(method, self._root + path, content, {**self._more_headers(), **self._headers})
        response = connection.getresponse()
        text = response.read()
        wait = retry_after_seconds(response.headers["retry-after"], now=time.time())
        try:
            return Reply(response.status, json.loads(text), wait)
        except ValueError:
            message = f"not a response of a decision service: {text[:80]!r}"
            if response.status in REPEATED:
                return Reply(response.status, {"error": message}, wait)
            raise ServiceError(response.status, message) from None


def _had_no_effect(failure: ServiceError) -> bool:
    """Return whether a failed request has certainly changed nothing."""
    return failure.status in NOTHING_DONE or isinstance(failure.__cause__, ConnectionRefusedError)


def _encoded(body: dict[str, Any]) -> bytes:
    """Return a request body as JSON."""
    return json.dumps(body, allow_nan=False, default=_plain).encode()


def _fallback(body: dict[str, Any], arm: str) -> Decided:
    """Return the fallback arm as the answer to a request for a decision."""
    context = body["context"] if isinstance(body["context"], str) else ""
    experiment, active = body.get("experiment", ""), body.get("active", True)
    return Decided(body["id"], experiment, context, arm, None, NO_VERSION, active=active, stored=False)


def _number(id: str, reward: Any) -> float:
    """Return a number of any type, or a truth value, as a float."""
    plain = reward.item() if hasattr(reward, "item") else reward  # NumPy scalars
    if not isinstance(plain, Real | Decimal) or not math.isfinite(plain):
        raise ValueError(f"the reward of {id!r} must be a finite number; got {reward!r}")
    return float(plain)


def _row(context: Any) -> Any:
    """Return a row of a DataFrame as a dictionary; refuse values that JSON cannot represent (NaN and infinity)."""
    row = context.to_dict() if hasattr(context, "to_dict") else context
    for name, value in row.items() if isinstance(row, Mapping) else ():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"column {name!r} of the row is {value}; replace missing values by numbers or None")
    return row


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python number."""
    if hasattr(value, "item"):
        return value.item()
    raise ValueError(
        f"a context must be a name, an index, or a mapping from columns to texts and numbers; got {value!r}"
    )


def _response(kind: type[Response], body: dict[str, Any]) -> Response:
    """Return a response body as its type; unknown fields, as from a newer service, are dropped."""
    known = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in body.items() if name in known})
