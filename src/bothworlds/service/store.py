"""What a service needs of a store. One writer adds to it; readers, in any thread, see what is committed."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, TypeAlias

from bothworlds.service.records import Frame, Record, Snapshot

Row: TypeAlias = tuple[int, int, str | None, bytes]  # place, kind, id and body of a record


NO_NOTES: Mapping[str, int] = MappingProxyType({})


class StoreError(Exception):
    """Nothing of what was to be added stands in the store: it is full, locked or gone. Trying again is safe."""


def sealed_in(experiment: int) -> str:
    """Return under which name the version of the snapshot is noted that an experiment's log begins with."""
    return f"sealed {experiment}"


class Store(Protocol):
    """One log of records in the order of their commits, snapshots, and frames by their footing."""

    def experiment(self, name: str) -> int:
        """Return the number of an experiment; a new name gets a new one."""

    def experiments(self) -> dict[str, int]:
        """Return all experiments and their numbers."""

    def append(
        self,
        records: Sequence[Record],
        *,
        snapshots: Sequence[Snapshot] = (),
        frames: Sequence[Frame] = (),
        notes: Mapping[str, int] = NO_NOTES,
    ) -> int:
        """Add records, all or none, and return once they are as durable as was asked; the place of the first.

        Raises StoreError if nothing was added. A second record of one kind about one decision is such a failure.
        """

    def erase(self, snapshot: Snapshot) -> int:
        """Erase the records of decisions whose rewards a snapshot has learnt, and older snapshots but the first.

        The snapshot is kept for ever, and its version noted under `sealed_in`. Returns how many records are gone; if
        somebody reads who keeps their bytes in the file, that is a BlockingIOError.
        """

    def noted(self, name: str) -> int:
        """Return a number that was noted with some records, 0 if none was."""

    def tidy(self) -> None:
        """Do what keeps the store in order between two appends, if it is time; nobody waits for it."""

    def probe(self) -> None:
        """Write something that is no record, to see whether the store takes it again; raises StoreError if not."""

    def find(self, experiment: int, ids: Sequence[str]) -> list[Record]:
        """Return all records about decisions, by their ids."""

    def newest(self, experiment: int, kind: int, *, most: int) -> list[Record]:
        """Return the newest records of a kind, the newest first, of those not far from the end of the log."""

    def counts(self, experiment: int, *, through: int) -> dict[tuple[int, bool], int]:
        """Return how many records about decisions there are up to a place, by kind and flag; that takes its time."""

    def read(self, *, after: int = 0, through: int | None = None) -> Iterator[Record]:
        """Yield committed records in their order."""

    def blocks(self, experiment: int, *, after: int, through: int) -> Iterator[list[Row]]:
        """Yield place, kind, id and body of an experiment's committed records in their order, many at a time."""

    def marks(self, experiment: int, *, after: int = 0) -> Iterator[Record]:
        """Yield versions, changes and rollbacks of an experiment in their order."""

    def lessons(self, experiment: int, *, after: int, through: int | None = None) -> Iterator[tuple[Record, Record]]:
        """Yield rewards that are to be learnt in their order, each with its decision."""

    def overdue(
        self, experiment: int, *, after: int, before: float, most: int, now: float = math.inf
    ) -> tuple[list[str], int]:
        """Return ids of decisions that were active before a time and have no reward, and how far was looked.

        At most so many records are looked at, up to the first that is younger. One from after ``now`` is of a clock
        that was wrong, and counts as being as old as the next that is not.
        """

    def history(self, experiment: int) -> Iterator[tuple[Record, Record | None, Record | None]]:
        """Yield decisions that were active in their order, each with its reward and its late reward."""

    def last(self) -> int:
        """Return the place of the newest record, 0 if there is none."""

    def snapshots(self, experiment: int) -> list[Snapshot]:
        """Return snapshots, newest first, without their contents."""

    def content(self, snapshot: Snapshot) -> bytes:
        """Return what a snapshot holds; one that is gone is a ValueError."""

    def frame(self, footing: str) -> bytes:
        """Return the frame of a footing."""

    def close(self) -> None:
        """Let go of the store."""


def number_in(store: Store, name: str | None, path: Path) -> int:
    """Return the number of an experiment in a store, or of the only one."""
    known = store.experiments()
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    if name not in known:
        which = "which experiment?" if name is None else f"there is no experiment {name!r};"
        raise ValueError(f"{path}: {which} there are {', '.join(known)}")
    return known[name]
