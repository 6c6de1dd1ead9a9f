"""Contents of a store: an append-only log of records, and snapshots for fast restarts.

Every record has a sequence number, an experiment, a kind and a time; records about a decision have its id. The rest is
in the body (MessagePack; floats are stored bit for bit).
"""

import hashlib
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import msgspec

FORMAT = "bothworlds-store-1"


class Kind(IntEnum):
    """Kind of a record; the values are stored.

    A decision has at most one record of each kind that is not a mark. VERSION, CHANGE, ROLLBACK, HOLDOUT, ALGORITHM
    and WINDOW are *marks*: they concern an experiment as a whole and have no id. UNANSWERED says that the window of a
    decision closed without a reward, in an experiment without a default reward.
    """

    DECISION = 1
    ACTIVATION = 2
    REWARD = 3
    LATE = 4
    VERSION = 5
    CHANGE = 6
    ROLLBACK = 7
    UNANSWERED = 8
    HOLDOUT = 9
    ALGORITHM = 10
    WINDOW = 11


DECISION, ACTIVATION, REWARD, LATE = map(
    int, list(Kind)[:4]
)  # plain integers: faster to look up than members of an enumeration
UNANSWERED = int(Kind.UNANSWERED)


class Record(msgspec.Struct, frozen=True, gc=False):
    """A record of the log; ``seq`` is its sequence number, 0 until it is stored.

    ``flag`` of a decision: it is active from the start. ``flag`` of a reward: a client sent it; otherwise it is the
    default reward. ``time`` is in seconds since 1970.
    """

    seq: int
    experiment: int
    kind: int
    id: str | None
    time: float
    flag: bool
    body: bytes


class DecisionHead(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The fields of a decision's body before the fingerprint: what counting needs."""

    request_hash: bytes
    context: str
    traceparent: str | None
    arm: str
    propensity: float
    version: int
    holdout: bool
    other_propensity: float | None


class DecisionDraw(DecisionHead, frozen=True, array_like=True, gc=False):
    """The fields of a decision's body before the direction: how it was drawn."""

    fingerprint: str
    probabilities: bytes


class DecisionBody(DecisionDraw, frozen=True, array_like=True, gc=False):
    """Body of a decision: request, response, and what learning and verification need.

    Contexts and arms are stored by name, as indices change with the problem. ``traceparent`` is the header of the
    request with this name (W3C Trace Context), if it had one. With a holdout, ``other_propensity`` is the probability
    that the arm would have had otherwise: that of the plan for a held-out decision, that of uniform play for the
    others. ``probabilities`` (of every arm), ``direction`` and ``baseline`` are float64 arrays as bytes.
    """

    direction: bytes
    baseline: bytes | None


class RewardBody(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Body of a reward; it is not learned if its arm was retired, or the algorithm changed, before it came."""

    reward: float
    arm_retired: bool = False
    algorithm_changed: bool = False


class Versioned(msgspec.Struct, frozen=True, array_like=True):
    """Body of a version.

    Learned are the rewards up to sequence number ``through``, in log order, and the rewards of all decisions that
    became active up to sequence number ``ordered_through``, in the order of these decisions. ``restarts`` counts how
    often the algorithm has restarted so far, because the world had changed.
    """

    version: int
    digest: str
    through: int
    ordered_through: int
    restarts: int = 0


class Changed(msgspec.Struct, frozen=True, array_like=True):
    """Body of a change: from this version on, decisions are made for another problem."""

    version: int
    digest: str
    through: int
    ordered_through: int
    problem: bytes
    trust: float
    fresh: float | None


class RolledBack(msgspec.Struct, frozen=True, array_like=True):
    """Body of a rollback: a new version that continues from version ``to``."""

    version: int
    digest: str
    through: int
    ordered_through: int
    to: int


class HoldoutChanged(msgspec.Struct, frozen=True, array_like=True):
    """Body of a change of the holdout: from this version on, another share of the decisions is held out."""

    version: int
    digest: str
    through: int
    ordered_through: int
    holdout: float


class AlgorithmChanged(msgspec.Struct, frozen=True, array_like=True):
    """Body of a change of the algorithm: from this version on, another one decides, with what was learned as a prior.

    ``algorithm`` is a table as in the settings, as JSON.
    """

    version: int
    digest: str
    through: int
    ordered_through: int
    algorithm: bytes


class WindowChanged(msgspec.Struct, frozen=True, array_like=True):
    """Body of a change of the window, such as "2 hours": a new version with what was learned."""

    version: int
    digest: str
    through: int
    ordered_through: int
    window: str


class Snapshot(NamedTuple):
    """A stored policy; ``through`` and ``ordered_through`` say what it has learned, as in `Versioned`.

    ``content`` is the file of the policy without its frame, which is stored once per fingerprint. ``time`` is when it
    was made, in seconds since 1970.
    """

    experiment: int
    version: int
    through: int
    digest: str
    fingerprint: str
    content: bytes
    ordered_through: int = 0
    time: float = 0.0

    @property
    def end(self) -> int:
        """The sequence number up to which something is learned."""
        return max(self.through, self.ordered_through)


class Frame(NamedTuple):
    """A file with what all policies of a spec share: problem, algorithm, exploration design."""

    fingerprint: str
    content: bytes


Body = TypeVar("Body", bound=msgspec.Struct)
_canonical = msgspec.json.Encoder(order="deterministic").encode
packed = msgspec.msgpack.Encoder().encode  # body to bytes
BODIES = (
    DecisionBody,
    DecisionDraw,
    DecisionHead,
    RewardBody,
    Versioned,
    Changed,
    RolledBack,
    HoldoutChanged,
    AlgorithmChanged,
    WindowChanged,
)
_decoders: dict[Any, Any] = {kind: msgspec.msgpack.Decoder(kind).decode for kind in BODIES}
MARKS: dict[int, Any] = {
    Kind.VERSION: Versioned,
    Kind.CHANGE: Changed,
    Kind.ROLLBACK: RolledBack,
    Kind.HOLDOUT: HoldoutChanged,
    Kind.ALGORITHM: AlgorithmChanged,
    Kind.WINDOW: WindowChanged,
}


def unpacked(kind: type[Body], body: bytes) -> Body:
    """Return a body from its bytes; damaged bytes are a ValueError."""
    return all_unpacked(kind, [body])[0]


def all_unpacked(kind: type[Body], bodies: Iterable[bytes]) -> list[Body]:
    """Return several bodies of one kind from their bytes; damaged bytes are a ValueError."""
    decode = _decoders[kind]
    try:
        return [decode(body) for body in bodies]
    except msgspec.MsgspecError as error:
        raise ValueError(f"a record of the store is damaged: {error}") from None


def hash_request(context: Any, active: bool) -> bytes:
    """Return a hash of a request for a decision, without its id.

    >>> hash_request({"a": 1, "b": 2}, True) == hash_request({"b": 2, "a": 1}, True) != hash_request("a", True)
    True
    """
    return _hash_of_name(context, active) if type(context) is str else _hash_of(context, active)


def _hash_of(context: Any, active: bool) -> bytes:
    return hashlib.blake2b(_canonical((context, active)), digest_size=16).digest()


_hash_of_name = lru_cache(maxsize=4096)(_hash_of)  # named contexts are few and repeat
