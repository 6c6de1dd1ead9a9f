"""A client of the decision service, with nothing but the standard library.

What is asked under an id can be asked again: the service answers the same. So a client tries again by itself, with the
same id, when a connection breaks or the service says that nothing was stored.
"""

import http.client
import json
import math
import os
import threading
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from numbers import Real
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from bothworlds.service.answers import Decided, Known, Planned, Rewarded

__all__ = ["Client", "Decided", "Known", "Planned", "Rewarded", "ServiceError"]

Context = str | int | Mapping[str, Any]
OK, FAILING = 200, 503
BUSY = (429, 502, FAILING, 504)  # too many at once; nothing was stored; a proxy does not reach the service


class ServiceError(Exception):
    """What the service refused, in its own sentence; ``status`` is that of HTTP, 0 where there was no answer."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


Made = TypeVar("Made", Decided, Rewarded, Planned, Known)


class Client:
    """Asks a service for decisions, and tells it what they brought.

    Safe in threads, and in processes that are forked: each has a connection of its own.

    Parameters
    ----------
    url
        Where the service listens; behind a proxy perhaps with a path, which then stands before every other.
    token
        The secret that ``bothworlds token`` printed.
    experiment
        Which experiment, where the service has several.
    timeout
        Seconds to wait for an answer.
    tries
        How often to try where a connection breaks or the service is busy, with pauses that double from ``pause``
        seconds.

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
        tries: int = 4,
        pause: float = 0.1,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"a service has an address like http://127.0.0.1:8080; got {url!r}")
        self._kind = http.client.HTTPConnection if parts.scheme == "http" else http.client.HTTPSConnection
        self._host, self._port, self.timeout = str(parts.hostname), parts.port, timeout
        self._root = parts.path.rstrip("/")
        self._headers = {"content-type": "application/json"}
        if token is not None:
            if not (token.isascii() and token.isprintable()):
                raise ValueError("a token has plain letters only; was it read from a file, with the end of its line?")
            self._headers["authorization"] = f"Bearer {token}"
        self.experiment, self.tries, self.pause = experiment, tries, pause
        self._own = threading.local()

    def decide(self, context: Context, *, id: str | None = None, active: bool = True) -> Decided:
        """Have an arm chosen for a context: a name, an index, or a row by its columns.

        Without an id one is made here, so that trying again does not decide twice. A decision that is not ``active``
        counts once it is activated.
        """
        return _made(Decided, self._post("/v1/decide", self._decision(context, id, active=active)))

    def reward(self, id: str, reward: float) -> Rewarded:
        """Say what a decision brought."""
        return _made(Rewarded, self._post("/v1/reward", {**self._name(), "id": id, "reward": _number(id, reward)}))

    def activate(self, id: str) -> None:
        """Say that an inactive decision was shown."""
        self._post("/v1/activate", {**self._name(), "id": id})

    def decide_all(
        self, contexts: Iterable[Context], *, ids: Sequence[str] | None = None, active: bool = True
    ) -> list[Decided | ServiceError]:
        """Have several decisions made in one request; in place of one that is refused stands why."""
        if isinstance(contexts, str):
            raise ValueError(f"contexts are a list, one for each decision; got the text {contexts!r}")
        told = list(contexts)
        names: Sequence[str | None] = [None] * len(told) if ids is None else ids
        if len(names) != len(told):
            raise ValueError(f"{len(told)} contexts need as many ids; got {len(names)}")
        asked = [self._decision(one, name, active=active) for one, name in zip(told, names, strict=True)]
        return self._several(Decided, "/v1/decide/batch", {"decisions": asked})

    def reward_all(self, rewards: Mapping[str, float]) -> list[Rewarded | ServiceError]:
        """Say what several decisions brought, by their ids, in one request; in place of a refused one stands why."""
        asked = [{**self._name(), "id": name, "reward": _number(name, reward)} for name, reward in rewards.items()]
        return self._several(Rewarded, "/v1/reward/batch", {"rewards": asked})

    def plan(self) -> Planned:
        """Return the plan of now."""
        return _made(Planned, self._get("/v1/plan"))

    def decision(self, id: str) -> Known:
        """Return all that is known of a decision."""
        return _made(Known, self._get(f"/v1/decisions/{quote(id, safe='')}"))

    def failures(self) -> list[str]:
        """Return what does not work in the service, in sentences; nothing is good."""
        return list(self._asked("GET", "/v1/health", None, answers=(OK, FAILING))["failures"])

    def close(self) -> None:
        """Close the connection of this thread; the next question opens another.

        That of the process which this one was forked from stays open there.
        """
        connection = getattr(self._own, "connection", None)
        if connection is not None:
            connection.close()
            self._own.connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _name(self) -> dict[str, Any]:
        return {} if self.experiment is None else {"experiment": self.experiment}

    def _decision(self, context: Context, id: str | None, *, active: bool) -> dict[str, Any]:
        made = {**self._name(), "context": _row(context), "id": uuid.uuid4().hex if id is None else id}
        return made if active else {**made, "active": False}

    def _several(self, kind: type[Made], path: str, body: dict[str, Any]) -> list[Made | ServiceError]:
        if not next(iter(body.values())):
            return []
        return [
            _made(kind, one["body"]) if one["status"] == OK else ServiceError(one["status"], one["body"]["error"])
            for one in self._post(path, body)["answers"]
        ]

    def _get(self, path: str) -> Any:
        return self._asked("GET", f"{path}?{urlencode(self._name())}" if self._name() else path, None)

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self._asked("POST", path, json.dumps(body, allow_nan=False, default=_plain).encode())

    def _asked(self, method: str, path: str, content: bytes | None, *, answers: Sequence[int] = (OK,)) -> Any:
        """Ask until there is an answer, or the tries are used up."""
        pause = self.pause
        for left in reversed(range(self.tries)):
            try:
                status, body = self._once(method, path, content)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if not left:
                    raise ServiceError(0, f"the service does not answer: {error!r}") from error
            else:
                if status in answers:
                    return body
                if status not in BUSY or not left:
                    raise ServiceError(status, body.get("error", f"status {status}"))
            time.sleep(pause)
            pause *= 2.0
        raise ValueError("tries must be at least 1")

    def _connection(self) -> http.client.HTTPConnection:
        """Return the connection of this thread in this process: a forked one would read the answers of the other."""
        if getattr(self._own, "process", None) != os.getpid():
            self.close()
        connection: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = self._kind(self._host, self._port, timeout=self.timeout)
            self._own.process = os.getpid()
        return connection

    def _once(self, method: str, path: str, content: bytes | None) -> tuple[int, Any]:
        connection = self._connection()
        connection.request(method, self._root + path, content, self._headers)
        answer = connection.getresponse()
        read = answer.read()
        try:
            return answer.status, json.loads(read)
        except ValueError:
            words = f"this is no decision service: {read[:80]!r}"
            if answer.status in BUSY:
                return answer.status, {"error": words}
            raise ServiceError(answer.status, words) from None


def _number(id: str, reward: Any) -> float:
    """Return a reward of any kind of number, or a truth value, as a float."""
    plain = reward.item() if hasattr(reward, "item") else reward  # of NumPy
    if not isinstance(plain, Real | Decimal) or not math.isfinite(plain):
        raise ValueError(f"the reward of {id!r} must be a finite number; got {reward!r}")
    return float(plain)


def _row(context: Any) -> Any:
    """Return a row of a DataFrame as a dictionary; refuse one with a value that is not finite, which JSON has not."""
    row = context.to_dict() if hasattr(context, "to_dict") else context
    for name, value in row.items() if isinstance(row, Mapping) else ():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"the row has {value} as {name!r}; fill what is missing, or say None")
    return row


def _plain(value: Any) -> Any:
    """Return a number of NumPy as JSON has it."""
    if hasattr(value, "item"):
        return value.item()
    raise ValueError(f"a context is a name, an index, or a row of texts and numbers by its columns; got {value!r}")


def _made(kind: type[Made], body: dict[str, Any]) -> Made:
    """Return an answer as what it is; fields that a newer service added are left out."""
    known = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in body.items() if name in known})
