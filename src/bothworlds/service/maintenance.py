"""Offline maintenance of a store: roll back to an earlier version, erase old decisions."""

import time
from pathlib import Path
from typing import NamedTuple

from bothworlds.policy import Policy
from bothworlds.service.dsn import location_text
from bothworlds.service.experiment import load_snapshot, restore, snapshot_of, warm_plan
from bothworlds.service.locations import open_alone
from bothworlds.service.messages import Changed
from bothworlds.service.records import MARKS, Kind, Record, RolledBack, packed, unpacked
from bothworlds.service.reward_events import Learned
from bothworlds.service.rollbacks import check_rollbacks
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
    if any(kind == Kind.HOLDOUT and version > to for kind, version in marks):
        raise ValueError(f"the holdout has changed since version {to}; a rollback cannot go back beyond that")
    if any(kind == Kind.ALGORITHM and version > to for kind, version in marks):
        raise ValueError(f"the algorithm has changed since version {to}; a rollback cannot go back beyond that")
    if to and to not in [version for _, version in marks]:
        previous = max((version for _, version in marks if version < to), default=0)
        raise ValueError(f"no plan had version {to}; the one before it is {previous}")
    policy = restore(store, number, version=to).policy
    policy.renumber(now + 1)
    return policy


def rollback_body(policy: Policy, learned: Learned, *, to: int) -> bytes:
    """Return the body of a rollback's log record; ``policy`` is the one after the rollback."""
    return packed(RolledBack(policy.version, warm_plan(policy).digest, learned.through, learned.ordered_through, to))


def roll_back(path: str | Path, name: str | None, to: int) -> Changed:
    """Roll a store back to a version; its service must not run."""
    with open_alone(path) as store:
        number = number_in(store, name, path)
        restored = restore(store, number)
        policy = restore_earlier(store, number, now=restored.policy.version, to=to)
        body = rollback_body(policy, restored, to=to)
        mark = Record(0, number, Kind.ROLLBACK, None, time.time(), True, body)
        store.append([mark], snapshots=[snapshot_of(policy, number, restored)], plans=[(number, policy.plan())])
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
        check_rollbacks(store, snapshot)
        load_snapshot(store, snapshot)  # a damaged snapshot must not replace the records
        return Erased(store.erase(snapshot), snapshot.version)
