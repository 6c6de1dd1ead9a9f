"""Clients of a service that note every answer, for tests of what survives a kill."""

import asyncio
import json
import random
from dataclasses import dataclass, field
from typing import Any

BATCH = 40


async def ask(streams: tuple[asyncio.StreamReader, asyncio.StreamWriter], path: str, body: Any) -> tuple[int, bytes]:
    """Post a body on a connection; one that breaks is a ConnectionError."""
    reader, writer = streams
    text = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(text)}\r\n\r\n"
    writer.write(head.encode() + text)
    try:
        answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(answer.split("content-length:")[1].split("\r\n")[0])
        return int(answer.split(" ", 2)[1]), await reader.readexactly(length)
    except (asyncio.IncompleteReadError, OSError) as error:
        raise ConnectionError("the service was killed") from error


@dataclass
class Notes:
    """Requests and acknowledged answers: bodies by id, and answers as bytes."""

    random: random.Random
    asked: dict[str, dict[str, Any]] = field(default_factory=dict)
    decided: dict[str, bytes] = field(default_factory=dict)
    rewarded: dict[str, bytes] = field(default_factory=dict)
    rewards: dict[str, float] = field(default_factory=dict)
    activated: set[str] = field(default_factory=set)
    waiting: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    repeated: int = 0

    @property
    def acknowledged(self) -> int:
        """Number of acknowledged requests."""
        return len(self.decided) + len(self.rewarded) + len(self.activated)

    def new(self) -> dict[str, Any]:
        """Return the body of a new decision."""
        name = f"visit {len(self.asked)}"
        body = {"context": self.random.choice(["mobile", "desktop"]), "id": name, "active": self.random.random() > 0.1}
        self.asked[name] = body
        return body

    def note(self, acknowledged: dict[str, bytes], name: str, status: int, answer: bytes) -> None:
        """Note an answer; a different answer to the same request is a fault."""
        answer = text_of(json.loads(answer))
        if status != 200:
            self.faults.append(f"{name}: {status} {answer!r}")
        elif acknowledged.setdefault(name, answer) != answer:
            self.faults.append(f"{name}: {acknowledged[name]!r} became {answer!r}")


async def visit(notes: Notes, port: int) -> None:
    """Decide, reward, activate and repeat requests until the service is killed."""
    streams = await asyncio.open_connection("127.0.0.1", port)
    try:
        while True:
            await notes.random.choices([_decide, _several, _reward, _rewards, _again], [3, 2, 3, 2, 1])[0](
                notes, streams
            )
    except ConnectionError:
        return
    finally:
        streams[1].close()


async def _decide(notes: Notes, streams: Any) -> None:
    body = notes.new()
    notes.note(notes.decided, body["id"], *await ask(streams, "/v1/decide", body))
    if not body["active"] and notes.random.random() < 0.7:
        status, answer = await ask(streams, "/v1/activate", {"id": body["id"]})
        if status == 200:
            notes.activated.add(body["id"])
        else:
            notes.faults.append(f"activation of {body['id']}: {status} {answer!r}")
    if body["active"] or body["id"] in notes.activated:
        notes.waiting.append(body["id"])


async def _several(notes: Notes, streams: Any) -> None:
    bodies = [{**notes.new(), "active": True} for _ in range(BATCH)]
    notes.asked.update((body["id"], body) for body in bodies)
    status, answer = await ask(streams, "/v1/decide/batch", {"decisions": bodies})
    if status != 200:
        notes.faults.append(f"a batch: {status} {answer!r}")
        return
    for body, part in zip(bodies, json.loads(answer)["answers"], strict=True):
        notes.note(notes.decided, body["id"], part["status"], text_of(part["body"]))
        notes.waiting.append(body["id"])


async def _reward(notes: Notes, streams: Any) -> None:
    if notes.waiting and (name := notes.waiting.pop()):
        notes.rewards[name] = notes.random.choice([0.0, 0.5, 1.0])
        status, answer = await ask(streams, "/v1/reward", {"id": name, "reward": notes.rewards[name]})
        notes.note(notes.rewarded, name, status, answer)


async def _rewards(notes: Notes, streams: Any) -> None:
    names, notes.waiting = notes.waiting[:BATCH], notes.waiting[BATCH:]
    names = [name for name in names if notes.random.random() < 0.9]  # the others get the default
    notes.rewards.update((name, notes.random.choice([0.0, 0.5, 1.0])) for name in names)
    if not names:
        return
    body = {"rewards": [{"id": name, "reward": notes.rewards[name]} for name in names]}
    status, answer = await ask(streams, "/v1/reward/batch", body)
    if status != 200:
        notes.faults.append(f"a batch: {status} {answer!r}")
        return
    for name, part in zip(names, json.loads(answer)["answers"], strict=True):
        notes.note(notes.rewarded, name, part["status"], text_of(part["body"]))


async def _again(notes: Notes, streams: Any) -> None:
    """Repeat earlier requests, acknowledged or not."""
    names = [f"visit {notes.random.randrange(len(notes.asked))}" for _ in range(5)] if notes.asked else []
    names += [f"visit {max(0, len(notes.asked) - 1 - notes.random.randrange(200))}"] if names else []
    for name in names:
        notes.repeated += 1
        notes.note(notes.decided, name, *await ask(streams, "/v1/decide", notes.asked[name]))
        if name in notes.rewards:
            body = {"id": name, "reward": notes.rewards[name]}
            notes.note(notes.rewarded, name, *await ask(streams, "/v1/reward", body))


def text_of(body: Any) -> bytes:
    """Return a body as JSON in one form."""
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
