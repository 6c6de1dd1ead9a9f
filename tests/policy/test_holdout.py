"""Holdouts: which decisions follows from ids alone, the others are what they were, and nothing is learnt from them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, chisquare

import bothworlds as bw
from bothworlds.logs import Log, LogLearner, Reward, row_of
from bothworlds.logs.schema import line_of, record_of
from bothworlds.policy.holdout import Holdout, hash_input
from bothworlds.policy.ids import new_session, new_source, secret_of
from support.problems import random_problem

PROBLEM = random_problem(3, reward_range=(0.0, 1.0))
MASKED = random_problem(3, available=[[True, False, True], [True, True, True], [False, True, False], [True] * 3])
ALGORITHM = bw.LCTsallisINF(tuning="matched")


def start(share: float = 0.3, problem: bw.Problem = PROBLEM, rng: int = 7) -> bw.Policy:
    return ALGORITHM.start(problem, rng=rng, holdout=share)


def plain(made: bw.Decision) -> dict[str, Any]:
    """What a decision says, but for names that are random."""
    return {name: value for name, value in made.to_dict().items() if name not in ("id", "policy")}


@given(st.integers(0, 10**6), st.sampled_from([0.02, 0.1, 0.5]))
@settings(max_examples=25)
def test_the_coin_has_its_share_and_is_one_of_the_id(seed: int, share: float) -> None:
    held = Holdout(MASKED, share, secret_of(seed))
    for names in ([f"visit {i}" for i in range(3000)], [new_source()] * 3000):
        found = [held.decide("p", 1, name, i, 0) for i, name in enumerate(names)]
        count = sum(made is not None for made in found)
        assert binomtest(count, 3000, share).pvalue > 1e-7  # of 50 in 25 examples
        for i, name in enumerate(names[:200]):
            other = held.decide("q", 3, name, i, 17)  # another policy, context and version
            assert (other is None) == (found[i] is None)
            assert other is None or (other.arm, other.propensity) == (found[i].arm, 1 / 3)  # type: ignore[union-attr]


def test_arms_are_even_among_those_offered() -> None:
    held = Holdout(MASKED, 0.5, secret_of(3))
    for x, offered in enumerate(MASKED.available):
        found = [made for i in range(6000) if (made := held.decide("p", x, f"visit {i}", 0, 0)) is not None]
        counts = np.bincount([made.arm for made in found], minlength=3)
        assert not counts[~offered].any()
        assert {made.propensity for made in found} == {1 / offered.sum()}
        assert offered.sum() == 1 or chisquare(counts[offered]).pvalue > 0.01  # 0.70, 0.90 and 0.90


def test_of_a_life_the_coin_is_that_of_stream_and_round() -> None:
    one, two = new_session(7, 0, 1), new_session(7, 3, 20)
    assert hash_input(one, 25) == hash_input(two, 25) != hash_input(new_session(8, 3, 20), 25)
    assert hash_input("visit-9", 0) == "visit-9"


def test_the_others_are_drawn_as_without_a_holdout() -> None:
    """As long as nothing is learnt the two policies have the same plan; what was drawn stays, bit for bit."""
    apart, whole = start(0.3), start(0.0)
    found = [(apart.act(i % 4), whole.act(i % 4)) for i in range(300)]
    marks = [one.holdout for one, _ in found]
    assert 60 < sum(marks) < 120
    assert all(plain(one) == plain(two) for one, two in found if not one.holdout)
    assert not any(two.holdout for _, two in found)
    assert marks == [start_again.holdout for start_again in start(0.3).act([i % 4 for i in range(300)])]


def test_what_is_held_out_is_taken_once_and_not_learnt() -> None:
    apart, without = start(0.3), start(0.0)
    for i in range(60):
        made = bw.Decision.from_dict(json.loads(json.dumps(apart.act(i % 4).to_dict())))
        before = apart.digest, apart.plan().version
        apart.update(made, reward=0.25)
        assert ((apart.digest, apart.plan().version) == before) == made.holdout
        assert not apart.accepts(made)
        with pytest.raises(ValueError, match="each decision takes feedback once"):
            apart.update(made, reward=0.25)
        if not made.holdout:
            without.learn([made._replace(policy=without.name)], reward=[0.25])
    assert apart.updates == without.updates < 60
    assert apart.open_rounds == 0
    assert {n: a.tobytes() for n, a in apart.learnt().items()} == {n: a.tobytes() for n, a in without.learnt().items()}
    assert apart.digest != without.digest  # which says what they stand on, too


@pytest.mark.parametrize("way", ["update", "learn"])
@pytest.mark.parametrize("count", [1, 5, 40])
def test_batches_mixed_with_held_out_decisions(way: str, count: int) -> None:
    policy, single = start(0.4), start(0.0)
    for turn in range(4):
        batch = [policy.act(i % 4) if i % 2 else policy.plan().act(i % 4, id=f"{turn}, {i}") for i in range(count)]
        rewards = [(i % 5) / 4 for i in range(count)]
        getattr(policy, way)(batch, reward=rewards)
        kept = [i for i, made in enumerate(batch) if not made.holdout]
        mine = [batch[i]._replace(policy=single.name) for i in kept]
        single.learn(mine, reward=[rewards[i] for i in kept])
    assert policy.updates == single.updates
    assert policy.probabilities().tobytes() == single.probabilities().tobytes()
    held = next(made for made in policy.act([0] * 60) if made.holdout)
    policy.learn([held], reward=[1.0])
    with pytest.raises(ValueError, match="the problem has no context 0 with an arm 9"):
        policy.update([held._replace(arm=9)], reward=[1.0])
    with pytest.raises(ValueError, match="but this is policy"):
        policy.learn([held._replace(policy="other")] * 20, reward=[1.0] * 20)


def test_plans_and_their_files(tmp_path: Path) -> None:
    policy = start(0.3)
    plan = policy.plan()
    plan.save(tmp_path / "plan.npz")
    read = bw.load_plan(tmp_path / "plan.npz")
    found = [plan.act(i % 4, id=f"visit {i}") for i in range(100)]
    assert 15 < sum(made.holdout for made in found) < 45
    for i, made in enumerate(found):
        assert plan.confirms(made)
        assert read.confirms(made)
        assert policy.act(i % 4, id=f"visit {i}").to_dict() == made.to_dict()
    held = next(made for made in found if made.holdout)
    assert not plan.confirms(held._replace(holdout=False))
    policy.update(found, reward=[0.5] * 100)
    policy.plan().save(tmp_path / "newest.npz", frame=False)
    newer = read.renewed(tmp_path / "newest.npz")
    again = [newer.act(i % 4, id=f"visit {i}") for i in range(100)]
    assert [made.holdout for made in again] == [made.holdout for made in found]
    assert [made.arm for made in again if made.holdout] == [made.arm for made in found if made.holdout]
    whole = start(0.0)
    whole.plan().save(tmp_path / "whole.npz")
    with pytest.raises(ValueError, match="a plan for another problem or algorithm"):
        bw.load_plan(tmp_path / "whole.npz").renewed(tmp_path / "newest.npz")


@given(st.lists(st.sampled_from(["act", "answer", "load", "copy"]), min_size=4, max_size=25))
@settings(max_examples=20)
def test_files_in_between_change_nothing(steps: list[str]) -> None:
    """A policy that is saved and loaded decides as one that is not; a copy holds out decisions of its own."""
    policy, straight = start(0.3), start(0.3)
    waiting: list[tuple[bw.Decision, bw.Decision]] = []
    for i, step in enumerate(steps):
        if step == "act":
            waiting.append((policy.act(i % 4), straight.act(i % 4)))
            assert plain(waiting[-1][0]) == plain(waiting[-1][1])
        elif step == "answer" and waiting:
            one, two = waiting.pop()
            policy.update(one, reward=0.5)
            straight.update(two, reward=0.5)
        elif step == "load":
            policy.save("policy.npz")
            policy = bw.load("policy.npz")
        else:
            other = policy.copy()
            assert any(made.holdout for made in other.act([0] * 60))  # 0.7^60 = 5e-10
    assert policy.digest == straight.digest


def test_rows_and_a_learner() -> None:
    policy, log = start(0.3, MASKED), Log("log.jsonl")
    policy.save("start.npz")
    learner = LogLearner(policy, log, batch_size=7)
    for turn in range(5):
        plan = policy.plan()
        for i in range(12):
            made = plan.act(i % 4, id=f"{turn}, {i}")
            row = row_of(made, plan, time=0.0)
            assert row.holdout == made.holdout
            offered = MASKED.available[i % 4]
            expected = np.full(offered.sum(), 1 / offered.sum()) if made.holdout else plan.probabilities(i % 4)[offered]
            assert row.probabilities == tuple(expected)
            assert row.probabilities[row.offered.index(row.arm)] == row.propensity
            read: Any = record_of(line_of(row))
            assert plan.confirms(read.decision(MASKED))
            log.append(row, Reward(id=made.id, time=1.0, reward=0.5))
        while learner.step():
            pass
    held = sum(record.holdout for record, _ in log.read() if hasattr(record, "holdout"))
    assert policy.updates == 60 - held < 60
    again = LogLearner(bw.load("start.npz"), log)
    while again.step():
        pass
    assert (again.policy.digest, again.waiting) == (policy.digest, 0)


def test_a_batch_of_held_out_decisions_alone_leaves_no_end_of_a_batch() -> None:
    policy, log = start(0.5), Log("log.jsonl")
    learner = LogLearner(policy, log)
    plan = policy.plan()
    held = next(made for i in range(100) if (made := plan.act(0, id=f"visit {i}")).holdout)
    log.append(row_of(held, plan), Reward(id=held.id, time=1.0, reward=1.0))
    assert (learner.step(), learner.step(), policy.updates) == (1, 0, 0)
    assert not policy.accepts(held)


@pytest.mark.parametrize("share", [-0.1, 1.0, 1.5, float("nan"), True, "0.1", None])
def test_what_is_no_share_is_refused(share: Any) -> None:
    with pytest.raises(ValueError, match="share of decisions to hold out, from 0 to less than 1"):
        ALGORITHM.start(PROBLEM, holdout=share)


def test_other_algorithms_hold_out_too() -> None:
    for algorithm in (bw.LinUCB(), bw.LinTS(), bw.PerContextTsallisINF(), bw.FixedPolicy()):
        policy = algorithm.start(PROBLEM, rng=7, holdout=0.3)
        for i in range(30):
            policy.update(policy.act(i % 4), reward=0.5)
        assert policy.rounds == 30 > policy.updates > 10


def test_contexts_that_are_not_listed_cannot() -> None:
    problem = bw.SampledProblem(lambda rng: rng.uniform(), lambda x: [[1.0, x], [1.0, -x]], samples=100)
    algorithm: Any = bw.RealFTRL(horizon=1000, covariance="reservoir")
    with pytest.raises(ValueError, match="cannot hold out decisions"):
        algorithm.start(problem, holdout=0.1)
