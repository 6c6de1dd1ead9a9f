"""A learner that follows a log: replaced files, other learners, changes of the context distribution."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.logs import Batch, Log, LogLearner, Reward, health, joined, row_of, write

PROBLEM = bw.Problem.from_sample(["mobile", "desktop"], arms=["red", "blue"], reward_range=(0, 1))


def answers(found: Any) -> tuple[int, float]:
    """Return the number of rewards in a health report, and their sum."""
    return sum(arm.answers for arm in found.arms), sum(arm.mean * arm.answers for arm in found.arms if arm.answers)


def decided(count: int, log: Log) -> bw.Policy:
    """Return a policy after logging decisions of its plan, each before its reward."""
    policy = bw.LCTsallisINF().start(PROBLEM, rng=1, interpreted=True)
    policy.save("start.npz")
    plan = policy.plan()
    for i in range(count):
        made = plan.act(i % 2, id=f"visit {i}")
        log.append(row_of(made, plan, time=1.0), Reward(id=made.id, time=2.0, reward=float(i % 3 == 0)))
    return policy


def test_a_step_takes_a_batch_and_catching_up_takes_all() -> None:
    log = Log("visits.jsonl")
    policy = decided(20, log)
    learner = LogLearner(policy, log, batch_size=7)
    assert learner.step() == 7
    assert (learner.catch_up(), learner.catch_up(), policy.updates) == (13, 0, 20)
    again: Any = bw.load("start.npz", interpreted=True)
    assert LogLearner(again, log).catch_up() == 0
    assert again.digest == policy.digest


def test_rewards_inside_rows_are_learned_at_their_position() -> None:
    """As if each had its own line behind its decision; the first one counts."""
    log, lines = Log("rows.jsonl"), Log("lines.jsonl")
    policy = decided(12, lines)
    write([*joined(record for record, _ in lines.read())][:9], log.path)  # rewards in their rows
    learner, other = (
        LogLearner(policy, log, batch_size=5),
        LogLearner(bw.load("start.npz", interpreted=True), lines, batch_size=5),
    )
    plan = policy.plan()
    assert [learner.step(), learner.step(), learner.step()] == [5, 4, 0]
    late = plan.act("mobile", id="late")
    log.append(Reward(id="late", time=1.0, reward=1.0), replace(row_of(late, plan, time=1.0), reward=0.0))
    wrong = plan.act("mobile", id="wrong")
    log.append(replace(row_of(wrong, plan, time=1.0), reward=7.0), Reward(id="visit 0", time=1.0, reward=1.0))
    with pytest.warns(UserWarning, match="the reward of 'wrong' is ignored"):
        assert learner.step() == 1
    log.append(Reward(id="wrong", time=1.0, reward=0.5))
    assert (learner.step(), learner.waiting, policy.updates) == (1, 0, 11)
    assert answers(policy.health()) == pytest.approx((11, 4.5))
    assert sum(arm.answers for arm in health(log, PROBLEM).arms) == 11
    assert other.step() == 5
    batches: Any = [[record for record, _ in one.read() if isinstance(record, Batch)] for one in (log, lines)]
    assert batches[0][0].digest == batches[1][0].digest
    again: Any = bw.load("start.npz", interpreted=True)
    with pytest.warns(UserWarning, match="the reward of 'wrong' is ignored"):
        assert LogLearner(again, log).step() == 0
    assert again.digest == policy.digest


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (lambda path: path.rename("visits.1.jsonl"), "it no longer exists"),
        (lambda path: path.write_bytes(b""), r"it has 0 bytes, but \d+ were read"),
        (lambda path: path.write_bytes(path.read_bytes()[:-20]), "it has"),
        (lambda path: Path(shutil.copy(path, "new.jsonl")).replace(path), "it is another file"),
    ],
)
def test_a_log_that_was_replaced_is_refused(how: Any, message: str) -> None:
    log = Log("visits.jsonl")
    policy = decided(5, log)
    learner = LogLearner(policy, log)
    assert (learner.step(), learner.step()) == (5, 0)
    how(log.path)
    for ask in (learner.step, learner.step, lambda: learner.change_probabilities([0.4, 0.6])):
        with pytest.raises(ValueError, match=f"visits.jsonl: the log was replaced: {message}.*create a new LogLearner"):
            ask()
    assert policy.updates == 5


def test_two_learners_of_one_policy_detect_each_other() -> None:
    """As in a deployment that starts the new process before the old one ends."""
    log = Log("visits.jsonl")
    policy = decided(20, log)
    old, new = (
        LogLearner(policy, log, batch_size=5),
        LogLearner(bw.load("start.npz", interpreted=True), log, batch_size=5),
    )
    assert (old.step(), new.step()) == (5, 5)  # the new one learns what the log says, and goes on
    assert old.step() == 5
    for _ in range(2):
        with pytest.raises(ValueError, match=r"another learner works on this log for policy .*version 10"):
            old.catch_up()
        with pytest.raises(ValueError, match="another learner works on this log"):
            new.catch_up()


def test_earlier_records_and_those_of_other_policies_are_no_conflict() -> None:
    log = Log("visits.jsonl")
    policies = [bw.LCTsallisINF().start(PROBLEM, rng=seed, interpreted=True) for seed in (1, 2)]
    learners = [LogLearner(policy, log) for policy in policies]
    for turn in range(6):
        for policy in policies:
            plan = policy.plan()
            made = plan.act("mobile", id=f"{turn} of {policy.name}")
            log.append(row_of(made, plan, time=1.0), Reward(id=made.id, time=1.0, reward=1.0))
        if turn == 3:
            learners[0] = LogLearner(policies[0], log)
        assert [learner.step() for learner in learners] == [1, 1]
        learners[turn % 2].change_probabilities([0.5 - 0.01 * turn, 0.5 + 0.01 * turn])


def test_a_log_created_later_is_followed_and_a_new_one_by_a_new_learner() -> None:
    log = Log("visits.jsonl")
    policy = bw.LCTsallisINF().start(PROBLEM, rng=1, interpreted=True)
    learner = LogLearner(policy, log)
    assert learner.step() == 0
    plan = policy.plan()
    log.append(row_of(plan.act("mobile", id="a"), plan, time=1.0), Reward(id="a", time=1.0, reward=1.0))
    assert learner.step() == 1
    log.path.rename("visits.1.jsonl")
    plan = policy.plan()
    log.append(row_of(plan.act("mobile", id="b"), plan, time=1.0), Reward(id="b", time=1.0, reward=1.0))
    assert LogLearner(policy, log).step() == 1


@pytest.mark.parametrize("how", ["distribution", "change"])
def test_contexts_are_tested_against_the_distribution_of_their_time(how: str) -> None:
    """Contexts from before a change came under another distribution."""
    log = Log("visits.jsonl")
    policy = bw.LCTsallisINF().start(PROBLEM, rng=1, interpreted=True)
    learner, chance = LogLearner(policy, log), np.random.default_rng(1)
    for turn, share in enumerate((0.5, 0.1)):
        if turn and how == "distribution":
            learner.change_probabilities([share, 1.0 - share])
        elif turn:
            learner.change(PROBLEM.with_probabilities([share, 1.0 - share]))
        plan = policy.plan()
        made = [plan.act(int(chance.random() >= share), id=f"{turn}, {i}") for i in range(300)]
        log.append(*(row_of(one, plan, time=1.0) for one in made))
        log.append(*(Reward(id=one.id, time=1.0, reward=0.5) for one in made))
        learner.catch_up()
    found = health(log, policy.problem, policy=policy.name)
    assert not found.traffic.alarm
    assert found.drift.log_evidence == pytest.approx(policy.health().drift.log_evidence)
    assert sum(arm.decisions for arm in found.arms) == 600
    assert health(log, PROBLEM.with_probabilities([0.5, 0.5])).traffic.alarm
