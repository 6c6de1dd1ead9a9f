"""The store in a PostgreSQL database: the same log as in a file, with any number of hosts that append to it."""

import contextlib
import math
import time
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bothworlds.service.dsn import location_text
from bothworlds.service.experiment import as_bytes
from bothworlds.service.postgres import queries
from bothworlds.service.postgres.connections import ConnectionPool, KeptConnection, store_error
from bothworlds.service.postgres.schema import START_LOCK, check_format, is_store, migrate
from bothworlds.service.postgres.term import LEASE, Term
from bothworlds.service.records import Frame, Record, Snapshot
from bothworlds.service.sqlite import DECISION_KINDS, KEEP_EVERY, NEWEST_KEPT, RECENT, Durability
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

PLANS = tuple(  # in the order of the log, by its indexes: a table that grows by the second has no good statistics
    f"enable_{way} = off" for way in ("hashjoin", "mergejoin", "bitmapscan", "sort")
)
WIDTH = len(Record.__struct_fields__)


class PostgresStore:
    """A store in the current schema of a PostgreSQL database.

    ``dsn`` is a URI such as ``postgresql://service@db.example/ads``; for a schema other than the user's default, add
    ``?options=-csearch_path%3DNAME``. Any number of processes append. With ``durability`` "full", a commit waits for
    the disk of the server, and for its synchronous standby if it has one. ``term`` is the epoch of the learner who uses
    this store: commits are refused once another one has begun.

    Raises
    ------
    StoreError
        If the server does not answer.
    FileNotFoundError
        With ``writes=False``, if the schema has no store.
    ValueError
        If it has a store of another format.
    """

    def __init__(self, dsn: str, *, durability: Durability = "full", writes: bool = True) -> None:
        self.dsn, self.writes = dsn, writes
        self.term: int | None = None
        self._snapshot_seconds: dict[int, float] = {}
        commit = f"synchronous_commit = {'on' if durability == 'full' else 'off'}"
        self._writer = KeptConnection(dsn, commit)
        self._pool = ConnectionPool(dsn, "default_transaction_read_only = on", *PLANS)
        self._check()

    def _check(self) -> None:
        """Create the tables if they are missing; refuse another format."""
        opening = KeptConnection(self.dsn, "client_min_messages = warning")
        try:
            with opening.use() as connection:
                if self.writes:
                    migrate(connection)
                elif not is_store(connection):
                    raise FileNotFoundError("no such store: the schema in this database has none")
                check_format(connection)
        finally:
            opening.close()

    @contextlib.contextmanager
    def starting(self) -> Iterator[None]:
        """Let one host at a time start experiments: the first one makes the policies of all."""
        connection = KeptConnection(self.dsn)
        try:
            with connection.use() as locked:
                locked.execute(START_LOCK)
            yield
        finally:
            connection.close()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Learn, while no other host does; a ValueError if one does."""
        term = Term(self.dsn)
        term.start()
        try:
            end = time.monotonic() + 3 * LEASE
            while term.epoch is None and time.monotonic() < end:
                time.sleep(LEASE / 100)
            if term.epoch is None:
                raise ValueError(
                    f"{location_text(self.dsn)} is in use: a service learns from it; stop all hosts that learn"
                )
            self.term = term.epoch
            yield
        finally:
            self.term = None
            term.stop()

    def experiment(self, name: str) -> int:
        """Return the number of an experiment; a new name gets a new number."""
        with self._writer.use() as connection, connection.transaction():
            connection.execute("LOCK TABLE experiments IN SHARE ROW EXCLUSIVE MODE")
            known = dict(connection.execute("SELECT name, number FROM experiments").fetchall())
            if name not in known:
                connection.execute(queries.NEW_EXPERIMENT, (name,))
        return known.get(name) or self.experiments()[name]

    def experiments(self) -> dict[str, int]:
        """Return the numbers of all experiments by name."""
        return dict(self._pool.rows("SELECT name, number FROM experiments ORDER BY number"))

    def drop_unused(self, used: Collection[str]) -> list[str]:
        """Drop the experiments without any record whose names are not in ``used``; return their names."""
        with self._writer.use() as connection, connection.transaction():
            rows = connection.execute(queries.UNRECORDED).fetchall()
            unused = {name: number for name, number in rows if name not in used}
            for number in unused.values():
                for statement in queries.DROP_UNUSED:
                    connection.execute(statement, {"number": number})
        return list(unused)

    def append(
        self,
        records: Sequence[Record],
        *,
        snapshots: Sequence[Snapshot] = (),
        frames: Sequence[Frame] = (),
        notes: Mapping[str, int] = NO_NOTES,
        plans: Sequence[NumberedPlan] = (),
    ) -> int:
        """Add all of this in one commit, and return the sequence number of the first record once it is durable.

        After a lost connection it is not known whether this was added: ids tell when it is tried again.
        """
        if not self.writes:
            raise StoreError("the store was opened for reading only")
        try:
            statement, values = queries.APPEND, _columns(records, self.term)
            if snapshots or frames or notes or plans:
                statement = queries.PUBLISH
                values |= _tables(snapshots, frames, notes, plans)
                saved = sorted({snapshot.experiment for snapshot in snapshots})
                values |= {"thinned": saved, "seconds": [self._snapshot_seconds.get(one, 0.0) for one in saved]}
            with self._writer.use() as connection:
                row = connection.execute(statement.encode(), values).fetchone()
        except StoreError:
            raise
        except Exception as error:
            raise store_error(error) from error
        assert row is not None
        return int(row[0])

    def keep_snapshots(self, experiment: int, seconds: float) -> None:
        """Keep one snapshot of an experiment for every so many seconds, besides those that are kept anyway."""
        self._snapshot_seconds[experiment] = seconds

    def erase_part(self, snapshot: Snapshot, *, after: int, through: int) -> int:
        """Erase as `erase` does, those decisions that were learned from or closed in a part of the log."""
        values, number = {**snapshot._asdict(), "after": after, "end": through}, snapshot.experiment
        with self._writer.use() as connection, connection.transaction():
            if self.term is not None:
                connection.execute("SELECT check_term(%s)", (self.term,))
            count = connection.execute(queries.ERASE_RECORDS, values).rowcount
            connection.execute(queries.ERASE_SNAPSHOTS, values)
            for note in ((erased_version_key(number), snapshot.version), (erased_position_key(number), through)):
                connection.execute(queries.SET_NOTE, note)
        return count

    def erase(self, snapshot: Snapshot) -> int:
        """Erase the decisions whose rewards a snapshot has learned, and older snapshots except the first."""
        count = self.erase_part(snapshot, after=0, through=snapshot.end)
        with self._writer.use() as connection:
            connection.execute("VACUUM (FULL) log")  # a plain one leaves the bytes in the files
        return count

    def notes(self) -> dict[str, int]:
        """Return all notes."""
        return dict(self._pool.rows("SELECT name, value FROM notes WHERE name <> 'probed'"))

    @contextlib.contextmanager
    def filling(self) -> Iterator[Insert]:
        """Return a context whose function adds rows to a table of this empty store, all in one commit."""
        with self._writer.use() as connection, connection.transaction():

            def insert(table: str, rows: Iterable[Sequence[Any]]) -> None:
                with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN".encode()) as copy:
                    for row in rows:
                        copy.write_row([_id_bytes(part) if table == "log" and n == 3 else part
                                        for n, part in enumerate(row)])  # fmt: skip

            yield insert
            connection.execute(queries.SET_POSITION)

    def tidy(self) -> None:
        """Do nothing: the server does maintenance itself."""

    def note(self, name: str) -> int:
        """Return the note with this name, 0 if there is none."""
        rows = self._pool.rows(queries.NOTE, (name,))
        return int(rows[0][0]) if rows else 0

    def probe(self) -> None:
        """Write something other than a record; raises StoreError if the store cannot be written."""
        with self._writer.use() as connection:
            connection.execute("INSERT INTO notes VALUES ('probed', 1) ON CONFLICT (name) DO UPDATE SET value = 1")

    def find(self, experiment: int, ids: Sequence[str]) -> list[Record]:
        """Return all records about the decisions with these ids."""
        if not ids:
            return []
        names = [name.encode() for name in ids]
        return [_record(row) for row in self._pool.rows(queries.FIND, {"experiment": experiment, "ids": names})]

    def newest(self, experiment: int, kind: int, *, most: int) -> list[Record]:
        """Return the newest records of a kind near the end of the log, newest first, at most ``most``."""
        values = {"after": self.last() - RECENT, "experiment": experiment, "kind": int(kind), "most": most}
        return [_record(row) for row in self._pool.rows(queries.NEWEST, values)]

    def counts(self, experiment: int, *, after: int = 0, through: int) -> dict[tuple[int, bool], int]:
        """Return the numbers of records about decisions in a range of the log, by kind and flag; reads it."""
        counts = {(int(kind), flag): 0 for kind in DECISION_KINDS for flag in (False, True)}
        rows = self._pool.rows(queries.COUNTS, {"experiment": experiment, "after": after, "through": through})
        return counts | {(kind, flag): count for kind, flag, count in rows}

    def read(self, *, after: int = 0, through: int | None = None) -> Iterator[Record]:
        """Yield committed records in log order."""
        for page in self._pages(queries.READ, after=after, through=through):
            yield from map(_record, page)

    def blocks(self, experiment: int, *, after: int, through: int) -> Iterator[list[Row]]:
        """Yield an experiment's committed records as rows in log order, many at a time."""
        for page in self._pages(queries.BLOCKS, after=after, through=through, experiment=experiment):
            yield [(seq, kind, _id_text(name), body) for seq, kind, name, body in page]

    def marks(self, experiment: int, *, after: int = 0) -> Iterator[Record]:
        """Yield an experiment's versions, changes and rollbacks in log order."""
        for page in self._pages(queries.MARKS, after=after, through=0, experiment=experiment):
            yield from map(_record, page)

    def rewards(
        self, experiment: int, *, after: int, through: int | None = None, active_after: int = 0
    ) -> Iterator[tuple[Record, Record]]:
        """Yield the rewards to learn in log order, late ones excluded, each with the record of its decision."""
        values = {"experiment": experiment, "active_after": active_after}
        for page in self._pages(queries.REWARDS, after=after, through=through, **values):
            for row in page:
                yield _record(row[:WIDTH]), _record(row[WIDTH:])

    def turns(self, experiment: int, *, after: int, through: int) -> Generator[Turn, None, None]:
        """Yield the decisions that became active in a range of the log, in that order, each with its reward if any."""
        values, most = {"experiment": experiment, "after": after, "through": through}, queries.FIRST_PAGE
        while page := self._pool.rows(queries.TURNS, {**values, "most": most}):
            for active, name, *rest in page:
                yield active, name.decode(), *rest
            if len(page) < most:
                return
            values["after"], most = page[-1][0], queries.PAGE

    def overdue(
        self, experiment: int, *, after: int, before: float, most: int, now: float = math.inf
    ) -> tuple[list[str], int]:
        """Return the ids of decisions without a reward that were active before a time, and the last record examined."""
        end = after
        for seq, at in self._pool.rows(queries.TIMES, {"after": after, "most": most}):  # clocks of hosts differ
            if before < at <= now:
                break
            end = end if at > now else seq
        values = {"after": after, "through": end, "experiment": experiment}
        rows = self._pool.rows(queries.OVERDUE, values) if end > after else []
        return [name.decode() for (name,) in rows], end

    def history(self, experiment: int) -> Iterator[tuple[Record, Record | None, Record | None]]:
        """Yield active decisions in log order, each with its reward and its late reward."""
        for page in self._pages(queries.HISTORY, after=0, through=0, experiment=experiment):
            for row in page:
                decision, *rewards = (row[i : i + WIDTH] for i in range(0, 3 * WIDTH, WIDTH))
                reward, late = (None if part[0] is None else _record(part) for part in rewards)
                yield _record(decision), reward, late

    def outcomes(self, experiment: int, *, after: int, through: int) -> Iterator[Shown]:
        """Yield the decisions that became active in a range of the log, in that order, each with its reward if any."""
        for page in self._pages(queries.OUTCOMES, after=after, through=through, experiment=experiment):
            for row in page:
                yield row[1:]

    def last(self) -> int:
        """Return the sequence number of the newest record, 0 if there is none."""
        return int(self._pool.rows(queries.LAST)[0][0])

    def snapshots(self, experiment: int) -> list[Snapshot]:
        """Return the snapshots, newest first, without their contents."""
        return [Snapshot(*row) for row in self._pool.rows(queries.SNAPSHOTS, (experiment,))]

    def content(self, snapshot: Snapshot) -> bytes:
        """Return the content of a snapshot; a missing one is a ValueError."""
        rows = self._pool.rows(queries.CONTENT, (snapshot.experiment, snapshot.version))
        if not rows:
            raise ValueError(f"there is no snapshot of version {snapshot.version} in the store")
        return bytes(rows[0][0])

    def frame(self, fingerprint: str) -> bytes:
        """Return the frame of a fingerprint; a missing one is a ValueError."""
        rows = self._pool.rows(queries.FRAME, (fingerprint,))
        if not rows:
            raise ValueError(f"there is no frame of fingerprint {fingerprint} in the store")
        return bytes(rows[0][0])

    def newer_plans(self, experiments: Sequence[int], versions: Sequence[int]) -> list[tuple[int, str, bytes]]:
        """Return experiment, fingerprint and content of the published plans with later versions than the given ones."""
        return [tuple(row) for row in self._pool.rows(queries.NEWER_PLANS, (list(experiments), list(versions)))]

    def space(self) -> Space:
        """Return the sizes of the tables with their indexes; the free space is not known here."""
        return Space(dict(self._pool.rows(queries.SPACE)), free=None)

    def close(self) -> None:
        """Close all connections."""
        self._writer.close()
        self._pool.close()

    def _pages(
        self, query: str, *, after: int, through: int | None, experiment: int = 0, active_after: int = 0
    ) -> Iterator[list[Any]]:
        """Yield the rows of a query page by page: each is one short transaction; ``through`` is at most the end now.

        The log only grows, so that pages fit together. The first column is the sequence number.
        """
        values = {"after": after, "through": self.last() if through is None else through, "experiment": experiment}
        values["active_after"] = active_after
        while page := self._pool.rows(query, values):
            yield page
            if len(page) < queries.PAGE:
                return
            values["after"] = page[-1][0]


def _columns(records: Sequence[Record], term: int | None) -> dict[str, Any]:
    """Return the parameters of `queries.APPEND`."""
    return {
        "experiments": [record.experiment for record in records],
        "kinds": [int(record.kind) for record in records],
        "ids": [_id_bytes(record.id) for record in records],
        "times": [float(record.time) for record in records],
        "flags": [bool(record.flag) for record in records],
        "bodies": [record.body for record in records],
        "term": term,
    }


def _tables(
    snapshots: Sequence[Snapshot], frames: Sequence[Frame], notes: Mapping[str, int], plans: Sequence[NumberedPlan]
) -> dict[str, Any]:
    """Return the parameters that `queries.PUBLISH` has in addition: one list per column of each table."""
    planned = [(number, plan.version, plan.spec.fingerprint, _plan_bytes(plan)) for number, plan in plans]
    tables: list[tuple[str, int, Sequence[Any]]] = [
        ("snapshots", 8, snapshots),
        ("frames", 2, frames),
        ("notes", 2, list(notes.items())),
        ("plans", 4, planned),
    ]
    columns = {
        f"{name}{column}": [row[column] for row in rows] for name, width, rows in tables for column in range(width)
    }
    return {**columns, "kept": NEWEST_KEPT, "spacing": KEEP_EVERY}


def _id_bytes(name: str | None) -> bytes | None:
    """Return an id as it is stored: as bytes, since a text in PostgreSQL cannot have a null character."""
    return None if name is None else name.encode()


def _id_text(name: bytes | None) -> str | None:
    return None if name is None else name.decode()


def _record(row: Sequence[Any]) -> Record:
    seq, experiment, kind, name, time, flag, body = row
    return Record(seq, experiment, kind, _id_text(name), time, flag, body)


def _plan_bytes(plan: Any) -> bytes:
    return as_bytes(lambda path: plan.save(path, frame=False))
