"""What rollbacks in a log need of it."""

from bothworlds.service.records import Kind, RolledBack, Snapshot, unpacked
from bothworlds.service.store import Store


def check_rollbacks(store: Store, snapshot: Snapshot) -> None:
    """Refuse a snapshot if a later rollback returns to a version before it."""
    marks = [mark for mark in store.marks(snapshot.experiment) if mark.kind == Kind.ROLLBACK]
    for rollback in [unpacked(RolledBack, mark.body) for mark in marks]:
        if rollback.to < snapshot.version < rollback.version:
            raise ValueError(
                f"version {rollback.version} is a rollback to version {rollback.to}, which cannot be verified without "
                f"what version {snapshot.version} has learned; erase through {rollback.version} or later, or through "
                f"{rollback.to}"
            )
