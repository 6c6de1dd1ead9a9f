"""Retention: which old decisions may be erased while the service runs."""

from typing import NamedTuple

from bothworlds.service.experiment import load_snapshot
from bothworlds.service.records import Snapshot
from bothworlds.service.rollbacks import check_rollbacks
from bothworlds.service.store import Store, erased_position_key, erased_version_key

SNAPSHOTS = 10.0  # kept per retention time: decisions stay up to a tenth longer


class Erasure(NamedTuple):
    """Erase decisions that a snapshot has learned from; up to sequence number ``position`` that is done."""

    snapshot: Snapshot
    position: int


def next_erasure(store: Store, number: int, *, before: float) -> Erasure | None:
    """Return the erasure that was begun, or else one with the newest readable snapshot made before a time.

    Snapshots are left out that a later rollback goes back beyond.
    """
    version, position = store.note(erased_version_key(number)), store.note(erased_position_key(number))
    for snapshot in store.snapshots(number):
        if snapshot.version == version and position < snapshot.end:
            return Erasure(snapshot, position)
    for snapshot in store.snapshots(number):
        if snapshot.version > version and 0.0 < snapshot.time <= before:
            try:
                check_rollbacks(store, snapshot)
                load_snapshot(store, snapshot)  # a damaged snapshot must not replace the records
            except ValueError:
                continue
            return Erasure(snapshot, position)
    return None
