"""Verification of a store: everything is recomputed, and alterations are found."""

import sqlite3
from functools import partial
from pathlib import Path

import msgspec
import pytest

from bothworlds.logs import read, write
from bothworlds.service import messages, replay, verification
from bothworlds.service.export import open_export
from bothworlds.service.maintenance import roll_back
from bothworlds.service.records import DecisionBody, Kind, Versioned, packed, unpacked
from bothworlds.service.replay import LogSegment, PendingDecisions, VerifyReport
from bothworlds.service.service import Service
from bothworlds.service.settings import ExperimentSettings, Settings
from bothworlds.service.sqlite import SQLiteStore
from bothworlds.service.verification import segments_of, verify
from support.services import rows_of, wait_until


def settings(folder: Path, arms: tuple[str, ...] = ("red", "blue"), **options: object) -> Settings:
    fields = {"arms": list(arms), "contexts": ["mobile", "desktop"], "holdout": 0.1, **options}
    return Settings(experiments={"ads": ExperimentSettings(**fields)}, folder=str(folder))  # type: ignore[arg-type]


def play(service: Service, visits: range) -> None:
    """Decide in groups of ten visits, and reward all but every fourth."""
    for first in visits[::10]:
        ids = [str(i) for i in range(first, first + 10)]
        contexts = ["mobile" if i % 3 else "desktop" for i in range(first, first + 10)]
        made = service.ask_all([messages.Decide(context=x, id=i) for x, i in zip(contexts, ids, strict=True)])
        arms = [answer.arm for _, answer in made]  # type: ignore[union-attr]
        rewards = [float((arm == "red") == (x == "mobile")) for arm, x in zip(arms, contexts, strict=True)]
        service.ask_all([messages.Reward(id=i, reward=r) for i, r in zip(ids, rewards, strict=True) if int(i) % 4])


@pytest.fixture(scope="module", params=["in order", "at once"])
def played(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A store with decisions, a change, a rollback, default rewards and a late one."""
    folder = tmp_path_factory.mktemp("store")
    service = Service(settings(folder, window="0.5 seconds", learn=request.param))
    play(service, range(100))
    wait_until(lambda: service.plan(None).version > 50)
    play(service, range(100, 200))
    assert service.change(messages.Change(add=[messages.Arm("green")], retire=["blue"]))[0] == 200
    version = service.plan(None).version
    play(service, range(200, 400))
    wait_until(lambda: service.plan(None).version > version + 20)
    service.close()
    service = Service(settings(folder, ("red", "green"), window="0.001 seconds", learn=request.param))
    digest = service.plan(None).digest
    play(service, range(400, 500))
    status, made = service.change(messages.Rollback(version=version))
    assert status == 200
    assert made.version > version  # type: ignore[union-attr]
    assert digest != made.digest  # type: ignore[union-attr]
    wait_until(lambda: len(service.store.find(1, ["404"])) == 2)  # its window has closed
    assert service.ask(messages.Reward(id="404", reward=1.0))[1].learned is False  # type: ignore[union-attr]
    service.close()
    return folder / "bothworlds.sqlite"


def test_an_intact_store_is_verified(played: Path) -> None:
    found = verify(played, processes=1)
    assert not found.faults
    assert found.decisions == 500
    assert found.rewards >= 375
    assert found.versions > 3
    assert "bit for bit" in str(found)


def test_segments_can_be_verified_in_processes(played: Path) -> None:
    whole = verify(played, processes=1)
    assert whole.segments > 1
    assert str(verify(played, processes=2)) == str(whole)


@pytest.mark.parametrize("damaged", [False, True])
def test_snapshots_that_a_service_drops_meanwhile_are_restored(
    played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: bool
) -> None:
    whole, copy = verify(played, processes=1), tmp_path / "copy.sqlite"
    copy.write_bytes(played.read_bytes())

    def dropping(store: SQLiteStore, number: int, path: str) -> list[LogSegment]:
        pieces = segments_of(store, number, path)
        writer = sqlite3.connect(copy)
        if damaged:
            writer.execute("UPDATE log SET body = (SELECT body FROM log WHERE kind = 5) WHERE kind = 5")
        assert writer.execute("DELETE FROM snapshots WHERE version > 0").rowcount >= 2
        writer.commit()
        writer.close()
        return pieces

    monkeypatch.setattr(verification, "segments_of", dropping)
    found = verify(copy, processes=1)
    assert found.segments > 2
    if damaged:
        assert any("no snapshot in the store is readable and leads to the versions" in one for one in found.faults)
    else:
        assert found == whole


def test_a_segment_that_raises_fails_the_verification(played: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(piece: LogSegment) -> VerifyReport:
        raise IndexError(f"nothing at {piece.first}")

    monkeypatch.setattr(verification, "verify_segment", failing)
    with pytest.raises(IndexError, match="nothing at"):
        verify(played, processes=1)


CHANGES = {
    "context": "mobile",
    "arm": "blue",
    "propensity": 0.25,
    "version": 10**6,
    "holdout": True,
    "fingerprint": "000000000000",
    "probabilities": b"\0" * 16,
    "direction": b"\0" * 16,
    "baseline": b"\0" * 16,
}


def altered(path: Path, folder: Path, name: str, **changes: object) -> Path:
    """Return a copy of a store with an altered decision."""
    copy = folder / "copy.sqlite"
    copy.write_bytes(path.read_bytes())
    store = sqlite3.connect(copy)
    seq, body = store.execute("SELECT seq, body FROM log WHERE id = ? AND kind = 1", (name,)).fetchone()
    before = unpacked(DecisionBody, body)
    after = msgspec.structs.replace(before, **changes)
    assert after != before
    store.execute("UPDATE log SET body = ? WHERE seq = ?", (packed(after), seq))
    store.commit()
    store.close()
    return copy


def found_in(path: Path, *, held: bool, **values: object) -> str:
    """Return the id of a decision inside or outside the holdout whose fields differ from these values."""
    store = SQLiteStore(path, writes=False)
    made = [(str(one.id), unpacked(DecisionBody, one.body)) for one in store.read() if one.kind == Kind.DECISION]
    store.close()
    return next(
        name
        for name, drawn in made[40:]
        if drawn.holdout == held and all(getattr(drawn, part) != value for part, value in values.items())
    )


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("part", CHANGES)
def test_an_altered_decision_is_found(played: Path, tmp_path: Path, part: str, held: bool) -> None:
    if held and part == "context":
        return  # uniform in every context, and which one is not computed but asked
    value = not held if part == "holdout" else CHANGES[part]
    name = found_in(played, held=held, **{part: value})
    found = verify(altered(played, tmp_path, name, **{part: value}), processes=1)
    assert repr(name) in str(found)


def test_faults_found_in_another_process_are_reported(played: Path, tmp_path: Path) -> None:
    copy = altered(played, tmp_path, "17", propensity=0.25)
    assert str(verify(copy, processes=2)) == str(verify(copy, processes=1))
    assert "decision '17' differs from what plan" in str(verify(copy, processes=2))


def test_the_request_of_a_client_is_not_recomputed(played: Path, tmp_path: Path) -> None:
    assert not verify(altered(played, tmp_path, "57", request_hash=b"\0" * 16), processes=1).faults


def rewarded(path: Path) -> tuple[str, str]:
    """Return two consecutive decisions outside the holdout that were rewarded at once."""
    store = SQLiteStore(path, writes=False)
    made = [(int(str(one.id)), unpacked(DecisionBody, one.body)) for one in store.read() if one.kind == Kind.DECISION]
    store.close()
    good = {name for name, drawn in made if not drawn.holdout and name % 4 and name < 190}
    return next((str(name), str(name + 1)) for name in sorted(good) if name > 40 and name + 1 in good and name % 10 < 9)


def used_version(path: Path) -> int:
    """Return the sequence number of the newest version that has made a decision, or else of the second one."""
    store = SQLiteStore(path, writes=False)
    used = max(unpacked(DecisionBody, one.body).version for one in store.read() if one.kind == Kind.DECISION)
    marks = {unpacked(Versioned, one.body).version: one.seq for one in store.read() if one.kind == Kind.VERSION}
    store.close()
    return marks.get(used, list(marks.values())[1])


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("DELETE FROM log WHERE id = '{name}' AND kind = 1", "{no_decision}"),
        ("UPDATE log SET id = 'another' WHERE id = '{name}' AND kind = 1", "{no_decision}"),
        ("UPDATE log SET id = 'another' WHERE id = '{name}' AND kind = 3", "{no_decision}"),
        ("DELETE FROM log WHERE id = '{name}' AND kind = 3", "the log leads to version"),
        ("DELETE FROM log WHERE seq = {mark}", "not verified"),
        ("UPDATE log SET body = x'91' WHERE id = '{name}' AND kind = 1", "is damaged"),
        ("UPDATE log SET body = x'91' WHERE id = '{name}' AND kind = 3", "is damaged"),
        ("UPDATE snapshots SET digest = 'other' WHERE version > 0", "damaged"),
        ("DROP INDEX by_id; UPDATE log SET id = '{name}' WHERE id = '{other}' AND kind = 1", "is in the log twice"),
    ],
)
def test_missing_and_altered_records_are_found(played: Path, tmp_path: Path, statement: str, fault: str) -> None:
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(played.read_bytes())
    store = sqlite3.connect(copy)
    name, other = rewarded(played)
    in_order = store.execute("SELECT max(ordered_through) FROM snapshots").fetchone()[0] > 0
    no_decision = "the log leads to version" if in_order else "and no such decision"
    for part in statement.format(name=name, other=other, mark=used_version(played)).split("; "):
        done = store.execute(part)
    assert done.rowcount >= 1
    store.commit()
    store.close()
    assert fault.format(no_decision=no_decision) in str(verify(copy, processes=1))


def test_an_altered_digest_is_found(played: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(played.read_bytes())
    store = sqlite3.connect(copy)
    seq, body = store.execute("SELECT seq, body FROM log WHERE kind = 5 ORDER BY seq DESC LIMIT 1").fetchone()
    changed = msgspec.structs.replace(unpacked(Versioned, body), digest="0" * 32)
    store.execute("UPDATE log SET body = ? WHERE seq = ?", (packed(changed), seq))
    store.commit()
    store.close()
    assert f"but records version {changed.version} with {changed.digest}" in str(verify(copy, processes=1))


@pytest.mark.parametrize("size", [1, 7, 64])
def test_rewards_of_decisions_outside_the_buffer_are_learned(
    played: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(replay, "PendingDecisions", partial(PendingDecisions, size=size))
    found = verify(played, processes=1)
    assert (found.decisions, found.faults) == (500, [])


def test_an_altered_reward_is_found(played: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(played.read_bytes())
    store = sqlite3.connect(copy)
    name, _ = rewarded(played)  # not one that is held out: from its reward nothing is learned
    bodies = dict(store.execute("SELECT id, body FROM log WHERE kind = 3"))
    rewards = {name: row.reward for name, row in rows_of(played).items()}
    other = next(one for one in bodies if rewards[one] != rewards[name])
    store.execute("UPDATE log SET body = ? WHERE kind = 3 AND id = ?", (bodies[other], name))
    store.commit()
    store.close()
    assert "the log leads to version" in str(verify(copy, processes=1))


def test_export_has_every_decision_with_its_actual_reward(played: Path, tmp_path: Path) -> None:
    with open_export(played) as (problem, rows):
        found = list(rows)
    assert [row.id for row in found] == [str(i) for i in range(500)]
    assert problem.arms == ("red", "green")
    assert {row.offered for row in found} == {("red", "blue"), ("red", "green")}
    assert found[404].reward == 1.0  # the late reward instead of the default
    assert all(abs(sum(row.probabilities) - 1.0) < 1e-12 for row in found)
    assert write(iter(found), tmp_path / "log.jsonl") == 500
    assert list(read(tmp_path / "log.jsonl", reward_range=(0, 1))) == found


def test_invalid_offline_rollbacks_are_refused(played: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(played.read_bytes())
    with pytest.raises(ValueError, match="the problem has changed"):
        roll_back(copy, None, 3)
    with pytest.raises(ValueError, match="is not earlier than the current version"):
        roll_back(copy, None, 10**6)
    with pytest.raises(FileNotFoundError):
        roll_back(tmp_path / "nothing.sqlite", None, 3)


def test_unknown_experiments_are_refused(played: Path) -> None:
    with pytest.raises(ValueError, match="there is no experiment 'other'; there are ads"):
        rows_of(played, "other")
