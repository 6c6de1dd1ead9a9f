"""The term of a learner: one host learns at a time, and another one takes over when it ends, hangs or is cut off.

A learner holds an advisory lock, which the server releases when its connection ends, and renews its ``beat`` in the
database. Hosts that stand by try to get the lock. If the beat gets too old, since the learner is paused or its host is
gone, they end its connection. Each term has a new epoch, without which no commit of the learner is accepted.
"""

import contextlib
import threading

from psycopg import Connection

from bothworlds.service.postgres.connections import KeptConnection
from bothworlds.service.store import StoreError
from bothworlds.service.supervision import SupervisedThread

BEAT = 0.2  # seconds between two beats, and between two attempts to begin a term
LEASE = 1.0  # seconds after its last beat that a learner keeps its term
LOCK = "1651995512, hashtext(current_schema())"  # the key of the advisory lock
HOLDER = (
    "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid::bigint = 1651995512 AND "
    "objid::bigint = (hashtext(current_schema())::bigint & 4294967295) "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
TAKE_OVER = (
    f"SELECT pg_terminate_backend(pid) FROM ({HOLDER}) AS holder, learner "
    "WHERE beat < clock_timestamp() - make_interval(secs => %s)"
)
BEGIN = (  # in one statement: who has the lock has a new beat
    f"UPDATE learner SET epoch = epoch + 1, beat = clock_timestamp() WHERE pg_try_advisory_lock({LOCK}) RETURNING epoch"
)
RENEW = "UPDATE learner SET beat = clock_timestamp() WHERE epoch = %s"


class Term:
    """Begins and renews terms in its own thread.

    ``epoch`` is that of the current term, None while another host learns. A term that was lost is only noticed with the
    next beat; until then, commits are refused by the database.
    """

    def __init__(self, dsn: str) -> None:
        self.epoch: int | None = None
        self._connection = KeptConnection(dsn)
        self._stopping = threading.Event()
        self.thread = SupervisedThread("term", self._work)

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    def stop(self) -> bool:
        """End the term, so that another host can begin one at once; return False if the thread is stuck."""
        self._stopping.set()
        return self.thread.join()

    def _work(self) -> None:
        with contextlib.closing(self._connection):
            while not self._stopping.is_set():
                try:
                    with self._connection.use() as connection:
                        self.epoch = begin(connection) if self.epoch is None else renew(connection, self.epoch)
                except StoreError:
                    self.epoch = None
                    self._connection.release()
                self._stopping.wait(BEAT)
            self.epoch = None


def begin(connection: Connection) -> int | None:
    """Begin a term if no other host has one; return its epoch."""
    row = connection.execute(BEGIN.encode()).fetchone()
    if row is None:
        connection.execute(TAKE_OVER.encode(), (LEASE,))
    return None if row is None else int(row[0])


def renew(connection: Connection, epoch: int) -> int | None:
    """Renew a term; return its epoch, None if it is over."""
    if connection.execute(RENEW, (epoch,)).rowcount:
        return epoch
    connection.execute("SELECT pg_advisory_unlock_all()")
    return None
