"""Registry of the decisions that still take feedback: open rounds, ids of other issuers, and given ids."""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np

from bothworlds.arrays import Ints
from bothworlds.policy.ids import ISSUED, Session, id_hash, new_session, session_of


class Identified(Protocol):
    """A decision: the issuer of its id, or the given id, and its number."""

    @property
    def source(self) -> str:
        """Issuer of the id, or the given id."""

    @property
    def round(self) -> int:
        """Number of the decision, 0 for a given id."""


class OpenRounds:
    """The set of rounds that neither have feedback nor have expired, stored as intervals.

    >>> rounds = OpenRounds()
    >>> for _ in range(5):
    ...     _ = rounds.add()
    >>> rounds.close(3)
    >>> rounds.intervals.tolist(), rounds.has(3), len(rounds)
    ([[1, 2], [4, 5]], False, 4)
    >>> rounds.expire(before=5), rounds.intervals.tolist()
    (3, [[5, 5]])
    >>> rounds.reach(8), rounds.intervals.tolist()
    (None, [[5, 8]])
    """

    def __init__(self, last: int = 0) -> None:
        self.last = last
        self._starts: list[int] = []
        self._ends: list[int] = []

    @classmethod
    def restore(cls, last: int, intervals: Ints) -> Self:
        """Rebuild from the last round and the intervals."""
        rounds = cls(last)
        rounds._starts = [int(start) for start, _ in intervals]
        rounds._ends = [int(end) for _, end in intervals]
        return rounds

    @property
    def intervals(self) -> Ints:
        """The open rounds as (first, last) pairs."""
        return np.array([self._starts, self._ends], dtype=np.int64).T

    def __len__(self) -> int:
        return sum(self._ends) - sum(self._starts) + len(self._starts)

    def has(self, number: int) -> bool:
        """Return whether a round is open; every update calls this method, which is faster than ``in``."""
        i = bisect_right(self._starts, number) - 1
        return i >= 0 and number <= self._ends[i]

    def add(self) -> int:
        """Open the next round and return its number, counted from 1."""
        last = self.last
        self.last = number = last + 1
        if self._ends and self._ends[-1] == last:
            self._ends[-1] = number
        else:
            self._starts.append(number)
            self._ends.append(number)
        return number

    def reach(self, number: int) -> None:
        """Open all rounds after the last one, up to a number."""
        if number <= self.last:
            return
        if self._ends and self._ends[-1] == self.last:
            self._ends[-1] = number
        else:
            self._starts.append(self.last + 1)
            self._ends.append(number)
        self.last = number

    def skip(self, number: int) -> None:
        """Continue after a number: rounds up to it that were not opened stay closed."""
        self.last = max(self.last, number)

    def close(self, number: int) -> None:
        """Close an open round; its interval shrinks, splits or disappears."""
        i = bisect_right(self._starts, number) - 1
        start, end = self._starts[i], self._ends[i]
        if start == end:
            del self._starts[i], self._ends[i]
        elif number == start:
            self._starts[i] = number + 1
        elif number == end:
            self._ends[i] = number - 1
        else:
            self._starts.insert(i + 1, number + 1)
            self._ends.insert(i, number - 1)

    def expire(self, *, before: int) -> int:
        """Close all open rounds before the given one; return their number."""
        count = len(self)
        remaining = [(max(s, before), e) for s, e in zip(self._starts, self._ends, strict=True) if e >= before]
        self._starts = [s for s, _ in remaining]
        self._ends = [e for _, e in remaining]
        return count - len(self)


@dataclass
class Issuer:
    """An issuer of ids other than the current session, with its rounds as far as they are known.

    ``until`` is, for an earlier session of this policy, the first round of the session after it, else 0. ``sealed``:
    rounds after the last known one are refused. ``shared``: its rounds were drawn from the random stream of the current
    session. ``counted``: the last round that the policy has counted as decided.
    """

    rounds: OpenRounds
    until: int = 0
    sealed: bool = False
    shared: bool = False
    counted: int = 0


@dataclass
class FeedbackRegistry:
    """All that a policy knows about ids: its session, other issuers, and given ids that have feedback.

    ``sealed`` is a generation: decisions of sessions up to it are refused if the file does not know the session.
    """

    session: str
    rounds: OpenRounds
    others: dict[str, Issuer] = field(default_factory=dict)
    given: set[bytes] = field(default_factory=set)
    sealed: int = -1

    def __post_init__(self) -> None:
        self._current = session_of(self.session) or Session("", 0, 1)

    @classmethod
    def begin(cls, key: int) -> Self:
        """Return the registry of a new policy; ``key`` is that of its random stream."""
        return cls(new_session(key, 0, 1), OpenRounds())

    def __len__(self) -> int:
        """Return the number of known decisions of this policy, over all its sessions, that wait for feedback."""
        return len(self.rounds) + sum(len(other.rounds) for other in self.others.values() if other.until)

    def refusal(self, decision: Identified) -> str:
        """Return why a decision does not take feedback; "" if it does."""
        source, number = decision.source, decision.round
        if source == self.session:
            if self.rounds.has(number):
                return ""
            return "was answered or has expired" if 1 <= number <= self.rounds.last else "was never decided"
        if source[:1] != ISSUED:
            return "was answered" if id_hash(source) in self.given else ""
        other = self.others.get(source)
        if other is None:
            return self._unknown(session_of(source), number)
        if other.rounds.has(number) or (number > other.rounds.last and not other.sealed):
            return ""
        return "was answered or has expired"

    def _unknown(self, session: Session | None, number: int) -> str:
        """Return why a decision of an unknown issuer does not take feedback; "" if it does."""
        if number < (1 if session is None else session.first):
            return "was never decided"
        return "was answered or has expired" if session is not None and session.generation <= self.sealed else ""

    def _issuer(self, source: str) -> Issuer:
        """Return an issuer; an unknown one is added, with no feedback so far.

        A session of a later generation with another stream was forked off this one, and is not an earlier session.
        """
        session = session_of(source)
        if source not in self.others and session is None:
            self.others[source] = Issuer(OpenRounds())
        elif source not in self.others and session is not None:
            shared = session.stream == self._current.stream
            forked = session.generation > self._current.generation and not shared
            until = 0 if forked else self._current.first
            self.others[source] = Issuer(OpenRounds(session.first - 1), until=until, shared=shared)
        return self.others[source]

    def close(self, decision: Identified) -> None:
        """Record that a decision has its feedback."""
        source, number = decision.source, decision.round
        if source == self.session:
            self.rounds.close(number)
        elif source[:1] != ISSUED:
            self.given.add(id_hash(source))
        else:
            other = self._issuer(source)
            other.rounds.reach(number)
            other.rounds.close(number)
            if other.shared:
                self.rounds.skip(number)

    def counted(self, decision: Identified) -> bool:
        """Return whether the policy counted a decision when it was taken, and still has that count."""
        if decision.source == self.session:
            return True
        other = self.others.get(decision.source)
        return other is not None and decision.round <= other.counted

    def expire(self, *, before: int) -> int:
        """Close open rounds before a round of this session, also those of earlier sessions; return their number."""
        given: Any = before
        if not isinstance(given, int | np.integer):
            raise ValueError(f"before must be the number of a round, a whole number; got {before!r}")
        before = int(given)
        count = self.rounds.expire(before=before)
        if self._current.first <= before:
            self.sealed = self._current.generation
        for other in self.others.values():
            if other.until:
                all_expired = other.until <= before
                count += other.rounds.expire(before=other.rounds.last + 1 if all_expired else before)
                other.sealed = other.sealed or all_expired
        return count

    def next_session(self, key: int, *, same_stream: bool = True) -> "FeedbackRegistry":
        """Return the registry of the next session; ``key`` is that of its stream, the same or another one."""
        first, generation = self.rounds.last + 1, self._current.generation + 1
        previous = Issuer(self.rounds, until=first, shared=True, counted=self.rounds.last)
        others = {**self.others, self.session: previous}
        for other in others.values():
            other.shared = other.shared and same_stream
        return FeedbackRegistry(
            new_session(key, generation, first), OpenRounds(first - 1), others, self.given, self.sealed
        )

    def header(self) -> dict[str, Any]:
        """Return the entries for the header of a file."""
        others = [[name, o.rounds.last, o.until, o.sealed, o.shared, o.counted] for name, o in self.others.items()]
        return {"rounds": self.rounds.last, "session": self.session, "sealed": self.sealed, "issuers": others}

    def arrays(self) -> dict[str, Any]:
        """Return the arrays for a file: open rounds; those of other issuers, after their index; hashes of given ids."""
        intervals = [np.insert(other.rounds.intervals, 0, i, axis=1) for i, other in enumerate(self.others.values())]
        given = np.frombuffer(b"".join(sorted(self.given)), dtype=np.uint8).reshape(-1, 16)
        others = np.concatenate([np.zeros((0, 3), dtype=np.int64), *intervals])
        return {"open": self.rounds.intervals, "open_elsewhere": others, "answered": given}

    @classmethod
    def restore(cls, header: dict[str, Any], arrays: dict[str, Any]) -> Self:
        """Rebuild from a file."""
        elsewhere, others = arrays["open_elsewhere"], {}
        for i, (name, last, *fields) in enumerate(header["issuers"]):
            others[name] = Issuer(OpenRounds.restore(last, elsewhere[elsewhere[:, 0] == i, 1:]), *fields)
        given = {row.tobytes() for row in arrays["answered"]}
        rounds = OpenRounds.restore(header["rounds"], arrays["open"])
        return cls(header["session"], rounds, others, given, header["sealed"])
