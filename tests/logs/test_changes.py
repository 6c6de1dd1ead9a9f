"""Changes of the problem in a log, reproduced from its records bit for bit."""

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.logs import Change, ContextDistribution, Log, LogLearner, Reward, health, row_of
from bothworlds.logs.schema import line_of, record_of
from support.problems import random_problem

WHOLE = random_problem(3, S=3, K=5, d=3)
ALGORITHM = bw.LCTsallisINF(tuning="matched")


def part(arms: list[int], **options: Any) -> bw.Problem:
    """Some arms of a problem, whose contexts have rows and a catch-all."""
    named = {"contexts": ["mobile", "desktop", "rest"], "arms": [f"a{a}" for a in arms], "other": "rest"}
    return bw.Problem(features=WHOLE.features[:, arms], probabilities=WHOLE.probabilities, **{**named, **options})


def answer(learner: LogLearner, turn: int, count: int = 5) -> None:
    """Let a plan decide, and the learner learn from its rewards."""
    plan, log = learner.policy.plan(), learner.log
    made = [plan.act(i % 3, id=f"{turn}, {i}") for i in range(count)]
    log.append(*(row_of(one, plan) for one in made))
    log.append(*(Reward(id=one.id, time=1.0, reward=0.1 * one.arm) for one in made))
    learner.step()


def test_a_problem_survives_serialization_bit_for_bit() -> None:
    available = np.ones((3, 3), dtype=bool)
    available[1, 2] = False
    sampled = bw.Problem.from_sample([("mobile", 3), ("desktop", 4)], arms=["red", "blue"], reward_range=(0, 1))
    for problem in (part([0, 1, 4], available=available, reward_range=(0.0, 2.0)), part([2, 0]), sampled):
        again = bw.Problem.from_dict(json.loads(json.dumps(problem.to_dict())))
        assert again == problem
        assert (again.rows, again.other) == (problem.rows, problem.other)
        assert again.context_index(problem.contexts[1]) == 1
    with pytest.raises(ValueError, match="the dictionary is not a complete problem"):
        bw.Problem.from_dict({"features": [[[1.0]]]})


@pytest.mark.parametrize("fresh", [None, 0.5])
def test_a_change_survives_writing_and_reading(fresh: float | None) -> None:
    change = Change(version=4, digest="d", problem=part([0, 1]).to_dict(), trust=0.5, fresh=fresh, time=2.0, policy="p")
    again = record_of(line_of(change))
    assert isinstance(again, Change)
    assert bw.Problem.from_dict(again.problem) == part([0, 1])
    assert dataclasses.replace(again, problem={}) == dataclasses.replace(change, problem={})
    with pytest.raises(ValueError, match="incomplete change record"):
        record_of(line_of(change).replace(b'"problem"', b'"trouble"'))


def test_a_learner_records_changes_and_reproduces_the_same_versions() -> None:
    policy, log = ALGORITHM.start(part([0, 1, 2]), rng=7, interpreted=True), Log("log.jsonl")
    policy.save("start.npz")
    learner, digests = LogLearner(policy, log), {0: policy.digest}
    changes: list[dict[str, Any]] = [{"problem": part([1, 2, 3])}, {"problem": part([1, 3, 4, 0]), "fresh": 0.0}]
    changes += [{"problem": part([1, 3, 4, 0]), "trust": 0.5}]
    for turn in range(4):
        answer(learner, turn)
        digests[policy.version] = policy.digest
        if turn < 3:
            late = policy.plan()
            waits = late.act("mobile", id=f"late {turn}")
            log.append(row_of(waits, late))
            learner.change(**changes[turn])
            digests[policy.version] = policy.digest
            log.append(Reward(id=waits.id, time=3.0, reward=0.5))  # of a decision on the problem before
        if turn == 1:
            learner.change_probabilities([0.5, 0.25, 0.25])
            digests[policy.version] = policy.digest
            policy.save("middle.npz")
    kinds = [type(record) for record, _ in log.read() if isinstance(record, Change | ContextDistribution)]
    assert kinds == [Change, Change, ContextDistribution, Change]
    for file in ("start.npz", "middle.npz"):
        again = LogLearner(bw.load(file, interpreted=True), log)
        found = {plan.version: plan.digest for plan in again.replay()}
        assert found.items() <= digests.items()
        assert max(found) == policy.version
        assert again.policy.digest == policy.digest
        assert again.policy.problem == policy.problem


def test_a_change_without_effect_is_not_recorded_and_one_outside_the_log_is_refused() -> None:
    policy, log = ALGORITHM.start(part([0, 1, 2]), rng=7, interpreted=True), Log("log.jsonl")
    learner = LogLearner(policy, log)
    answer(learner, 0)
    learner.change(part([0, 1, 2]))
    assert not any(isinstance(record, Change) for record, _ in log.read())
    policy.change(part([0, 1, 3]))
    with pytest.raises(ValueError, match=r"learner\.change"):
        learner.step()


def test_a_change_that_leads_to_another_version_is_refused() -> None:
    policy, log = ALGORITHM.start(part([0, 1, 2]), rng=7, interpreted=True), Log("log.jsonl")
    policy.save("start.npz")
    learner = LogLearner(policy, log)
    answer(learner, 0)
    learner.change(part([0, 1, 3]))
    found = [record for record, _ in log.read()]
    other = Log("other.jsonl")
    for record in found:
        other.append(dataclasses.replace(record, trust=0.5) if isinstance(record, Change) else record)
    with pytest.raises(ValueError, match="the change of the problem leads to version 6"):
        list(LogLearner(bw.load("start.npz", interpreted=True), other).replay())


def test_health_of_a_log_leaves_out_retired_arms_as_the_policy_does() -> None:
    policy, log = ALGORITHM.start(part([0, 1, 2]), rng=7, interpreted=True), Log("log.jsonl")
    learner = LogLearner(policy, log)
    answer(learner, 1, count=30)
    learner.change(part([0, 2, 3]))
    assert health(log, policy.problem).explored.value == pytest.approx(2 / 3)  # no row of today: even play
    answer(learner, 2, count=30)
    logged, counted = health(log, policy.problem), policy.health()
    for one, other in zip((*logged.arms, *logged.contexts), (*counted.arms, *counted.contexts), strict=True):
        rounded = dataclasses.replace(one, mean=other.mean, variance=other.variance)  # added in another order
        assert (one.mean, one.variance) == pytest.approx((other.mean, other.variance), abs=1e-12)
        assert rounded == other
    assert sum(rate.decisions for rate in logged.arms) < 60
    with pytest.raises(ValueError, match="unknown arm 'a1'"):
        health((record for record, _ in log.read() if not isinstance(record, Change)), policy.problem)


def test_health_refuses_a_pair_that_was_never_offered() -> None:
    policy, log = ALGORITHM.start(part([0, 1, 2]), rng=7, interpreted=True), Log("log.jsonl")
    answer(LogLearner(policy, log), 1, count=30)
    available = np.ones((3, 3), dtype=bool)
    available[1, 2] = False
    with pytest.raises(ValueError, match=r"plays arm 'a2' in context 'desktop', where the problem does not offer it"):
        health(log, part([0, 1, 2], available=available))
