"""Dynamic regret: the best arms of every round by hand, in every world, and where it must equal regret."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.arrays import Floats
from bothworlds.simulation.replication import Outcome, Replications
from bothworlds.simulation.round_loop_python import play_in_python
from bothworlds.simulation.setting import make_setting
from support.problems import parameters, random_problem

T = 60
INSTANCE = en.random_instance(contexts=4, arms=3, dimension=3, gap=0.2, seed=3)
PROBLEM, THETA = INSTANCE.problem, INSTANCE.theta
MASKED = random_problem(4, S=4, K=3, d=3, available=[[1, 1, 1], [0, 1, 1], [1, 0, 0], [1, 1, 0]])
RNG = np.random.default_rng(1)
ROWS = np.array([parameters(MASKED, seed=int(n)) for n in RNG.integers(4, size=T)])  # some rounds equal the last one


def half_and_half(nature: Any, t: int, key: int) -> None:
    """A user's rule: a mixture that changes every fifth round, and a round without losses in between."""
    nature.c[0] = 0.5 if t % 5 else 0.0
    nature.c[1] = 0.1 * (t // 5 % 6) if t % 5 else 0.0


WORLDS: dict[str, Callable[[], en.Environment]] = {
    "stochastic": lambda: en.stochastic(INSTANCE),
    "alternating": lambda: en.alternating(PROBLEM, en.opposite(THETA), every=7),
    "sine": lambda: en.sine(PROBLEM, [0.7 * THETA, 0.5 * np.roll(THETA, 1)], period=40),
    "random walk": lambda: en.random_walk(PROBLEM, step=0.2, seed=2),
    "adaptive": lambda: en.adaptive_adversary(PROBLEM, [THETA, -THETA, 0.5 * np.roll(THETA, 1)]),
    "corrupted": lambda: en.corrupted(INSTANCE, budget=5.0, placement="random", probability=0.3),
    "fatigue": lambda: en.ad_fatigue(click_rates=[[0.3, 0.4], [0.5, 0.2]], probabilities=[0.4, 0.6], memory=10),
    "given, arms missing": lambda: en.given(MASKED, ROWS),
    "own kernel": lambda: en.kernel_environment(PROBLEM, [THETA, -np.roll(THETA, 1)], decide=half_and_half),
}


def by_hand(world: en.Environment, outcome: Outcome) -> Floats:
    """Return sum over rounds of E_X min_a <phi(a, X), theta_t> at every round, from the sums of coefficients."""
    coefficients = np.diff(outcome.sums, axis=0, prepend=0.0)
    tables = world.problem.features @ (coefficients @ world.thetas).T  # (contexts, arms, rounds)
    least = np.where(world.problem.available[:, :, None], tables, np.inf).min(axis=1)
    return np.asarray(np.cumsum(world.problem.probabilities @ least))


@pytest.mark.parametrize("name", WORLDS)
def test_the_best_arms_of_every_round_are_those_of_its_parameter(name: str) -> None:
    """Alone, interpreted, and in lanes, at every round, whatever the slices; all three bit for bit the same."""
    world = WORLDS[name]()
    machine = bw.LinUCB(width=0.3).machine(world.problem)
    setting = make_setting(world, horizon=T, rng=4, checkpoints=range(1, T + 1), delay=1, batch=2)
    alone = [Replications(machine, setting, [2], interpreted=flag) for flag in (False, True)]
    lanes = Replications(machine, setting, range(9))
    for one in (*alone, lanes):
        one.advance(23)
        one.advance(T)
    [found] = alone[0].outcomes()
    assert found.round_best == pytest.approx(by_hand(world, found), abs=1e-12)
    assert alone[1].outcomes()[0].round_best.tobytes() == found.round_best.tobytes()
    assert lanes.outcomes()[2].round_best.tobytes() == found.round_best.tobytes()
    assert (np.diff(found.expected - found.round_best, prepend=0.0) >= -1e-12).all()
    assert (found.own_best >= found.round_best - 1e-12).all()


def test_a_world_made_by_a_function_has_the_best_arms_of_the_same_array() -> None:
    by_function = en.from_function(MASKED, lambda t, _: ROWS[t - 1])
    setting = make_setting(by_function, horizon=T, rng=4, checkpoints=range(1, T + 1))
    found = play_in_python(bw.LinUCB().start, setting, 0)
    assert found.round_best == pytest.approx(by_hand(by_function, found), abs=1e-12)
    given = bw.simulate(en.given(MASKED, ROWS), {"a": bw.LinUCB()}, horizon=T, rng=4, checkpoints=range(1, T + 1))
    assert given["a"].round_best[0] == pytest.approx(found.round_best, abs=1e-12)


def test_where_the_best_arms_never_change_both_regrets_are_equal() -> None:
    level = en.moving_level(
        en.Instance(bw.Problem(features=[[[1, 0, 1], [0, 1, 1]]], probabilities=[1]), np.array([0.1, -0.1, 0.0])),
        level=0.5,
        every=3,
    )
    for world in (en.stochastic(INSTANCE), level):
        run = bw.simulate(world, {"a": bw.LinUCB()}, horizon=400, replications=3)["a"]
        assert run.dynamic_paths == pytest.approx(run.paths, abs=1e-9)


def test_opposite_parameters_in_turn_cost_uniform_play_the_mean_gap_of_every_round() -> None:
    """Against a fixed policy nothing is lost, because losses cancel; against the best arms everything is."""
    world = en.alternating(PROBLEM, en.opposite(THETA), every=5, noise="none")
    run = bw.simulate(world, {"a": bw.FixedPolicy()}, horizon=1_000)["a"]
    table = PROBLEM.features @ THETA
    lost = PROBLEM.probabilities @ (table.max(axis=1) - table.min(axis=1))
    assert run.regret[-1] == pytest.approx(0.0, abs=1e-9)
    assert run.dynamic_regret[-1] == pytest.approx(500 * lost)


def test_sums_of_many_rounds_are_exact() -> None:
    """Kahan: a million equal numbers whose plain sum is off by 1e-9."""
    world = en.stochastic(INSTANCE)
    run = bw.simulate(world, {"a": bw.FixedPolicy()}, horizon=1_000_000, checkpoints=2)["a"]
    assert run.round_best[0, -1] == pytest.approx(1e6 * world.best_losses(np.ones(1)), rel=4e-16)


def test_results_keep_it_in_files_and_tables(tmp_path: Any) -> None:
    world = WORLDS["alternating"]()
    results = bw.simulate(world, {"a": bw.LinUCB(), "b": bw.FixedPolicy()}, horizon=T, replications=3)
    results.save(tmp_path / "r.npz")
    again = bw.load_results(tmp_path / "r.npz")
    for label in "ab":
        np.testing.assert_array_equal(again[label].round_best, results[label].round_best)
    table = results.to_pandas()
    assert table[table.algorithm == "a"].dynamic_regret.tolist() == results["a"].dynamic_regret.tolist()
