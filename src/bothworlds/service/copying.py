"""Copy a store to another place, from a file to a database or back, and compare both sides."""

import contextlib
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from bothworlds.service.dsn import is_dsn, location_text
from bothworlds.service.locations import open_alone, open_store
from bothworlds.service.store import Store


class Copied(NamedTuple):
    """Numbers of copied records and snapshots, and the names of the experiments."""

    records: int
    snapshots: int
    experiments: tuple[str, ...]


def copy_store(source: str | Path, target: str | Path) -> Copied:
    """Copy a store that no service uses to a place where none is; sequence numbers and all bytes stay the same.

    The copy appears as a whole or not at all, and is compared with the source.

    Raises
    ------
    ValueError
        If the target has a store that is not empty, the source is in use, or both differ afterwards.
    """
    if not is_dsn(target) and Path(target).exists():
        raise ValueError(f"{target} exists already; copy to a new file")
    with open_alone(source) as original, contextlib.closing(open_store(target)) as copy:
        if copy.experiments() or copy.last():
            raise ValueError(f"{location_text(target)} has a store that is not empty; copy to an empty schema")
        with copy.filling() as insert:
            for table, rows in _tables(original):
                insert(table, rows)
        counts = {table: _equal_rows(table, original, copy) for table in ("log", "snapshots", "frames", "notes")}
        return Copied(counts["log"], counts["snapshots"], tuple(copy.experiments()))


def _tables(store: Store) -> Iterator[tuple[str, Iterator[Any]]]:
    """Yield the tables of a store, each with its rows."""
    numbers = store.experiments()
    yield "experiments", ((number, name) for name, number in numbers.items())
    yield "log", ((r.seq, r.experiment, int(r.kind), r.id, r.time, bool(r.flag), r.body) for r in store.read())
    saved = [snapshot for number in numbers.values() for snapshot in store.snapshots(number)]
    yield "snapshots", (snapshot._replace(content=store.content(snapshot)) for snapshot in saved)
    yield "frames", ((name, store.frame(name)) for name in sorted({snapshot.fingerprint for snapshot in saved}))
    yield "notes", iter(sorted(store.notes().items()))


def _equal_rows(table: str, original: Store, copy: Store) -> int:
    """Compare a table of both stores row by row; return the number of rows."""
    count = 0
    for count, (left, right) in enumerate(zip_longest(_rows(original, table), _rows(copy, table)), 1):
        if left is None or right is None or tuple(left) != tuple(right):
            raise ValueError(
                f"row {count} of {table} differs: the source was written to while it was copied, or the copy is "
                "damaged; stop all hosts, remove the copy, and copy again"
            )
    return count


def _rows(store: Store, table: str) -> Iterator[Any]:
    return next(rows for name, rows in _tables(store) if name == table)
