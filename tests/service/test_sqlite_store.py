"""The files of the SQLite store."""

import sqlite3
from pathlib import Path

import pytest

from bothworlds.service.sqlite import CHECKPOINT, SQLiteStore
from support.stores import decision


def test_a_file_that_is_not_a_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.sqlite"
    path.write_bytes(b"not a database, but longer than a header of one: " * 20)
    for writes in (False, True):
        with pytest.raises(ValueError, match="not a bothworlds store"):
            SQLiteStore(path, writes=writes)
    assert path.read_bytes().startswith(b"not a database"), "and is left alone"
    other = tmp_path / "other.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE about (name TEXT, something TEXT)")
    connection.close()
    with pytest.raises(ValueError, match="not a bothworlds store"):
        SQLiteStore(other)


def test_a_copy_without_its_wal_file_is_refused(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "ads.sqlite")
    (tmp_path / "copy.sqlite").write_bytes((tmp_path / "ads.sqlite").read_bytes())
    with pytest.raises(ValueError, match="if this is a copy, the -wal file beside the store is missing"):
        SQLiteStore(tmp_path / "copy.sqlite", writes=False)
    store.close()


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="cannot write"):
        SQLiteStore(tmp_path / "nowhere" / "log.sqlite")


def test_a_refused_store_is_not_locked(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    path.write_bytes(b"not a database, but longer than a header of one: " * 20)
    with pytest.raises(ValueError, match="not a bothworlds store"):
        SQLiteStore(path)
    path.unlink()
    SQLiteStore(path).close()


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("process", 1)])
def test_durability_sets_the_synchronous_pragma(tmp_path: Path, durability: str, level: int) -> None:
    store = SQLiteStore(tmp_path / "log.sqlite", durability=durability)  # type: ignore[arg-type]
    assert store._writer.execute("PRAGMA synchronous").fetchone() == (level,)
    assert store._writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.close()


def test_the_wal_file_does_not_grow_without_bound(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "log.sqlite", durability="process")
    sizes = []
    for group in range(8):
        store.append([decision(f"{group} {place}") for place in range(CHECKPOINT)])
        store.tidy()
        sizes.append((tmp_path / "log.sqlite-wal").stat().st_size)
    assert max(sizes) <= 3 * sizes[0], sizes
    store.close()


def test_a_folder_instead_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.sqlite").mkdir()
    with pytest.raises(ValueError, match="cannot be used"):
        SQLiteStore(tmp_path / "log.sqlite")
