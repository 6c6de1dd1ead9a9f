"""SquareCB: probabilities from the predicted gaps, by hand; what it does in calm and hostile worlds."""

import math
from pathlib import Path

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.regression.squarecb import inverse_gap_weights
from support.problems import bits, parameters, play, random_problem


def test_the_plan_is_inverse_gap_weighting_of_a_ridge_regression() -> None:
    available = [[1, 1, 1, 1]] * 3 + [[0, 1, 1, 1], [1, 0, 0, 1]]
    problem = random_problem(1, S=5, K=4, d=3, available=available)
    policy = bw.SquareCB(scale=3.0, ridge=0.5).start(problem, rng=1, interpreted=True)
    rng, theta = np.random.default_rng(0), parameters(problem)
    V, b = 0.5 * np.eye(3), np.zeros(3)
    for t in range(1, 121):
        gamma = 3.0 * math.sqrt(4 * t / 3)
        predicted = problem.features @ np.linalg.solve(V, b)
        for x in range(5):
            arms = np.flatnonzero(problem.available[x])
            best = arms[predicted[x, arms].argmin()]
            pi = np.zeros(4)
            pi[arms] = 1.0 / (len(arms) + gamma * (predicted[x, arms] - predicted[x, best]))
            pi[best] += 1.0 - pi.sum()
            if t > 1:  # before the first answer all arms are equal
                assert policy.probabilities(x) == pytest.approx(pi, abs=1e-9)
            else:
                assert policy.probabilities(x) == pytest.approx(problem.available[x] / len(arms), abs=1e-12)
        decision = policy.act(int(rng.integers(5)))
        assert decision.propensity == policy.probabilities(decision.context)[decision.arm] > 0.0
        z = problem.features[decision.context, decision.arm]
        loss = float(z @ theta + 0.1 * rng.normal())
        V, b = V + np.outer(z, z), b + loss * z
        policy.update(decision, loss=loss)


def test_equal_arms_share_what_is_left() -> None:
    pi = np.full(4, np.nan)
    inverse_gap_weights(np.array([0.1, 0.1 + 1e-15, 0.6, math.inf]), 10.0, pi)
    assert pi.tolist() == pytest.approx([0.4375, 0.4375, 0.125, 0.0], abs=1e-12)


def test_it_conforms_and_survives_files(tmp_path: Path) -> None:
    algorithm = bw.SquareCB(scale=2)
    assert bw.check_algorithm(algorithm) == []
    policy = algorithm.start(random_problem(2), rng=1)
    play(policy, 50)
    policy.save(tmp_path / "p.npz")
    assert play(bw.load(tmp_path / "p.npz"), 60) == play(policy, 60)
    one, two = (algorithm.start(random_problem(2), rng=1, interpreted=flag) for flag in (False, True))
    assert play(one, 200) == play(two, 200)
    assert bits(one) == bits(two)


def test_its_regret_grows_like_a_root_where_nothing_changes() -> None:
    instance = en.random_instance(contexts=5, arms=4, dimension=4, gap=0.2, seed=7)
    options = {"horizon": 16_000, "replications": 8, "rng": 3, "checkpoints": [4_000]}
    runs = bw.simulate(en.stochastic(instance), [bw.SquareCB()], **options)  # type: ignore[arg-type]
    quarter, whole = next(iter(runs.runs.values())).regret
    assert 1.5 < whole / quarter < 2.5  # 2 for a root; 1.97 seen
    assert whole < 300  # 192 seen


@pytest.mark.parametrize("options", [{"scale": 0.0}, {"scale": math.inf}, {"ridge": -1.0}, {"scale": True}])
def test_impossible_numbers_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be a number"):
        bw.SquareCB(**options)
