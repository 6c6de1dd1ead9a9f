"""Which decisions may still be answered, each once: by the issuer of their ids, and a number.

A policy has one life after the other: `start` and `load` begin one. Draws go on bit for bit after `load`, ids do not:
what was decided after a file was saved, and lost with its process, has another id than what is decided again. Feedback
of such a lost decision is accepted, once, for it carries all that it needs; from then on its round is not drawn again,
so that no draw depends on an outcome that the same random number has had a part in. The name of a life says which
stream it drew from, and from which round on, so this holds also for one that the file never knew. Decisions of plans
come from issuers that the policy never saw: any number of theirs is taken, once. Ids that callers gave are noted when
they are answered, with 16 bytes each.
"""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from bothworlds.policy.decision import Decision
from bothworlds.policy.identity import MADE, Life, id_hash, life_of, new_life
from bothworlds.policy.rounds import OpenRounds


@dataclass
class Issuer:
    """Another issuer than the present life: its rounds as far as they are known.

    ``until`` is the first round of the life that came after it, for an earlier life of this policy, else 0.
    ``sealed``: nothing later than what is known is accepted any more. ``shared``: its rounds were drawn from the stream
    that the present life draws from. ``counted``: up to which round the policy has counted its decisions.
    """

    rounds: OpenRounds
    until: int = 0
    sealed: bool = False
    shared: bool = False
    counted: int = 0


@dataclass
class Ledger:
    """What a policy knows of ids: its present life, other issuers, and given ids that were answered.

    ``sealed`` counts lives in a row: nothing is accepted any more of one as old, that the file did not know.
    """

    life: str
    rounds: OpenRounds
    others: dict[str, Issuer] = field(default_factory=dict)
    given: set[bytes] = field(default_factory=set)
    sealed: int = -1

    def __post_init__(self) -> None:
        self._present = life_of(self.life) or Life("", 0, 1)

    @classmethod
    def begin(cls, key: int) -> Self:
        """Return the ledger of a policy that draws from a stream, before its first round."""
        return cls(new_life(key, 0, 1), OpenRounds())

    def __len__(self) -> int:
        """Return how many decisions of this policy, of all its lives, are known to wait for feedback."""
        return len(self.rounds) + sum(len(other.rounds) for other in self.others.values() if other.until)

    def refusal(self, made: Decision) -> str:
        """Return why feedback of a decision is not taken, or nothing if it is."""
        source, number = made.source, made.round
        if source == self.life:
            if self.rounds.has(number):
                return ""
            return "was answered or has expired" if 1 <= number <= self.rounds.last else "was never decided"
        if source[:1] != MADE:
            return "was answered" if id_hash(source) in self.given else ""
        other = self.others.get(source)
        if other is None:
            return self._unknown(life_of(source), number)
        if other.rounds.has(number) or (number > other.rounds.last and not other.sealed):
            return ""
        return "was answered or has expired"

    def _unknown(self, life: Life | None, number: int) -> str:
        """Say why a decision of an issuer that was never heard of is not taken, if it is not."""
        if number < (1 if life is None else life.first):
            return "was never decided"
        return "was answered or has expired" if life is not None and life.generation <= self.sealed else ""

    def _meet(self, source: str) -> Issuer:
        """Return an issuer, one that was never heard of as if nothing of it had been answered.

        A life of a later generation with a stream of its own was forked off this one, and is none that came before.
        """
        life = life_of(source)
        if source not in self.others and life is None:
            self.others[source] = Issuer(OpenRounds())
        elif source not in self.others and life is not None:
            shared = life.stream == self._present.stream
            forked = life.generation > self._present.generation and not shared
            until = 0 if forked else self._present.first
            self.others[source] = Issuer(OpenRounds(life.first - 1), until=until, shared=shared)
        return self.others[source]

    def close(self, made: Decision) -> None:
        """Note that a decision was answered."""
        source, number = made.source, made.round
        if source == self.life:
            self.rounds.close(number)
        elif source[:1] != MADE:
            self.given.add(id_hash(source))
        else:
            other = self._meet(source)
            other.rounds.reach(number)
            other.rounds.close(number)
            if other.shared:
                self.rounds.skip(number)

    def counted(self, made: Decision) -> bool:
        """Tell whether the policy counted a decision when it was taken, and has not lost that."""
        if made.source == self.life:
            return True
        other = self.others.get(made.source)
        return other is not None and made.round <= other.counted

    def expire(self, *, before: int) -> int:
        """Close what is older than a round of this life, lost decisions of earlier lives included; return how many."""
        number: Any = before
        if not isinstance(number, int | np.integer):
            raise ValueError(f"before must be the number of a round, a whole number; got {before!r}")
        before = int(number)
        count = self.rounds.expire(before=before)
        if self._present.first <= before:
            self.sealed = self._present.generation
        for other in self.others.values():
            if other.until:
                over = other.until <= before
                count += other.rounds.expire(before=other.rounds.last + 1 if over else before)
                other.sealed = other.sealed or over
        return count

    def next_life(self, key: int, *, same_stream: bool = True, counted: bool = True) -> "Ledger":
        """Return the ledger of the life after this one, which draws from a stream: the same, or one of its own.

        ``counted``: what this life has counted is not lost.
        """
        first, generation = self.rounds.last + 1, self._present.generation + 1
        count = self.rounds.last * counted
        others = {**self.others, self.life: Issuer(self.rounds, until=first, shared=True, counted=count)}
        for other in others.values():
            other.shared = other.shared and same_stream
        return Ledger(new_life(key, generation, first), OpenRounds(first - 1), others, self.given, self.sealed)

    def header(self) -> dict[str, Any]:
        """Return what a file's header keeps."""
        others = [[name, o.rounds.last, o.until, o.sealed, o.shared, o.counted] for name, o in self.others.items()]
        return {"rounds": self.rounds.last, "life": self.life, "sealed": self.sealed, "issuers": others}

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
        life = header.get("life", MADE + header["name"])
        return cls(life, rounds, others, given, header.get("sealed", -1))
