"""Pieces of a log between snapshots, and what is found in them."""

from dataclasses import dataclass, field
from typing import NamedTuple

from bothworlds.service.records import MARKS, Snapshot, unpacked
from bothworlds.service.store import Store, sealed_in

MOST_FAULTS = 20


class Piece(NamedTuple):
    """A part of a log, from a snapshot to the next or to the end; its records come after ``first``."""

    path: str
    experiment: int
    begin: Snapshot
    end: Snapshot | None
    first: int
    last: int


@dataclass
class Found:
    """What was computed again, and what did not come out the same."""

    decisions: int = 0
    rewards: int = 0
    versions: int = 0
    pieces: int = 0
    sealed: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, other: "Found") -> None:
        """Take in what was found in another piece."""
        self.decisions += other.decisions
        self.rewards += other.rewards
        self.versions += other.versions
        self.pieces += other.pieces
        self.faults += other.faults

    def __str__(self) -> str:
        told = f"{self.decisions:,} decisions, {self.rewards:,} rewards, {self.versions:,} versions"
        if self.sealed:
            told += f" after version {self.sealed}, up to which rewarded decisions were erased"
        if not self.faults:
            return f"verified: {told}, all as the log says, bit for bit"
        return "\n".join([f"not verified: {told}, and", *self.faults[:MOST_FAULTS]])


def pieces_of(store: Store, number: int, path: str) -> list[Piece]:
    """Return the pieces of a log, in their order."""
    places, digests, sealed = {0: 0}, {}, store.noted(sealed_in(number))
    for mark in store.marks(number):
        body = unpacked(MARKS[mark.kind], mark.body)
        places[body.version], digests[body.version] = mark.seq, body.digest
    snapshots = [one for one in reversed(store.snapshots(number)) if one.version in places and one.version >= sealed]
    if sealed and (not snapshots or (snapshots[0].version, snapshots[0].digest) != (sealed, digests.get(sealed))):
        raise ValueError(f"{path}: the snapshot of version {sealed}, with which it begins, is gone or another")
    if not snapshots:
        raise ValueError(f"{path}: there is no snapshot to begin with")
    ends = [*snapshots[1:], None]
    last = store.last()
    return [
        Piece(path, number, begin, end, places[begin.version], last if end is None else places[end.version])
        for begin, end in zip(snapshots, ends, strict=True)
    ]
