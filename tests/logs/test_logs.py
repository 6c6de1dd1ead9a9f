"""Logs: round trips of the schema, torn lines, and a learner that reproduces the same bits after a restart."""

import importlib.util
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bothworlds as bw
from bothworlds.logs import SCHEMA, Batch, Log, LogLearner, Record, Reward, Row, joined, read, row_of
from bothworlds.logs.schema import line_of, record_of
from support.problems import random_problem
from support.soak import size

ROOT = Path(__file__).parents[2]
numbers = st.floats(allow_nan=False, allow_infinity=False)
rows = st.builds(
    Row,
    id=st.text(min_size=1),
    time=numbers,
    context=st.none() | st.text(),
    features=st.none() | st.just(((1.0, 2.0), (0.5, 0.25))),
    offered=st.tuples(st.text(), st.text()),
    probabilities=st.tuples(numbers, numbers),
    arm=st.text(),
    propensity=numbers,
    policy=st.text(),
    version=st.integers(0, 2**60),
    digest=st.none() | st.text(),
    holdout=st.booleans(),
    direction=st.tuples(numbers),
    baseline=st.none() | st.tuples(numbers, numbers),
    reward=st.none() | numbers,
    reward_time=st.none() | numbers,
)
records = rows | st.builds(Reward, id=st.text(min_size=1), time=numbers, reward=numbers)


@given(st.lists(records, max_size=5), st.integers(0, 40))
def test_written_records_are_read_and_torn_lines_are_ignored(found: list[Record], cut: int) -> None:
    log = Log("log.jsonl")
    log.path.unlink(missing_ok=True)
    for record in found:
        assert record_of(line_of(record)) == record
        log.append(record)
        with log.path.open("ab") as file:  # a process is killed while it writes
            file.write(line_of(record)[:cut])
    assert [record for record, _ in log.read()] == found
    log.append(Reward(id="last", time=0.0, reward=0.0))
    ends = [0, *(end for _, end in log.read())]
    assert [record for start in ends[:-1] for record, _ in [next(log.read(start))]] == [r for r, _ in log.read()]
    assert ends[-1] == log.path.stat().st_size


def test_lines_of_another_kind_are_refused() -> None:
    log = Log("log.jsonl")
    log.append(Reward(id="a", time=0.0, reward=1.0))
    for line, words in (
        ('{"schema": "bothworlds-log-2", "kind": "reward"}', SCHEMA),
        ('{"schema": "bothworlds-log-1", "kind": "reward", "id": "a"}', "incomplete reward record"),
        ("17", SCHEMA),
    ):
        Path("bad.jsonl").write_bytes(log.path.read_bytes() + line.encode() + b"\n")
        with pytest.raises(ValueError, match=words):
            list(Log("bad.jsonl").read())
    with pytest.raises(ValueError, match="all numbers in a log must be finite"):
        log.append(Reward(id="a", time=0.0, reward=math.nan))
    assert list(Log("none.jsonl").read()) == []


def test_empty_lines_are_ignored_by_every_reader() -> None:
    log, row = Log("log.jsonl"), Row(id="a", arm="red", propensity=0.5)
    log.append(row, Reward(id="a", time=0.0, reward=1.0))
    lines = log.path.read_bytes().splitlines(keepends=True)
    log.path.write_bytes(b"\n" + lines[0] + b"  \r\n\n" + lines[1] + b"\n")
    found = list(log.read())
    assert [record for record, _ in found] == [row, Reward(id="a", time=0.0, reward=1.0)]
    assert [record for record, _ in log.read(found[0][1])] == [Reward(id="a", time=0.0, reward=1.0)]
    assert list(joined(record for record, _ in found)) == list(read(log.path))


def world(**options: Any) -> tuple[bw.Policy, Log]:
    problem = random_problem(3, reward_range=(0.0, 1.0), **options)
    return bw.LCTsallisINF(tuning="matched").start(problem, rng=7), Log("log.jsonl")


def test_a_row_has_all_fields_of_a_decision() -> None:
    available = [[True, False, True]] * 4
    policy, _ = world(available=available, arms=["red", "blue", "green"])
    plan = policy.plan()
    decision = plan.act(2, id="visit 9")
    row = row_of(decision, plan, time=5.0)
    assert (row.id, row.context, row.offered, row.version, row.holdout) == ("visit 9", "2", ("red", "green"), 0, False)
    assert row.probabilities == tuple(plan.probabilities(2)[[0, 2]])
    assert row.probabilities[row.offered.index(row.arm)] == row.propensity
    again = record_of(line_of(row))
    assert isinstance(again, Row)
    assert again.decision(policy.problem).to_dict() == decision.to_dict()
    line = json.loads(line_of(row))
    assert (line["schema"], line["kind"], "reward" in line) == (SCHEMA, "decision", False)
    made = plan.act(0)
    assert row_of(made, plan).decision(policy.problem).to_dict() == made.to_dict()
    policy.update(made, loss=0.5)
    with pytest.raises(ValueError, match="its probabilities are not known"):
        row_of(made, policy.plan())
    with pytest.raises(ValueError, match="unknown arm 'gold'"):
        replace(row, arm="gold").decision(policy.problem)
    with pytest.raises(ValueError, match="features and no context"):
        replace(row, context=None).decision(policy.problem)


def test_rewards_are_joined_to_decisions_and_the_first_counts() -> None:
    policy, log = world()
    plan = policy.plan()
    decisions = [plan.act(0, id=name) for name in ("a", "b", "a")]
    log.append(*(row_of(made, plan, time=1.0) for made in decisions))
    for name, reward in (("a", 1.0), ("c", 1.0), ("a", 0.0)):
        log.append(Reward(id=name, time=2.0, reward=reward))
    found = {row.id: (row.reward, row.reward_time) for row in joined(record for record, _ in log.read())}
    assert found == {"a": (1.0, 2.0), "b": (None, None)}
    assert LogLearner(policy, log).step() == 1


@pytest.mark.parametrize("offered", [(), ("red", "blue")])
def test_health_needs_whole_rows_of_probabilities(offered: tuple[str, ...]) -> None:
    problem = bw.Problem.from_sample(["day"], arms=["red", "blue"], reward_range=(0, 1))
    row = Row(id="visit 1", context="day", offered=offered, arm="red", propensity=0.5, reward=1.0)
    with pytest.raises(ValueError, match="row 'visit 1' has no probabilities"):
        bw.logs.health([row], problem)
    held = bw.logs.health([replace(row, holdout=True)], problem)
    assert held.holdout is not None


def test_a_learner_reproduces_the_same_versions_from_any_file() -> None:
    policy, log = world()
    policy.save("start.npz")
    learner, digests = LogLearner(policy, log, batch_size=5), {0: policy.digest}
    for turn in range(8):
        plan = policy.plan()
        made = [plan.act(i % 4, id=f"{turn}, {i}" if i % 2 else None) for i in range(6)]
        log.append(*(row_of(one, plan) for one in made))
        late = [one for one in made if one.round % 3]
        for one in (*late, *late[:2]):  # some twice, some never
            log.append(Reward(id=one.id, time=1.0, reward=0.25))
        while learner.step():
            digests[policy.updates] = policy.digest
        if turn == 3:
            policy.save("middle.npz")
    assert learner.step() == 0
    assert len(digests) > 8
    for file in ("start.npz", "middle.npz"):
        again = LogLearner(bw.load(file), log)
        found = {plan.version: plan.digest for plan in again.replay()}
        assert found.items() <= digests.items()
        assert again.step() == 0
        assert (again.policy.digest, again.waiting) == (policy.digest, learner.waiting)
    changed = [replace(r, digest="0" * 32) if isinstance(r, Batch) and r.version > 9 else r for r, _ in log.read()]
    Log("changed.jsonl").append(*changed)
    with pytest.raises(ValueError, match="the log was modified"):
        LogLearner(bw.load("start.npz"), Log("changed.jsonl")).step()


def test_a_learner_ignores_other_policies_and_does_not_learn_held_out_decisions() -> None:
    policy, log = world()
    other, _ = world()
    for one, holdout in ((policy, True), (other, False), (policy, False)):
        made = one.plan().act(0)
        log.append(row_of(made, one.plan(), holdout=holdout), Reward(id=made.id, time=1.0, reward=1.0))
    assert LogLearner(policy, log).step() == 2
    assert policy.updates == 1


def test_two_policies_share_a_log_each_with_its_learner() -> None:
    log, problem = Log("log.jsonl"), random_problem(3, reward_range=(0.0, 1.0))
    policies = [bw.LCTsallisINF().start(problem, rng=seed, interpreted=True) for seed in (1, 2)]
    for i, policy in enumerate(policies):
        policy.save(f"{i}.npz")
    learners = [LogLearner(policy, log, batch_size=3) for policy in policies]
    for turn in range(4):
        for learner in learners:
            plan = learner.policy.plan()
            made = [plan.act(i % 4) for i in range(4)]
            log.append(*(row_of(one, plan) for one in made))
            log.append(*(Reward(id=one.id, time=1.0, reward=0.1 * one.arm) for one in made))
            assert learner.step() > 0
        learners[turn % 2].change_probabilities(np.roll(problem.probabilities, turn))
    for i, policy in enumerate(policies):
        again = LogLearner(bw.load(f"{i}.npz", interpreted=True), log)
        assert [plan.version for plan in again.replay()][-1] == policy.version
        assert again.policy.digest == policy.digest


@pytest.mark.parametrize("batch_size", [0, -1, 2.5, None, "7"])
def test_an_invalid_batch_size_is_refused(batch_size: Any) -> None:
    policy, log = world()
    with pytest.raises(ValueError, match="batch_size must be a whole number of at least 1"):
        LogLearner(policy, log, batch_size=batch_size)


def test_a_reward_before_its_decision_is_joined_by_every_reader() -> None:
    log = Log("log.jsonl")
    log.append(Reward(id="a", time=1.0, reward=1.0), Row(id="a", arm="red", propensity=0.5), Row(id="b", arm="red",
               propensity=0.5, reward=0.0), Reward(id="b", time=2.0, reward=1.0))  # fmt: skip
    found = list(joined(record for record, _ in log.read()))
    assert [(row.id, row.reward) for row in found] == [("a", 1.0), ("b", 0.0)]
    assert found == list(read(log.path, rewards="first"))


def four_processes() -> ModuleType:
    spec = importlib.util.spec_from_file_location("four_processes", ROOT / "examples" / "four_processes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.soak
def test_four_processes_and_kills(tmp_path: Path) -> None:
    """SIGKILL at random moments: nothing lost, repeated or different when recomputed from the log."""
    example = four_processes()
    policy = bw.LCTsallisINF(tuning="matched").start(
        bw.Problem.from_sample(["morning", "evening"], weights=[2, 3], arms=example.BANNERS, reward_range=(0, 1))
    )
    for file in ("start.npz", "policy.npz"):
        policy.save(tmp_path / file)
    policy.plan().save(tmp_path / "plan.npz")
    visits = size(5_000, 500_000)
    example.run(tmp_path, visits=visits, kills=size(5, 20), seed=4, longest=size(3, 15))
    found = example.audit(tmp_path)
    assert found["answered"] == 2 * visits <= found["decisions"] <= 2 * visits + 20
