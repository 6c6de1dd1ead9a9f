"""The store as an SQLite file in WAL mode: one connection writes and checkpoints, others only read."""

import fcntl
import math
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any, Literal

from bothworlds.service.records import FORMAT, Frame, Kind, Record, Snapshot
from bothworlds.service.store import NO_NOTES, Row, StoreError, sealed_in

Durability = Literal["full", "process"]
PATIENCE = 0.25  # seconds to wait for a lock that another program has
CHECKPOINT = 4000  # records
KEPT = 3  # newest snapshots
APART = 200_000  # records between older ones
NEAR = 20_000  # records from the end of the log that are looked at for the newest ones
MOST, STEP = 256, 16  # rows of one statement; each is one call, and a call is a chance to wait for a thread
SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE experiments (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE log (
    seq INTEGER PRIMARY KEY, experiment INTEGER NOT NULL, kind INTEGER NOT NULL, id TEXT, time REAL NOT NULL,
    flag INTEGER NOT NULL, body BLOB NOT NULL
);
CREATE UNIQUE INDEX by_id ON log (id, experiment, kind) WHERE id IS NOT NULL;
CREATE INDEX marks ON log (experiment, seq) WHERE id IS NULL;
CREATE TABLE snapshots (
    experiment INTEGER NOT NULL, version INTEGER NOT NULL, through INTEGER NOT NULL,
    digest TEXT NOT NULL, footing TEXT NOT NULL, content BLOB NOT NULL, PRIMARY KEY (experiment, version)
);
CREATE TABLE frames (footing TEXT PRIMARY KEY, content BLOB NOT NULL);
"""


PASSED = (  # the newest place of all that some cursor has passed; records may have been erased since
    "SELECT max(coalesce((SELECT max(seq) FROM log), 0), coalesce((SELECT max(through) FROM snapshots), 0), "
    "coalesce((SELECT max(value + 0) FROM about WHERE name LIKE 'expired %'), 0))"
)
SEALED = "coalesce((SELECT value FROM about WHERE name = 'sealed ' || snapshots.experiment), -1) + 0"


class SQLiteStore:
    """A store in one file (and its ``-wal`` and ``-shm`` beside it).

    ``durability`` "full" waits for the disk with every commit; "process" leaves that to the operating system: what was
    acknowledged survives the death of the process, not that of the machine. ``writes`` takes the store for writing,
    which one process can at a time.

    >>> store = SQLiteStore("ads.sqlite")
    >>> store.append([Record(0, store.experiment("banners"), Kind.DECISION, "visit 9", 5.0, True, b"...")])
    1
    >>> [(record.seq, record.id) for record in store.read()]
    [(1, 'visit 9')]
    >>> store.close()
    """

    def __init__(self, path: str | Path, *, durability: Durability = "full", writes: bool = True) -> None:
        self.path, self.writes = Path(path), writes
        self._own = threading.local()
        self._held: list[IO[bytes] | sqlite3.Connection] = []
        if not writes:
            if not self.path.is_file():
                raise FileNotFoundError(f"no such store: {path}")
            try:
                self._check()
            except ValueError:
                self.close()
                raise
            return
        self._held.append(_locked(self.path))
        try:
            self._writer = _connected(str(self.path), uri=False)
            self._held.append(self._writer)
            _asked(self._writer, "PRAGMA journal_mode = WAL")
            _asked(self._writer, f"PRAGMA synchronous = {'FULL' if durability == 'full' else 'NORMAL'}")
            _asked(self._writer, "PRAGMA wal_autocheckpoint = 0")  # done here, where it is seen
            if not _asked(self._writer, "SELECT 1 FROM sqlite_master WHERE name = 'about'"):
                self._begin()
            self._check()
            self._last = self._tidied = int(_asked(self._writer, PASSED)[0][0])
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.Error | StoreError):
                raise ValueError(f"{self.path} is no store of this library, or cannot be used: {error}") from None
            raise

    def _begin(self) -> None:
        """Make the tables of a new store, whole or not at all."""
        made = "\n".join(["BEGIN IMMEDIATE;", SCHEMA, f"INSERT INTO about VALUES ('format', '{FORMAT}');", "COMMIT;"])
        self._writer.executescript(made)

    def _check(self) -> None:
        """Refuse a file that is no store, or one of another format."""
        try:
            found = _asked(self._reader, "SELECT value FROM about WHERE name = 'format'")
        except (sqlite3.Error, StoreError) as error:
            hint = "; of a copy, the -wal file beside the store is missing" * ("no such table" in str(error))
            raise ValueError(f"{self.path} is no store of this library: {error}{hint}") from None
        if found != [(FORMAT,)]:
            raise ValueError(
                f"{self.path} has format {found[0][0] if found else None!r}, and this version reads {FORMAT!r}; use "
                "the version of the library that wrote it to export the log (bothworlds export), and begin a new store"
            )

    @property
    def _reader(self) -> sqlite3.Connection:
        """A connection of this thread's own that reads."""
        made: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if made is None:
            made = self._own.connection = _connected(f"{self.path.resolve().as_uri()}?mode=ro", uri=True)
            self._held.append(made)
        return made

    def experiment(self, name: str) -> int:
        """Return the number of an experiment; a new name gets a new one."""
        known = self.experiments()
        if name not in known:
            _asked(self._writer, "INSERT INTO experiments (name) VALUES (?)", (name,))
        return known.get(name) or self.experiments()[name]

    def experiments(self) -> dict[str, int]:
        """Return all experiments and their numbers."""
        return dict(_asked(self._reader, "SELECT name, number FROM experiments ORDER BY number"))

    def append(
        self,
        records: Sequence[Record],
        *,
        snapshots: Sequence[Snapshot] = (),
        frames: Sequence[Frame] = (),
        notes: Mapping[str, int] = NO_NOTES,
    ) -> int:
        """Add records, all or none, and return once they are as durable as was asked; the place of the first."""
        write, first = self._writer.execute, self._last + 1
        try:
            write("BEGIN IMMEDIATE")
            for begin, size in _pieces(len(records)):
                values: list[Any] = []
                for seq, one in enumerate(records[begin : begin + size], first + begin):
                    values += (seq, one.experiment, int(one.kind), one.id, one.time, int(one.flag), one.body)
                write(_insertion(size), values)
            for note in notes.items():
                write("INSERT OR REPLACE INTO about VALUES (?, ?)", note)
            for frame in frames:
                write("INSERT OR IGNORE INTO frames VALUES (?, ?)", frame)
            for snapshot in snapshots:
                write("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?)", snapshot)
                self._forget(snapshot.experiment)
            write("COMMIT")
        except Exception as error:
            if self._writer.in_transaction:
                self._writer.rollback()
            raise StoreError(str(error)) from error
        self._last += len(records)
        return first

    def _forget(self, experiment: int) -> None:
        """Drop all but the newest snapshots, the first of each footing, and one in every so many records."""
        kept = "SELECT min(version) FROM snapshots WHERE experiment = ? GROUP BY footing"
        newest = "SELECT version FROM snapshots WHERE experiment = ? ORDER BY version DESC LIMIT ?"
        self._writer.execute(
            f"DELETE FROM snapshots WHERE experiment = ? AND version NOT IN ({kept}) AND version != {SEALED} AND "
            f"version NOT IN (SELECT version FROM ({newest})) AND through / {APART} IN "
            f"(SELECT s.through / {APART} FROM snapshots s "
            "WHERE s.experiment = snapshots.experiment AND s.version < snapshots.version)",
            (experiment, experiment, experiment, KEPT),
        )

    def erase(self, snapshot: Snapshot) -> int:
        """Erase the records of decisions whose rewards a snapshot has learnt, and older snapshots but the first."""
        number, version = snapshot.experiment, snapshot.version
        learnt = "SELECT id FROM log WHERE experiment = ? AND kind = ? AND seq <= ?"
        write = self._writer.execute
        write("PRAGMA secure_delete = ON")
        write("BEGIN IMMEDIATE")
        gone = write(
            f"DELETE FROM log WHERE id IN ({learnt}) AND experiment = ?",
            (number, Kind.REWARD, snapshot.through, number),
        ).rowcount
        first = "SELECT min(version) FROM snapshots WHERE experiment = ?"
        write(
            f"DELETE FROM snapshots WHERE experiment = ? AND version < ? AND version != ({first})",
            (number, version, number),
        )
        write("INSERT OR REPLACE INTO about VALUES (?, ?)", (sealed_in(number), version))
        write("COMMIT")
        write("VACUUM")
        if _asked(self._writer, "PRAGMA wal_checkpoint(TRUNCATE)")[0][0]:
            raise BlockingIOError(
                f"{self.path}: {gone:,} records are erased, but another program is reading it, so that their bytes "
                "stay in the file; let it end, and erase again"
            )
        return gone

    def tidy(self) -> None:
        """Bring what was written into the file itself, once there is enough of it; nobody waits for that."""
        if self._last - self._tidied >= CHECKPOINT:
            _asked(self._writer, "PRAGMA wal_checkpoint(PASSIVE)")
            self._tidied = self._last

    def noted(self, name: str) -> int:
        """Return a number that was noted with some records, 0 if none was."""
        found = _asked(self._reader, "SELECT value FROM about WHERE name = ?", (name,))
        return int(found[0][0]) if found else 0

    def probe(self) -> None:
        """Write something that is no record, to see whether the store takes it again."""
        _asked(self._writer, "INSERT OR REPLACE INTO about VALUES ('probed', ?)", (str(time.time()),))

    def find(self, experiment: int, ids: Sequence[str]) -> list[Record]:
        """Return all records about decisions, by their ids."""
        found: list[Record] = []
        for begin in range(0, len(ids), MOST):
            asked = list(ids[begin : begin + MOST])
            asked += asked[-1:] * (-len(asked) % STEP)  # few statements, which are prepared once
            rows = _asked(self._reader, _choice(len(asked)), (experiment, *asked))
            found += [Record(*row) for row in rows]
        return found

    def newest(self, experiment: int, kind: int, *, most: int) -> list[Record]:
        """Return the newest records of a kind, the newest first, of those not far from the end of the log."""
        chosen = "SELECT * FROM log WHERE seq > ? AND experiment = ? AND kind = ? ORDER BY seq DESC LIMIT ?"
        return [Record(*row) for row in _asked(self._reader, chosen, (self.last() - NEAR, experiment, kind, most))]

    def counts(self, experiment: int, *, through: int) -> dict[tuple[int, bool], int]:
        """Return how many records about decisions there are up to a place, by kind and flag; that takes its time."""
        asked = [(kind, flag) for kind in (Kind.DECISION, Kind.ACTIVATION, Kind.REWARD, Kind.LATE) for flag in (0, 1)]
        each = ", ".join(f"count(*) FILTER (WHERE kind = {kind:d} AND flag = {flag})" for kind, flag in asked)
        found = _asked(self._reader, f"SELECT {each} FROM log WHERE experiment = ? AND seq <= ?", (experiment, through))
        return {(kind, bool(flag)): count for (kind, flag), count in zip(asked, found[0], strict=True)}

    def read(self, *, after: int = 0, through: int | None = None) -> Iterator[Record]:
        """Yield committed records in their order."""
        end = self.last() if through is None else through
        for row in _walked(self._reader, "SELECT * FROM log WHERE seq > ? AND seq <= ? ORDER BY seq", (after, end)):
            yield Record(*row)

    def blocks(self, experiment: int, *, after: int, through: int) -> Iterator[list[Row]]:
        """Yield place, kind, id and body of an experiment's committed records in their order, many at a time."""
        chosen = "SELECT seq, kind, id, body FROM log WHERE seq > ? AND seq <= ? AND experiment = ? ORDER BY seq"
        yield from _blocks(self._reader, chosen, (after, through, experiment))

    def marks(self, experiment: int, *, after: int = 0) -> Iterator[Record]:
        """Yield versions, changes and rollbacks of an experiment in their order."""
        chosen = "SELECT * FROM log WHERE id IS NULL AND experiment = ? AND seq > ? ORDER BY seq"
        for row in _walked(self._reader, chosen, (experiment, after)):
            yield Record(*row)

    def lessons(self, experiment: int, *, after: int, through: int | None = None) -> Iterator[tuple[Record, Record]]:
        """Yield rewards that are to be learnt in their order, each with its decision."""
        chosen = (
            "SELECT r.*, d.* FROM log r CROSS JOIN log d ON d.id = r.id AND d.experiment = r.experiment AND d.kind = ? "
            "WHERE r.seq > ? AND r.seq <= ? AND r.kind = ? AND r.experiment = ? ORDER BY r.seq"
        )
        end = self.last() if through is None else through
        width = len(Record.__struct_fields__)
        for row in _walked(self._reader, chosen, (Kind.DECISION, after, end, Kind.REWARD, experiment)):
            yield Record(*row[:width]), Record(*row[width:])

    def overdue(
        self, experiment: int, *, after: int, before: float, most: int, now: float = math.inf
    ) -> tuple[list[str], int]:
        """Return ids of decisions that were active before a time and have no reward, and how far was looked."""
        end, looked = after, "SELECT seq, time FROM log WHERE seq > ? ORDER BY seq LIMIT ?"
        for seq, at in _asked(self._reader, looked, (after, most)):  # clocks may go back; none is passed over
            if before < at <= now:
                break
            end = end if at > now else seq
        found = _asked(
            self._reader,
            "SELECT id FROM log WHERE seq > ? AND seq <= ? AND experiment = ? AND (kind = ? OR kind = ? AND flag) AND "
            "NOT EXISTS (SELECT 1 FROM log r WHERE r.id = log.id AND r.experiment = log.experiment AND r.kind = ?) "
            "ORDER BY seq",
            (after, end, experiment, Kind.ACTIVATION, Kind.DECISION, Kind.REWARD),
        )
        return [name for (name,) in found], end

    def history(self, experiment: int) -> Iterator[tuple[Record, Record | None, Record | None]]:
        """Yield decisions that were active in their order, each with its reward and its late reward."""
        chosen = (
            "SELECT d.*, r.*, l.* FROM log d "
            "LEFT JOIN log r ON r.id = d.id AND r.experiment = d.experiment AND r.kind = ? "
            "LEFT JOIN log l ON l.id = d.id AND l.experiment = d.experiment AND l.kind = ? "
            "WHERE d.kind = ? AND d.experiment = ? AND (d.flag OR EXISTS (SELECT 1 FROM log a WHERE a.id = d.id "
            "AND a.experiment = d.experiment AND a.kind = ?)) ORDER BY d.seq"
        )
        kinds = Kind.REWARD, Kind.LATE, Kind.DECISION, experiment, Kind.ACTIVATION
        width = len(Record.__struct_fields__)
        for row in _walked(self._reader, chosen, kinds):
            made, *later = (row[i : i + width] for i in range(0, 3 * width, width))
            reward, late = (None if part[0] is None else Record(*part) for part in later)
            yield Record(*made), reward, late

    def last(self) -> int:
        """Return the place of the newest record, 0 if there is none."""
        return int(_asked(self._reader, "SELECT coalesce(max(seq), 0) FROM log")[0][0])

    def snapshots(self, experiment: int) -> list[Snapshot]:
        """Return snapshots, newest first, without their contents."""
        chosen = (
            "SELECT experiment, version, through, digest, footing, x'' FROM snapshots WHERE experiment = ? "
            "ORDER BY version DESC"
        )
        return [Snapshot(*row) for row in _asked(self._reader, chosen, (experiment,))]

    def content(self, snapshot: Snapshot) -> bytes:
        """Return what a snapshot holds."""
        chosen = "SELECT content FROM snapshots WHERE experiment = ? AND version = ?"
        found = _asked(self._reader, chosen, (snapshot.experiment, snapshot.version))
        if not found:
            raise ValueError(f"there is no snapshot of version {snapshot.version} in the store")
        return bytes(found[0][0])

    def frame(self, footing: str) -> bytes:
        """Return the frame of a footing."""
        found = _asked(self._reader, "SELECT content FROM frames WHERE footing = ?", (footing,))
        if not found:
            raise ValueError(f"there is no frame of footing {footing} in the store")
        return bytes(found[0][0])

    def close(self) -> None:
        """Let go of the store."""
        for held in reversed(self._held):  # the lock at last
            held.close()


def _pieces(count: int) -> Iterator[tuple[int, int]]:
    """Yield beginnings and sizes of the pieces that so many rows are written in: few, and of few sizes.

    >>> list(_pieces(300))
    [(0, 256), (256, 32), (288, 12)]
    """
    begin = 0
    while begin < count:
        left = min(count - begin, MOST)
        size = left - left % STEP or left
        yield begin, size
        begin += size


@cache
def _insertion(size: int) -> str:
    """Return the statement that adds so many records."""
    return f"INSERT INTO log VALUES {', '.join(['(?, ?, ?, ?, ?, ?, ?)'] * size)}"


@cache
def _choice(size: int) -> str:
    """Return the statement that finds the records about so many decisions."""
    return f"SELECT * FROM log WHERE experiment = ? AND id IN ({', '.join(['?'] * size)})"


def _locked(path: Path) -> IO[bytes]:
    """Take a store for writing, or say that another process has it."""
    try:
        file = path.with_name(f"{path.name}.lock").open("wb")
    except OSError as error:
        raise type(error)(f"cannot write {path}: {error.strerror or error}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise ValueError(f"{path} is in use: another service writes to it") from None
    return file


def _connected(path: str, *, uri: bool) -> sqlite3.Connection:
    """Open a connection without transactions of its own; one thread at a time uses it."""
    return sqlite3.connect(path, uri=uri, timeout=PATIENCE, isolation_level=None, check_same_thread=False)


def _asked(connection: sqlite3.Connection, statement: str, values: Sequence[Any] = ()) -> list[Any]:
    """Return all rows of a statement."""
    try:
        return connection.execute(statement, values).fetchall()
    except sqlite3.Error as error:
        raise StoreError(str(error)) from None


def _walked(connection: sqlite3.Connection, statement: str, values: Sequence[Any]) -> Iterator[Any]:
    """Yield the rows of a statement."""
    for rows in _blocks(connection, statement, values):
        yield from rows


def _blocks(connection: sqlite3.Connection, statement: str, values: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield the rows of a statement, some at a time."""
    try:
        cursor = connection.execute(statement, values)
        while rows := cursor.fetchmany(1000):
            yield rows
    except sqlite3.Error as error:
        raise StoreError(str(error)) from None
