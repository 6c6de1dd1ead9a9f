"""Stores for the tests of all stores: how one is opened, in a folder of its own, and how its format is altered."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bothworlds.service.records import Kind, Record, Snapshot
from bothworlds.service.sqlite import SQLiteStore
from bothworlds.service.store import Store


class Maker(NamedTuple):
    """A kind of store: opens it for writing or for reading only, and gives it the name of another format."""

    name: str
    write: Callable[[Path], Store]
    read: Callable[[Path], Store]
    set_format: Callable[[Path, str], None]


def _set_format(folder: Path, name: str) -> None:
    connection = sqlite3.connect(folder / "log.sqlite")
    with connection:
        connection.execute("UPDATE about SET value = ? WHERE name = 'format'", (name,))
    connection.close()


MAKERS = [
    Maker(
        "sqlite",
        lambda folder: SQLiteStore(folder / "log.sqlite"),
        lambda folder: SQLiteStore(folder / "log.sqlite", writes=False),
        _set_format,
    )
]


def decision(name: str, *, experiment: int = 1, time: float = 0.0, active: bool = True, body: bytes = b"d") -> Record:
    """Return a record of a decision, not yet stored."""
    return Record(0, experiment, Kind.DECISION, name, time, active, body)


def about(kind: Kind, name: str, *, experiment: int = 1, time: float = 0.0, flag: bool = True) -> Record:
    """Return another record about a decision."""
    return Record(0, experiment, kind, name, time, flag, f"{kind.name} {name}".encode())


def mark(kind: Kind = Kind.VERSION, *, experiment: int = 1, body: bytes = b"v") -> Record:
    """Return a version, a change or a rollback."""
    return Record(0, experiment, kind, None, 0.0, True, body)


def snapshot(version: int, *, through: int = 0, footing: str = "f", experiment: int = 1) -> Snapshot:
    """Return a snapshot with a content of its own."""
    return Snapshot(experiment, version, through, f"digest {version}", footing, f"content {version}".encode())
