"""Copies of a store between a file and a database, and the commands of a store on a database."""

import contextlib
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from bothworlds.cli import main
from bothworlds.logs import read
from bothworlds.service.copying import copy_store
from bothworlds.service.maintenance import erase_decisions, roll_back
from bothworlds.service.messages import Arm, Change, Decide, Reward
from bothworlds.service.service import Service
from bothworlds.service.verification import verify
from support.postgres import needs_postgres, schema_for, shared_server
from support.services import rows_of, settings, wait_until, wait_until_learned

pytestmark = needs_postgres
CHOSEN: dict[str, Any] = {"algorithm": "matched", "holdout": 0.1, "learn": "at once"}


@contextlib.contextmanager
def running(folder: Path, location: str) -> Iterator[Service]:
    service = Service(settings(folder, overrides=CHOSEN, store=location))
    wait_until(lambda: service.learns, seconds=60)
    yield service
    service.close()


def play(service: Service, visits: range) -> None:
    for first in visits[::10]:
        names = [f"ä {number}" for number in range(first, first + 10)]
        service.ask_all([Decide("mobile", name) for name in names])
        service.ask_all([Reward(name, 0.5) for name in names[1:]])
        wait_until_learned(service)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store in a file, with a change, whose beginning is erased."""
    with running(tmp_path, "ads.sqlite") as service:
        play(service, range(60))
    erase_decisions(tmp_path / "ads.sqlite")
    with running(tmp_path, "ads.sqlite") as service:
        service.change(Change(add=[Arm("new")], retire=["red"]))
        play(service, range(60, 120))
    return tmp_path / "ads.sqlite"


@pytest.fixture
def dsn(tmp_path: Path) -> str:
    return schema_for(tmp_path)


def test_a_store_is_copied_to_a_database_and_back(file: Path, dsn: str, tmp_path: Path) -> None:
    before = verify(file, processes=1)
    assert before.faults == []
    rows = rows_of(file)
    copied = copy_store(file, dsn)
    assert str(verify(dsn, processes=2)) == str(before)
    assert rows_of(dsn) == rows  # type: ignore[arg-type]
    with running(tmp_path, dsn) as service:
        play(service, range(120, 150))
        assert service.ask(Reward("ä 60", 0.25))[0] == 200, "it was open"
    assert copied.records < copy_store(dsn, tmp_path / "back.sqlite").records
    again = verify(tmp_path / "back.sqlite", processes=1)
    assert again.faults == []
    assert again.decisions == before.decisions + 30
    with running(tmp_path, "back.sqlite") as service:
        assert service.ask(Reward("ä 60", 0.25))[0] == 200
        play(service, range(150, 170))
    assert verify(tmp_path / "back.sqlite", processes=1).faults == []


def test_a_target_that_is_not_empty_is_refused(file: Path, dsn: str, tmp_path: Path) -> None:
    copy_store(file, dsn)
    with pytest.raises(ValueError, match="not empty") as refused:
        copy_store(file, dsn)
    assert "service@" not in str(refused.value)
    (tmp_path / "other.sqlite").write_bytes(b"")
    with pytest.raises(ValueError, match="exists already"):
        copy_store(dsn, tmp_path / "other.sqlite")


def test_a_failed_copy_leaves_nothing(file: Path, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("DELETE FROM frames")
    connection.close()
    with pytest.raises(ValueError, match="no frame"):
        copy_store(file, dsn)
    with psycopg.connect(dsn) as found:
        for table in ("log", "experiments", "snapshots"):
            assert found.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() == (0,)


def test_a_store_in_use_is_neither_copied_nor_changed(dsn: str, tmp_path: Path) -> None:
    with running(tmp_path, dsn) as service:
        play(service, range(10))
        for work in (
            lambda: copy_store(dsn, tmp_path / "x.sqlite"),
            lambda: roll_back(dsn, None, 0),
            lambda: erase_decisions(dsn),
        ):
            with pytest.raises(ValueError, match="is in use: a service learns from it"):
                work()
        assert service.learns
    assert not (tmp_path / "x.sqlite").exists()


def test_a_database_without_a_store_gets_none_from_reading(dsn: str) -> None:
    for work in (lambda: roll_back(dsn, None, 0), lambda: verify(dsn)):
        with pytest.raises(FileNotFoundError, match="no such store"):
            work()
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT to_regclass('log')").fetchone() == (None,)


def test_a_store_in_a_database_is_rolled_back_and_erased(dsn: str, tmp_path: Path) -> None:
    with running(tmp_path, dsn) as service:
        play(service, range(60))
        plan = service.plan(None)
    changed = roll_back(dsn, None, 0)
    decider = Service(settings(tmp_path, overrides=CHOSEN, store=dsn), role="decide")
    assert decider.plan(None).version == changed.version == plan.version + 1
    roll_back(dsn, None, plan.version)
    wait_until(lambda: decider.plan(None).version == plan.version + 2, seconds=60)
    assert decider.plan(None).probabilities == plan.probabilities
    decider.close()
    assert erase_decisions(dsn).records > 100
    found = verify(dsn, processes=1)
    assert (found.faults, found.erased_through) == ([], plan.version + 2)
    with running(tmp_path, dsn) as service:
        assert service.plan(None).probabilities == plan.probabilities
        play(service, range(60, 80))
    assert verify(dsn, processes=1).faults == []


def test_the_commands_take_a_dsn(file: Path, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*arguments: str) -> str:
        result = CliRunner().invoke(main, list(arguments))
        assert result.exit_code == 0, result.output
        return result.output

    said = run("service", "copy", str(file), dsn, "--processes", "1", "--quiet")
    assert "all rows are equal" in said
    assert "verified: " in said
    assert str(shared_server().folder) not in said
    run("service", "export", dsn, "log.jsonl")
    assert sum(1 for _ in read("log.jsonl")) == len(rows_of(file))
    monkeypatch.setattr(sys, "argv", ["bothworlds", "evaluate", dsn])  # the page names the command
    page = run("evaluate", dsn, "--policy", "uniform", "--missing", "0", "--json")
    assert '"uniform"' in page
    text = Path("evaluation.html").read_text(encoding="utf-8")
    assert "bothworlds evaluate postgresql:///postgres" in text
    assert "service@" not in text
