"""Synthetic logs: the plays of `simulate`, true mean rewards, and rows that readers accept."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds import logs
from bothworlds.datasets import Rounds
from bothworlds.simulation.synthetic_log import interpreted_log_loop
from support.problems import random_problem
from support.python_learner import Plain

ALGORITHMS: list[Any] = [bw.LCTsallisINF(tuning="matched"), bw.LinUCB()]


class InPython:
    """An algorithm without a kernel."""

    def start(self, problem: bw.Problem, *, rng: Any) -> Any:
        return bw.LCTsallisINF(tuning="matched").start(problem, rng=rng)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(("delay", "batch"), [(0, 1), (7, 3)])
def test_it_plays_what_a_replication_plays(algorithm: Any, delay: int, batch: int) -> None:
    environment = random_world()
    found = bw.rehearse(environment, algorithm, rounds=300, rng=5, delay=delay, batch=batch)
    path = bw.replay(environment, algorithm, horizon=300, rng=5, delay=delay, batch=batch, interpreted=False)
    assert np.array_equal(found.contexts, path.trace[:, 0])
    assert np.array_equal(found.arms, path.trace[:, 1])
    assert -found.rewards.sum() == pytest.approx(path.realised[-1])
    assert -found.value() * 300 == pytest.approx(near(path.expected[-1], found), abs=1.0)
    assert len(found) == 300
    assert found.probabilities.sum(axis=1) == pytest.approx(1.0)
    assert found.versions[0] == 0
    assert found.versions[-1] == (299 if delay == 0 else 291)


def near(expected: float, found: bw.Rehearsal) -> float:
    """Return the expected loss given the contexts of the log from that over all contexts, up to chance."""
    drift = -found.value() * len(found) - expected
    assert abs(drift) < 40.0  # 300 rounds with mean losses in [-1, 1]; measured below 12
    return expected + drift


def random_world() -> en.Environment:
    return en.stochastic(en.random_instance(contexts=4, arms=3, dimension=3, gap=0.2, seed=2))


def test_python_and_machine_code_write_the_same() -> None:
    environment = random_world()
    slow = bw.rehearse(environment, InPython(), rounds=80, rng=5, delay=3, batch=2)
    fast = bw.rehearse(environment, ALGORITHMS[0], rounds=80, rng=5, delay=3, batch=2)
    for name in ("contexts", "arms", "versions", "rewards", "means", "average"):
        assert np.array_equal(getattr(slow, name), getattr(fast, name)), name
    assert slow.probabilities == pytest.approx(fast.probabilities, abs=1e-12)
    assert callable(interpreted_log_loop(ALGORITHMS[0].machine(environment.problem).kernel, environment.kernel))


def test_the_truth_is_the_worlds() -> None:
    environment = random_world()
    found = bw.rehearse(environment, bw.FixedPolicy(), rounds=5000, rng=1)
    losses = environment.tables[0]
    assert found.means == pytest.approx(-losses[found.contexts])
    assert found.average == pytest.approx(-losses)
    best = np.eye(3)[environment.comparator]
    g = environment.problem.probabilities
    assert found.value(best, seen=False) == pytest.approx(float(-(g * losses.min(axis=1)).sum()))
    assert found.value(best) == pytest.approx(found.value(best, seen=False), abs=0.05)  # measured 0.004
    weights = best[found.contexts, found.arms] / found.probabilities[np.arange(5000), found.arms]
    assert (weights * found.rewards).mean() == pytest.approx(found.value(best), abs=0.1)  # measured 0.01
    with pytest.raises(ValueError, match=r"a policy is a table of shape \(4, 3\)"):
        found.value([1.0])
    with pytest.raises(ValueError, match="rounds is required"):
        bw.rehearse(environment, bw.FixedPolicy())


def test_a_nature_in_python_and_arms_not_offered() -> None:
    problem = random_problem(3, reward_range=(0.0, 1.0), available=[[True, False, True]] * 4, arms=["a", "b", "c"])
    d = problem.features.shape[2]
    environment = en.from_function(problem, lambda t, pi: np.full(d, 0.01 * (t % 3)))
    found = bw.rehearse(environment, bw.FixedPolicy(), rounds=30, rng=1)
    rows = list(logs.checked(found.rows(), reward_range=(0, 1)))
    assert {row.offered for row in rows} == {("a", "c")}
    assert [row.reward for row in rows] == found.rewards.tolist()
    logs.write(found.rows(), "log.jsonl")
    assert list(logs.read("log.jsonl")) == rows


def test_given_rounds() -> None:
    problem = bw.Problem.from_sample(["day", "night"], arms=["red", "blue"], reward_range=(0, 1))
    contexts = np.arange(400) % 2
    rounds = Rounds(problem=problem, contexts=contexts, rewards=np.eye(2)[contexts])
    assert (rounds.best_table().tolist(), rounds.best_total(), len(rounds)) == ([0, 1], 400.0, 400)
    found = bw.rehearse(rounds, bw.LCTsallisINF(tuning="matched"), rng=3, delay=2, batch=2)
    assert 0.0 < rounds.regret(found.rewards) < 150.0  # at random: 200; measured 54
    assert found.value(np.eye(2)) == 1.0
    assert len(list(logs.checked(found.rows()))) == 400
    assert len(bw.rehearse(rounds, bw.FixedPolicy(), rounds=10)) == 10
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"contexts": contexts + 1}, "numbers from 0 to 1"),
        ({"rewards": np.eye(2)}, "rewards must be finite and have shape"),
    ]
    for changes, words in wrong:
        with pytest.raises(ValueError, match=words):
            replace(rounds, **changes)


def test_given_rounds_are_played_by_what_knows_no_more_than_the_contract() -> None:
    problem = bw.Problem.from_sample(["day", "night"], arms=["red", "blue"], reward_range=(0, 10))
    contexts = np.arange(40) % 2
    rounds = Rounds(problem=problem, contexts=contexts, rewards=10.0 * np.eye(2)[contexts])
    heard: list[Any] = []

    class Hearing(Plain):
        def update(self, decision: Any, *, loss: Any) -> None:
            heard.append(loss)

    class Algorithm:
        def start(self, problem: bw.Problem, *, rng: int) -> Hearing:
            return Hearing(problem, rng)

    found = bw.rehearse(rounds, Algorithm(), rng=3)
    assert heard == [problem.loss_of(reward) for reward in found.rewards.tolist()]
    assert set(heard) == {-1.0, 1.0}
    assert found.probabilities.tolist() == [[0.5, 0.5]] * 40
