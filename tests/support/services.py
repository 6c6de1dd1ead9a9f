"""Services for tests: small problems, fast algorithms, and helpers to wait and to interfere."""

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bothworlds.logs import Row
from bothworlds.service import trainer, window_clock, writer
from bothworlds.service.commits import Expire
from bothworlds.service.experiment import Experiment
from bothworlds.service.export import open_export
from bothworlds.service.reward_events import RewardEvent, read_ordered_events, read_reward_events
from bothworlds.service.service import Service
from bothworlds.service.settings import ExperimentSettings, Settings
from bothworlds.service.verification import verify

QUICK: dict[str, Any] = {"kind": "LinUCB"}
ARMS, CONTEXTS = ["red", "blue", "green"], ["mobile", "desktop"]


def settings(
    folder: Path, *, experiments: dict[str, ExperimentSettings] | None = None, overrides: Any = None, **options: Any
) -> Settings:
    """Return settings with one small experiment, "ads"; ``overrides`` are settings of the experiment."""
    one = {"arms": ARMS, "contexts": CONTEXTS, "algorithm": QUICK, **(overrides or {})}
    all_experiments = experiments or {"ads": ExperimentSettings(**one)}
    return Settings(
        **{"experiments": all_experiments, "folder": str(folder), "durability": "process", "refresh": 0.001, **options}
    )


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the store of a service, as another program would."""
    with contextlib.closing(sqlite3.connect(folder / "bothworlds.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def rows_of(path: Path, name: str | None = None, *, current_only: bool = False) -> dict[str, Row]:
    """Return the log rows of a store by decision id."""
    with open_export(path, name, current_only=current_only) as (_, rows):
        return {str(row.id): row for row in rows}


def wait_until(holds: Callable[[], Any], *, seconds: float = 20.0) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "timeout"
        time.sleep(0.002)


def wait_until_learned(service: Service) -> None:
    """Wait until all rewards are learned and published."""
    for one in service.experiments.values():
        wait_until(lambda one=one: not _next_events(service, one))  # type: ignore[misc]
        wait_until(lambda one=one: one.plan.version == one.policy.version)  # type: ignore[misc]


def _next_events(service: Service, experiment: Experiment) -> list[RewardEvent]:
    """Return rewards that can be learned and are not."""
    store, number = service.store, experiment.number
    if experiment.settings.in_order:
        return read_ordered_events(store, number, experiment, most=1).events
    return list(read_reward_events(store, number, after=experiment.through, active_after=experiment.ordered_through))


def assert_verified(folder: Path) -> None:
    """Verify a store."""
    assert verify(folder / "bothworlds.sqlite", processes=1).faults == []


def shorten_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a service retry soon after a failure."""
    monkeypatch.setattr(writer, "PROBE_INTERVAL", 0.05)
    monkeypatch.setattr(trainer, "PAUSE", 0.05)


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now, self.set_by = 1_000_000.0, 0.0

    def __call__(self) -> float:
        return self.now

    def jump(self, seconds: float) -> None:
        """Set the clock, while time passes as before."""
        self.now += seconds
        self.set_by += seconds

    def steady(self) -> float:
        """Return the time that has passed."""
        return self.now - self.set_by


def set_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Set the clocks of the service by hand."""
    clock = Clock()
    monkeypatch.setattr(time, "time", clock)
    monkeypatch.setattr(window_clock, "steady", clock.steady)
    return clock


def close_overdue_windows(service: Service) -> None:
    """Let the trainer close all windows that are over by the clock."""
    for experiment in service.experiments.values():
        before = -1
        while before != experiment.expired_through:
            before, done = experiment.expired_through, Future[Any]()
            service.trainer.run_between_batches(partial(service.trainer.expire, experiment), done.set_result)
            assert done.result() is None


def close_windows(service: Service, ids: list[str]) -> bool:
    """Close the reward windows of decisions now; return whether that could be stored."""
    closing = Expire(service.experiment(None), ids)
    service.writer.submit([closing])
    closing.done.wait()
    return closing.stored
