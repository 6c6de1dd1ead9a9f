"""Every decision and every version of a store computed again from its log.

A log falls into pieces between snapshots. Each piece begins with the policy in its snapshot, draws every decision again
and learns every batch again, and must end with the policy in the next snapshot, bit for bit; so pieces can be checked
at the same time, and all of them together check the whole.
"""

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bothworlds.policy import Policy
from bothworlds.service.experiment import Lesson, followed, opened, ready, restored
from bothworlds.service.exporting import number_in
from bothworlds.service.records import MARKS, Drawn, Kind, Paid, Record, Snapshot, drawn_from, packed, unpacked
from bothworlds.service.sqlite import SQLiteStore
from bothworlds.service.store import Store

AT_HAND = 100_000  # decisions without a reward that are kept in memory
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
        if not self.faults:
            return f"verified: {told}, all as the log says, bit for bit"
        return "\n".join([f"not verified: {told}, and", *self.faults[:MOST_FAULTS]])


def verify(
    path: str | Path,
    name: str | None = None,
    *,
    processes: int = 2,
    told: Callable[[int, int], None] = lambda *_: None,
) -> Found:
    """Compute every decision and version of an experiment again; ``told`` hears of every piece that is done."""
    store = SQLiteStore(path, writes=False)
    try:
        pieces = pieces_of(store, number_in(store, name, Path(path)), str(path))
    finally:
        store.close()
    whole = Found()
    for count, found in enumerate(_checked_all(pieces, processes), 1):
        whole.add(found)
        told(count, len(pieces))
    return whole


def _checked_all(pieces: list[Piece], processes: int) -> Iterator[Found]:
    if processes == 1 or len(pieces) == 1:
        yield from map(checked, pieces)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(pieces)), mp_context=context) as pool:
        yield from pool.map(checked, pieces)


def pieces_of(store: Store, number: int, path: str) -> list[Piece]:
    """Return the pieces of a log, in their order."""
    places = {0: 0}
    for mark in store.marks(number):
        places[unpacked(MARKS[mark.kind], mark.body).version] = mark.seq
    snapshots = [one for one in reversed(store.snapshots(number)) if one.version in places]
    if not snapshots:
        raise ValueError(f"{path}: there is no snapshot to begin with")
    ends = [*snapshots[1:], None]
    last = store.last()
    return [
        Piece(path, number, begin, end, places[begin.version], last if end is None else places[end.version])
        for begin, end in zip(snapshots, ends, strict=True)
    ]


def checked(piece: Piece) -> Found:
    """Compute one piece again."""
    store = SQLiteStore(piece.path, writes=False)
    try:
        return _Walk(store, piece).done()
    finally:
        store.close()


class _Walk:
    """A way through a piece: the policy of the moment, its plan, and rewards that are not learnt yet."""

    def __init__(self, store: Store, piece: Piece) -> None:
        self.store, self.piece, self.found = store, piece, Found(pieces=1)
        self.open: dict[str, Drawn] = {}
        self.lessons: list[Lesson] = []

    def done(self) -> Found:
        """Walk to the end, or to the first version that is not as the log says."""
        piece = self.piece
        try:
            self.policy = opened(self.store, piece.begin)
            self.plan = ready(self.policy)
            for record in self.store.read(after=min(piece.begin.through, piece.first), through=piece.last):
                if record.experiment == piece.experiment:
                    self._take(record)
            if piece.end is not None and (self.policy.version, self.policy.digest) != piece.end[1:4:2]:
                self.found.faults.append(f"the snapshot of version {piece.end.version} is not what the log leads to")
        except ValueError as error:
            self.found.faults.append(f"after version {piece.begin.version}: {error}")
        return self.found

    def _take(self, record: Record) -> None:
        if record.kind == Kind.DECISION:
            drawn = unpacked(Drawn, record.body)
            self.open[str(record.id)] = drawn
            if len(self.open) > AT_HAND:
                del self.open[next(iter(self.open))]
            if record.seq > self.piece.first:
                self._decide_again(record, drawn)
        elif record.kind == Kind.REWARD:
            drawn = self._drawn(str(record.id))
            self.lessons.append(Lesson(record.seq, str(record.id), drawn, unpacked(Paid, record.body).reward))
            self.found.rewards += record.seq > self.piece.first
        elif record.kind in MARKS and record.seq > self.piece.first:
            self._follow(record)

    def _drawn(self, name: str) -> Drawn:
        """Return a decision that waits for its reward."""
        if name in self.open:
            return self.open.pop(name)
        found = [one for one in self.store.find(self.piece.experiment, [name]) if one.kind == Kind.DECISION]
        if not found:
            raise ValueError(f"the log has a reward of decision {name!r}, and no such decision")
        return unpacked(Drawn, found[0].body)

    def _decide_again(self, record: Record, drawn: Drawn) -> None:
        self.found.decisions += 1
        made = self.plan.again(drawn.context, str(record.id))
        if packed(drawn_from(made, self.plan, drawn.asked)) != record.body:
            said = f"decision {record.id!r} of version {drawn.version} is not what plan {self.plan.version} decides"
            self.found.faults.append(said)

    def _follow(self, record: Record) -> None:
        body: Any = unpacked(MARKS[record.kind], record.body)
        learnt = [lesson for lesson in self.lessons if lesson.seq <= body.through]
        self.lessons = self.lessons[len(learnt) :]
        self.policy = followed(self.policy, record.kind, body, learnt, self._went_back)
        self.plan = ready(self.policy)
        self.found.versions += 1

    def _went_back(self, version: int) -> Policy:
        return restored(self.store, self.piece.experiment, version=version)[0]
