"""Back to an earlier version: what was learnt since is forgotten, the log keeps everything."""

import time
from pathlib import Path

from bothworlds.policy import Policy
from bothworlds.service.experiment import ready, restored, snapshot_of
from bothworlds.service.messages import Changed
from bothworlds.service.records import MARKS, Kind, Record, RolledBack, packed, unpacked
from bothworlds.service.sqlite import SQLiteStore
from bothworlds.service.store import Store, number_in


def went_back(store: Store, number: int, *, now: int, to: int) -> Policy:
    """Return the policy of version ``to`` under the version after ``now``; refuse what cannot be gone back to."""
    if to >= now:
        raise ValueError(f"version {to} is not before version {now}, which plays")
    marks = [(mark.kind, unpacked(MARKS[mark.kind], mark.body).version) for mark in store.marks(number)]
    if any(kind == Kind.CHANGE and version > to for kind, version in marks):
        raise ValueError(f"the problem has changed since version {to}; change it again instead")
    if to and to not in [version for _, version in marks]:
        near = max((version for _, version in marks if version < to), default=0)
        raise ValueError(f"no plan had version {to}; the one before it is {near}")
    policy = restored(store, number, version=to)[0]
    policy.renumber(now + 1)
    return policy


def mark_of(policy: Policy, *, through: int, to: int) -> bytes:
    """Return what the log says of it."""
    return packed(RolledBack(policy.version, ready(policy).digest, through, to))


def rolled_back(path: str | Path, name: str | None, to: int) -> Changed:
    """Go back to a version in a store whose service does not run."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"no such store: {path}")
    store = SQLiteStore(path)
    try:
        number = number_in(store, name, Path(path))
        present, through, _ = restored(store, number)
        policy = went_back(store, number, now=present.version, to=to)
        mark = Record(0, number, Kind.ROLLBACK, None, time.time(), True, mark_of(policy, through=through, to=to))
        store.append([mark], snapshots=[snapshot_of(policy, number, through)])
        names = {value: key for key, value in store.experiments().items()}
        return Changed(names[number], policy.version, policy.digest)
    finally:
        store.close()
