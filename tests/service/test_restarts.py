"""A service that starts again with other settings: what may be other, and what is refused."""

import math
from pathlib import Path

import pytest

from bothworlds.problem import Problem
from bothworlds.service.messages import Arm, Change, Decide, Reward
from bothworlds.service.service import Service
from bothworlds.service.settings import Experiment as Told
from services import learnt, settings


def test_a_service_starts_again_after_a_change_with_its_settings_of_before_and_of_after(tmp_path: Path) -> None:
    Service(settings(tmp_path)).close()
    service = Service(settings(tmp_path))
    assert service.change(Change(add=[Arm("violet")], retire=["red"]))[0] == 200
    plan = service.plan(None)
    service.close()
    for arms in (None, plan.arms):
        again = Service(settings(tmp_path, told=None if arms is None else {"arms": arms}))
        assert again.plan(None) == plan
        again.close()
    with pytest.raises(ValueError, match="arms come and go by POST /v1/change"):
        Service(settings(tmp_path, told={"arms": ["red", "yellow"]}))
    with pytest.raises(ValueError, match="an algorithm cannot be exchanged under way"):
        Service(settings(tmp_path, told={"holdout": 0.5}))


def test_a_range_of_rewards_cannot_be_exchanged_under_way(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    service.ask(Decide("mobile", "a"))
    service.close()
    told = {"reward_range": (-1.0, 1.0), "default_reward": -1.0, "window": "0.01 seconds"}
    with pytest.raises(ValueError, match=r"rewards in \[0, 1\], the settings say \[-1, 1\].*another name"):
        Service(settings(tmp_path, told=told))
    service = Service(settings(tmp_path))
    assert service.ask(Reward("a", 1.0))[0] == 200
    learnt(service)
    service.close()


def test_features_cannot_be_exchanged_under_way(tmp_path: Path) -> None:
    features = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [0.5, 1.0]]]
    law = [0.5, 0.5]

    def started(*changes: Change) -> list[str]:
        problem = Problem(features=features, probabilities=law, arms=["red", "blue", "green"][: len(features[0])])
        problem.save(tmp_path / "ads.json")
        service = Service(
            settings(tmp_path, experiments={"ads": Told(problem="ads.json", algorithm={"kind": "LinUCB"})})
        )
        for asked in changes:
            assert service.change(asked)[0] == 200
        service.close()
        return service.plan(None).arms

    assert started() == ["red", "blue"]
    features[1][1][0] = math.nextafter(0.5, 1.0)
    started()  # computed again, it is the same
    law = [0.25, 0.75]
    started()
    features[1][1][0] = 0.25
    with pytest.raises(ValueError, match=r"other features than the store.*another name"):
        started()
    features[1][1][0] = 0.5
    assert started(Change(add=[Arm("green", [1.0, 0.5])])) == ["red", "blue", "green"]
    started()  # with the settings of before
    for row in features:
        row.append([1.0, 0.5])
    started()  # and of after
    features[0][2][1] = 0.75
    with pytest.raises(ValueError, match="other features than the store"):
        started()
