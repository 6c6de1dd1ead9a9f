"""Where a store is: the path of a file, or the DSN of a PostgreSQL database. Needs no packages."""

from pathlib import Path
from urllib.parse import urlsplit

SCHEMES = ("postgresql://", "postgres://")


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
