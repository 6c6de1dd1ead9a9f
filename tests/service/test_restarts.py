"""Restarts with other settings: which settings may change, and which changes are refused."""

import math
from pathlib import Path
from typing import Any

import pytest

from bothworlds.problem import Problem
from bothworlds.service import rules
from bothworlds.service.dashboard_data import OverviewCache
from bothworlds.service.messages import Arm, Change, Decide, Reward, Rollback
from bothworlds.service.outcome_counts import OutcomeCounts
from bothworlds.service.records import Kind
from bothworlds.service.service import Service
from bothworlds.service.settings import ExperimentSettings
from support.services import (
    assert_verified,
    close_overdue_windows,
    rows_of,
    set_clock,
    settings,
    wait_until_learned,
)


def test_a_restart_after_a_change_accepts_old_and_new_settings(tmp_path: Path) -> None:
    Service(settings(tmp_path)).close()
    service = Service(settings(tmp_path))
    assert service.change(Change(add=[Arm("violet")], retire=["red"]))[0] == 200
    plan = service.plan(None)
    service.close()
    for arms in (None, plan.arms):
        again = Service(settings(tmp_path, overrides=None if arms is None else {"arms": arms}))
        assert again.plan(None) == plan
        again.close()
    with pytest.raises(ValueError, match="add and retire arms by POST /v1/change"):
        Service(settings(tmp_path, overrides={"arms": ["red", "yellow"]}))
    overrides = {"algorithm": {"kind": "PerContextExp3"}, "arms": list(plan.arms)}
    with pytest.raises(ValueError, match=r"cannot change from LinUCB.*cannot take over earlier learning.*name"):
        Service(settings(tmp_path, overrides=overrides))
    again = Service(settings(tmp_path))
    assert again.plan(None) == plan
    again.close()


def test_the_algorithm_may_change_at_a_restart(tmp_path: Path) -> None:
    said, waiting, worth = list[str](), list[str](), list[float]()
    kinds = {"kind": "LinUCB"}, {"kind": "LinTS"}, {"kind": "LinTS"}, {"kind": "LCTsallisINF", "tuning": "certified"}
    for part, algorithm in enumerate(kinds):
        overrides = {"algorithm": algorithm, "learn": "at once", "holdout": 0.2}
        service = Service(settings(tmp_path, overrides=overrides), say=said.append)
        before = service.plan(None)
        worth.append(before.probabilities[0][0])
        answers = [service.ask(Reward(name, 1.0))[1] for name in waiting]
        reasons = {answer.reason for answer in answers}  # type: ignore[union-attr]
        assert reasons <= {rules.REPLACED, rules.HELD_OUT} if part in (1, 3) else reasons <= {None, rules.HELD_OUT}
        assert service.plan(None).version == before.version or part == 2
        names = [f"{part} {i}" for i in range(300)]
        made: list[Any] = [answer for _, answer in service.ask_all([Decide("mobile", name) for name in names])]
        pairs = [(one.id, float(one.arm == "red")) for one in made]
        service.ask_all([Reward(name, reward) for name, reward in pairs[:280]])
        waiting = names[280:290]
        wait_until_learned(service)
        if part == 1:
            status, answer = service.change(Rollback(50))
            assert (status, "the algorithm has changed since version 50" in answer.error) == (422, True)  # type: ignore[union-attr]
            assert service.change(Change(add=[Arm("violet")]))[0] == 200
        known = service.decision("0 280", None)
        assert known is not None
        service.writer.cache.clear()
        assert service.ask(Decide("mobile", "0 5"))[1].arm == service.decision("0 5", None).arm  # type: ignore[union-attr]
        service.close()
        assert_verified(tmp_path)
    assert worth[0] == pytest.approx(1 / 3)
    assert min(worth[1:]) > 0.5, "what was learned is carried over"
    assert [one.partition("(")[0] for one in said if "the algorithm is" in one] == [
        "ads: the algorithm is LinTS",
        "ads: the algorithm is LCTsallisINF",
    ]
    assert len(rows_of(tmp_path / "bothworlds.sqlite")) == 1200


def test_the_holdout_may_change_at_a_restart(tmp_path: Path) -> None:
    said, held, digests = list[str](), list[set[str]](), list[str]()
    for part, holdout in enumerate((0.0, 0.25, 0.25, 0.5, 0.0)):
        service = Service(settings(tmp_path, overrides={"holdout": holdout}), say=said.append)
        digests.append(service.plan(None).digest)
        names = [f"{part} {i}" for i in range(100)]
        made = dict(zip(names, service.ask_all([Decide("mobile", name) for name in names]), strict=True))
        held.append({name for name, (_, answer) in made.items() if answer.holdout})  # type: ignore[union-attr]
        before = service.experiment(None).policy.updates
        service.ask_all([Reward(name, 1.0) for name in names])
        wait_until_learned(service)
        assert service.experiment(None).policy.updates == before + 100 - len(held[-1]), "what was learned stays"
        if part == 1:
            status, answer = service.change(Rollback(50))
            assert status == 422
            assert "the holdout has changed since version 50" in answer.error  # type: ignore[union-attr]
        overview = OverviewCache(service).overview(service.experiment(None))
        assert (overview.health.gain is None) == (holdout == 0.0)
        service.close()
        assert_verified(tmp_path)
    assert [len(one) > 0 for one in held] == [False, True, True, True, False]
    assert len(held[1]) < 40 < len(held[3])
    assert len(set(digests)) == 5
    assert [one for one in said if "the holdout is" in one] == [
        "ads: the holdout is 0.25 from version 101 on",
        *(one for one in said if "the holdout is 0.5 from" in one),
        *(one for one in said if "the holdout is 0 from" in one),
    ]
    assert len(said) == 1 + 4 + 3


def test_the_gain_is_that_of_the_present_holdout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = set_clock(monkeypatch)
    for part, holdout in enumerate((0.5, 0.25)):
        service = Service(settings(tmp_path, overrides={"holdout": holdout}))
        service.ask_all([Decide("mobile", f"{part} {i}") for i in range(40)])
        service.ask_all([Reward(f"{part} {i}", 1.0) for i in range(0, 40, 2)])
        clock.now += 3601.0
        close_overdue_windows(service)
        counts = OutcomeCounts(service.experiment(None), service.store)
        counts.advance(now=clock.now, seconds=10.0)
        assert counts.gain is not None
        assert (counts.gain.share, counts.gain.count) == (holdout, 40)
        assert sum(some.decided for some in counts.closed) == 40 * (part + 1)
        service.close()
    assert_verified(tmp_path)


def test_the_window_may_change_at_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = set_clock(monkeypatch)
    for window, expected in (("1 hour", 0), ("1 minute", 5), ("2 hours", 5)):
        service = Service(settings(tmp_path, overrides={"window": window}))
        service.ask_all([Decide("mobile", f"{window} {i}") for i in range(5)])
        clock.now += 61.0 if expected == 0 else 30.0
        close_overdue_windows(service)
        assert service.store.counts(1, through=service.store.last())[Kind.REWARD, False] == expected
        service.close()
    assert_verified(tmp_path)


def test_a_mistyped_experiment_leaves_the_store_with_the_next_start(tmp_path: Path) -> None:
    one = settings(tmp_path).experiments["ads"]
    Service(settings(tmp_path, experiments={"ads": one, "adds": one})).close()
    said: list[str] = []
    service = Service(settings(tmp_path), say=said.append)
    assert service.store.experiments() == {"ads": 1}
    assert said[-1] == "adds: removed from the store, as it has no decisions and the settings do not name it"
    assert service.ask(Decide(context="mobile", id="a"))[0] == 200
    service.close()
    service = Service(settings(tmp_path, experiments={"more": one}))
    assert list(service.store.experiments()) == ["ads", "more"], "what has decided stays"
    service.close()


def test_the_reward_range_cannot_change(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    service.ask(Decide("mobile", "a"))
    service.close()
    overrides = {"reward_range": (-1.0, 1.0), "default_reward": -1.0, "window": "0.01 seconds"}
    with pytest.raises(ValueError, match=r"rewards in \[0, 1\], the settings have \[-1, 1\].*another experiment name"):
        Service(settings(tmp_path, overrides=overrides))
    service = Service(settings(tmp_path))
    assert service.ask(Reward("a", 1.0))[0] == 200
    wait_until_learned(service)
    service.close()


def test_features_cannot_change(tmp_path: Path) -> None:
    features = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [0.5, 1.0]]]
    probabilities = [0.5, 0.5]

    def started(*changes: Change) -> list[str]:
        problem = Problem(
            features=features, probabilities=probabilities, arms=["red", "blue", "green"][: len(features[0])]
        )
        problem.save(tmp_path / "ads.json")
        service = Service(
            settings(
                tmp_path, experiments={"ads": ExperimentSettings(problem="ads.json", algorithm={"kind": "LinUCB"})}
            )
        )
        for asked in changes:
            assert service.change(asked)[0] == 200
        service.close()
        return service.plan(None).arms

    assert started() == ["red", "blue"]
    features[1][1][0] = math.nextafter(0.5, 1.0)
    started()  # a rounding error is not a change
    probabilities = [0.25, 0.75]
    started()
    features[1][1][0] = 0.25
    with pytest.raises(ValueError, match=r"other features than the store.*another experiment name"):
        started()
    features[1][1][0] = 0.5
    assert started(Change(add=[Arm("green", [1.0, 0.5])])) == ["red", "blue", "green"]
    started()  # with the old settings
    for row in features:
        row.append([1.0, 0.5])
    started()  # with the new settings
    features[0][2][1] = 0.75
    with pytest.raises(ValueError, match="other features than the store"):
        started()
