"""Old decisions erased from a store: what was learnt from them stays, in a snapshot that the log begins with then."""

from pathlib import Path
from typing import NamedTuple

from bothworlds.service.experiment import opened
from bothworlds.service.records import Kind, RolledBack, Snapshot, unpacked
from bothworlds.service.sqlite import SQLiteStore
from bothworlds.service.store import Store, number_in


class Erased(NamedTuple):
    """How many records are gone, and the version of the snapshot that has learnt from them."""

    records: int
    version: int


def erased(path: str | Path, name: str | None = None, *, through: int | None = None) -> Erased:
    """Erase decisions whose rewards were learnt up to the newest snapshot, or the newest not after a version.

    For a store whose service does not run. Decisions that wait for a reward stay.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"no such store: {path}")
    store = SQLiteStore(path)
    try:
        found = store.snapshots(number_in(store, name, Path(path)))
        wanted = [one for one in found if one.version > 0 and (through is None or one.version <= through)]
        if not wanted:
            least = min((one.version for one in found if one.version > 0), default=None)
            there = "there is none yet" if least is None else f"the oldest is that of version {least}"
            raise ValueError(f"{path}: nothing can be erased without a snapshot that has learnt from it; {there}")
        _check_way(store, wanted[0])
        opened(store, wanted[0])  # one that is damaged is no ground to erase anything
        return Erased(store.erase(wanted[0]), wanted[0].version)
    finally:
        store.close()


def _check_way(store: Store, snapshot: Snapshot) -> None:
    """Refuse a snapshot after which the log goes back to a version before it."""
    marks = [mark for mark in store.marks(snapshot.experiment) if mark.kind == Kind.ROLLBACK]
    for back in [unpacked(RolledBack, mark.body) for mark in marks]:
        if back.to < snapshot.version < back.version:
            raise ValueError(
                f"version {back.version} went back to version {back.to}, which cannot be computed again without what "
                f"version {snapshot.version} has learnt; erase through {back.version} or later, or through {back.to}"
            )
