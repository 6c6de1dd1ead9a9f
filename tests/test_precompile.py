"""Compiling ahead: nothing is left to compile afterwards, for any size."""

from typing import Any

import numpy as np
import pytest

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


@pytest.mark.parametrize("algorithm", [bw.LCTsallisINF(), bw.LinUCB(), bw.SquareCB()], ids=lambda a: type(a).__name__)
def test_open_problems_are_warmed_up_too(algorithm: Any) -> None:
    """Machine code of one kind of problem serves all others, batches and plans included."""
    columns = [bw.Column.number("age", 0, 9), bw.Column.boolean("member")]
    assert bw.warm_up(bw.OpenProblem(candidates=columns, id_column="sku"), algorithm) > 0.0
    named = algorithm.start(bw.OpenProblem(context=2, arms=["a", "b", "c"]), rng=1)
    functions = named._learner.functions
    before = [len(entry.signatures) for entry in functions]
    rows = np.random.default_rng(1).normal(size=(40, 2))
    for row in rows:
        named.update(named.act(row, offered=["a", "b"]), loss=0.5)
    named.update(named.act_batch(rows), loss=np.zeros(40))
    named.update(named.plan().act(rows[0], id="visit"), loss=0.5)
    shared = algorithm.start(bw.OpenProblem(arms=["a", "b"], arm_features=[[1.0], [2.0]]), rng=1)
    shared.update(shared.act(), loss=0.5)
    assert before == [len(entry.signatures) for entry in functions] == [1, 1]
