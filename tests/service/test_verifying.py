"""A store proves itself: every decision and version is computed again; what was changed is found."""

import sqlite3
from pathlib import Path

import pytest

from bothworlds.logs import read, write
from bothworlds.service import messages
from bothworlds.service.exporting import exported
from bothworlds.service.records import Drawn, Kind, packed, unpacked
from bothworlds.service.rolling import rolled_back
from bothworlds.service.service import Service
from bothworlds.service.settings import Experiment, Settings
from bothworlds.service.verifying import verify


def settings(folder: Path, arms: tuple[str, ...] = ("red", "blue"), **options: object) -> Settings:
    told = {"arms": list(arms), "contexts": ["mobile", "desktop"], "holdout": 0.1, **options}
    return Settings(experiments={"ads": Experiment(**told)}, folder=str(folder))  # type: ignore[arg-type]


def play(service: Service, visits: range) -> None:
    """Let visitors come in groups of ten; every fourth does not answer."""
    for first in visits[::10]:
        ids = [str(i) for i in range(first, first + 10)]
        contexts = ["mobile" if i % 3 else "desktop" for i in range(first, first + 10)]
        made = service.ask_all([messages.Decide(context=x, id=i) for x, i in zip(contexts, ids, strict=True)])
        arms = [answer.arm for _, answer in made]  # type: ignore[union-attr]
        rewards = [float((arm == "red") == (x == "mobile")) for arm, x in zip(arms, contexts, strict=True)]
        service.ask_all([messages.Reward(id=i, reward=r) for i, r in zip(ids, rewards, strict=True) if int(i) % 4])


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with decisions, a change, a rollback, default rewards and a late one."""
    folder = tmp_path_factory.mktemp("store")
    service = Service(settings(folder, window="1 second"))
    play(service, range(200))
    assert service.change(messages.Change(add=[messages.Arm("green")], retire=["blue"]))[0] == 200
    version = service.plan(None).version
    play(service, range(200, 400))
    service.close()
    service = Service(settings(folder, ("red", "green"), window="0.001 seconds"))
    digest = service.plan(None).digest
    play(service, range(400, 500))
    status, made = service.change(messages.Rollback(version=version))
    assert status == 200
    assert made.version > version  # type: ignore[union-attr]
    assert digest != made.digest  # type: ignore[union-attr]
    for _ in range(400):
        if service.clerk.counts[1]["defaults"] > 20:
            break
        service.learner.wake()
        service.learner._came.wait(0.01)
    assert service.ask(messages.Reward(id="404", reward=1.0))[1].learned is False  # type: ignore[union-attr]
    service.close()
    return folder / "bothworlds.sqlite"


def test_everything_is_as_the_log_says(played: Path) -> None:
    found = verify(played, processes=1)
    assert not found.faults
    assert found.decisions == 500
    assert found.rewards >= 375
    assert found.versions > 3
    assert "bit for bit" in str(found)


def test_pieces_can_be_checked_in_processes(played: Path) -> None:
    whole = verify(played, processes=1)
    assert whole.pieces > 1
    assert str(verify(played, processes=2)) == str(whole)


@pytest.mark.parametrize("part", ["arm", "propensity", "probabilities"])
def test_a_decision_that_was_changed_is_found(played: Path, tmp_path: Path, part: str) -> None:
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(played.read_bytes())
    store = sqlite3.connect(copy)
    seq, body = store.execute("SELECT seq, body FROM log WHERE id = '57' AND kind = ?", (Kind.DECISION,)).fetchone()
    drawn = unpacked(Drawn, body)
    values = [getattr(drawn, name) for name in Drawn.__struct_fields__]
    place = Drawn.__struct_fields__.index(part)
    values[place] = {"arm": "blue" if drawn.arm == "red" else "red", "propensity": 0.25, "probabilities": b"\0" * 16}[
        part
    ]
    store.execute("UPDATE log SET body = ? WHERE seq = ?", (packed(Drawn(*values)), seq))
    store.commit()
    store.close()
    assert "'57'" in str(verify(copy, processes=1))


def test_a_reward_that_was_changed_is_found(played: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(played.read_bytes())
    store = sqlite3.connect(copy)
    changed = "UPDATE log SET body = (SELECT body FROM log WHERE kind = 3 AND id = ?) WHERE kind = 3 AND id = ?"
    store.execute(changed, ("57", "58"))  # one was a click, the other was none
    store.commit()
    same = store.execute("SELECT count(DISTINCT body) FROM log WHERE kind = 3 AND id IN ('57', '58')").fetchone()[0]
    store.close()
    found = verify(copy, processes=1)
    assert same == 1
    assert bool(found.faults) == (_reward(played, "57") != _reward(played, "58"))


def _reward(path: Path, name: str) -> float:
    return next(row.reward for row in exported(path)[1] if row.id == name and row.reward is not None)


def test_export_has_every_decision_with_the_reward_that_came(played: Path, tmp_path: Path) -> None:
    problem, rows = exported(played)
    found = list(rows)
    assert [row.id for row in found] == [str(i) for i in range(500)]
    assert problem.arms == ("red", "green")
    assert {row.offered for row in found} == {("red", "blue"), ("red", "green")}
    assert found[404].reward == 1.0  # the late one stands for the default
    assert all(abs(sum(row.probabilities) - 1.0) < 1e-12 for row in found)
    assert write(iter(found), tmp_path / "log.jsonl") == 500
    assert list(read(tmp_path / "log.jsonl", reward_range=(0, 1))) == found


def test_a_store_that_does_not_run_is_rolled_back(played: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(played.read_bytes())
    with pytest.raises(ValueError, match="the problem has changed"):
        rolled_back(copy, None, 3)
    with pytest.raises(ValueError, match="is not before version"):
        rolled_back(copy, None, 10**6)
    with pytest.raises(FileNotFoundError):
        rolled_back(tmp_path / "nothing.sqlite", None, 3)


def test_unknown_experiments_are_refused(played: Path) -> None:
    with pytest.raises(ValueError, match="there is no experiment 'other'; there are ads"):
        exported(played, "other")
