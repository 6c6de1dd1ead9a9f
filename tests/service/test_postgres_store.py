"""What a store in PostgreSQL does that one in a file does not: several hosts, migrations, a server that goes away."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from bothworlds.service.dsn import location_text
from bothworlds.service.locations import open_store
from bothworlds.service.postgres.postgres_store import PostgresStore
from bothworlds.service.records import Kind
from bothworlds.service.store import ConflictError, StoreError, TermOverError
from support.postgres import QUICK, PostgresServer, needs_postgres, schema_for
from support.stores import about, decision, mark, snapshot

pytestmark = needs_postgres


@pytest.fixture
def dsn(tmp_path: Path) -> str:
    return schema_for(tmp_path)


@pytest.fixture
def stores(dsn: str) -> Iterator[list[PostgresStore]]:
    opened = [PostgresStore(dsn) for _ in range(3)]
    yield opened
    for store in opened:
        store.close()


def test_hosts_that_start_at_once_make_one_store(dsn: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: PostgresStore(dsn), range(8)))
        numbers = set(pool.map(lambda store: store.experiment("ads"), opened))
    assert numbers == {1}
    assert opened[0].experiments() == {"ads": 1}
    for store in opened:
        store.close()


def test_a_reader_of_the_log_misses_nothing_that_is_committed_later(stores: list[PostgresStore]) -> None:
    """What was visible up to the last sequence number has no gaps, whichever host commits first."""
    done, seen = threading.Event(), []

    def write(host: int) -> None:
        for group in range(30):
            stores[host].append([decision(f"{host} {group} {place}") for place in range(group % 7)])

    def read() -> None:
        after = 0
        while not (done.is_set() and after == stores[2].last()):
            for record in stores[2].read(after=after):
                seen.append(record.seq)
                after = record.seq

    reader = threading.Thread(target=read)
    reader.start()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2)))
    done.set()
    reader.join()
    assert seen == list(range(1, stores[0].last() + 1))
    assert len(seen) == 2 * sum(group % 7 for group in range(30))


def test_a_record_of_another_host_is_a_conflict(stores: list[PostgresStore]) -> None:
    stores[0].append([decision("a")])
    with pytest.raises(ConflictError):
        stores[1].append([decision("b"), decision("a")])
    assert stores[1].append([decision("b")]) == 2, "a failure leaves no gap"


def test_a_term_that_is_over_stores_nothing(stores: list[PostgresStore], dsn: str) -> None:
    earlier, later, decider = stores
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE learner SET epoch = 8")
    earlier.term, later.term = 7, 8
    with pytest.raises(TermOverError):
        earlier.append([mark()], snapshots=[snapshot(1)], notes={"expired 1": 5})
    with pytest.raises(TermOverError):
        earlier.append([about(Kind.REWARD, "a", flag=False)])
    assert (later.last(), later.snapshots(1), later.note("expired 1")) == (0, [], 0)
    with pytest.raises(StoreError, match="another host has begun to learn"):
        earlier.erase(snapshot(1))
    assert decider.append([decision("a")]) == 1, "those who only decide need no term"
    assert later.append([mark()], snapshots=[snapshot(1)]) == 2


def test_a_commit_waits_for_the_disk_unless_told_otherwise(dsn: str) -> None:
    for durability, setting in (("full", "on"), ("process", "off")):
        store = PostgresStore(dsn, durability=durability)  # type: ignore[arg-type]
        with store._writer.use() as connection:
            assert connection.execute("SHOW synchronous_commit").fetchone() == (setting,)
        store.close()


def test_a_later_schema_is_refused(dsn: str) -> None:
    PostgresStore(dsn).close()
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE about SET value = '99' WHERE name = 'schema'")
    with pytest.raises(ValueError, match=r"schema version 99.*update the library"):
        PostgresStore(dsn)


def test_tables_of_another_program_are_refused_and_left_alone(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE about (name text, value text)")
    with pytest.raises(ValueError, match="has format None"):
        PostgresStore(dsn)
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT to_regclass('log')").fetchone() == (None,)


def test_connections_are_found_again_after_a_restart_of_the_server() -> None:
    server = PostgresServer(*QUICK)
    try:
        store = PostgresStore(server.schema())
        store.append([decision("a")])
        assert store.last() == 1
        server.stop()
        for work in (store.last, store.probe, lambda: store.append([decision("b")])):
            with pytest.raises(StoreError, match="connection to the database was lost") as refused:
                work()
            assert str(server.folder) not in str(refused.value), "clients are told nothing about the server"
        server.start()
        assert store.append([decision("b")]) == 2
        assert [record.id for record in store.read()] == ["a", "b"]
        store.close()
    finally:
        server.remove()


def test_a_server_that_does_not_answer_is_named_without_the_password() -> None:
    dsn = "postgresql://ann:secret@127.0.0.1:9/ads"
    with pytest.raises(ConnectionError, match=r"cannot use postgresql://127.0.0.1:9/ads: ") as refused:
        open_store(dsn)
    assert "secret" not in str(refused.value) + location_text(dsn)


def test_without_psycopg_the_extra_is_named() -> None:
    program = "import sys; sys.modules['psycopg'] = None\nfrom bothworlds.service.locations import open_store\n"
    found = subprocess.run(
        [sys.executable, "-c", program + "open_store('postgresql://x/y')"], capture_output=True, text=True
    )
    assert "pip install '.[postgres]'" in found.stderr.splitlines()[-1]
