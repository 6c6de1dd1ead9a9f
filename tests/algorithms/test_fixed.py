"""Fixed policies: exact regret, files, and what happens when nature reacts to the plays."""

from pathlib import Path

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from support.problems import play, random_problem
from support.python_learner import INSTANCE


def test_uniform_and_oracle_have_the_regret_they_must() -> None:
    world = en.stochastic(INSTANCE)
    oracle = bw.FixedPolicy.always(world.comparator, 3, label="oracle")
    worst = bw.FixedPolicy.always(world.gaps.argmax(axis=1), 3, label="worst")
    results = bw.simulate(world, [bw.FixedPolicy(), oracle, worst], horizon=500, replications=2)
    g, t = world.problem.probabilities, results.checkpoints
    assert results["FixedPolicy(oracle)"].regret == pytest.approx(0.0, abs=1e-9)
    assert results["FixedPolicy(uniform)"].regret == pytest.approx(t * float(g @ world.gaps.mean(axis=1)))
    assert results["FixedPolicy(worst)"].regret == pytest.approx(t * float(g @ world.gaps.max(axis=1)))


def test_regret_is_not_what_a_fixed_policy_would_have_got_when_nature_reacts() -> None:
    """Ads tire: replayed, the arm that is best when fresh earns less than its regret-comparator promises."""
    rates = np.array([[0.5, 0.45, 0.4]])
    world = en.ad_fatigue(click_rates=rates, probabilities=[1.0], wear=0.3, memory=50)
    always = bw.FixedPolicy.always([0], 3, label="always the best")
    rotate = bw.FixedPolicy()
    results = bw.simulate(world, [always, rotate], horizon=3000, replications=2)
    final = {label: float(run.expected[:, -1].mean()) for label, run in results.runs.items()}
    assert final["FixedPolicy(uniform)"] < final["FixedPolicy(always the best)"] - 300  # losses: rotating is better
    assert world.reacts


def test_fixed_policies_conform_and_survive_files(tmp_path: Path) -> None:
    assert bw.check_algorithm(bw.FixedPolicy()) == []
    problem = random_problem(1)
    assert bw.FixedPolicy(np.eye(2)).label == "table"
    for algorithm in (bw.FixedPolicy(), bw.FixedPolicy(np.tile([0.2, 0.3, 0.5], (4, 1)), "mine")):
        policy = algorithm.start(problem, rng=2)
        play(policy, 5)
        policy.save(tmp_path / "p.npz")
        again = bw.load(tmp_path / "p.npz")
        assert play(policy, 20) == play(again, 20)
        assert repr(again.algorithm) == repr(algorithm)


@pytest.mark.parametrize(
    ("arms", "words"),
    [
        ([-1, 0], "the arm of context 0 must be a whole number of at least 0; got -1"),
        ([0, 3], "the arm of context 1 is 3, but there are 3, numbered from 0"),
        ([0.5, 1], "whole number"),
        ([True, False], "whole number"),
    ],
)
def test_wrong_arms_are_refused(arms: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bw.FixedPolicy.always(arms, 3)


@pytest.mark.parametrize(
    ("table", "words"),
    [(np.ones((2, 2)), "shape"), (np.ones((4, 3)), "distribution"), (np.tile([1.0, 0.0, 0.0], (4, 1)), "offered")],
)
def test_tables_that_do_not_fit_are_refused(table: object, words: str) -> None:
    available = np.ones((4, 3), dtype=bool)
    available[3, 0] = False
    with pytest.raises(ValueError, match=words):
        bw.FixedPolicy(table).start(random_problem(1, available=available))  # type: ignore[arg-type]
