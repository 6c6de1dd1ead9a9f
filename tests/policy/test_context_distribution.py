"""Another law of contexts under a running policy: what is learnt stays, what follows from the law is made anew."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bothworlds as bw
from bothworlds.arrays import Floats
from bothworlds.logs import ContextDistribution, Log, LogLearner, Reward, row_of
from bothworlds.theory.designs import covariance
from support.problems import TUNINGS, play, random_problem

PROBLEM = random_problem(3)
LAW = np.array([0.1, 0.5, 0.3, 0.1])
ALGORITHMS: list[Any] = [
    *(bw.LCTsallisINF(tuning=tuning) for tuning in TUNINGS),  # type: ignore[arg-type]
    bw.LCTsallisINF(tuning="paper", covariance=bw.MGR(samples=9)),
    bw.RealFTRL(horizon=1000),
    bw.RealLinExp3(horizon=1000, features="arm-dependent"),
    bw.LinUCB(),
    bw.OFUL(),
    bw.LinTS(),
    bw.DLinUCB(),
    bw.SWLinUCB(),
    bw.SquareCB(),
]
REFUSED: list[Any] = [bw.FTRLLC(horizon=1000), bw.PerContextTsallisINF(), bw.BoBWLinearEXP4(horizon=1000)]


def start(algorithm: Any = None, **options: Any) -> bw.Policy:
    made: bw.Policy = (algorithm or bw.LCTsallisINF(tuning="matched")).start(PROBLEM, rng=7, **options)
    return made


def estimates(policy: bw.Policy) -> Floats:
    """What the policy thinks of every context and arm."""
    learnt = policy.learnt()
    theta = learnt["theta"] if "theta" in learnt else np.linalg.solve(learnt["sigma"], learnt["response"])
    return np.asarray(policy._machine.known.z @ (theta + learnt.get("drift", 0.0)))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda made: type(made).__name__)
def test_what_is_learnt_stays_and_open_decisions_are_fed(algorithm: Any) -> None:
    policy = start(algorithm, interpreted=True)
    play(policy, 15)
    losses, name, fingerprint = estimates(policy), policy.name, policy._spec.fingerprint
    waiting = [policy.act(i % 4) for i in range(20)]
    policy.change_probabilities(LAW)
    assert estimates(policy) == pytest.approx(losses, rel=1e-9, abs=1e-9)
    assert (policy.name, policy.updates, policy.version) == (name, 15, 16)
    assert policy._spec.fingerprint != fingerprint
    assert policy.problem.probabilities.tolist() == LAW.tolist()
    assert policy.open_rounds == 20
    for made in waiting[:3]:
        policy.update(made, loss=0.5)
    policy.update(waiting[3:], loss=[0.5] * 17)
    assert (policy.updates, policy.version) == (35, 36)
    play(policy, 5)
    policy.save("policy.npz")
    again = bw.load("policy.npz")
    assert (again.digest, again.version) == (policy.digest, 41)
    assert again.probabilities().tobytes() == policy.probabilities().tobytes()
    assert [again.act(i % 4).arm for i in range(20)] == [policy.act(i % 4).arm for i in range(20)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("algorithm", REFUSED, ids=lambda made: type(made).__name__)
def test_where_there_is_no_place_for_what_was_learnt_a_new_law_is_refused(algorithm: Any) -> None:
    policy = start(algorithm)
    play(policy, 3)
    digest = policy.digest
    with pytest.raises(ValueError, match="cannot take over earlier learning"):
        policy.change_probabilities(LAW)
    assert policy.digest == digest


@pytest.mark.parametrize("tuning", ["paper", "certified"])
def test_the_plan_is_that_of_the_law(tuning: Any) -> None:
    """A policy that was given the law before its first answer is one that began with it.

    Where there is a regression, its first matrix is the identity in the coordinates of the first law.
    """
    policy = start(bw.LCTsallisINF(tuning=tuning))
    policy.change_probabilities(LAW)
    fresh = bw.LCTsallisINF(tuning=tuning).start(PROBLEM.with_probabilities(LAW), rng=7)
    for i in range(30):
        one, two = policy.act(i % 4), fresh.act(i % 4)
        assert one.arm == two.arm
        assert one.propensity == pytest.approx(two.propensity, rel=1e-6)
        loss = float(np.sin(i))
        policy.update(one, loss=loss)
        fresh.update(two, loss=loss)
    assert policy.probabilities() == pytest.approx(fresh.probabilities(), rel=1e-5, abs=1e-9)


def test_estimates_are_unbiased_under_the_law_of_their_moment() -> None:
    """E[direction loss] = theta by enumeration, in the coordinates that stay."""
    policy = start(bw.LCTsallisINF(tuning="certified"))
    play(policy, 10)
    for law in (PROBLEM.probabilities, LAW):
        policy.change_probabilities(law)
        z, pi = policy._machine.known.z, policy.probabilities()
        theta = np.array([0.3, -0.2, 0.1])
        sigma = covariance(z, np.asarray(law), pi)
        mean = np.zeros(3)
        found = {(made.context, made.arm): made for i in range(400) for made in [policy.act(i % 4)]}
        assert len(found) == 12
        for (x, a), made in found.items():
            assert made.direction == pytest.approx(np.linalg.solve(sigma, z[x, a]), rel=1e-6)
            mean += law[x] * pi[x, a] * made.direction * (z[x, a] @ theta)
        assert mean == pytest.approx(theta)


def test_decisions_of_an_earlier_law_pass_the_check_of_the_present_one() -> None:
    """A context that was rare had large directions; under a law where it is common they would look damaged."""
    rare = bw.Problem(
        features=np.eye(4)[:, None, :].repeat(2, 1) * [[[1], [-1]]], probabilities=[0.97, 0.01, 0.01, 0.01]
    )
    policy = bw.LCTsallisINF(tuning="certified").start(rare, rng=1)
    waiting = [policy.act(1) for _ in range(40)]
    policy.change_probabilities([0.01, 0.97, 0.01, 0.01])
    policy.update(waiting[0], loss=0.5)
    policy.update(waiting[1:4], loss=[0.5] * 3)
    policy.save("policy.npz")
    policy = bw.load("policy.npz")
    policy.learn(waiting[4:], loss=[0.5] * 36)
    made = policy.act(1)
    with pytest.raises(ValueError, match="damaged"):
        policy.update(made._replace(direction=-10.0 * made.direction), loss=0.5)


@pytest.mark.parametrize("tuning", TUNINGS)
def test_a_late_decision_has_the_baseline_that_it_was_made_with(tuning: Any) -> None:
    policy = start(bw.LCTsallisINF(tuning=tuning))
    play(policy, 5)
    made = policy.act(0)
    damaged = made._replace(baseline=np.zeros(3) if made.baseline is None else None)
    assert (made.baseline is None) == (tuning != "matched")
    for _ in range(2):  # of today's law, then late
        with pytest.raises(ValueError, match="baseline"):
            policy.update(damaged, loss=0.5)
        policy.change_probabilities(LAW)
    policy.update(made, loss=0.5)
    assert policy.updates == 6


def test_the_same_law_is_no_new_plan_and_what_is_no_law_is_refused() -> None:
    policy = start()
    plan = policy.plan()
    policy.change_probabilities(PROBLEM.probabilities)
    assert policy.plan() is plan
    for law in ([1.0, 0.0, 0.0, 0.0], [0.5, 0.5], "even"):
        with pytest.raises(ValueError, match="probabilities"):
            policy.change_probabilities(law)
    assert policy.plan() is plan


def test_servers_need_one_plan_with_its_frame(tmp_path: Path) -> None:
    policy = start()
    policy.plan().save(tmp_path / "plan.npz")
    server = bw.load_plan(tmp_path / "plan.npz")
    play(policy, 5)
    policy.plan().save(tmp_path / "before.npz", frame=False)
    for law in (LAW, LAW[::-1]):
        policy.change_probabilities(law)
        play(policy, 3)
        policy.plan().save(tmp_path / "newest.npz", frame=False)
        with pytest.raises(ValueError, match="a server needs one plan with its frame"):
            server.renewed(tmp_path / "newest.npz")
        with pytest.raises(ValueError, match="is not the frame of"):
            bw.load_plan(tmp_path / "newest.npz", frame=tmp_path / "plan.npz")
        policy.plan().save(tmp_path / "whole.npz")
        server = server.renewed(tmp_path / "whole.npz")
        for newer in (
            server,
            server.renewed(tmp_path / "newest.npz"),
            bw.load_plan(tmp_path / "whole.npz"),
        ):
            assert (newer.digest, newer.version) == (policy.digest, policy.version)
            assert newer.problem.probabilities.tolist() == law.tolist()
            assert policy.plan().confirms(newer.act(1, id="visit"))
    with pytest.raises(ValueError, match="a server needs one plan with its frame"):
        server.renewed(tmp_path / "before.npz")
    other = bw.LinUCB().start(PROBLEM)
    other.plan().save(tmp_path / "other.npz")
    with pytest.raises(ValueError, match="for another problem or algorithm"):
        server.renewed(tmp_path / "other.npz")


def test_an_estimated_law_is_followed() -> None:
    policy = start(holdout=0.2)
    mix = bw.TrafficMix.estimated(PROBLEM.probabilities, strength=10)
    policy.act([0] * 30 + [1] * 10)
    policy.save("policy.npz")
    policy = bw.load("policy.npz")
    mix = policy.follow(mix)
    expected = (10 * PROBLEM.probabilities + [30, 10, 0, 0]) / 50
    assert policy.problem.probabilities == pytest.approx(expected)
    assert mix.observed == 40
    plan = policy.plan()
    policy.update(plan.act(2, id="visit"), loss=0.5)  # counts now that it is answered
    again = policy.follow(mix)
    assert (again.observed, again.counts.tolist()) == (41, [30, 10, 1, 0])
    known = bw.TrafficMix.known(policy.problem.probabilities)
    before = policy.version
    assert policy.follow(known).observed == 0
    assert policy.version == before
    with pytest.raises(ValueError, match="counts must be 2 numbers"):
        policy.follow(bw.TrafficMix.known([0.5, 0.5]))
    with pytest.raises(
        ValueError, match=r"follows a TrafficMix; for probabilities use change_probabilities; got \[0.5"
    ):
        policy.follow([0.5, 0.5])


def test_the_alarm_begins_anew_with_the_law() -> None:
    policy = start()
    policy.act([0] * 300)
    assert policy.health().traffic.alarm
    policy.change_probabilities([0.97, 0.01, 0.01, 0.01])
    assert not policy.health().traffic.alarm
    policy.act([0] * 97 + [1, 2, 3])
    policy.save("policy.npz")
    for one in (policy, bw.load("policy.npz")):
        told = one.health()
        assert not told.traffic.alarm
        assert sum(rate.decisions for rate in told.contexts) == 400
    policy.act([1] * 100)
    assert policy.health().traffic.alarm


def test_a_learner_notes_the_law_and_finds_the_same_versions_again() -> None:
    policy, log = start(), Log("log.jsonl")
    policy.save("start.npz")
    learner, digests = LogLearner(policy, log), {0: policy.digest}
    for turn in range(6):
        plan = policy.plan()
        made = [plan.act(i % 4, id=f"{turn}, {i}") for i in range(6)]
        log.append(*(row_of(one, plan) for one in made))
        log.append(*(Reward(id=one.id, time=1.0, reward=0.25) for one in made))
        if turn % 2:
            learner.change_probabilities(LAW if turn % 4 == 1 else LAW[::-1])
            digests[policy.version] = policy.digest
        learner.step()
        digests[policy.version] = policy.digest
        if turn == 3:
            policy.save("middle.npz")
    assert policy.version == 36 + 3
    assert sum(isinstance(record, ContextDistribution) for record, _ in log.read()) == 3
    for file in ("start.npz", "middle.npz"):
        again = LogLearner(bw.load(file), log)
        found = {plan.version: plan.digest for plan in again.replay()}
        assert found.items() <= digests.items()
        assert again.policy.digest == policy.digest
    learner.change_probabilities(policy.problem.probabilities)
    assert sum(isinstance(record, ContextDistribution) for record, _ in log.read()) == 3
    policy.change_probabilities(PROBLEM.probabilities)
    with pytest.raises(ValueError, match=r"use learner\.change"):
        learner.step()


@given(st.lists(st.sampled_from(["act", "answer", "law", "load"]), max_size=25), st.integers(0, 1000))
@settings(max_examples=15)
def test_files_in_between_change_nothing(steps: list[str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    policy, straight = start(holdout=0.2), start(holdout=0.2)
    waiting: list[tuple[bw.Decision, bw.Decision]] = []
    versions: dict[int, str] = {}
    for i, step in enumerate(steps):
        if step == "act":
            waiting.append((policy.act(i % 4), straight.act(i % 4)))
            assert waiting[-1][0].arm == waiting[-1][1].arm
        elif step == "answer" and waiting:
            one, two = waiting.pop()
            policy.update(one, loss=0.5)
            straight.update(two, loss=0.5)
        elif step == "law":
            law = 0.8 * rng.dirichlet(np.ones(4)) + 0.05
            policy.change_probabilities(law)
            straight.change_probabilities(law)
        elif step == "load":
            policy.save("policy.npz")
            policy = bw.load("policy.npz")
        assert (policy.digest, policy.version) == (straight.digest, straight.version)
        assert versions.setdefault(policy.version, policy.digest) == policy.digest  # one version, one plan


def test_after_a_crash_decisions_are_those_of_their_own_law() -> None:
    """Versions begin again where the file was saved; marks say which law a decision was taken under."""
    policy = start()
    policy.save("policy.npz")
    play(policy, 4)
    earlier = policy.act(1)  # version 4 under the first law, lost with its process
    policy.change_probabilities(LAW)
    later = policy.act(1)  # under a law that no file knows
    policy = bw.load("policy.npz")
    policy.change_probabilities(LAW[::-1])  # version 1
    now = policy._bookkeeping.resolve(earlier)
    assert now is not None
    z = policy._machine.known.z[1, earlier.arm]
    first = start()._machine.known.z[1, earlier.arm]
    assert z @ now.direction == pytest.approx(first @ earlier.direction)
    policy.update(earlier, loss=0.5)
    with pytest.raises(ValueError, match="with a problem or context distribution that this policy does not know"):
        policy.update(later, loss=0.5)
    policy.change_probabilities(LAW)  # now it does: the same problem has the same coordinates
    policy.update(later, loss=0.5)
    assert policy.updates == 2


def test_contexts_that_are_not_listed_have_no_law() -> None:
    problem = bw.SampledProblem(lambda rng: rng.uniform(), lambda x: [[1.0, x], [1.0, -x]], samples=100)
    policy: Any = bw.RealFTRL(horizon=1000, covariance="reservoir").start(problem, rng=7)
    for call in (policy.change_probabilities, policy.follow):
        with pytest.raises(ValueError, match="there are no probabilities to change"):
            call(LAW)
