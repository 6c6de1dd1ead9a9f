"""Ids of decisions, which are never issued twice, and the random numbers that follow from them.

An id is *issued* or *given*. An issued id is the name of its issuer, "@" and random letters, with a number:
``@9f3c1a2b7d4e5f60a1b2.17``. A given id is the caller's own name of the event. An issuer is one session of a policy,
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

from bothworlds.arrays import Ints

ISSUED = "@"
LONGEST = 200
MASK = 2**63 - 1
NOT_COPYABLE = (
    "a policy cannot be pickled or copied, since two copies would issue the same ids: use policy.copy() for a second "
    "policy, policy.save and bothworlds.load for a file, policy.plan() for other threads and processes"
)


class ForkAware(Protocol):
    """An object that issues ids, and must not issue the same ids in a forked process."""

    def reset_in_fork(self) -> None:
        """Become a new issuer, in a process that was just forked."""


_issuers: "weakref.WeakSet[Any]" = weakref.WeakSet()


def _reset_all_in_fork() -> None:
    for issuer in list(_issuers):
        issuer.reset_in_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all_in_fork)


def reset_after_fork(issuer: ForkAware) -> None:
    """Register an issuer, so that a forked process does not issue the same ids."""
    _issuers.add(issuer)


def new_name() -> str:
    """Return the name of a new policy: 48 random bits."""
    return uuid.uuid4().hex[:12]


def new_source() -> str:
    """Return the name of a new issuer: 80 random bits."""
    return ISSUED + secrets.token_hex(10)


class Session(NamedTuple):
    """The parts of a session's name: a hash of its random stream, the number of earlier sessions, its first round."""

    stream: str
    generation: int
    first: int


def new_session(key: int, generation: int, first: int) -> str:
    """Return the name of a new session of a policy; ``key`` is that of its random stream."""
    stream = hashlib.blake2b(key.to_bytes(8), digest_size=4, person=b"bothworlds-mark").hexdigest()
    return f"{ISSUED}{stream}-{generation}-{first}-{secrets.token_hex(10)}"


def session_of(source: str) -> Session | None:
    """Return the parts of a session's name, or None for a process that decides from plans.

    >>> session_of(new_session(7, 2, 51)), session_of(new_source())
    (Session(stream='84332610', generation=2, first=51), None)
    """
    stream, *numbers = source[1:].split("-")
    if len(numbers) != 3 or not all(part.isascii() and part.isdecimal() for part in numbers[:2]):
        return None
    return Session(stream, int(numbers[0]), int(numbers[1]))


def id_of(source: str, number: int) -> str:
    """Return the id of a decision from its source, an issuer or a given id, and its number.

    >>> id_of("@5e", 17), id_of("visit 9", 0)
    ('@5e.17', 'visit 9')
    """
    return f"{source}.{number}" if source[:1] == ISSUED else source


def source_of(name: str, number: int) -> str:
    """Return the source of an id; refuse an issued id that does not end with the number.

    >>> source_of("@5e.17", 17)
    '@5e'
    """
    if name[:1] != ISSUED:
        return given_id(name)
    source, _, tail = name.rpartition(".")
    if tail != str(number) or not source or number > MASK:
        raise ValueError(f"id {name!r} is damaged: it is not the id of round {number}")
    return source


def parts_of(name: str) -> tuple[str, int]:
    """Return source and number of an id.

    >>> parts_of("@5e.17"), parts_of("visit 9")
    (('@5e', 17), ('visit 9', 0))
    """
    tail = name.rpartition(".")[2] if name[:1] == ISSUED else "0"
    if not (tail.isascii() and tail.isdecimal()):
        raise ValueError(f"id {name!r:.80} is damaged: it does not end with a number")
    return source_of(name, int(tail)), int(tail)


def given_id(name: Any) -> str:
    """Return the id given by a caller; raise ValueError if it is invalid."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST or name[0] == ISSUED:
        raise ValueError(
            f"an id is a string of 1 to {LONGEST} characters that does not begin with {ISSUED!r}, which is reserved "
            f"for ids issued by the library; got {name!r:.60}"
        )
    if not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name):
        raise ValueError(f"id {name!r:.60} has half of a surrogate pair, which is not a character")
    return name


def id_hash(name: str) -> bytes:
    """Return a hash of an id, 16 bytes."""
    return hashlib.blake2b(name.encode(), digest_size=16, person=b"bothworlds-id").digest()


def secret_of(key: int) -> str:
    """Return the secret for hashing a policy's ids, derived from the key of its stream."""
    return hashlib.blake2b(key.to_bytes(8), digest_size=32, person=b"bothworlds-key").hexdigest()


def stream_of(key: int, source: str) -> int:
    """Return the key of a new random stream for an issuer, derived from the stream ``key`` and different from it."""
    new_key = hashlib.blake2b(source.encode(), digest_size=8, key=key.to_bytes(8), person=b"bothworlds-new")
    return int.from_bytes(new_key.digest()) & MASK


class KeyedRandom:
    """Random numbers from ids by a keyed hash (BLAKE2b), so that no client can choose its arm.

    >>> random, same = KeyedRandom(secret_of(7)), KeyedRandom(secret_of(7))
    >>> random.key_and_time("visit 9") == same.key_and_time("visit 9") != random.key_and_time("visit 10")
    True
    """

    def __init__(self, secret: str) -> None:
        self._keyed_hash = hashlib.blake2b(digest_size=16, key=bytes.fromhex(secret), person=b"bothworlds-draw")

    def key_and_time(self, name: str) -> tuple[int, int]:
        """Return key and time for the random numbers of an id: 126 bits in all, so that ids do not collide."""
        digest = self._keyed_hash.copy()
        digest.update(name.encode())
        bits = int.from_bytes(digest.digest())
        return (bits >> 64) & MASK, bits & MASK

    def keys_and_times(self, names: Iterable[str]) -> tuple[Ints, Ints]:
        """Return `key_and_time` for many ids, as two columns."""
        copy_hash, digests = self._keyed_hash.copy, []
        for name in names:
            digest = copy_hash()
            digest.update(name.encode())
            digests.append(digest.digest())
        bits = (np.frombuffer(b"".join(digests), dtype=">u8").reshape(-1, 2) & MASK).astype(np.int64)
        return bits[:, 0].copy(), bits[:, 1].copy()


class IdIssuer:
    """Thread-safe issuer of ids for the plans of one process."""

    def __init__(self) -> None:
        self.reset_in_fork()
        reset_after_fork(self)

    def reset_in_fork(self) -> None:
        """Start with a new name."""
        self._next = new_source(), itertools.count(1)

    def issue(self) -> tuple[str, int]:
        """Return source and number of the next id."""
        source, numbers = self._next
        return source, next(numbers)
