"""SampledProblem: estimates from a sample, their description, and refusals."""

from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.arrays import Floats
from bothworlds.problem.sampled_frame import second_moment
from support.problems import random_problem
from support.sampled_problems import listed, same, sphere


def test_coordinates_whiten_the_sample_and_lift_back() -> None:
    problem = bw.SampledProblem(sphere, same, samples=400)
    z = problem.coordinates(problem.sample_features)
    assert np.abs(second_moment(z, problem.sample_exploration) - np.eye(3)).max() < 1e-12
    assert np.abs(z @ problem.frame.lift - problem.sample_features).max() < 1e-12


def test_coverage_and_rank_agree_with_the_exact_ones() -> None:
    # Every context is in the sample, so only Sigma(e) is estimated: measured 1.3 % too small.
    exact = random_problem(seed=3, S=4, K=3, d=3)
    sampled = listed(exact, samples=20_000)
    assert sampled.dimension == 3
    assert sampled.coverage == pytest.approx(bw.design(exact, "uniform").coverage, rel=0.04)


def test_coverage_of_unit_vectors() -> None:
    # 1/lambda is the largest of 3 n leverages, at least d = 3; measured 0.3253 from 2,000 samples.
    problem = bw.SampledProblem(sphere, same)
    assert 0.31 < problem.coverage <= 1.0 / 3.0
    assert all(0.30 < half <= 1.0 / 3.0 for half in problem.frame.halves)


def test_own_exploration_changes_the_moment() -> None:
    def greedy_for_first(features: Floats) -> Floats:
        assert features.shape == (3, 3)
        return np.array([0.8, 0.1, 0.1])

    def rows(rng: np.random.Generator) -> Floats:
        return np.asarray(np.eye(3) * rng.choice([-1.0, 1.0]))

    problem = bw.SampledProblem(rows, same, greedy_for_first, samples=50)
    assert problem.coverage == pytest.approx(0.1)  # leverages 1/0.8, 1/0.1, 1/0.1
    z = problem.coordinates(problem.sample_features)
    assert np.abs(second_moment(z, problem.sample_exploration) - np.eye(3)).max() < 1e-12


def test_dependent_columns_are_dropped_and_named() -> None:
    def doubled(v: Floats) -> Floats:
        return np.concatenate([v, v[:, :1] + v[:, 1:2]], axis=1)

    problem = bw.SampledProblem(sphere, doubled, samples=200)
    assert (problem.dimension, problem.n_features) == (3, 4)
    assert "1 linearly dependent direction was dropped" in problem.describe()
    with pytest.raises(ValueError, match="leave the 3 dimensions that 200 sampled contexts span"):
        problem.single_context(np.eye(3, 4) + 1.0)


def test_describe_states_the_sample_size() -> None:
    text = bw.SampledProblem(sphere, same, samples=500).describe()
    assert "all estimates are from 500 samples" in text
    assert "largest of 1,500 sampled leverages" in text
    assert "about 1/501" in text
    assert "as given" in bw.SampledProblem(sphere, same, coverage=0.3, samples=500).describe()


def test_share_of_contexts_beyond_the_estimated_coverage() -> None:
    # By exchangeability about 1/(n + 1) of future contexts, here 4.8 %. It is more for so few samples, whose own
    # leverages are smaller because they are in Sigma(e): measured 7.5 %.
    beyond = 0
    for seed in range(200):
        problem = bw.SampledProblem(sphere, same, samples=20, rng=seed)
        z, _ = problem.draw(50, np.random.default_rng(seed + 1000))
        beyond += int(((z**2).sum(axis=2).max(axis=1) * problem.coverage > 1.0).sum())
    assert 0.04 < beyond / 10_000 < 0.12


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sampler": 3}, "sampler must be a function"),
        ({"feature_map": None}, "feature_map must be a function"),
        ({"exploration": "joint-g"}, "exploration must be 'uniform' or a function"),
        ({"exploration": lambda phi: [1.0, 0.5, 0.0]}, "exploration must return 3 probabilities"),
        ({"coverage": 0.5}, r"coverage must lie in \(0, 1/d\]"),
        ({"coverage": "much"}, "coverage must be a number"),
        ({"coverage": "0.1"}, "coverage must be a number"),
        ({"exploration": np.full(3, 1 / 3)}, "exploration must be 'uniform' or a function"),
        ({"feature_map": lambda v: [[1.0], [1.0, 2.0]]}, r"feature_map must return an array of shape \(arms, dim"),
        ({"arms": "abc"}, "arm names come as a list"),
        ({"samples": 1}, "samples must be a whole number of at least 2"),
        ({"samples": 2}, "2 sampled contexts span 3 dimensions"),
        ({"feature_map": lambda v: v[0]}, r"shape \(arms, dimension\)"),
        ({"feature_map": lambda v: v[:1]}, "one arm only"),
        ({"feature_map": lambda v: v * np.nan}, "must be finite"),
        ({"feature_map": lambda v: v if v[0, 0] > 0 else v[:2]}, "arrays of one shape"),
        ({"reward_range": (0, 1)}, "column of ones"),
        ({"arms": ["a", "a", "b"]}, "given twice"),
    ],
)
def test_refusals(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bw.SampledProblem(**{"sampler": sphere, "feature_map": same, "samples": 100, **change})


def test_a_coverage_that_the_sample_contradicts_gives_a_note() -> None:
    """Leverages of phi = 1 + x, x in [-1, 1], for uniform x are (1 + x)^2/(4/3), at most 3: lambda = 1/3."""

    def one_plus(x: float) -> list[list[float]]:
        return [[1.0 + x], [1.0 + x]]

    def uniform(rng: np.random.Generator) -> float:
        return float(rng.uniform(-1.0, 1.0))

    right, wrong = (bw.SampledProblem(uniform, one_plus, coverage=value) for value in (1 / 3, 0.9))
    assert right.notes == ()
    assert "note: the coverage given, 0.9, is more than the sample has, at most 0.3" in wrong.describe()


def test_exploration_must_cover() -> None:
    def rows(rng: np.random.Generator) -> Floats:
        return np.asarray(np.eye(2) * rng.choice([-1.0, 1.0]))

    with pytest.raises(ValueError, match="does not explore all directions"):
        bw.SampledProblem(rows, same, lambda phi: [1.0, 0.0], samples=50)


def test_other_algorithms_refuse_sampled_problems() -> None:
    problem: Any = bw.SampledProblem(sphere, same, samples=100)
    with pytest.raises(AttributeError, match="its contexts are not listed"):
        bw.LinUCB().start(problem)
