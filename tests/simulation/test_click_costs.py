"""Costs of rare clicks: points are FTRL points, the terms add up to the regret, predictions are included."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en

WORLD = en.clicks(attributes=[2, 2], arms=3, rates=(0.05, 0.6), rarity=9, seed=4)


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    import click_costs

    monkeypatch.setattr(click_costs, "EVERY", 1)
    return click_costs


def test_points_are_ftrl_points(costs: Any) -> None:
    losses = np.random.default_rng(1).normal(size=(5, 4)) * 30.0
    for eta in (1e-3, 0.2, 5.0):
        found = costs.points(losses, eta)
        for row, q in zip(losses, found, strict=True):
            assert q == pytest.approx(bw.ftrl_point(row, learning_rate=eta), abs=1e-9)


@pytest.mark.parametrize("tuning", ["certified", "matched"])
def test_the_parts_add_up_to_the_regret(costs: Any, tuning: str) -> None:
    found = costs.account(WORLD, tuning, 120, 2)
    path = bw.replay(WORLD, bw.LCTsallisINF(tuning=tuning), horizon=120, replication=2, rng=1)  # type: ignore[arg-type]
    best = float(WORLD.best_losses(np.array([120.0])))
    assert found["regret"] == pytest.approx(float(path.expected[-1]) - best, abs=1e-6)
    assert found["rate"] > 0.0
    if tuning == "certified":  # no control variate: the two are one
        assert found["prediction"] == pytest.approx(found["no prediction"], abs=1e-6)


def test_a_plan_that_looks_ahead_is_recognised_and_a_strange_one_refused(costs: Any) -> None:
    algorithm = bw.LCTsallisINF(tuning="certified")
    z = algorithm.machine(WORLD.problem).known.z
    account = costs.Account(algorithm.start(WORLD.problem), WORLD, z)
    guess = np.linspace(-1.0, 1.0, z.shape[2])
    assert account._looks_ahead(costs.points(z @ (0.0 * guess), 0.5), 0.5, guess) == 0.0
    assert account._looks_ahead(costs.points(z @ guess, 0.5), 0.5, guess) == 1.0
    with pytest.raises(ValueError, match="not an FTRL point"):
        account._looks_ahead(costs.points(z @ guess, 0.7), 0.5, guess)
