"""What stands in a store: one log of records that is only added to, and snapshots that make restarts short.

Every record has a number in the log, an experiment, a kind and a time; records about a decision have its id. What else
a record says is packed (MessagePack), numbers bit for bit.
"""

import hashlib
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import msgspec

FORMAT = "bothworlds-store-1"


class Kind(IntEnum):
    """What a record says. A decision has at most one record of each of the first four kinds."""

    DECISION = 1
    ACTIVATION = 2
    REWARD = 3
    LATE = 4
    VERSION = 5
    CHANGE = 6
    ROLLBACK = 7


DECISION, ACTIVATION, REWARD, LATE = map(int, list(Kind)[:4])  # as they are stored: numbers that take no time to find


class Record(msgspec.Struct, frozen=True, gc=False):
    """A line of the log. ``seq`` is its place, 0 until it is stored; ``flag`` is that of its kind.

    The flag of a decision tells whether it is active from the start, that of a reward whether a client gave it, and did
    not leave it to the end of the window.
    """

    seq: int
    experiment: int
    kind: int
    id: str | None
    time: float
    flag: bool
    body: bytes


class Drawn(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The body of a decision: what was asked, what was answered, and what learning and checking it need.

    ``asked`` is a hash of the request. Names instead of indices: they mean the same when the problem has changed.
    """

    asked: bytes
    context: str
    arm: str
    propensity: float
    version: int
    holdout: bool
    footing: str
    probabilities: bytes
    direction: bytes
    baseline: bytes | None


class Asked(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The beginning of the body of a decision: what was asked."""

    asked: bytes
    context: str


class Paid(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The body of a reward. ``gone``: who gave it was told that it is not learnt, since nobody plays its arm now."""

    reward: float
    gone: bool = False


class Versioned(msgspec.Struct, frozen=True, array_like=True):
    """The body of a version: all rewards up to the record ``through`` are learnt, in their order."""

    version: int
    digest: str
    through: int


class Changed(msgspec.Struct, frozen=True, array_like=True):
    """The body of a change: from here on another problem is played, with a plan of that version and digest."""

    version: int
    digest: str
    through: int
    problem: bytes
    trust: float
    fresh: float | None


class RolledBack(msgspec.Struct, frozen=True, array_like=True):
    """The body of a rollback: what was learnt after version ``to`` is forgotten, under a version of its own."""

    version: int
    digest: str
    through: int
    to: int


class Snapshot(NamedTuple):
    """A policy at a version; rewards up to the record ``through`` are learnt.

    ``content`` is a file of the policy without its frame; that is kept once, under its footing.
    """

    experiment: int
    version: int
    through: int
    digest: str
    footing: str
    content: bytes


class Frame(NamedTuple):
    """A file with all that policies and plans of a footing share: problem, algorithm, design."""

    footing: str
    content: bytes


Body = TypeVar("Body", bound=msgspec.Struct)
_canonical = msgspec.json.Encoder(order="deterministic").encode
packed = msgspec.msgpack.Encoder().encode  # a body as bytes
BODIES = (Drawn, Asked, Paid, Versioned, Changed, RolledBack)
_readers: dict[Any, Any] = {kind: msgspec.msgpack.Decoder(kind).decode for kind in BODIES}
MARKS: dict[int, Any] = {Kind.VERSION: Versioned, Kind.CHANGE: Changed, Kind.ROLLBACK: RolledBack}


def unpacked(kind: type[Body], body: bytes) -> Body:
    """Return the body of a kind in some bytes; damage is told in a sentence."""
    return all_unpacked(kind, [body])[0]


def all_unpacked(kind: type[Body], bodies: Iterable[bytes]) -> list[Body]:
    """Return the bodies of a kind in some bytes each; damage is told in a sentence."""
    read = _readers[kind]
    try:
        return [read(body) for body in bodies]
    except msgspec.MsgspecError as error:
        raise ValueError(f"a record of the store is damaged: {error}") from None


def fingerprint(context: Any, active: bool) -> bytes:
    """Return a hash of what a decision was asked for with, apart from its id.

    >>> fingerprint({"a": 1, "b": 2}, True) == fingerprint({"b": 2, "a": 1}, True) != fingerprint("a", True)
    True
    """
    return _hash_of_name(context, active) if type(context) is str else _hash_of(context, active)


def _hash_of(context: Any, active: bool) -> bytes:
    return hashlib.blake2b(_canonical((context, active)), digest_size=16).digest()


_hash_of_name = lru_cache(maxsize=4096)(_hash_of)  # contexts that have names are few, and come again and again
