"""The interface of a store: one writer appends; readers in any thread see what is committed."""

import contextlib
import math
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from bothworlds.service.dsn import location_text
from bothworlds.service.records import Frame, Record, Snapshot

if TYPE_CHECKING:
    from bothworlds.policy.plan import Plan

Shown: TypeAlias = tuple[float, float, bytes, float | None, bytes | None]
# when a decision became active, when it was decided, its body, and when it got its reward, and the body of that
Turn: TypeAlias = tuple[int, str, bytes, int | None, bytes | None, bool]
# where a decision became active, its id and body, where its reward is, the body of that, and whether it is unanswered
Row: TypeAlias = tuple[int, int, str | None, bytes]  # sequence number, kind, id and body of a record
NumberedPlan: TypeAlias = "tuple[int, Plan]"  # the number of an experiment, and its current plan
Insert: TypeAlias = Callable[[str, Iterable[Sequence[Any]]], None]
NO_NOTES: Mapping[str, int] = MappingProxyType({})


class Space(NamedTuple):
    """Bytes that a store takes, by part, and bytes that are free for it, None if that is not known."""

    used: dict[str, int]
    free: int | None


class StoreError(Exception):
    """Nothing was added to the store, as it is full, locked or missing; trying again is safe."""


class ConflictError(StoreError):
    """Another host has stored a record of the same kind about the same decision; read its state again."""


class TermOverError(StoreError):
    """Nothing was added, as another host has begun to learn."""


def erased_version_key(experiment: int) -> str:
    """Return the name of the note with the version through which rewarded decisions were erased."""
    return f"sealed {experiment}"


def erased_position_key(experiment: int) -> str:
    """Return the name of the note with the sequence number up to which that is done."""
    return f"erased {experiment}"


class Store(Protocol):
    """One append-only log of records in commit order, snapshots, frames by fingerprint, and notes (named integers)."""

    def starting(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which no other host starts experiments."""

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which no other host learns from this store; a ValueError if one does."""

    def experiment(self, name: str) -> int:
        """Return the number of an experiment; a new name gets a new number."""

    def experiments(self) -> dict[str, int]:
        """Return the numbers of all experiments by name."""

    def drop_unused(self, used: Collection[str]) -> list[str]:
        """Drop the experiments without any record whose names are not in ``used``; return their names.

        Their snapshots and frames are dropped, too. Experiments that have learned or erased something stay.
        """

    def append(
        self,
        records: Sequence[Record],
        *,
        snapshots: Sequence[Snapshot] = (),
        frames: Sequence[Frame] = (),
        notes: Mapping[str, int] = NO_NOTES,
        plans: Sequence[NumberedPlan] = (),
    ) -> int:
        """Add all of this in one commit, and return the sequence number of the first record once it is durable.

        ``plans`` are for other hosts; a store of one host ignores them.

        Raises
        ------
        StoreError
            If nothing was added; also if a decision would get a second record of the same kind.
        """

    def keep_snapshots(self, experiment: int, seconds: float) -> None:
        """Keep one snapshot of an experiment for every so many seconds, besides those that are kept anyway."""

    def erase_part(self, snapshot: Snapshot, *, after: int, through: int) -> int:
        """Erase as `erase` does, those decisions that were learned from or closed in a part of the log.

        Snapshots are dropped and the version is noted with the first part, and how far it is with each. The space is
        used again, but not given back.
        """

    def erase(self, snapshot: Snapshot) -> int:
        """Erase the decisions whose rewards a snapshot has learned, and older snapshots except the first.

        Unanswered decisions up to there are erased, too. The snapshot is kept forever, and its version is noted
        under `erased_version_key`. Returns the number of erased records.

        Raises
        ------
        BlockingIOError
            If a reader keeps the erased bytes in the file.
        """

    def note(self, name: str) -> int:
        """Return the note with this name, 0 if there is none."""

    def notes(self) -> dict[str, int]:
        """Return all notes."""

    def filling(self) -> contextlib.AbstractContextManager[Insert]:
        """Return a context whose function adds rows to a table of this empty store, all in one commit."""

    def tidy(self) -> None:
        """Do maintenance between two commits, if it is due; no request waits for it."""

    def probe(self) -> None:
        """Write something other than a record; raises StoreError if the store cannot be written."""

    def find(self, experiment: int, ids: Sequence[str]) -> list[Record]:
        """Return all records about the decisions with these ids."""

    def newest(self, experiment: int, kind: int, *, most: int) -> list[Record]:
        """Return the newest records of a kind near the end of the log, newest first, at most ``most``."""

    def counts(self, experiment: int, *, after: int = 0, through: int) -> dict[tuple[int, bool], int]:
        """Return the numbers of records about decisions in a range of the log, by kind and flag; reads it."""

    def read(self, *, after: int = 0, through: int | None = None) -> Iterator[Record]:
        """Yield committed records in log order."""

    def blocks(self, experiment: int, *, after: int, through: int) -> Iterator[list[Row]]:
        """Yield an experiment's committed records as rows in log order, many at a time."""

    def marks(self, experiment: int, *, after: int = 0) -> Iterator[Record]:
        """Yield an experiment's versions, changes and rollbacks in log order."""

    def rewards(
        self, experiment: int, *, after: int, through: int | None = None, active_after: int = 0
    ) -> Iterator[tuple[Record, Record]]:
        """Yield the rewards to learn in log order, late ones excluded, each with the record of its decision.

        Decisions that became active up to sequence number ``active_after`` are left out.
        """

    def turns(self, experiment: int, *, after: int, through: int) -> Generator[Turn, None, None]:
        """Yield the decisions that became active in a range of the log, in that order, each with its reward if any.

        Late rewards are left out. Rows are read one at a time.
        """

    def overdue(
        self, experiment: int, *, after: int, before: float, most: int, now: float = math.inf
    ) -> tuple[list[str], int]:
        """Return the ids of decisions without a reward that were active before a time, and the last record examined.

        Examines at most ``most`` records, up to the first one younger than ``before``. A record with a time after
        ``now`` comes from a wrong clock and counts as old as the next one with a valid time.
        """

    def history(self, experiment: int) -> Iterator[tuple[Record, Record | None, Record | None]]:
        """Yield active decisions in log order, each with its reward and its late reward."""

    def outcomes(self, experiment: int, *, after: int, through: int) -> Iterator[Shown]:
        """Yield the decisions that became active in a range of the log, in that order, each with its reward if any.

        Late rewards are left out.
        """

    def last(self) -> int:
        """Return the sequence number of the newest record, 0 if there is none."""

    def snapshots(self, experiment: int) -> list[Snapshot]:
        """Return the snapshots, newest first, without their contents."""

    def content(self, snapshot: Snapshot) -> bytes:
        """Return the content of a snapshot; a missing one is a ValueError."""

    def frame(self, fingerprint: str) -> bytes:
        """Return the frame of a fingerprint; a missing one is a ValueError."""

    def space(self) -> Space:
        """Return how much space the store takes, and how much is free."""

    def close(self) -> None:
        """Close the store and release its lock."""


def number_in(store: Store, name: str | None, path: str | Path) -> int:
    """Return the number of an experiment in a store; without a name, of the only one."""
    known, path = store.experiments(), location_text(path)
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    if name not in known:
        which = "which experiment?" if name is None else f"there is no experiment {name!r};"
        raise ValueError(f"{path}: {which} there are {', '.join(known)}")
    return known[name]
