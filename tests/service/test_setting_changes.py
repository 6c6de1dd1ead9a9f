"""Settings that change while the service runs: holdout, reward window and algorithm."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bothworlds.precompile import exercise
from bothworlds.service import rules, setting_changes, trainer
from bothworlds.service.auth import hash_of
from bothworlds.service.client import Client, ServiceError
from bothworlds.service.dashboard_data import OverviewCache
from bothworlds.service.messages import Arm, Change, Decide, Reward, Rollback, SettingsChange
from bothworlds.service.records import MARKS, Kind, unpacked
from bothworlds.service.service import Service
from bothworlds.service.settings import duration_text, seconds_of
from bothworlds.service.store import StoreError
from support.command_line import called
from support.hosts import open_hosts, verified, visit, wait_for_version
from support.postgres import needs_postgres
from support.service_http import served
from support.services import (
    assert_verified,
    close_overdue_windows,
    locked,
    set_clock,
    settings,
    shorten_pauses,
    wait_until,
    wait_until_learned,
)

SETTINGS = f"""
[[tokens]]
name = "me"
sha256 = "{hash_of("open sesame")}"
scopes = ["admin", "decide"]
[experiments.banners]
arms = ["red", "blue"]
contexts = ["mobile", "desktop"]
algorithm = {{kind = "LinUCB"}}
"""


def change(service: Service, **changes: Any) -> Any:
    """Change settings; return the answer."""
    status, answer = service.change(SettingsChange(**changes))
    assert status == 200, answer
    return answer


def refusal(service: Service, **changes: Any) -> str:
    """Return why a change of settings is refused."""
    version = service.plan(None).version
    status, answer = service.change(SettingsChange(**changes))
    assert status == 422, answer
    assert service.plan(None).version == version
    return answer.error  # type: ignore[union-attr]


def play(service: Service, names: list[str], *, best: str = "red") -> list[bool]:
    """Decide, reward and wait until that is learned; return which decisions were held out."""
    made: list[Any] = [answer for _, answer in service.ask_all([Decide("mobile", name) for name in names])]
    service.ask_all([Reward(one.id, float(one.arm == best)) for one in made])
    wait_until_learned(service)
    return [one.holdout for one in made]


def numbered(part: str, count: int) -> list[str]:
    return [f"{part} {number}" for number in range(count)]


def marks(service: Service) -> list[tuple[int, Any]]:
    """Return the marks of a log that are not versions."""
    found = [(mark.kind, unpacked(MARKS[mark.kind], mark.body)) for mark in service.store.marks(1)]
    return [(kind, body) for kind, body in found if kind != Kind.VERSION]


def test_the_holdout_changes_and_what_was_learned_stays(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    assert not any(play(service, numbered("before", 100)))
    before, updates = service.plan(None), service.experiment(None).policy.updates
    answer = change(service, holdout=0.5)
    assert (answer.version, service.plan(None).probabilities) == (before.version + 1, before.probabilities)
    held = play(service, numbered("after", 100))
    assert 30 < sum(held) < 70
    assert service.experiment(None).policy.updates == updates + 100 - sum(held)
    assert service.experiment(None).settings.holdout == 0.5
    assert change(service, holdout=0.5).version == service.plan(None).version, "no change, no version"
    status, refused = service.change(Rollback(3))
    assert (status, "the holdout has changed since version 3" in refused.error) == (422, True)  # type: ignore[union-attr]
    assert change(service, holdout=0.0).version == service.plan(None).version
    assert not any(play(service, numbered("last", 30)))
    service.close()
    assert_verified(tmp_path)


def test_another_algorithm_begins_with_what_was_learned(tmp_path: Path) -> None:
    service = Service(settings(tmp_path, overrides={"learn": "at once"}))
    play(service, numbered("before", 200))
    service.ask_all([Decide("mobile", name) for name in ("early", "later")])
    fresh = Service(settings(tmp_path, store="fresh.sqlite", overrides={"algorithm": {"kind": "LinTS"}}))
    change(service, algorithm={"kind": "LinTS"})
    red = service.plan(None).arms.index("red")
    assert service.plan(None).probabilities[0][red] > fresh.plan(None).probabilities[0][red] + 0.3
    fresh.close()
    assert service.ask(Reward("early", 1.0))[1].reason == rules.REPLACED  # type: ignore[union-attr]
    change(service, algorithm="certified", holdout=0.25, window="2 hours")
    assert sum(play(service, numbered("after", 200))) > 20
    assert service.ask(Reward("later", 1.0))[1].reason == rules.REPLACED  # type: ignore[union-attr]
    kinds = [Kind.ALGORITHM, Kind.ALGORITHM, Kind.HOLDOUT, Kind.WINDOW]
    assert [kind for kind, _ in marks(service)] == kinds
    versions = [body.version for _, body in marks(service)]
    assert versions[1:] == [versions[1], versions[1] + 1, versions[1] + 2], "in one commit"
    texts = [event.sentence for event in OverviewCache(service).overview(service.experiment(None)).events]
    assert any(text.startswith("the algorithm is LCTsallisINF") for text in texts)
    service.close()
    assert_verified(tmp_path)


def test_rewards_that_wait_for_their_turn_when_the_algorithm_changes(tmp_path: Path) -> None:
    """They were accepted before; the new algorithm cannot learn from them, and the log leads to the same plans."""
    service = Service(settings(tmp_path))
    service.ask_all([Decide("mobile", name) for name in numbered("waits", 30)])
    service.ask_all([Reward(name, 1.0) for name in numbered("waits", 30)[1:]])
    change(service, algorithm={"kind": "LinTS"})
    service.ask(Reward("waits 0", 1.0))
    play(service, numbered("after", 30))
    plan = service.plan(None)
    service.close()
    assert_verified(tmp_path)
    again = Service(settings(tmp_path))
    assert again.plan(None) == plan
    again.close()


def test_the_window_changes_for_decisions_that_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = set_clock(monkeypatch)
    service = Service(settings(tmp_path))
    service.ask_all([Decide("mobile", name) for name in numbered("a", 5)])
    clock.now += 61.0
    close_overdue_windows(service)
    counted = service.store.counts
    assert counted(1, through=service.store.last())[Kind.REWARD, False] == 0
    assert change(service, window="60 seconds").version == 1
    close_overdue_windows(service)
    assert counted(1, through=service.store.last())[Kind.REWARD, False] == 5
    change(service, window="2 hours")
    service.ask_all([Decide("mobile", name) for name in numbered("b", 5)])
    clock.now += 3700.0
    close_overdue_windows(service)
    assert counted(1, through=service.store.last())[Kind.REWARD, False] == 5
    wait_until_learned(service)
    status, _ = service.change(Rollback(1))
    assert (status, service.experiment(None).settings.window) == (200, "2 hours"), "a rollback leaves the window"
    service.close()
    assert_verified(tmp_path)


def test_a_change_lasts_until_the_settings_file_says_something_new(tmp_path: Path) -> None:
    def opened(**overrides: Any) -> tuple[Service, tuple[float, str, str]]:
        service = Service(settings(tmp_path, overrides=overrides))
        one = service.experiment(None)
        return service, (one.plan.spec.holdout, one.settings.window, type(one.policy.algorithm).__name__)

    service, found = opened(holdout=0.1)
    assert found == (0.1, "1 hour", "LinUCB")
    change(service, holdout=0.2, window="90 minutes", algorithm={"kind": "LinTS"})
    service.close()
    service, found = opened(holdout=0.1, window="60 minutes")
    assert found == (0.2, "90 minutes", "LinTS"), "the file says what it said"
    version = service.plan(None).version
    service.close()
    service, found = opened(holdout=0.2, window="30 minutes")
    assert found == (0.2, "30 minutes", "LinTS")
    assert service.plan(None).version == version + 1, "of the window"
    service.close()
    service, found = opened(holdout=0.1, window="30 minutes")
    assert found == (0.1, "30 minutes", "LinTS"), "the file was edited twice"
    service.close()
    service, found = opened(holdout=0.1, window="30 minutes", algorithm="certified")
    assert found == (0.1, "30 minutes", "LCTsallisINF")
    service.close()
    assert_verified(tmp_path)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "nothing to change: give holdout, window or algorithm"),
        ({"holdout": 1.0}, "holdout must be at least 0 and below 1; got 1"),
        ({"holdout": float("nan")}, "holdout must be at least 0"),
        ({"window": "soon"}, "a duration is a positive number and a unit"),
        ({"window": f"{10**12} days"}, "window is at most 3,650 days"),
        ({"window": "0.0001 seconds"}, "window is at least a millisecond"),
        ({"window": "3 days"}, "keep must be longer than the window of 3 days"),
        ({"algorithm": "fastest"}, "fastest"),
        ({"algorithm": {"kind": "LinUBC"}}, "did you mean 'LinUCB'"),
        ({"algorithm": {"kind": "LinUCB", "width": -1}}, "width"),
        ({"algorithm": {"kind": "SWLinUCB", "window": 10**9}}, "window must be at most"),
        ({"algorithm": {"kind": "PerContextExp3"}}, "cannot take over earlier learning"),
        ({"algorithm": {"kind": "mine.py:Greedy"}}, "runs code on the service"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    (tmp_path / "mine.py").write_text("raise SystemExit('this must not run')")
    service = Service(settings(tmp_path, overrides={"keep": "2 days"}))
    assert sentence in refusal(service, **changes)
    assert change(service, holdout=0.1).version == 1
    service.close()
    assert_verified(tmp_path)


def test_a_change_that_cannot_be_stored_has_no_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_pauses(monkeypatch)
    service = Service(settings(tmp_path))
    play(service, numbered("before", 20))
    with locked(tmp_path), pytest.raises(StoreError, match="nothing was changed"):
        change(service, holdout=0.3, window="2 hours", algorithm={"kind": "LinTS"})
    one = service.experiment(None)
    assert (one.plan.spec.holdout, one.settings.window, one.settings.holdout) == (0.0, "1 hour", 0.0)
    wait_until(lambda: not service.failures)
    assert not any(play(service, numbered("after", 20)))
    assert marks(service) == []
    assert change(service, holdout=0.3).version == 41
    service.close()
    assert_verified(tmp_path)


def test_a_change_whose_commit_is_not_acknowledged_may_have_been_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the connection to a database breaks: the service finds in the store that it was."""
    shorten_pauses(monkeypatch)
    service = Service(settings(tmp_path))
    play(service, numbered("before", 20))
    append, broken = service.store.append, list[int]()

    def breaks(records: Any, **more: Any) -> int:
        first = append(records, **more)
        if not broken and any(record.kind == Kind.WINDOW for record in records):
            broken.append(first)
            raise StoreError("the connection was lost")
        return first

    monkeypatch.setattr(service.store, "append", breaks)
    with pytest.raises(StoreError):
        change(service, holdout=0.5, window="2 hours", algorithm={"kind": "LinTS"})
    wait_until(lambda: not service.failures)
    one = service.experiment(None)
    wait_until(lambda: one.settings.window == "2 hours")
    assert (one.settings.holdout, one.settings.algorithm) == (0.5, {"kind": "LinTS"})
    service.ask_all([Decide("mobile", name) for name in numbered("a", 20)])
    assert change(service, window="3 hours").version == 24
    play(service, numbered("after", 20))
    service.close()
    assert_verified(tmp_path)


def test_learning_goes_on_while_an_algorithm_is_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service, begun, done = Service(settings(tmp_path)), threading.Event(), list[bool]()

    def slowly(policy: Any) -> None:
        exercise(policy)
        begun.set()
        wait_until(lambda: done, seconds=60)

    monkeypatch.setattr(setting_changes, "exercise", slowly)
    with ThreadPoolExecutor(1) as pool:
        changing = pool.submit(change, service, algorithm={"kind": "LinTS"})
        wait_until(begun.is_set)
        play(service, numbered("meanwhile", 20))
        assert not changing.done()
        done.append(True)
        assert changing.result().version == 21
    service.close()
    assert_verified(tmp_path)


def test_an_algorithm_for_arms_that_change_meanwhile(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    prepared = setting_changes.prepare_settings(service.experiment(None), SettingsChange(algorithm={"kind": "LinTS"}))
    assert service.change(Change(add=[Arm("violet")]))[0] == 200
    assert prepared.machine is not None
    assert prepared.machine_for(service.experiment(None).policy.problem) is None
    done: list[Any] = []
    work = lambda: trainer.TrainerThread.change_settings(service.trainer, service.experiment(None), prepared)  # noqa: E731
    service.trainer.run_between_batches(work, done.append)
    wait_until(lambda: done)
    assert (done[0].version, len(service.plan(None).arms)) == (2, 4)
    play(service, numbered("after", 10))
    service.close()
    assert_verified(tmp_path)


def test_the_gain_begins_anew_with_another_holdout(tmp_path: Path) -> None:
    service = Service(settings(tmp_path, overrides={"window": "0.05 seconds"}))
    cache, one = OverviewCache(service), service.experiment(None)
    assert cache.overview(one).health.gain is None
    change(service, holdout=0.5)
    play(service, numbered("a", 60))
    counts = cache._outcomes["ads"]
    wait_until(lambda: (counts.advance(now=1e12, seconds=5.0), counts.closed[0].decided >= 20)[1])
    assert counts.gain is not None
    assert counts.gain.share == 0.5
    change(service, holdout=0.25)
    counts.advance(now=1e12, seconds=5.0)
    assert (counts.gain.share, counts.gain.count) == (0.25, 0)
    service.close()


@needs_postgres
def test_all_hosts_follow_and_the_next_learner_goes_on(tmp_path: Path) -> None:
    with open_hosts(tmp_path) as host:
        learner = host("both")
        wait_until(lambda: learner.learns)
        decider, standby = host("decide"), host("both")
        visit(decider, decider, range(20))
        wait_for_version(learner, 20)
        version = change(learner, window="2 hours", holdout=0.5, algorithm={"kind": "LinTS"}).version
        for service in (decider, standby):
            wait_for_version(service, version)
        wait_until(lambda: decider.experiments["ads"].settings.window == "2 hours")
        late = host("decide")
        assert late.experiments["ads"].settings.window == "2 hours", "the file of all hosts is as it was"
        learner.close()
        wait_until(lambda: standby.learns, seconds=60)
        assert standby.experiments["ads"].settings.algorithm == {"kind": "LinTS"}
        assert standby.experiments["ads"].settings.window == "2 hours"
        assert change(standby, window="3 hours").version == version + 1
        visit(decider, late, range(20, 40))
    assert verified(tmp_path) == 40


def test_by_http_client_and_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOTHWORLDS_TOKEN", "open sesame")
    with served(tmp_path, SETTINGS) as web, Client(f"http://127.0.0.1:{web.port}", token="open sesame") as client:
        url = f"http://127.0.0.1:{web.port}"
        assert client.change_settings(window="2 hours").version == 1
        with pytest.raises(ServiceError, match="a duration is a positive number") as refused:
            client.change_settings(window="soon")
        assert refused.value.status == 422
        done = called("service", "set", url, "--holdout", "0.5", "--window", "3 hours")
        assert (done.exit_code, "banners: from version 3 on, digest" in done.stderr) == (0, True)
        assert any(client.decide("mobile").holdout for _ in range(30))
        done = called("service", "set", url, "--algorithm", json.dumps({"kind": "PerContextExp3"}))
        assert (done.exit_code, "cannot take over" in done.stderr) == (1, True)
        done = called("service", "set", url)
        assert (done.exit_code, "nothing to change" in done.stderr) == (2, True)
        assert called("service", "set", url, "--algorithm", "{").exit_code == 2
        monkeypatch.setenv("BOTHWORLDS_TOKEN", "other")
        assert "unknown token" in called("service", "set", url, "--holdout", "0").stderr
        assert called("service", "set", "nowhere", "--holdout", "0").exit_code == 3


@pytest.mark.parametrize(
    "text", ["1 second", "90 seconds", "1.5 seconds", "2 hours", "30 minutes", "1 day", "400 days"]
)
def test_durations_as_text(text: str) -> None:
    assert seconds_of(duration_text(seconds_of(text))) == seconds_of(text)
