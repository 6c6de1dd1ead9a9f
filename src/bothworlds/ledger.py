"""Which decisions may still be answered, each once: by the issuer of their ids, and a number.

A policy has one life after the other: `start` and `load` begin one. Draws go on bit for bit after `load`, ids do not:
what was decided after a file was saved, and lost with its process, has another id than what is decided again. Feedback
of such a lost decision is accepted, once, for it carries all that it needs; from then on its round is not drawn again,
so that no draw depends on an outcome that the same random number has had a part in. Decisions of plans come from
issuers that the policy never saw: any number of theirs is taken, once. Ids that callers gave are noted when they are
answered, with 16 bytes each.
"""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from bothworlds.decision import Decision
from bothworlds.identity import MADE, fingerprint_of, new_source
from bothworlds.rounds import OpenRounds


@dataclass
class Issuer:
    """Another issuer than the present life: its rounds as far as they are known.

    ``until`` is the first round of the life that came after it, for an earlier life of this policy, else 0.
    ``sealed``: nothing later than what is known is accepted any more. ``shared``: its rounds were drawn from the stream
    that the present life draws from.
    """

    rounds: OpenRounds
    until: int = 0
    sealed: bool = False
    shared: bool = False


@dataclass
class Ledger:
    """What a policy knows of ids: its present life, other issuers, and given ids that were answered."""

    rounds: OpenRounds = field(default_factory=OpenRounds)
    life: str = field(default_factory=new_source)
    others: dict[str, Issuer] = field(default_factory=dict)
    given: set[bytes] = field(default_factory=set)

    def __len__(self) -> int:
        """Return how many decisions of this policy, of all its lives, are known to wait for feedback."""
        return len(self.rounds) + sum(len(other.rounds) for other in self.others.values() if other.until)

    def refusal(self, made: Decision) -> str:
        """Return why feedback of a decision is not taken, or nothing if it is."""
        source, number = made.source, made.round
        if source == self.life:
            if number in self.rounds:
                return ""
            return "was answered or has expired" if 1 <= number <= self.rounds.last else "was never decided"
        if source[:1] != MADE:
            return "was answered" if fingerprint_of(source) in self.given else ""
        other = self.others.get(source)
        if number < 1:
            return "was never decided"
        if other is None or number in other.rounds or (number > other.rounds.last and not other.sealed):
            return ""
        return "was answered or has expired"

    def close(self, made: Decision) -> None:
        """Note that a decision was answered."""
        source, number = made.source, made.round
        if source == self.life:
            self.rounds.close(number)
        elif source[:1] != MADE:
            self.given.add(fingerprint_of(source))
        else:
            other = self.others.setdefault(source, Issuer(OpenRounds()))
            other.rounds.reach(number)
            other.rounds.close(number)
            if other.shared:
                self.rounds.skip(number)

    def expire(self, *, before: int) -> int:
        """Close what is older than a round of this life, lost decisions of earlier lives included; return how many."""
        count = self.rounds.expire(before=before)
        for other in self.others.values():
            if other.until:
                over = other.until <= before
                count += other.rounds.expire(before=other.rounds.last + 1 if over else before)
                other.sealed = other.sealed or over
        return count

    def next_life(self, *, same_stream: bool = True) -> "Ledger":
        """Return the ledger of the life after this one."""
        last = self.rounds.last
        others = {**self.others, self.life: Issuer(self.rounds, until=last + 1, shared=True)}
        for other in others.values():
            other.shared = other.shared and same_stream
        return Ledger(OpenRounds(last), others=others, given=self.given)

    def header(self) -> dict[str, Any]:
        """Return what a file's header keeps."""
        others = [[name, o.rounds.last, o.until, o.sealed, o.shared] for name, o in self.others.items()]
        return {"rounds": self.rounds.last, "life": self.life, "issuers": others}

    def arrays(self) -> dict[str, Any]:
        """Return what a file keeps as arrays: open rounds, those of other issuers behind a column that counts them."""
        found = [np.insert(other.rounds.intervals, 0, i, axis=1) for i, other in enumerate(self.others.values())]
        given = np.frombuffer(b"".join(sorted(self.given)), dtype=np.uint8).reshape(-1, 16)
        others = np.concatenate([np.zeros((0, 3), dtype=np.int64), *found])
        return {"open": self.rounds.intervals, "open_elsewhere": others, "answered": given}

    @classmethod
    def restore(cls, header: dict[str, Any], arrays: dict[str, Any]) -> Self:
        """Rebuild from a file; one without issuers is of a policy in its first life, named after it."""
        elsewhere = arrays.get("open_elsewhere", np.zeros((0, 3), dtype=np.int64))
        others = {}
        for i, (name, last, *marks) in enumerate(header.get("issuers", [])):
            others[name] = Issuer(OpenRounds.restore(last, elsewhere[elsewhere[:, 0] == i, 1:]), *marks)
        given = {row.tobytes() for row in arrays.get("answered", ())}
        rounds = OpenRounds.restore(header["rounds"], arrays["open"])
        return cls(rounds, header.get("life", MADE + header["name"]), others, given)
