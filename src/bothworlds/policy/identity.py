"""Who made a decision: ids that are never issued twice, and the random numbers that follow from them.

An id is *made* or *given*. A made one is the name of its issuer, which begins with "@" and is random, and a number:
``@9f3c1a2b7d4e5f60a1b2.17``. A given one is whatever the caller calls the event. An issuer is one life of a policy,
from `start` or `load` to the end of its process, or one process that decides from plans.
"""

import hashlib
import itertools
import os
import secrets
import uuid
import weakref
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np

from bothworlds.kernels.arrays import Ints

MADE = "@"
LONGEST = 200
MASK = 2**63 - 1
NO_DATA = (
    "a policy is not copied like data, since two owners would issue the same ids: use policy.copy() for a second "
    "policy, policy.save and bothworlds.load for a file, policy.plan() for other threads and processes"
)


class Apart(Protocol):
    """Something that issues ids, and must not go on with the same ones in a second process."""

    def set_apart(self) -> None:
        """Become an issuer of its own: this process was forked off the one that issued so far."""


_issuers: "weakref.WeakSet[Any]" = weakref.WeakSet()


def _set_all_apart() -> None:
    for issuer in list(_issuers):
        issuer.set_apart()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_set_all_apart)


def apart_after_fork(issuer: Apart) -> None:
    """See to it that a forked process does not issue the same ids again."""
    _issuers.add(issuer)


def new_name() -> str:
    """Return the name of a new policy: 48 random bits."""
    return uuid.uuid4().hex[:12]


def new_source() -> str:
    """Return the name of a new issuer: 80 random bits."""
    return MADE + secrets.token_hex(10)


class Life(NamedTuple):
    """What the name of a policy's life says of it.

    A mark of the stream that it draws from, how many lives came before in its file, and its first round.
    """

    stream: str
    generation: int
    first: int


def new_life(key: int, generation: int, first: int) -> str:
    """Return the name of a new life of a policy."""
    stream = hashlib.blake2b(key.to_bytes(8), digest_size=4, person=b"bothworlds-mark").hexdigest()
    return f"{MADE}{stream}-{generation}-{first}-{secrets.token_hex(10)}"


def life_of(source: str) -> Life | None:
    """Return what an issuer's name says, or None for a process that decides from plans.

    >>> life_of(new_life(7, 2, 51)), life_of(new_source())
    (Life(stream='84332610', generation=2, first=51), None)
    """
    stream, *numbers = source[1:].split("-")
    if len(numbers) != 3 or not all(part.isascii() and part.isdecimal() for part in numbers[:2]):
        return None
    return Life(stream, int(numbers[0]), int(numbers[1]))


def id_of(source: str, number: int) -> str:
    """Return the id of a decision from its source, an issuer or a given id, and its number.

    >>> id_of("@5e", 17), id_of("visit 9", 0)
    ('@5e.17', 'visit 9')
    """
    return f"{source}.{number}" if source[:1] == MADE else source


def source_of(name: str, number: int) -> str:
    """Return the source that an id and a number belong to; refuse a made id with another number.

    >>> source_of("@5e.17", 17)
    '@5e'
    """
    if name[:1] != MADE:
        return given_id(name)
    source, _, tail = name.rpartition(".")
    if tail != str(number) or not source or number > MASK:
        raise ValueError(f"id {name!r} is damaged: it is not that of round {number}")
    return source


def parts_of(name: str) -> tuple[str, int]:
    """Return source and number of an id.

    >>> parts_of("@5e.17"), parts_of("visit 9")
    (('@5e', 17), ('visit 9', 0))
    """
    tail = name.rpartition(".")[2] if name[:1] == MADE else "0"
    if not (tail.isascii() and tail.isdecimal()):
        raise ValueError(f"id {name!r:.80} is damaged: it does not end with a number")
    return source_of(name, int(tail)), int(tail)


def given_id(name: Any) -> str:
    """Return an id that a caller gave, or refuse it in a sentence."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST or name[0] == MADE:
        raise ValueError(
            f"an id is a text of 1 to {LONGEST} characters that does not begin with {MADE!r}, which the library keeps "
            f"for ids it makes; got {name!r:.60}"
        )
    if not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name):
        raise ValueError(f"id {name!r:.60} has half of a surrogate pair, which is no character")
    return name


def id_hash(name: str) -> bytes:
    """Return 16 bytes that stand for an id."""
    return hashlib.blake2b(name.encode(), digest_size=16, person=b"bothworlds-id").digest()


def secret_of(key: int) -> str:
    """Return the secret that a policy's ids are hashed with, from the key of its stream."""
    return hashlib.blake2b(key.to_bytes(8), digest_size=32, person=b"bothworlds-key").hexdigest()


def stream_of(key: int, source: str) -> int:
    """Return the key of a stream of its own, for an issuer that must not draw what the stream ``key`` draws."""
    made = hashlib.blake2b(source.encode(), digest_size=8, key=key.to_bytes(8), person=b"bothworlds-new")
    return int.from_bytes(made.digest()) & MASK


class Lots:
    """Random numbers from ids by a keyed hash (BLAKE2b), so that no client can choose its arm.

    >>> lots = Lots(secret_of(7))
    >>> lots.drawn("visit 9") == Lots(secret_of(7)).drawn("visit 9") != lots.drawn("visit 10")
    True
    """

    def __init__(self, secret: str) -> None:
        self._keyed = hashlib.blake2b(digest_size=16, key=bytes.fromhex(secret), person=b"bothworlds-draw")

    def drawn(self, name: str) -> tuple[int, int]:
        """Return key and time of the random numbers of an id; together 126 bits, so that no two ids share theirs."""
        hashed = self._keyed.copy()
        hashed.update(name.encode())
        made = int.from_bytes(hashed.digest())
        return (made >> 64) & MASK, made & MASK

    def drawn_all(self, names: Iterable[str]) -> tuple[Ints, Ints]:
        """Return the same for many ids, as columns."""
        begun, made = self._keyed.copy, []
        for name in names:
            hashed = begun()
            hashed.update(name.encode())
            made.append(hashed.digest())
        both = (np.frombuffer(b"".join(made), dtype=">u8").reshape(-1, 2) & MASK).astype(np.int64)
        return both[:, 0].copy(), both[:, 1].copy()


class Desk:
    """Where the plans of one process get ids: a number from any thread, once."""

    def __init__(self) -> None:
        self.set_apart()
        apart_after_fork(self)

    def set_apart(self) -> None:
        """Begin with a name of its own."""
        self._next = new_source(), itertools.count(1)

    def issue(self) -> tuple[str, int]:
        """Return source and number of the next id."""
        source, numbers = self._next
        return source, next(numbers)
