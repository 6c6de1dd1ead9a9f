"""Services for tests: small problems, quick algorithms, and what can be done to them from within."""

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bothworlds.logs import Row
from bothworlds.service import clerk, learner
from bothworlds.service.exporting import exported
from bothworlds.service.jobs import Expire
from bothworlds.service.service import Service
from bothworlds.service.settings import Experiment as Told
from bothworlds.service.settings import Settings
from bothworlds.service.verifying import verify

QUICK: dict[str, Any] = {"kind": "LinUCB"}
ARMS, CONTEXTS = ["red", "blue", "green"], ["mobile", "desktop"]


def settings(folder: Path, *, experiments: dict[str, Told] | None = None, told: Any = None, **options: Any) -> Settings:
    """Return settings with one small experiment, "ads"; ``told`` has what it is told beside arms and contexts."""
    one = {"arms": ARMS, "contexts": CONTEXTS, "algorithm": QUICK, **(told or {})}
    made = experiments or {"ads": Told(**one)}
    return Settings(
        **{"experiments": made, "folder": str(folder), "durability": "process", "refresh": 0.001, **options}
    )


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the store of a service, as another program does."""
    with contextlib.closing(sqlite3.connect(folder / "bothworlds.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def rows_of(path: Path, name: str | None = None, *, of_now: bool = False) -> dict[str, Row]:
    """Return the rows in the file of a store by the ids of their decisions."""
    with exported(path, name, of_now=of_now) as (_, rows):
        return {str(row.id): row for row in rows}


def until(holds: Callable[[], Any], *, seconds: float = 20.0) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to hold"
        time.sleep(0.002)


def learnt(service: Service) -> None:
    """Wait until all rewards are learnt, and plans with them decide."""
    for one in service.experiments.values():
        until(lambda one=one: not list(service.store.lessons(one.number, after=one.through)))  # type: ignore[misc]
        until(lambda one=one: one.plan.version == one.policy.version)  # type: ignore[misc]


def verified(folder: Path) -> None:
    """See that all of a store is as its log says."""
    assert verify(folder / "bothworlds.sqlite", processes=1).faults == []


def shorten_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a service look again soon after a failure."""
    monkeypatch.setattr(clerk, "PROBED", 0.05)
    monkeypatch.setattr(learner, "PAUSE", 0.05)


def close_windows(service: Service, ids: list[str]) -> bool:
    """Let the windows of decisions close now; tell whether that could be stored."""
    closing = Expire(service.of(None), ids)
    service.clerk.submit([closing])
    closing.done.wait()
    return closing.stored
