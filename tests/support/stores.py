"""The kinds of stores under test: how to open one and how to alter its format."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from bothworlds.service.postgres.postgres_store import PostgresStore
from bothworlds.service.records import Kind, Record, Snapshot
from bothworlds.service.sqlite import SQLiteStore
from bothworlds.service.store import Store
from support.postgres import needs_postgres, schema_for, shared_server


class StoreFactory(NamedTuple):
    """A kind of store: functions that open it for writing, for reading, and that set the name of its format."""

    name: str
    write: Callable[[Path], Store]
    read: Callable[[Path], Store]
    set_format: Callable[[Path, str], None]


def _set_format(folder: Path, name: str) -> None:
    connection = sqlite3.connect(folder / "log.sqlite")
    with connection:
        connection.execute("UPDATE about SET value = ? WHERE name = 'format'", (name,))
    connection.close()


def _read_schema(folder: Path) -> Store:
    if not folder.is_dir():
        return PostgresStore(shared_server().schema(), writes=False)
    return PostgresStore(schema_for(folder), writes=False)


def _set_format_in_schema(folder: Path, name: str) -> None:
    with psycopg.connect(schema_for(folder)) as connection:
        connection.execute("UPDATE about SET value = %s WHERE name = 'format'", (name,))


SQLITE = StoreFactory(
    "sqlite",
    lambda folder: SQLiteStore(folder / "log.sqlite"),
    lambda folder: SQLiteStore(folder / "log.sqlite", writes=False),
    _set_format,
)
POSTGRES = StoreFactory(
    "postgres",
    lambda folder: PostgresStore(schema_for(folder)),
    _read_schema,
    _set_format_in_schema,
)
MAKERS: list[Any] = [pytest.param(SQLITE, id="sqlite"), pytest.param(POSTGRES, id="postgres", marks=needs_postgres)]


def decision(name: str, *, experiment: int = 1, time: float = 0.0, active: bool = True, body: bytes = b"d") -> Record:
    """Return the record of a decision, not yet stored."""
    return Record(0, experiment, Kind.DECISION, name, time, active, body)


def about(kind: Kind, name: str, *, experiment: int = 1, time: float = 0.0, flag: bool = True) -> Record:
    """Return another record about a decision."""
    return Record(0, experiment, kind, name, time, flag, f"{kind.name} {name}".encode())


def mark(kind: Kind = Kind.VERSION, *, experiment: int = 1, body: bytes = b"v") -> Record:
    """Return the record of a version, a change or a rollback."""
    return Record(0, experiment, kind, None, 0.0, True, body)


def snapshot(
    version: int,
    *,
    through: int = 0,
    fingerprint: str = "f",
    experiment: int = 1,
    ordered_through: int = 0,
    time: float = 0.0,
) -> Snapshot:
    """Return a snapshot with unique content."""
    digest, content = f"digest {version}", f"content {version}".encode()
    return Snapshot(experiment, version, through, digest, fingerprint, content, ordered_through, time)
