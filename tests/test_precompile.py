"""Compiling ahead: nothing is left to compile afterwards, for any size."""

import numpy as np

import bothworlds as bw
from bothworlds.kernels.entry_points import compiled_entries
from support.problems import random_problem


def test_nothing_is_left_to_compile() -> None:
    algorithm = bw.LinUCB()
    assert bw.warm_up(random_problem(1), algorithm) > 0.0
    larger = random_problem(2, S=7, K=4, d=5)
    entries = compiled_entries(algorithm.machine(larger).kernel)
    before = [len(entry.signatures) for entry in entries]  # type: ignore[attr-defined]
    policy = algorithm.start(larger, rng=1)
    policy.update(policy.act([0, 3]), loss=[0.5, -0.5])
    policy.learn(policy.act([0, 3] * 50), loss=[0.5, -0.5] * 50)
    policy.update(policy.plan().act(6, id="visit"), loss=0.5)
    policy.plan().redecide_batch([0, 3, 6], ["a", "b", "c"])
    assert before == [len(entry.signatures) for entry in entries]  # type: ignore[attr-defined]
    assert before == [1, 1, 1, 1, 1]  # act, step, feed, decide, decide_all


def test_sampled_problems_are_warmed_up_too() -> None:
    problem = bw.SampledProblem(lambda rng: rng.uniform(), lambda x: [[1.0, x], [1.0, -x]], samples=50)
    assert bw.warm_up(problem, bw.RealFTRL(horizon=100, covariance="reservoir")) > 0.0
    assert np.isfinite(problem.coverage)
