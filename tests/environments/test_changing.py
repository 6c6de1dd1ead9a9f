"""Worlds that change: when which parameter rules, that their losses stay in range, and how learners are judged."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.arrays import Floats
from bothworlds.environments.registry import make_environment
from support.problems import random_problem

INSTANCE = en.random_instance(contexts=4, arms=3, dimension=3, gap=0.2, seed=3)
WORLDS: dict[str, Callable[..., en.Environment]] = {
    "change-point": lambda **options: en.change_point(INSTANCE, **{"at": 50, **options}),
    "seasons": lambda **options: en.seasons(INSTANCE, **{"horizon": 80, **options}),
    "jumps": lambda **options: en.jumps(INSTANCE, **{"horizon": 100, **options}),
    "slow-turn": lambda **options: en.slow_turn(INSTANCE, **{"horizon": 100, **options}),
}


def parameters_of(world: en.Environment, rounds: int) -> Floats:
    """Return theta_t (rounds, features)."""
    nature = world.begin()
    rows = []
    for t in range(1, rounds + 1):
        world.kernel.decide(nature, t, 0)
        rows.append(nature.c @ world.thetas)
    return np.array(rows)


def test_the_world_changes_once() -> None:
    rows = parameters_of(WORLDS["change-point"](), 120)
    assert np.unique(rows[:50], axis=0).tolist() == [INSTANCE.theta.tolist()]
    assert len(np.unique(rows[50:], axis=0)) == 1
    assert not np.array_equal(rows[49], rows[50])


def test_two_seasons_take_turns_and_the_number_of_phases_is_an_option() -> None:
    rows = parameters_of(WORLDS["seasons"](), 80)
    first = (rows == INSTANCE.theta).all(axis=1).reshape(8, 10)
    assert first.all(axis=1).tolist() == [True, False] * 4
    assert first.any(axis=1).tolist() == [True, False] * 4
    assert len(np.unique(rows, axis=0)) == 2
    halves = parameters_of(WORLDS["seasons"](phases=2), 80)
    assert (halves == INSTANCE.theta).all(axis=1).tolist() == [True] * 40 + [False] * 40


def test_every_jump_brings_a_fresh_parameter() -> None:
    rows = parameters_of(WORLDS["jumps"](), 130).reshape(13, 10, 3)
    assert (rows == rows[:, :1]).all()
    assert rows[0, 0].tolist() == INSTANCE.theta.tolist()
    assert len(np.unique(rows[:, 0], axis=0)) == 10
    assert (rows[9:] == rows[9]).all()
    assert len(np.unique(parameters_of(WORLDS["jumps"](phases=3), 100), axis=0)) == 3
    assert len(en.jumps(INSTANCE, horizon=5, phases=10).thetas) == 5  # a phase has at least one round


def test_the_slow_turn_comes_back_to_where_it_began() -> None:
    world = WORLDS["slow-turn"]()
    rows = parameters_of(world, 200)
    assert rows[99] == pytest.approx(rows[199], abs=1e-12)
    assert rows[99] / np.linalg.norm(rows[99]) == pytest.approx(INSTANCE.theta / np.linalg.norm(INSTANCE.theta))
    assert rows[49] == pytest.approx(-rows[99], abs=1e-12)
    assert (
        np.linalg.norm(np.diff(rows, axis=0), axis=1).max() < 2.1 * math.pi / 100 * np.linalg.norm(rows, axis=1).max()
    )
    assert parameters_of(WORLDS["slow-turn"](turns=2), 100)[49] == pytest.approx(rows[99], abs=1e-12)


@pytest.mark.parametrize("name", WORLDS)
def test_they_conform_are_drawn_by_the_seed_and_judged_by_dynamic_regret(name: str) -> None:
    world = WORLDS[name](seed=1)
    assert bw.check_environment(world, rounds=60) == []
    assert world.changing
    assert not world.stochastic
    tables = world.problem.features @ parameters_of(world, 100).T
    assert 0.5 < np.abs(tables).max() <= 0.9 + 1e-9
    assert not np.array_equal(WORLDS[name](seed=2).thetas, world.thetas)
    assert np.array_equal(WORLDS[name](seed=1).thetas, world.thetas)
    assert WORLDS[name](noise="normal", sigma=0.1).noise == "normal"


@pytest.mark.parametrize("name", WORLDS)
def test_studies_make_them_for_their_horizon_and_seed(name: str) -> None:
    sizes = {"contexts": 4, "arms": 3, "dimension": 3, "gap": 0.2}
    one, two = (make_environment({"kind": name}, sizes, {"horizon": 40, "seed": seed}) for seed in (1, 2))
    assert one.changing
    assert not np.array_equal(one.thetas, two.thetas)
    at = {"change-point": 20, "seasons": 5, "jumps": 4}
    if name in at:
        rows = parameters_of(one, 40)
        assert int(np.flatnonzero((rows != rows[0]).any(axis=1))[0]) == at[name]


def test_features_that_do_not_span_and_arms_that_are_missing() -> None:
    """Parameters are drawn in the span, and scaled by the arms that are offered."""
    features = random_problem(8, S=4, K=3, d=2).features
    wider = np.concatenate([features, 1e3 * features.sum(axis=2, keepdims=True)], axis=2)
    available = [[1, 1, 1], [0, 1, 1], [1, 0, 0], [1, 1, 0]]
    problem = bw.Problem(features=wider, probabilities=np.full(4, 0.25), available=available)
    theta = np.array([0.3, -0.2, 0.0])
    world = en.jumps(en.Instance(problem, theta), horizon=100, seed=4)
    largest = np.abs((problem.features @ world.thetas[1:].T)[problem.available]).max(axis=0)
    assert largest == pytest.approx(np.full(9, 0.9))
    assert bw.check_environment(world, rounds=40) == []


def test_a_users_own_world_says_how_it_is_judged() -> None:
    problem, rows = INSTANCE.problem, np.stack([INSTANCE.theta, -INSTANCE.theta])
    assert not en.given(problem, rows).changing
    assert en.given(problem, rows, changing=True).changing
    assert en.from_function(problem, lambda t, _: rows[t % 2], changing=True).changing
    assert not en.flip(problem, rows, at=1).changing
    results = bw.simulate(en.given(problem, rows, changing=True), {"a": bw.LinUCB()}, horizon=2)
    assert results.changing
    assert results.manifest["environment"]["changing"] is True


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("change-point", {"at": -1}, "at must be a whole number"),
        ("seasons", {"phases": 0}, "phases must be a whole number"),
        ("seasons", {"horizon": 0.5}, "horizon must be a whole number"),
        ("jumps", {"seed": -1}, "seed must be a whole number"),
        ("slow-turn", {"turns": 0.0}, "turns must be positive and finite"),
        ("slow-turn", {"turns": "a"}, "turns must be positive and finite"),
    ],
)
def test_impossible_options_are_refused(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        WORLDS[name](**options)


@pytest.mark.parametrize("make", [en.change_point, en.seasons, en.jumps, en.slow_turn])
def test_they_take_instances(make: Any) -> None:
    with pytest.raises(ValueError, match=f"{make.__name__} takes an instance"):
        make(INSTANCE.problem, **({"at": 3} if make is en.change_point else {"horizon": 30}))
