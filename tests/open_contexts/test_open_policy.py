"""Policies and plans on open problems: ids, once-only, late feedback, batches, files, threads."""

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import OpenDecision, OpenPolicy

ARMS = ["red", "green", "blue"]
ALGORITHMS = [bw.LCTsallisINF(), bw.LinUCB(), bw.DLinUCB(), bw.SquareCB()]
each_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: type(algorithm).__name__)
ROWS = np.random.default_rng(1).normal(size=(400, 2))


def named(algorithm: Any = ALGORITHMS[0], seed: int = 7) -> OpenPolicy:
    policy: OpenPolicy = algorithm.start(bw.OpenProblem(context=2, arms=ARMS, reward_range=(0, 1)), rng=seed)
    return policy


def taught(algorithm: Any = ALGORITHMS[0], rounds: int = 60) -> OpenPolicy:
    policy = named(algorithm)
    for row in ROWS[:rounds]:
        decision = policy.act(row)
        policy.update(decision, reward=float(row[0] > 0) if decision.arm else 0.5)
    return policy


@each_algorithm
def test_the_same_seed_gives_the_same_decisions(algorithm: Any) -> None:
    one, two = taught(algorithm), taught(algorithm)
    assert one.digest == two.digest
    assert [one.act(row).arm for row in ROWS[:30]] == [two.act(row).arm for row in ROWS[:30]]


@each_algorithm
def test_a_saved_policy_continues_bit_for_bit(algorithm: Any, tmp_path: Path) -> None:
    policy = taught(algorithm)
    late = policy.act(ROWS[0])
    policy.save(tmp_path / "policy.npz")
    again = bw.load(tmp_path / "policy.npz")
    assert isinstance(again, OpenPolicy)
    assert (again.name, again.rounds, again.updates, again.version) == (policy.name, 61, 60, policy.version)
    for row in ROWS[60:160]:
        ours, theirs = policy.act(row), again.act(row)
        assert (ours.arm, ours.propensity, ours.direction.tolist()) == (
            theirs.arm, theirs.propensity, theirs.direction.tolist()
        )  # fmt: skip
        for part, decision in ((policy, ours), (again, theirs)):
            part.update(decision, reward=0.25 * ours.arm)
    again.update(late, reward=1)
    policy.update(late, reward=1)
    assert again.digest == policy.digest
    assert all((left == policy.learnt()[name]).all() for name, left in again.learnt().items())


@each_algorithm
def test_probabilities_are_a_distribution_over_what_is_offered(algorithm: Any) -> None:
    policy = taught(algorithm)
    for row in ROWS[:20]:
        pi = policy.probabilities(row, offered=["red", "blue"])
        assert pi[1] == 0.0
        assert pi.sum() == pytest.approx(1.0, abs=1e-12)
        decision = policy.act(row, offered=["red", "blue"])
        assert decision.propensity == pi[decision.arm]


def test_decisions_are_drawn_with_their_probabilities() -> None:
    """40,000 decisions of one plan: each frequency within 4.5 standard deviations."""
    policy = taught(rounds=20)
    pi = policy.probabilities(ROWS[0])
    arms = policy.act_batch(np.repeat(ROWS[:1], 40_000, axis=0)).arms
    frequencies = np.bincount(arms, minlength=3) / 40_000
    assert (np.abs(frequencies - pi) <= 4.5 * np.sqrt(pi * (1 - pi) / 40_000)).all()
    assert pi.min() > 0.001


def test_feedback_is_taken_once_and_only_by_the_policy_that_decided() -> None:
    policy, other = taught(rounds=5), named(seed=8)
    decision = policy.act(ROWS[0])
    assert policy.accepts(decision)
    with pytest.raises(ValueError, match="the decision is of policy"):
        other.update(decision, reward=1)
    policy.update(decision, reward=1)
    before = policy.digest
    with pytest.raises(ValueError, match="was answered or has expired; each decision takes feedback once"):
        policy.update(decision, reward=1)
    assert not policy.accepts(decision)
    assert policy.digest == before
    given = policy.act(ROWS[0], id="visit 9")
    policy.update(given, reward=0)
    with pytest.raises(ValueError, match="'visit 9' was answered"):
        policy.update(policy.act(ROWS[1], id="visit 9"), reward=0)


def test_expired_decisions_take_no_feedback() -> None:
    policy = named()
    decisions = [policy.act(row) for row in ROWS[:4]]
    assert (policy.open_rounds, policy.expire(before=3), policy.open_rounds) == (4, 2, 2)
    with pytest.raises(ValueError, match="was answered or has expired"):
        policy.update(decisions[0], reward=1)
    policy.update(decisions[3], reward=1)


def test_a_decision_goes_through_json() -> None:
    policy, twin = taught(), taught()
    decision = policy.act(ROWS[0])
    again = OpenDecision.from_dict(json.loads(json.dumps(decision.to_dict())))
    assert again.to_dict() == decision.to_dict()
    policy.update(again, reward=1)
    twin.update(twin.act(ROWS[0]), reward=1)
    assert policy.digest == twin.digest


def test_a_decision_is_a_function_of_plan_id_and_features(tmp_path: Path) -> None:
    policy = taught()
    plan = policy.plan()
    plan.save(tmp_path / "plan.npz")
    assert (tmp_path / "plan.npz").stat().st_size < 10_000
    other = bw.load_plan(tmp_path / "plan.npz")
    assert other.digest == plan.digest
    for number, row in enumerate(ROWS[:50]):
        name = f"visit {number}"
        decisions = [part.act(row, id=name) for part in (policy, plan, other)]
        assert all(decision.to_dict() == decisions[0].to_dict() for decision in decisions)
    issued = other.act(ROWS[0])
    assert plan.redecide(issued.id, ROWS[0]).to_dict() == issued.to_dict()
    policy.update(issued, reward=1)
    with pytest.raises(ValueError, match="each decision takes feedback once"):
        policy.update(issued, reward=1)


def test_a_batch_of_decisions_is_the_same_as_one_by_one() -> None:
    policy, twin = taught(), taught()
    batch = policy.act_batch(ROWS[:50])
    single = [twin.act(row) for row in ROWS[:50]]
    assert batch.arms.tolist() == [decision.arm for decision in single]
    assert batch.propensities.tolist() == [decision.propensity for decision in single]
    rewards = np.linspace(0, 1, 50)
    policy.update(batch, reward=rewards)
    twin.update(single, reward=rewards)
    assert policy.digest == twin.digest
    ids = [f"visit {i}" for i in range(50)]
    plan = policy.plan()
    assert [d.to_dict() for d in policy.act_batch(ROWS[:50], ids=ids)] == [
        plan.act(row, id=name).to_dict() for row, name in zip(ROWS, ids, strict=False)
    ]


def test_ten_thousand_decisions_in_one_call() -> None:
    policy = taught()
    decisions = policy.act_batch(np.random.default_rng(2).normal(size=(10_000, 2)))
    assert (len(decisions), len(set(decisions.ids)), policy.rounds) == (10_000, 10_000, 10_060)
    policy.update(decisions, reward=(decisions.arms == 1).astype(float))
    assert policy.updates == 10_060
    assert policy.probabilities([0.0, 0.0])[1] > 0.9
    assert len(decisions[:3]) == 3
    assert [decision.arm_name for decision in decisions[:3]] == decisions.arm_names[:3]


def test_late_feedback_in_any_order_is_learned_from() -> None:
    policy = named()
    waiting = [policy.act(row) for row in ROWS]
    for place in np.random.default_rng(3).permutation(len(waiting)):
        policy.update(waiting[place], reward=float(waiting[place].arm == 2))
    assert policy.probabilities([0.3, 0.3])[2] > 0.8


def test_contexts_count_when_their_feedback_is_learned() -> None:
    """Decisions alone leave the learner state as it is, so that it is a function of the feedback in its order."""
    policy = taught()
    before = policy.learnt()
    for row in ROWS[:20]:
        policy.act(row)
    assert all((part == before[name]).all() for name, part in policy.learnt().items())


def test_threads_decide_and_learn_at_the_same_time() -> None:
    policy = named()

    def visit(rows: Any) -> None:
        for row in rows:
            policy.update(policy.act(row), reward=1)

    threads = [threading.Thread(target=visit, args=(ROWS[i::4],)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (policy.rounds, policy.updates, policy.open_rounds) == (400, 400, 0)


@each_algorithm
def test_any_number_of_candidates(algorithm: Any) -> None:
    """Ten candidates or one, then more than before: the cheapest wins, wherever it stands."""
    problem = bw.OpenProblem(candidates=[bw.Column.number("price", 0, 10)], reward_range=(0, 1))
    policy, rng = algorithm.start(problem, rng=7), np.random.default_rng(5)
    for _ in range(250):
        prices = {f"item {i}": [price] for i, price in enumerate(rng.uniform(0, 10, rng.integers(1, 12)))}
        decision = policy.act(candidates=prices)
        policy.update(decision, reward=1 - prices[decision.arm_name][0] / 10)
    pi = policy.probabilities(candidates=[[9.0], [5.0], [0.5], [7.0]])
    assert pi.argmax() == 2
    assert pi[2] > 0.6


def test_ten_thousand_candidates_are_served_and_the_learner_keeps_some() -> None:
    policy = bw.LCTsallisINF().start(bw.OpenProblem(candidates=3), rng=7)
    rows = np.random.default_rng(6).normal(size=(10_000, 3))
    for _ in range(3):
        decision = policy.act(candidates=rows)
        assert decision.features.shape == (256, 4)
        assert decision.features[decision.place, 1:].tolist() == rows[decision.arm].tolist()
        policy.update(decision, loss=0.5)
    assert policy.probabilities(candidates=rows).shape == (10_000,)


def test_requests_without_a_choice_keep_rates_as_they_are() -> None:
    """A hundred visits with one arm offered teach what it earns, and leave beta where it was."""
    policy = named()
    first = policy.learnt()["inverse_rate"][0]
    for row in ROWS[:100]:
        policy.update(policy.act(row, offered=["red"]), reward=0)
    assert policy.learnt()["inverse_rate"][0] == first
    for row in ROWS[:150]:
        decision = policy.act(row)
        policy.update(decision, reward=decision.arm == 1)
    assert policy.probabilities(ROWS[0]).argmax() == 1


def test_units_of_features_do_not_matter() -> None:
    """Columns in tiny and huge units are learned from as in units of one."""
    for units in ([1.0, 1.0], [1e-7, 1e9]):
        policy = named(seed=3)
        for row in ROWS[:200]:
            decision = policy.act(row * units)
            policy.update(decision, reward=(decision.arm == 2) == (row[0] > 0))
        tests = ROWS[np.abs(ROWS[:, 0]) > 0.5][:40]
        sure = [policy.probabilities(row * units)[2] > 0.5 for row in tests]
        assert np.mean(np.array(sure) == (tests[:, 0] > 0)) > 0.9, units


def test_arms_that_share_a_model_learn_from_each_other() -> None:
    """Three arms on a line: after plays of two of them, the third is known from its feature."""
    problem = bw.OpenProblem(arms=["low", "middle", "high"], arm_features=[[0.0], [0.5], [1.0]], reward_range=(0, 1))
    policy = bw.LCTsallisINF().start(problem, rng=7)
    for _ in range(150):
        decision = policy.act(offered=["low", "middle"])
        policy.update(decision, reward=0.2 + 0.6 * {"low": 0.0, "middle": 0.5}[decision.arm_name])
    assert policy.probabilities()[2] > 0.5


def test_what_needs_a_list_says_so() -> None:
    policy = named()
    for name in ("prior", "change", "copy"):
        with pytest.raises(AttributeError, match=f"a policy on an OpenProblem has no {name}"):
            getattr(policy, name)
    prior: Any = object()
    with pytest.raises(ValueError, match="a prior needs a problem that lists its contexts"):
        bw.LCTsallisINF().start(policy.problem, prior=prior)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="cannot be pickled or copied"):
        policy.__reduce__()


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    policy = taught()
    policy.save(tmp_path / "policy.npz")
    content = (tmp_path / "policy.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="not a file written by this library, or it is damaged"):
        bw.load(tmp_path / "cut.npz")
    with pytest.raises(ValueError, match="holds a policy on an OpenProblem"):
        bw.load_plan(tmp_path / "policy.npz")
