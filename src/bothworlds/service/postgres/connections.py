"""Connections to a PostgreSQL database: a small pool for queries, and errors as those of a store."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import psycopg
from psycopg import Connection

from bothworlds.service.postgres.schema import TERM_OVER
from bothworlds.service.store import ConflictError, StoreError, TermOverError

MOST_IDLE = 4  # connections kept for later queries
OPTIONS: Mapping[str, Any] = {  # of a connection, unless the DSN has them: a lost network is noticed within seconds
    "connect_timeout": 2,
    "tcp_user_timeout": 1000,
    "keepalives_idle": 1,
    "keepalives_interval": 1,
    "keepalives_count": 2,
}
LOST = "the connection to the database was lost"


def connect(dsn: str, *settings: str) -> Connection:
    """Open a connection in which every statement is a transaction, and execute ``SET`` for each of ``settings``."""
    known = psycopg.conninfo.conninfo_to_dict(dsn)
    defaults = {**OPTIONS, "application_name": f"bothworlds {socket.gethostname()[:30]} {os.getpid()}"}
    connection = psycopg.connect(dsn, autocommit=True, **{k: v for k, v in defaults.items() if k not in known})
    try:
        for setting in settings:
            connection.execute(f"SET {setting}".encode())
    except BaseException:
        connection.close()
        raise
    return connection


def store_error(error: Exception) -> StoreError:
    """Return an error of the database as one of the store; it names no host and no user."""
    if isinstance(error, psycopg.errors.UniqueViolation):
        return ConflictError("the store has a record of this kind already")
    if isinstance(error, psycopg.Error) and error.sqlstate == TERM_OVER:
        return TermOverError("another host has begun to learn; nothing was stored")
    if isinstance(error, psycopg.Error) and not _ends_connection(error):
        return StoreError(f"the database refuses: {error.diag.message_primary or error}")
    return StoreError(LOST if isinstance(error, psycopg.Error) else str(error))


def _ends_connection(error: psycopg.Error) -> bool:
    """Return whether an error is one of the connection, also that the server has become a standby."""
    state = error.sqlstate
    if state is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return state[:2] == "08" or state[:3] == "57P" or isinstance(error, psycopg.errors.ReadOnlySqlTransaction)


def is_lost(error: psycopg.Error, connection: Connection | None) -> bool:
    """Return whether an error means that the connection cannot be used any more, or could not be opened."""
    return connection is None or connection.closed or _ends_connection(error)


class ConnectionPool:
    """Connections for queries from any thread; idle ones are kept."""

    def __init__(self, dsn: str, *settings: str) -> None:
        self._dsn, self._settings = dsn, settings
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._closed = False

    def rows(self, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        """Return the rows of a query; one whose idle connection was lost meanwhile is repeated."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            reused = connection is not None
            try:
                connection = connection or connect(self._dsn, *self._settings)
                found = connection.execute(query.encode(), values, binary=True).fetchall()
            except Exception as error:
                if not isinstance(error, psycopg.Error) or is_lost(error, connection):
                    self._discard(connection)
                    if reused:
                        continue
                elif connection is not None:
                    self._keep(connection)
                raise store_error(error) from None
            self._keep(connection)
            return found

    def _keep(self, connection: Connection) -> None:
        with self._lock:
            if len(self._idle) < MOST_IDLE and not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _discard(self, connection: Connection | None) -> None:
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()

    def close(self) -> None:
        """Close all idle connections."""
        with self._lock:
            self._closed, idle = True, self._idle[:]
            self._idle.clear()
        for connection in idle:
            connection.close()


class KeptConnection:
    """One connection, for one thread at a time, which is opened again after it was lost."""

    def __init__(self, dsn: str, *settings: str) -> None:
        self._dsn, self._settings = dsn, settings
        self._connection: Connection | None = None

    @contextlib.contextmanager
    def use(self) -> Iterator[Connection]:
        """Give the connection; errors of the database in the block are raised as those of a store."""
        try:
            if self._connection is None or self._connection.closed:
                self._connection = None
                self._connection = connect(self._dsn, *self._settings)
            yield self._connection
        except psycopg.Error as error:
            if is_lost(error, self._connection):
                self.close()
            raise store_error(error) from error

    def release(self) -> None:
        """Release what the session holds, such as an advisory lock, and keep the connection if it is good."""
        if self._connection is not None:
            try:
                self._connection.execute("SELECT pg_advisory_unlock_all()")
            except psycopg.Error:
                self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
            self._connection = None
