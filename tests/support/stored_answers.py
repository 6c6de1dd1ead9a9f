"""Compare what a store has with what clients asked for and what was acknowledged to them."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from bothworlds.service import rules
from bothworlds.service.experiment import load_snapshot, replay_log
from bothworlds.service.locations import open_store
from bothworlds.service.messages import Rewarded
from bothworlds.service.records import MARKS, DecisionBody, Kind, Record, RewardBody, unpacked
from support.service_clients import Notes, text_of


def answers_in(records: list[Record]) -> Iterator[tuple[int, str, Any]]:
    """Yield kind, id and answer of the records in a store."""
    drawn: dict[str, DecisionBody] = {}
    by_default: set[str] = set()
    for record in records:
        name = str(record.id)
        match record.kind:
            case Kind.DECISION:
                drawn[name] = unpacked(DecisionBody, record.body)
                yield record.kind, name, rules.decided(name, drawn[name], "ads", active=bool(record.flag))
            case Kind.ACTIVATION:
                yield record.kind, name, None
            case Kind.REWARD if not record.flag:
                by_default.add(name)
            case Kind.REWARD | Kind.LATE:
                late = record.kind == Kind.LATE
                reason = rules.CLOSED if late else rules.HELD_OUT if drawn[name].holdout else None
                paid = unpacked(RewardBody, record.body).reward
                yield Kind.REWARD, name, Rewarded(name, "ads", paid, reason is None, reason)
                assert late == (name in by_default)


def faults_in(path: Path | str, notes: Notes) -> list[str]:
    """Return differences between the store and what was requested and acknowledged."""
    store = open_store(path, writes=False)
    found = list(answers_in([record for record in store.read() if record.kind not in MARKS]))
    store.close()
    stored = {(kind, name): answer for kind, name, answer in found}
    faults = [f"doubled: {key}" for key, count in Counter((kind, name) for kind, name, _ in found).items() if count > 1]
    for kind, acknowledged in ((Kind.DECISION, notes.decided), (Kind.REWARD, notes.rewarded)):
        for name, answer in acknowledged.items():
            record = stored.get((kind, name))
            if record is None:
                faults.append(f"lost: {kind.name} {name}")
            elif text_of(msgspec.to_builtins(record)) != answer:
                faults.append(f"changed: {kind.name} {name}: {answer!r} is {record}")
    faults += [f"lost: activation of {name}" for name in notes.activated if (Kind.ACTIVATION, name) not in stored]
    return faults + [f"made up: {name}" for _, name in stored if name not in notes.asked]


def versions_from_the_first(path: Path | str) -> int:
    """Replay the whole log from the first snapshot, and check every digest; return the number of versions."""
    store = open_store(path, writes=False)
    first = store.snapshots(1)[-1]
    assert first.version == 0
    policy = replay_log(store, 1, load_snapshot(store, first), first)[0]
    marks = [unpacked(MARKS[mark.kind], mark.body) for mark in store.marks(1)]
    if marks:
        assert (policy.version, policy.digest) == (marks[-1].version, marks[-1].digest)
    store.close()
    return len(marks)
