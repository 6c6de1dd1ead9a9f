"""Where a store is: the path of a file, or the DSN of a PostgreSQL database."""

from pathlib import Path
from urllib.parse import urlsplit

from bothworlds.errors import MissingPackageError, not_installed
from bothworlds.service.sqlite import Durability, SQLiteStore
from bothworlds.service.store import Store

SCHEMES = ("postgresql://", "postgres://")
IN_USE = "is in use: another service learns from it; stop its learner first"


def is_dsn(location: str | Path) -> bool:
    """Return whether a location is the DSN of a database.

    >>> is_dsn("postgresql://db.example/ads"), is_dsn("ads.sqlite"), is_dsn(Path("ads.sqlite"))
    (True, False, False)
    """
    return str(location).startswith(SCHEMES)


def location_text(location: str | Path) -> str:
    """Return a location for messages, without the password and the options of a DSN.

    >>> location_text("postgresql://ann:secret@db.example:5432/ads?sslmode=require")
    'postgresql://db.example:5432/ads'
    """
    if not is_dsn(location):
        return str(location)
    parts = urlsplit(str(location))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def open_store(location: str | Path, *, durability: Durability = "full", writes: bool = True) -> Store:
    """Open the store at a location.

    Raises
    ------
    MissingPackageError
        If it is in a database and psycopg is not installed.
    ValueError
        If it is not a store, cannot be used, or is a file that another service writes to.
    """
    if not is_dsn(location):
        return SQLiteStore(location, durability=durability, writes=writes)
    try:
        from bothworlds.service.postgres.postgres_store import PostgresStore
    except ImportError:
        raise MissingPackageError(not_installed("a store in PostgreSQL needs", "psycopg", "postgres")) from None
    return PostgresStore(str(location), durability=durability, writes=writes)
