"""Worlds that change: the policy restarts, says so, and what it has after a change of the problem."""

import numpy as np

import bothworlds as bw

ARMS = ["red", "blue"]
PROBLEM = bw.Problem.from_sample(["mobile", "desktop"], arms=ARMS, reward_range=(0, 1))


def play(policy: bw.Policy, rounds: int, *, best: int, seed: int) -> None:
    """Play rounds in which one arm is rewarded nine times in ten, the other once in ten."""
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        decision = policy.act(int(rng.integers(2)))
        policy.update(decision, reward=float(rng.random() < (0.9 if decision.arm == best else 0.1)))


def test_health_says_that_the_algorithm_restarted() -> None:
    policy = bw.LCTsallisINF().start(PROBLEM, rng=1)
    play(policy, 500, best=0, seed=1)
    calm = policy.health().changes
    assert calm is not None
    assert (calm.value, calm.sentence, calm.alarm) == (0.0, "what was learned still predicts rewards", False)
    play(policy, 150, best=1, seed=2)
    restarts, reading = policy.restarts, policy.health().changes
    assert restarts is not None
    assert reading is not None
    assert (restarts.number, restarts.updates) == (1, 650)
    assert 100 < restarts.remembered < 250
    assert reading.sentence == (
        f"what was learned stopped predicting rewards once; decisions rest on about the last {restarts.remembered:.0f} "
        "of 650"
    )
    assert str(reading) in str(policy.health())
    assert policy.plan().restarts == restarts
    assert policy.probabilities()[:, 1].min() > 0.5


def test_algorithms_that_never_restart_say_nothing() -> None:
    policy = bw.LinUCB().start(PROBLEM, rng=1)
    assert policy.restarts is None
    assert policy.plan().restarts is None
    assert policy.health().changes is None


def test_a_change_of_the_problem_keeps_the_number_of_restarts_and_finds_later_ones() -> None:
    policy = bw.LCTsallisINF().start(PROBLEM, rng=1)
    play(policy, 500, best=0, seed=1)
    play(policy, 150, best=1, seed=2)
    policy.change(bw.Problem.from_sample(["mobile", "desktop"], arms=[*ARMS, "green"], reward_range=(0, 1)))
    restarts = policy.restarts
    assert restarts is not None
    assert restarts.number == 1
    play(policy, 600, best=2, seed=3)
    before = policy.restarts
    play(policy, 200, best=0, seed=4)
    after = policy.restarts
    assert before is not None
    assert after is not None
    assert after.number == before.number + 1
