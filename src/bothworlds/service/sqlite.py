"""The store as an SQLite file in WAL mode: one connection writes and checkpoints, the others only read."""

import contextlib
import fcntl
import math
import shutil
import sqlite3
import threading
import time
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any, Literal

from bothworlds.service.records import FORMAT, Frame, Kind, Record, Snapshot
from bothworlds.service.store import (
    NO_NOTES,
    Insert,
    NumberedPlan,
    Row,
    Shown,
    Space,
    StoreError,
    Turn,
    erased_position_key,
    erased_version_key,
)

Durability = Literal["full", "process"]
LOCK_TIMEOUT = 0.25  # seconds
CHECKPOINT = 4000  # records between two checkpoints
NEWEST_KEPT = 3  # snapshots
KEEP_EVERY = 200_000  # records between older snapshots
RECENT = 20_000  # records at the end of the log that `newest` searches
MAX_ROWS, ROW_STEP = 256, 16  # rows per statement: every call may lose the interpreter lock to another thread
DECISION_KINDS = (Kind.DECISION, Kind.ACTIVATION, Kind.REWARD, Kind.LATE, Kind.UNANSWERED)
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
    digest TEXT NOT NULL, fingerprint TEXT NOT NULL, content BLOB NOT NULL, ordered_through INTEGER NOT NULL,
    time REAL NOT NULL, PRIMARY KEY (experiment, version)
);
CREATE TABLE frames (fingerprint TEXT PRIMARY KEY, content BLOB NOT NULL);
"""


END = "max(through, ordered_through)"  # of a snapshot: the sequence number up to which something is learned
BECAME_ACTIVE = f"(kind = {Kind.ACTIVATION:d} OR kind = {Kind.DECISION:d} AND flag)"
NEWEST_USED = (  # newest sequence number ever used, as far as known; its record may have been erased
    f"SELECT max(coalesce((SELECT max(seq) FROM log), 0), coalesce((SELECT max({END}) FROM snapshots), 0), "
    "coalesce((SELECT max(value + 0) FROM about WHERE name LIKE 'expired %'), 0))"
)
UNRECORDED = (  # experiments without a record, that have not erased any
    "SELECT name, number FROM experiments WHERE NOT EXISTS (SELECT 1 FROM log WHERE experiment = number) "
    f"AND NOT EXISTS (SELECT 1 FROM snapshots WHERE experiment = number AND {END} > 0)"
)
DROP_FRAMES = (  # of one experiment only
    "DELETE FROM frames WHERE fingerprint IN (SELECT fingerprint FROM snapshots WHERE experiment = ?) "
    "AND fingerprint NOT IN (SELECT fingerprint FROM snapshots WHERE experiment != ?)"
)
ERASED_VERSION = "coalesce((SELECT value FROM about WHERE name = 'sealed ' || snapshots.experiment), -1) + 0"


class SQLiteStore:
    """A store in one file, with its ``-wal`` and ``-shm`` files beside it.

    With ``durability`` "full", every commit waits for the disk. With "process", the operating system writes later: what
    was acknowledged survives a crash of the process, not of the machine. ``writes=False`` opens the store for reading
    only; a single process can open it for writing.

    >>> store = SQLiteStore("ads.sqlite")
    >>> store.append([Record(0, store.experiment("banners"), Kind.DECISION, "visit 9", 5.0, True, b"...")])
    1
    >>> [(record.seq, record.id) for record in store.read()]
    [(1, 'visit 9')]
    >>> store.close()
    """

    def __init__(self, path: str | Path, *, durability: Durability = "full", writes: bool = True) -> None:
        self.path, self.writes = Path(path), writes
        self._local = threading.local()
        self._handles: list[IO[bytes] | sqlite3.Connection] = []
        self._snapshot_seconds: dict[int, float] = {}
        if not writes:
            if not self.path.is_file():
                raise FileNotFoundError(f"no such store: {path}")
            try:
                self._check()
            except ValueError:
                self.close()
                raise
            return
        self._handles.append(_lock(self.path))
        try:
            self._writer = _connect(str(self.path), uri=False)
            self._handles.append(self._writer)
            _query(self._writer, "PRAGMA journal_mode = WAL")
            _query(self._writer, f"PRAGMA synchronous = {'FULL' if durability == 'full' else 'NORMAL'}")
            _query(self._writer, "PRAGMA wal_autocheckpoint = 0")  # see `tidy`
            if not _query(self._writer, "SELECT 1 FROM sqlite_master WHERE name = 'about'"):
                self._begin()
            self._check()
            self._last = self._checkpointed = int(_query(self._writer, NEWEST_USED)[0][0])
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.Error | StoreError):
                raise ValueError(f"{self.path} is not a bothworlds store, or cannot be used: {error}") from None
            raise

    def _begin(self) -> None:
        """Create the tables of a new store in one transaction."""
        script = ["BEGIN IMMEDIATE;", SCHEMA, f"INSERT INTO about VALUES ('format', '{FORMAT}');", "COMMIT;"]
        self._writer.executescript("\n".join(script))

    def _check(self) -> None:
        """Refuse a file that is not a store or has another format."""
        try:
            rows = _query(self._reader, "SELECT value FROM about WHERE name = 'format'")
        except (sqlite3.Error, StoreError) as error:
            hint = "; if this is a copy, the -wal file beside the store is missing" * ("no such table" in str(error))
            raise ValueError(f"{self.path} is not a bothworlds store: {error}{hint}") from None
        if rows != [(FORMAT,)]:
            raise ValueError(
                f"{self.path} has format {rows[0][0] if rows else None!r}, but this version reads {FORMAT!r}; export "
                "the log with the version of the library that wrote it (bothworlds service export), and start a new "
                "store"
            )

    @property
    def _reader(self) -> sqlite3.Connection:
        """The connection of the calling thread, for reading."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = _connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True)
            self._handles.append(connection)
        return connection

    def starting(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which no other host starts experiments: it has the store for itself."""
        return contextlib.nullcontext()

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which no other host learns: it has the store for itself."""
        return contextlib.nullcontext()

    def experiment(self, name: str) -> int:
        """Return the number of an experiment; a new name gets a new number."""
        known = self.experiments()
        if name not in known:
            _query(self._writer, "INSERT INTO experiments (name) VALUES (?)", (name,))
        return known.get(name) or self.experiments()[name]

    def experiments(self) -> dict[str, int]:
        """Return the numbers of all experiments by name."""
        return dict(_query(self._reader, "SELECT name, number FROM experiments ORDER BY number"))

    def drop_unused(self, used: Collection[str]) -> list[str]:
        """Drop the experiments without any record whose names are not in ``used``; return their names."""
        rows = _query(self._writer, UNRECORDED)
        unused = {name: number for name, number in rows if name not in used}
        if not unused:
            return []
        write = self._writer.execute
        try:
            write("BEGIN IMMEDIATE")
            for number in unused.values():
                write(DROP_FRAMES, (number, number))
                write("DELETE FROM snapshots WHERE experiment = ?", (number,))
                write("DELETE FROM experiments WHERE number = ?", (number,))
            write("COMMIT")
        except sqlite3.Error as error:
            if self._writer.in_transaction:
                self._writer.rollback()
            raise StoreError(str(error)) from error
        return list(unused)

    def append(
        self,
        records: Sequence[Record],
        *,
        snapshots: Sequence[Snapshot] = (),
        frames: Sequence[Frame] = (),
        notes: Mapping[str, int] = NO_NOTES,
        plans: Sequence[NumberedPlan] = (),  # noqa: ARG002
    ) -> int:
        """Add all of this in one commit, and return the sequence number of the first record once it is durable."""
        write, first = self._writer.execute, self._last + 1
        try:
            write("BEGIN IMMEDIATE")
            for begin, size in _chunks(len(records)):
                values: list[Any] = []
                for seq, record in enumerate(records[begin : begin + size], first + begin):
                    values += (seq, record.experiment, int(record.kind), record.id, record.time, int(record.flag))
                    values.append(record.body)
                write(_insert_statement(size), values)
            for note in notes.items():
                write("INSERT OR REPLACE INTO about VALUES (?, ?)", note)
            for frame in frames:
                write("INSERT OR IGNORE INTO frames VALUES (?, ?)", frame)
            for snapshot in snapshots:
                write("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?, ?)", snapshot)
                self._drop_snapshots(snapshot.experiment)
            write("COMMIT")
        except Exception as error:
            if self._writer.in_transaction:
                self._writer.rollback()
            raise StoreError(str(error)) from error
        self._last += len(records)
        return first

    def _drop_snapshots(self, experiment: int) -> None:
        """Drop old snapshots.

        Kept are the newest, the first of each fingerprint, one per ``KEEP_EVERY`` records, those of `keep_snapshots`,
        and that of `erase`.
        """
        seconds = self._snapshot_seconds.get(experiment, 0.0)
        first = "SELECT min(version) FROM snapshots WHERE experiment = ? GROUP BY fingerprint"
        newest = "SELECT version FROM snapshots WHERE experiment = ? ORDER BY version DESC LIMIT ?"
        self._writer.execute(
            f"DELETE FROM snapshots WHERE experiment = ? AND version NOT IN ({first}) "
            f"AND version != {ERASED_VERSION} AND version NOT IN (SELECT version FROM ({newest})) "
            f"AND {END} / {KEEP_EVERY} IN (SELECT max(s.through, s.ordered_through) / {KEEP_EVERY} FROM snapshots s "
            "WHERE s.experiment = snapshots.experiment AND s.version < snapshots.version) "
            "AND (? = 0 OR CAST(time / ? AS INTEGER) IN (SELECT CAST(s.time / ? AS INTEGER) FROM snapshots s "
            "WHERE s.experiment = snapshots.experiment AND s.version < snapshots.version))",
            (experiment, experiment, experiment, NEWEST_KEPT, seconds, seconds, seconds),
        )

    def keep_snapshots(self, experiment: int, seconds: float) -> None:
        """Keep one snapshot of an experiment for every so many seconds, besides those that are kept anyway."""
        self._snapshot_seconds[experiment] = seconds

    def erase_part(self, snapshot: Snapshot, *, after: int, through: int) -> int:
        """Erase as `erase` does, those decisions that were learned from or closed in a part of the log."""
        number, version, write = snapshot.experiment, snapshot.version, self._writer.execute
        learned = (
            "SELECT id FROM log WHERE seq > ? AND seq <= ? AND experiment = ? AND "
            f"(kind IN ({Kind.REWARD:d}, {Kind.UNANSWERED:d}) AND seq <= ? OR {BECAME_ACTIVE} AND seq <= ?)"
        )
        try:
            write("PRAGMA secure_delete = ON")
            write("BEGIN IMMEDIATE")
            count = write(
                f"DELETE FROM log WHERE id IN ({learned}) AND experiment = ?",
                (after, through, number, snapshot.through, snapshot.ordered_through, number),
            ).rowcount
            first = "SELECT min(version) FROM snapshots WHERE experiment = ?"
            write(
                f"DELETE FROM snapshots WHERE experiment = ? AND version < ? AND version != ({first})",
                (number, version, number),
            )
            for note in ((erased_version_key(number), version), (erased_position_key(number), through)):
                write("INSERT OR REPLACE INTO about VALUES (?, ?)", note)
            write("COMMIT")
        except sqlite3.Error as error:
            if self._writer.in_transaction:
                self._writer.rollback()
            raise StoreError(str(error)) from error
        return count

    def erase(self, snapshot: Snapshot) -> int:
        """Erase the decisions whose rewards a snapshot has learned, and older snapshots except the first."""
        count, write = self.erase_part(snapshot, after=0, through=snapshot.end), self._writer.execute
        write("VACUUM")
        if _query(self._writer, "PRAGMA wal_checkpoint(TRUNCATE)")[0][0]:
            raise BlockingIOError(
                f"{self.path}: {count:,} records are erased, but their bytes stay in the file, because another program "
                "is reading it; stop that program and erase again"
            )
        return count

    def notes(self) -> dict[str, int]:
        """Return all notes."""
        query = "SELECT name, value + 0 FROM about WHERE name NOT IN ('format', 'probed')"
        return dict(_query(self._reader, query))

    @contextlib.contextmanager
    def filling(self) -> Iterator[Insert]:
        """Return a context whose function adds rows to a table of this empty store, all in one commit."""
        write = self._writer

        def insert(table: str, rows: Iterable[Sequence[Any]]) -> None:
            for row in rows:
                marks = ", ".join(["?"] * len(row))
                write.execute(f"INSERT INTO {'about' if table == 'notes' else table} VALUES ({marks})", row)

        write.execute("BEGIN IMMEDIATE")
        try:
            yield insert
            write.execute("COMMIT")
        except BaseException:
            write.rollback()
            raise
        self._last = int(_query(write, NEWEST_USED)[0][0])

    def tidy(self) -> None:
        """Checkpoint the WAL file into the store file every ``CHECKPOINT`` records."""
        if self._last - self._checkpointed >= CHECKPOINT:
            _query(self._writer, "PRAGMA wal_checkpoint(PASSIVE)")
            self._checkpointed = self._last

    def note(self, name: str) -> int:
        """Return the note with this name, 0 if there is none."""
        rows = _query(self._reader, "SELECT value FROM about WHERE name = ?", (name,))
        return int(rows[0][0]) if rows else 0

    def probe(self) -> None:
        """Write something other than a record; raises StoreError if the store cannot be written."""
        _query(self._writer, "INSERT OR REPLACE INTO about VALUES ('probed', ?)", (str(time.time()),))

    def find(self, experiment: int, ids: Sequence[str]) -> list[Record]:
        """Return all records about the decisions with these ids."""
        records: list[Record] = []
        for begin in range(0, len(ids), MAX_ROWS):
            chunk = list(ids[begin : begin + MAX_ROWS])
            chunk += chunk[-1:] * (-len(chunk) % ROW_STEP)  # few sizes, so that prepared statements are reused
            rows = _query(self._reader, _find_statement(len(chunk)), (experiment, *chunk))
            records += [Record(*row) for row in rows]
        return records

    def newest(self, experiment: int, kind: int, *, most: int) -> list[Record]:
        """Return the newest records of a kind near the end of the log, newest first, at most ``most``."""
        query = "SELECT * FROM log WHERE seq > ? AND experiment = ? AND kind = ? ORDER BY seq DESC LIMIT ?"
        return [Record(*row) for row in _query(self._reader, query, (self.last() - RECENT, experiment, kind, most))]

    def counts(self, experiment: int, *, after: int = 0, through: int) -> dict[tuple[int, bool], int]:
        """Return the numbers of records about decisions in a range of the log, by kind and flag; reads it."""
        groups = [(kind, flag) for kind in DECISION_KINDS for flag in (0, 1)]
        terms = ", ".join(f"count(*) FILTER (WHERE kind = {kind:d} AND flag = {flag})" for kind, flag in groups)
        query = f"SELECT {terms} FROM log WHERE experiment = ? AND seq > ? AND seq <= ?"
        (counts,) = _query(self._reader, query, (experiment, after, through))
        return {(kind, bool(flag)): count for (kind, flag), count in zip(groups, counts, strict=True)}

    def read(self, *, after: int = 0, through: int | None = None) -> Iterator[Record]:
        """Yield committed records in log order."""
        end = self.last() if through is None else through
        for row in _rows(self._reader, "SELECT * FROM log WHERE seq > ? AND seq <= ? ORDER BY seq", (after, end)):
            yield Record(*row)

    def blocks(self, experiment: int, *, after: int, through: int) -> Iterator[list[Row]]:
        """Yield an experiment's committed records as rows in log order, many at a time."""
        query = "SELECT seq, kind, id, body FROM log WHERE seq > ? AND seq <= ? AND experiment = ? ORDER BY seq"
        yield from _blocks(self._reader, query, (after, through, experiment))

    def marks(self, experiment: int, *, after: int = 0) -> Iterator[Record]:
        """Yield an experiment's versions, changes and rollbacks in log order."""
        query = "SELECT * FROM log WHERE id IS NULL AND experiment = ? AND seq > ? ORDER BY seq"
        for row in _rows(self._reader, query, (experiment, after)):
            yield Record(*row)

    def rewards(
        self, experiment: int, *, after: int, through: int | None = None, active_after: int = 0
    ) -> Iterator[tuple[Record, Record]]:
        """Yield the rewards to learn in log order, late ones excluded, each with the record of its decision."""
        before = "SELECT 1 FROM log a WHERE a.id = r.id AND a.experiment = r.experiment"
        query = (
            "SELECT r.*, d.* FROM log r CROSS JOIN log d ON d.id = r.id AND d.experiment = r.experiment AND d.kind = ? "
            "WHERE r.seq > ? AND r.seq <= ? AND r.kind = ? AND r.experiment = ? "
            f"AND (? = 0 OR NOT EXISTS ({before} AND {BECAME_ACTIVE} AND a.seq <= ?)) ORDER BY r.seq"
        )
        end = self.last() if through is None else through
        width = len(Record.__struct_fields__)
        values = Kind.DECISION, after, end, Kind.REWARD, experiment, active_after, active_after
        for row in _rows(self._reader, query, values):
            yield Record(*row[:width]), Record(*row[width:])

    def turns(self, experiment: int, *, after: int, through: int) -> Generator[Turn, None, None]:
        """Yield the decisions that became active in a range of the log, in that order, each with its reward if any."""
        of_it = "id = a.id AND experiment = a.experiment AND kind ="
        query = (
            f"SELECT a.seq, a.id, CASE a.kind WHEN {Kind.DECISION:d} THEN a.body ELSE (SELECT body FROM log WHERE "
            f"{of_it} {Kind.DECISION:d}) END, r.seq, r.body, r.seq IS NULL AND EXISTS (SELECT 1 FROM log WHERE {of_it} "
            f"{Kind.UNANSWERED:d}) FROM log a LEFT JOIN log r ON r.id = a.id AND r.experiment = a.experiment "
            f"AND r.kind = {Kind.REWARD:d} WHERE a.seq > ? AND a.seq <= ? AND a.experiment = ? "
            f"AND (a.kind = {Kind.ACTIVATION:d} OR a.kind = {Kind.DECISION:d} AND a.flag) ORDER BY a.seq"
        )
        for rows in _blocks(self._reader, query, (after, through, experiment), size=1):
            yield from rows

    def overdue(
        self, experiment: int, *, after: int, before: float, most: int, now: float = math.inf
    ) -> tuple[list[str], int]:
        """Return the ids of decisions without a reward that were active before a time, and the last record examined."""
        end, times = after, "SELECT seq, time FROM log WHERE seq > ? ORDER BY seq LIMIT ?"
        for seq, at in _query(self._reader, times, (after, most)):  # clocks may go back; no decision is skipped
            if before < at <= now:
                break
            end = end if at > now else seq
        rows = _query(
            self._reader,
            "SELECT id FROM log WHERE seq > ? AND seq <= ? AND experiment = ? AND (kind = ? OR kind = ? AND flag) AND "
            "NOT EXISTS (SELECT 1 FROM log r WHERE r.id = log.id AND r.experiment = log.experiment "
            "AND r.kind IN (?, ?)) ORDER BY seq",
            (after, end, experiment, Kind.ACTIVATION, Kind.DECISION, Kind.REWARD, Kind.UNANSWERED),
        )
        return [name for (name,) in rows], end

    def history(self, experiment: int) -> Iterator[tuple[Record, Record | None, Record | None]]:
        """Yield active decisions in log order, each with its reward and its late reward."""
        query = (
            "SELECT d.*, r.*, l.* FROM log d "
            "LEFT JOIN log r ON r.id = d.id AND r.experiment = d.experiment AND r.kind = ? "
            "LEFT JOIN log l ON l.id = d.id AND l.experiment = d.experiment AND l.kind = ? "
            "WHERE d.kind = ? AND d.experiment = ? AND (d.flag OR EXISTS (SELECT 1 FROM log a WHERE a.id = d.id "
            "AND a.experiment = d.experiment AND a.kind = ?)) ORDER BY d.seq"
        )
        kinds = Kind.REWARD, Kind.LATE, Kind.DECISION, experiment, Kind.ACTIVATION
        width = len(Record.__struct_fields__)
        for row in _rows(self._reader, query, kinds):
            decision, *rewards = (row[i : i + width] for i in range(0, 3 * width, width))
            reward, late = (None if part[0] is None else Record(*part) for part in rewards)
            yield Record(*decision), reward, late

    def outcomes(self, experiment: int, *, after: int, through: int) -> Iterator[Shown]:
        """Yield the decisions that became active in a range of the log, in that order, each with its reward if any."""
        query = (
            "SELECT a.time, d.time, d.body, r.time, r.body FROM log a "
            "CROSS JOIN log d ON d.id = a.id AND d.experiment = a.experiment AND d.kind = ? "
            "LEFT JOIN log r ON r.id = a.id AND r.experiment = a.experiment AND r.kind = ? "
            "WHERE a.seq > ? AND a.seq <= ? AND a.experiment = ? AND (a.kind = ? OR a.kind = ? AND a.flag) "
            "ORDER BY a.seq"
        )
        kinds = Kind.ACTIVATION, Kind.DECISION
        yield from _rows(self._reader, query, (Kind.DECISION, Kind.REWARD, after, through, experiment, *kinds))

    def last(self) -> int:
        """Return the sequence number of the newest record, 0 if there is none."""
        return int(_query(self._reader, "SELECT coalesce(max(seq), 0) FROM log")[0][0])

    def snapshots(self, experiment: int) -> list[Snapshot]:
        """Return the snapshots, newest first, without their contents."""
        query = (
            "SELECT experiment, version, through, digest, fingerprint, x'', ordered_through, time FROM snapshots "
            "WHERE experiment = ? ORDER BY version DESC"
        )
        return [Snapshot(*row) for row in _query(self._reader, query, (experiment,))]

    def content(self, snapshot: Snapshot) -> bytes:
        """Return the content of a snapshot; a missing one is a ValueError."""
        query = "SELECT content FROM snapshots WHERE experiment = ? AND version = ?"
        rows = _query(self._reader, query, (snapshot.experiment, snapshot.version))
        if not rows:
            raise ValueError(f"there is no snapshot of version {snapshot.version} in the store")
        return bytes(rows[0][0])

    def frame(self, fingerprint: str) -> bytes:
        """Return the frame of a fingerprint; a missing one is a ValueError."""
        rows = _query(self._reader, "SELECT content FROM frames WHERE fingerprint = ?", (fingerprint,))
        if not rows:
            raise ValueError(f"there is no frame of fingerprint {fingerprint} in the store")
        return bytes(rows[0][0])

    def space(self) -> Space:
        """Return the sizes of the store's files, and the free space of their disk."""
        files = {"store": self.path, "wal": self.path.with_name(f"{self.path.name}-wal")}
        used = {name: path.stat().st_size for name, path in files.items() if path.exists()}
        return Space(used, shutil.disk_usage(self.path.absolute().parent).free)

    def close(self) -> None:
        """Close the store and release its lock."""
        for handle in reversed(self._handles):  # the lock last
            handle.close()


def _chunks(count: int) -> Iterator[tuple[int, int]]:
    """Yield start and size of the chunks in which ``count`` rows are written: few chunks, of few different sizes.

    >>> list(_chunks(300))
    [(0, 256), (256, 32), (288, 12)]
    """
    begin = 0
    while begin < count:
        rest = min(count - begin, MAX_ROWS)
        size = rest - rest % ROW_STEP or rest
        yield begin, size
        begin += size


@cache
def _insert_statement(size: int) -> str:
    """Return the statement that inserts ``size`` records."""
    return f"INSERT INTO log VALUES {', '.join(['(?, ?, ?, ?, ?, ?, ?)'] * size)}"


@cache
def _find_statement(size: int) -> str:
    """Return the statement that finds the records about ``size`` decisions."""
    return f"SELECT * FROM log WHERE experiment = ? AND id IN ({', '.join(['?'] * size)})"


def _lock(path: Path) -> IO[bytes]:
    """Lock a store for writing; a ValueError if another process has locked it."""
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


def _connect(path: str, *, uri: bool) -> sqlite3.Connection:
    """Open a connection without implicit transactions, for one thread at a time."""
    return sqlite3.connect(path, uri=uri, timeout=LOCK_TIMEOUT, isolation_level=None, check_same_thread=False)


def _query(connection: sqlite3.Connection, statement: str, values: Sequence[Any] = ()) -> list[Any]:
    """Return all rows of a query."""
    try:
        return connection.execute(statement, values).fetchall()
    except sqlite3.Error as error:
        raise StoreError(str(error)) from None


def _rows(connection: sqlite3.Connection, statement: str, values: Sequence[Any]) -> Iterator[Any]:
    """Yield the rows of a query."""
    for rows in _blocks(connection, statement, values):
        yield from rows


def _blocks(
    connection: sqlite3.Connection, statement: str, values: Sequence[Any], *, size: int = 1000
) -> Iterator[list[Any]]:
    """Yield the rows of a query in blocks."""
    try:
        cursor = connection.execute(statement, values)
        while rows := cursor.fetchmany(size):
            yield rows
    except sqlite3.Error as error:
        raise StoreError(str(error)) from None
