"""Decisions in the caller's process: spooled, sent once, computed again by the service, and kept over kills."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bothworlds.service.client import Client, ServiceError
from bothworlds.service.local import LocalDecider
from bothworlds.service.spool import Spool, SpoolFullError
from bothworlds.service.sqlite import SQLiteStore
from bothworlds.service.verification import verify
from support.service_process import served
from support.services import wait_until

SETTINGS = """
[experiments.banners]
arms = ["red", "blue"]
contexts = ["mobile", "desktop"]
algorithm = { kind = "LinUCB" }
holdout = 0.1
"""
DECIDING = """
import sys
from bothworlds.service.client import Client
from bothworlds.service.local import LocalDecider
decider = LocalDecider(Client(sys.argv[1]), "spool", send_every=float(sys.argv[2]))
number = 0
while True:
    decision = decider.decide("mobile", id=f"visit {sys.argv[3]} {number}")
    print(decision.id, decision.arm_name, flush=True)
    decider.reward(decision.id, 1.0)
    number += 1
"""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "ads.toml").write_text(SETTINGS)
    with served(tmp_path, "ads.toml") as address:
        yield address


def stored_in(folder: Path) -> dict[str, list[int]]:
    """Return the kinds of records by decision id."""
    store, kinds = SQLiteStore(folder / "bothworlds.sqlite", writes=False), dict[str, list[int]]()
    for record in store.read():
        if record.id is not None:
            kinds.setdefault(record.id, []).append(record.kind)
    store.close()
    return kinds


def test_local_decisions_are_stored_learned_and_verified(address: str, tmp_path: Path) -> None:
    with Client(address) as client, LocalDecider(client, tmp_path / "spool", refresh=0.05) as decider:
        first = decider.plan.version
        for number in range(600):
            decision = decider.decide("mobile" if number % 2 else "desktop")
            decider.reward(decision.id, float(decision.arm_name == "blue"))
            if number == 300:
                wait_until(lambda: decider.plan.version > first)
        wait_until(lambda: decider.waiting_bytes == 0)
        assert (decider.refused, decider.failure) == (0, None)
        wait_until(lambda: decider.plan.digest == client.plan().digest)
    kinds = stored_in(tmp_path)
    assert len(kinds) == 600
    assert all(found == [1, 3] for found in kinds.values())
    report = verify(tmp_path / "bothworlds.sqlite", processes=1)
    assert (report.faults, report.decisions) == ([], 600)
    assert report.versions > 1


def test_rows_that_the_plan_did_not_decide_are_refused(address: str, tmp_path: Path) -> None:
    client = Client(address)
    with LocalDecider(client, tmp_path / "spool", send_every=0.01) as decider:
        decision = decider.decide("mobile", id="visit 9")
    row = ["visit 10", "mobile", 0, "red", 0.5, True]
    other = decider.plan.act("mobile", id="visit 10").arm_name
    wrong = [
        ["visit 10", "mobile", 0, "blue" if other == "red" else "red", 0.5, True],
        [*row[:3], other, 0.25, True],
        [*row[:2], 10_000, other, 0.5, True],
        [*row[:1], "tablet", *row[2:]],
    ]
    with client:
        refusals = client.store_local(wrong)
    assert [one.status for one in refusals if isinstance(one, ServiceError)] == [409, 409, 422, 422]
    assert set(stored_in(tmp_path)) == {"visit 9"}
    assert decision.version == 0


def test_rows_of_an_id_that_was_used_before_are_set_aside(address: str, tmp_path: Path) -> None:
    client = Client(address)
    client.decide("desktop", id="visit 9")
    with client, LocalDecider(client, tmp_path / "spool") as decider:
        decider.decide("mobile", id="visit 9")
        wait_until(lambda: decider.refused == 1)
    (refused,) = [json.loads(line) for line in (tmp_path / "spool" / "refused.jsonl").read_text().splitlines()]
    assert (refused["row"][0], refused["status"]) == ("visit 9", 409)


def test_nothing_is_lost_when_the_deciding_process_is_killed(address: str, tmp_path: Path) -> None:
    """What was decided before the kill is sent by the next process, once."""
    seen: dict[str, str] = {}
    for turn, send_every in enumerate(("1000", "0.001", "1000")):
        command = [sys.executable, "-c", DECIDING, address, send_every, str(turn)]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(300):
                name, arm = process.stdout.readline().rsplit(maxsplit=1)
                seen[name] = arm
            os.kill(process.pid, signal.SIGKILL)
            seen |= dict(line.rsplit(maxsplit=1) for line in process.stdout.read().splitlines()[:-1])
    with LocalDecider(Client(address), tmp_path / "spool") as decider:
        wait_until(lambda: decider.waiting_bytes == 0, seconds=60)
        assert decider.refused == 0
    kinds = stored_in(tmp_path)
    assert seen.keys() <= kinds.keys()
    assert all(kinds[name][0] == 1 for name in seen)
    assert max(map(len, kinds.values())) == 2
    assert verify(tmp_path / "bothworlds.sqlite", processes=1).faults == []


def test_decisions_go_on_without_the_service(tmp_path: Path) -> None:
    (tmp_path / "ads.toml").write_text(SETTINGS)
    with served(tmp_path, "ads.toml") as address:
        decider = LocalDecider(Client(address, retry_for=0.0), tmp_path / "spool", refresh=0.01)
    for number in range(100):
        decider.decide("mobile", id=f"visit {number}")
    wait_until(lambda: decider.failure)
    assert decider.close(timeout=0.1) is False
    with served(tmp_path, "ads.toml") as address, LocalDecider(Client(address), tmp_path / "spool") as again:
        wait_until(lambda: again.waiting_bytes == 0)
    assert len(stored_in(tmp_path)) == 100


def test_a_plan_needs_the_scope_local(tmp_path: Path) -> None:
    from bothworlds.service.auth import new_token

    secret, hashed = new_token()
    (tmp_path / "ads.toml").write_text(
        f'[[tokens]]\nname = "shop"\nsha256 = "{hashed}"\nscopes = ["decide", "reward"]\n{SETTINGS}'
    )
    with served(tmp_path, "ads.toml") as address, Client(address, token=secret) as client:
        with pytest.raises(ServiceError) as refused:
            LocalDecider(client, tmp_path / "spool")
        assert refused.value.status == 403
        with pytest.raises(ServiceError, match="local"):
            client.store_local([["a", "mobile", 0, "red", 0.5, True]])


def test_a_spool_keeps_its_order_over_segments_and_restarts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bothworlds.service.spool.SEGMENT_BYTES", 100)
    lines = [f"line {number}".encode() for number in range(200)]
    spool, taken = Spool(tmp_path), list[bytes]()
    for number, line in enumerate(lines):
        spool.append(line)
        if number % 17 == 0:
            found, end = spool.peek(3)
            taken += found
            spool.acknowledge(end)
        if number % 40 == 0:
            spool.close()
            spool = Spool(tmp_path)
    while found := spool.peek(1000)[0]:
        taken += found
        spool.acknowledge(spool.peek(1000)[1])
    assert taken == lines
    assert spool.waiting_bytes == 0
    assert len(list(tmp_path.glob("*.lines"))) == 1, "files of what has arrived are removed"
    spool.close()


def test_a_torn_line_is_dropped_and_a_full_spool_refuses(tmp_path: Path) -> None:
    spool = Spool(tmp_path, most_bytes=20)
    spool.append(b"whole")
    spool.close()
    with (tmp_path / "00000001.lines").open("ab") as file:
        file.write(b"tor")
    spool = Spool(tmp_path, most_bytes=20)
    spool.append(b"next " * 5)
    assert spool.peek(10)[0] == [b"whole", b"next " * 5]
    with pytest.raises(SpoolFullError, match="wait to be sent"):
        spool.append(b"more")
    with pytest.raises(ValueError, match="is in use"):
        Spool(tmp_path)
    spool.close()


def test_threads_may_append_while_another_acknowledges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bothworlds.service.spool.SEGMENT_BYTES", 500)
    spool, taken = Spool(tmp_path), list[bytes]()

    def append(thread: int) -> None:
        for number in range(500):
            spool.append(f"{thread} {number}".encode())

    threads = [threading.Thread(target=append, args=(thread,)) for thread in range(3)]
    for thread in threads:
        thread.start()
    while len(taken) < 1500:
        found, end = spool.peek(7)
        taken += found
        spool.acknowledge(end)
    for thread in threads:
        thread.join()
    spool.close()
    for k in range(3):
        assert [line for line in taken if line.startswith(f"{k} ".encode())] == [
            f"{k} {n}".encode() for n in range(500)
        ]
