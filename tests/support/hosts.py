"""Several hosts on one store in PostgreSQL, in one process."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bothworlds.service.messages import Decide, Reward
from bothworlds.service.records import MARKS, unpacked
from bothworlds.service.roles import Role
from bothworlds.service.service import Service
from bothworlds.service.verification import verify
from support.postgres import schema_for
from support.services import settings, wait_until

Host = Callable[..., Service]


@contextlib.contextmanager
def open_hosts(folder: Path) -> Iterator[Host]:
    """Give a function that starts a host with a role on the store of a folder; close all hosts at the end."""
    opened: list[Service] = []

    def start(role: Role = "both", *, dsn: str | None = None, **overrides: Any) -> Service:
        chosen = settings(folder, overrides=overrides, store=dsn or schema_for(folder), durability="full")
        opened.append(Service(chosen, role=role))
        return opened[-1]

    yield start
    faults = [service.reasons_to_restart for service in opened]
    for service in reversed(opened):
        service.close()
    assert not any(faults), faults


def visit(decider: Service, rewarder: Service, visits: range, *, best: str = "blue") -> None:
    """Decide on one host, and reward on another."""
    for name in map(str, visits):
        status, made = decider.ask(Decide("mobile", name))
        assert status == 200, made
        assert rewarder.ask(Reward(name, float(made.arm == best)))[0] == 200  # type: ignore[union-attr]


def wait_for_version(service: Service, version: int) -> None:
    """Wait until a host decides with the plan of a version."""
    wait_until(lambda: service.plan(None).version == version, seconds=60)


def versions_in(service: Service) -> list[int]:
    """Return the versions in the log."""
    return [unpacked(MARKS[mark.kind], mark.body).version for mark in service.store.marks(1)]


def verified(folder: Path) -> int:
    """Verify the store; return the number of decisions."""
    found = verify(schema_for(folder), processes=1)
    assert found.faults == []
    return found.decisions
