"""Restarts with other settings: which settings may change, and which changes are refused."""

import math
from pathlib import Path

import pytest

from bothworlds.problem import Problem
from bothworlds.service.messages import Arm, Change, Decide, Reward
from bothworlds.service.service import Service
from bothworlds.service.settings import ExperimentSettings
from support.services import settings, wait_until_learned


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
    with pytest.raises(ValueError, match="the algorithm of an experiment cannot change"):
        Service(settings(tmp_path, overrides={"holdout": 0.5}))


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
