"""Offline maintenance of a store: roll back to an earlier version, erase old decisions."""

import time
from pathlib import Path
from typing import NamedTuple

from bothworlds.policy import Policy
from bothworlds.service.dsn import location_text
from bothworlds.service.experiment import load_snapshot, restore, snapshot_of, warm_plan
from bothworlds.service.locations import open_alone
from bothworlds.service.messages import Changed
from bothworlds.service.records import MARKS, Kind, Record, RolledBack, Snapshot, packed, unpacked
from bothworlds.service.store import Store, number_in


def restore_earlier(store: Store, number: int, *, now: int, to: int) -> Policy:
    """Return the policy of version ``to``, renumbered as the version after ``now``.

    Raises
    ------
    ValueError
        If no plan had that version, it is not earlier than ``now``, or the problem has changed since.
    """
    if to >= now:
        raise ValueError(f"version {to} is not earlier than the current version {now}")
    marks = [(mark.kind, unpacked(MARKS[mark.kind], mark.body).version) for mark in store.marks(number)]
    if any(kind == Kind.CHANGE and version > to for kind, version in marks):
        raise ValueError(f"the problem has changed since version {to}; change it again instead")
    if to and to not in [version for _, version in marks]:
        previous = max((version for _, version in marks if version < to), default=0)
        raise ValueError(f"no plan had version {to}; the one before it is {previous}")
    policy = restore(store, number, version=to)[0]
    policy.renumber(now + 1)
    return policy


def rollback_body(policy: Policy, *, through: int, to: int) -> bytes:
    """Return the body of a rollback's log record; ``policy`` is the one after the rollback."""
    return packed(RolledBack(policy.version, warm_plan(policy).digest, through, to))


def roll_back(path: str | Path, name: str | None, to: int) -> Changed:
    """Roll a store back to a version; its service must not run."""
    with open_alone(path) as store:
        number = number_in(store, name, path)
        current, through, _ = restore(store, number)
        policy = restore_earlier(store, number, now=current.version, to=to)
        body = rollback_body(policy, through=through, to=to)
        mark = Record(0, number, Kind.ROLLBACK, None, time.time(), True, body)
        store.append([mark], snapshots=[snapshot_of(policy, number, through)], plans=[(number, policy.plan())])
        names = {value: key for key, value in store.experiments().items()}
        return Changed(names[number], policy.version, policy.digest)


class Erased(NamedTuple):
    """Number of erased records, and the version of the snapshot that has learned from them."""

    records: int
    version: int


def erase_decisions(path: str | Path, name: str | None = None, *, through: int | None = None) -> Erased:
    """Erase the decisions whose rewards a snapshot has learned; the service of the store must not run.

    The snapshot is the newest one, or the newest up to version ``through``. Decisions without a reward stay.

    Raises
    ------
    ValueError
        If there is no such snapshot, it is damaged, or a later rollback needs what would be erased.
    """
    with open_alone(path) as store:
        snapshots = store.snapshots(number_in(store, name, path))
        learned = [snapshot for snapshot in snapshots if snapshot.version > 0]
        candidates = [snapshot for snapshot in learned if through is None or snapshot.version <= through]
        if not candidates:
            oldest = min((snapshot.version for snapshot in learned), default=None)
            available = "there is none yet" if oldest is None else f"the oldest has version {oldest}"
            raise ValueError(
                f"{location_text(path)}: only decisions that a snapshot has learned can be erased; {available}"
            )
        snapshot = candidates[0]
        _check_rollbacks(store, snapshot)
        load_snapshot(store, snapshot)  # a damaged snapshot must not replace the records
        return Erased(store.erase(snapshot), snapshot.version)


def _check_rollbacks(store: Store, snapshot: Snapshot) -> None:
    """Refuse a snapshot if a later rollback returns to a version before it."""
    marks = [mark for mark in store.marks(snapshot.experiment) if mark.kind == Kind.ROLLBACK]
    for rollback in [unpacked(RolledBack, mark.body) for mark in marks]:
        if rollback.to < snapshot.version < rollback.version:
            raise ValueError(
                f"version {rollback.version} is a rollback to version {rollback.to}, which cannot be verified without "
                f"what version {snapshot.version} has learned; erase through {rollback.version} or later, or through "
                f"{rollback.to}"
            )
