"""Open the store at a location: the path of a file, or the DSN of a PostgreSQL database."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from bothworlds.errors import MissingPackageError, not_installed
from bothworlds.service.dsn import is_dsn, location_text
from bothworlds.service.sqlite import Durability, SQLiteStore
from bothworlds.service.store import Store, StoreError


def open_store(location: str | Path, *, durability: Durability = "full", writes: bool = True) -> Store:
    """Open the store at a location.

    Raises
    ------
    MissingPackageError
        If it is in a database and psycopg is not installed.
    ConnectionError
        If the server does not answer, or refuses.
    ValueError
        If it is not a store, cannot be used, or is a file that another service writes to.
    """
    if not is_dsn(location):
        return SQLiteStore(location, durability=durability, writes=writes)
    try:
        from bothworlds.service.postgres.postgres_store import PostgresStore
    except ImportError:
        raise MissingPackageError(not_installed("a store in PostgreSQL needs", "psycopg", "postgres")) from None
    try:
        return PostgresStore(str(location), durability=durability, writes=writes)
    except StoreError as error:
        raise ConnectionError(f"cannot use {location_text(location)}: {error.__cause__ or error}") from None
    except (ValueError, FileNotFoundError) as error:
        raise type(error)(f"{location_text(location)}: {error}") from None


@contextlib.contextmanager
def open_alone(location: str | Path) -> Iterator[Store]:
    """Open a store that exists to change it while no service learns from it.

    Raises
    ------
    FileNotFoundError
        If there is no store.
    ValueError
        If a service uses it.
    """
    if not is_dsn(location):
        if not Path(location).is_file():
            raise FileNotFoundError(f"no such store: {location}")
        with contextlib.closing(SQLiteStore(location)) as store:
            yield store
        return
    open_store(location, writes=False).close()
    with contextlib.closing(open_store(location)) as shared, shared.alone():
        yield shared
