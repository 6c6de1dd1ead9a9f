"""What a policy counts, against a slow recount of everything that happened."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bothworlds as bw
from bothworlds.arrays import Floats
from bothworlds.logs import Log, Reward, row_of
from bothworlds.logs import health as health_of_log
from bothworlds.policy.counts import rewards_from
from bothworlds.policy.health import Totals, health_of
from bothworlds.policy.health_report import Rate, fixed_time_gain, gain_reading
from bothworlds.theory.confidence import average_rate_interval
from support.problems import random_problem

PROBLEM = random_problem(3, reward_range=(-1.0, 3.0))
ALGORITHM = bw.LCTsallisINF(tuning="matched")
STEPS = ["act", "act", "plan", "given", "answer", "answer", "batch", "learn", "save", "load", "expire"]


@dataclass
class Recount:
    """Every decision that is known, and every reward."""

    known: dict[str, bw.Decision] = field(default_factory=dict)
    rewards: dict[str, float] = field(default_factory=dict)

    def tables(self, *, holdout: bool) -> list[Floats]:
        mine = [made for made in self.known.values() if made.holdout == holdout]
        values: list[list[float]] = [
            [1.0 for _ in mine],
            [float(made.id in self.rewards) for made in mine],
            [self.rewards.get(made.id, 0.0) for made in mine],
        ]
        made = np.zeros((3, 4, 3))
        for table, numbers in zip(made, values, strict=True):
            for x in range(4):
                for a in range(3):
                    here = (n for m, n in zip(mine, numbers, strict=True) if (m.context, m.arm) == (x, a))
                    table[x, a] = math.fsum(here)
        return list(made)

    def copy(self) -> "Recount":
        return Recount(dict(self.known), dict(self.rewards))


def agree(policy: bw.Policy, recount: Recount) -> None:
    for tally, holdout in ((policy._bookkeeping.counts.own, False), (policy._bookkeeping.counts.held, True)):
        found = rewards_from(tally.tables(), PROBLEM.reward_range)
        for one, other in zip(found, recount.tables(holdout=holdout), strict=True):
            assert one == pytest.approx(other, abs=1e-9)
    told = policy.health()
    assert told.holdout is not None
    assert sum(rate.decisions for rate in (*told.arms, told.holdout)) == len(recount.known)
    assert sum(rate.answers for rate in (*told.contexts, told.holdout)) == len(recount.rewards)


@given(st.lists(st.sampled_from(STEPS), max_size=60), st.integers(0, 100))
@settings(max_examples=40)
def test_counts_are_those_of_a_slow_recount(steps: list[str], seed: int) -> None:
    """Decisions of rounds count when taken, others when answered; files keep what they knew."""
    rng = np.random.default_rng(seed)
    policy, recount = ALGORITHM.start(PROBLEM, rng=7, holdout=0.3), Recount()
    policy.save("policy.npz")
    saved, waiting, expired = recount.copy(), [], set()  # type: ignore[var-annotated]

    def answer(count: int, how: Any) -> None:
        batch = [waiting.pop(int(rng.integers(len(waiting)))) for _ in range(min(count, len(waiting)))]
        batch = [made for made in batch if made.id not in expired]
        rewards = rng.uniform(-1.0, 3.0, size=len(batch)).tolist()
        if batch:
            how(batch[0] if count == 1 else batch, reward=rewards[0] if count == 1 else rewards)
        for made, reward in zip(batch, rewards, strict=True):
            recount.known[made.id] = made
            recount.rewards[made.id] = reward

    for i, step in enumerate(steps):
        if step == "act":
            made = policy.act([i % 4, (i + 1) % 4, 2])
            waiting += made
            recount.known.update({one.id: one for one in made})
        elif step in ("plan", "given"):
            names = [f"visit {i}, {k}" if step == "given" else None for k in range(9)]
            waiting += [policy.plan().act(k % 4, id=name) for k, name in enumerate(names)]
        elif step == "answer":
            answer(1, policy.update)
        elif step == "batch":
            answer(20, policy.update)
        elif step == "learn":
            answer(30, policy.learn)
        elif step == "save":
            policy.save("policy.npz")
            saved = recount.copy()
        elif step == "load":  # what was decided since the file was saved is lost to it, and counts when answered
            policy = bw.load("policy.npz")
            waiting += [
                made for name, made in recount.known.items() if name in recount.rewards and name not in saved.rewards
            ]
            recount = saved.copy()
        elif step == "expire":
            policy.expire(before=policy.rounds + 1)
            expired |= {made.id for made in waiting if "-" in made.source and made.source[0] == "@"}
        agree(policy, recount)


def test_decisions_of_lives_that_no_file_knew_count_when_answered() -> None:
    policy = ALGORITHM.start(PROBLEM, rng=7)
    policy.act([0] * 5)
    policy.save("policy.npz")
    lost = bw.load("policy.npz").act([1] * 3)
    policy = bw.load("policy.npz")
    policy.act([0] * 10)
    policy.save("policy.npz")
    policy = bw.load("policy.npz")
    for made in lost:
        policy.update(made, reward=0.0)
    assert [rate.decisions for rate in policy.health().contexts] == [15, 3, 0, 0]


def test_policy_against_uniform_play() -> None:
    problem = bw.Problem.from_sample(["a", "b"], arms=2, reward_range=(0, 10))
    policy = bw.FixedPolicy(np.array([[0.9, 0.1], [0.1, 0.9]])).start(problem, rng=7, holdout=0.25, interpreted=True)
    assert "not known before both have feedback" in str(policy.health())
    for i in range(2000):
        made = policy.act(i % 2)
        policy.update(made, reward=10.0 * (made.arm == made.context))
    told = policy.health()
    assert told.value is not None
    assert told.holdout is not None
    assert told.gain is not None
    assert told.value.low < 9.0 < told.value.high
    assert told.holdout.low < 5.0 < told.holdout.high
    assert told.gain.value == told.value.mean - told.holdout.mean == pytest.approx(4.0, abs=0.4)
    assert not told.gain.alarm
    assert told.gain.sentence.startswith("the policy earns more than uniform play: +")
    once, share = fixed_time_gain(told.value, told.holdout, alpha=0.05), told.gain.value / told.holdout.mean
    assert told.value.low - told.holdout.high < once[0] < 4.0 < once[1] < told.value.high - told.holdout.low
    assert f"a decision ({share:+.1%})" in told.gain.sentence
    assert f"between {once[0]:.3g} and {once[1]:.3g} at a fixed time" in told.gain.sentence
    assert "decided by" in str(told)
    low, high = average_rate_interval(
        told.holdout.answers, told.holdout.mean * told.holdout.answers / 10, alpha=0.05 / 3 / 2
    )
    assert (told.holdout.low, told.holdout.high) == pytest.approx((10 * float(low), 10 * float(high)))
    bad = bw.FixedPolicy(np.array([[0.1, 0.9], [0.9, 0.1]])).start(problem, rng=7, holdout=0.25, interpreted=True)
    for i in range(2000):
        made = bad.act(i % 2)
        bad.update(made, reward=10.0 * (made.arm == made.context))
    assert "gain" in [reading.name for reading in bad.health().alarms]
    assert "earns less than uniform play" in str(bad.health())


@pytest.mark.parametrize(
    ("mean", "verdict", "alarm"),
    [
        (0.30, "the policy earns more than uniform play", False),
        (0.117, "the policy probably earns more than uniform play", False),
        (0.0647, "no difference between the policy and uniform play shows yet", False),
        (0.052, "the policy probably earns less than uniform play", False),
        (0.001, "the policy earns less than uniform play", True),
    ],
)
def test_what_is_certain_and_what_is_likely(mean: float, verdict: str, *, alarm: bool) -> None:
    value = Rate("the policy", 17_000, 17_000, mean, mean - 0.01, mean + 0.01, mean * (1.0 - mean))
    holdout = Rate("uniform play", 900, 900, 0.0745, 0.04, 0.12, 0.0745 * 0.9255)
    reading = gain_reading(value, holdout, alpha=0.05)
    assert reading.sentence.startswith(f"{verdict}: ")
    assert reading.alarm == alarm


def test_a_fixed_time_interval_covers_at_its_time() -> None:
    random, inside = np.random.default_rng(7), 0
    for _ in range(1000):
        counts = [(n, n, float((part := random.binomial(1, p, n) * 10.0).sum()), float((part**2).sum()))
                  for n, p in ((2000, 0.08), (400, 0.05))]  # fmt: skip
        told = health_of(
            bw.Problem.from_sample(["a"], arms=2, reward_range=(0, 100)),
            decided=np.zeros((1, 2)), answered=np.zeros((1, 2)), rewards=np.zeros((1, 2)),
            probabilities=[[0.5, 0.5]], who=(Totals(*counts[0]), Totals(*counts[1])),
        )  # fmt: skip
        low, high = fixed_time_gain(*told.who, alpha=0.05)
        inside += low <= 0.3 <= high
    assert inside >= 930  # the two added rewards, 0 and 100, make it longer


def test_a_log_says_the_same_of_what_was_answered() -> None:
    policy, log = ALGORITHM.start(PROBLEM, rng=7, holdout=0.2), Log("log.jsonl")
    plan = policy.plan()
    made = [plan.act(i % 4, id=f"visit {i}") for i in range(300)]
    rewards = np.random.default_rng(1).uniform(-1.0, 3.0, size=250).tolist()
    log.append(*(row_of(one, plan, time=1.0) for one in made))
    log.append(*(Reward(id=one.id, time=2.0, reward=r) for one, r in zip(made[:250], rewards, strict=True)))
    policy.update(made[:250], reward=rewards)
    mine, logged = policy.health(), health_of_log(log, PROBLEM, policy=policy.name)
    for one, other in zip((*mine.who, *mine.arms), (*logged.who, *logged.arms), strict=True):
        assert (one.name, one.answers) == (other.name, other.answers)
        assert (one.mean, one.low, one.high) == pytest.approx((other.mean, other.low, other.high))
    assert sum(rate.decisions for rate in logged.who) == 300
    assert logged.unanswered.value == pytest.approx(1 / 6)
    assert logged.smallest_propensity.value == plan.probabilities()[plan.probabilities() > 0].min()
    nobody = health_of_log(log, PROBLEM, policy="nobody")
    assert nobody.unanswered.sentence == "there are no decisions yet"
    with pytest.raises(ValueError, match="unknown arm '2'"):
        health_of_log(log, random_problem(3, K=2))


def test_contexts_that_are_not_listed_have_no_health() -> None:
    problem = bw.SampledProblem(lambda rng: rng.uniform(), lambda x: [[1.0, x], [1.0, -x]], samples=100)
    policy = bw.RealFTRL(horizon=1000, covariance="reservoir").start(problem, rng=7)
    with pytest.raises(ValueError, match="cannot hold out decisions or report health"):
        policy.health()
