"""Health of policies on open problems: by hand, as for a list of one context, files, and what has no meaning."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import bothworlds as bw
from bothworlds import OpenPolicy
from bothworlds.cli.health import health
from bothworlds.policy.health_report import Rate
from bothworlds.theory.confidence import average_rate_interval

ARMS = ["red", "green", "blue"]
ROWS = np.random.default_rng(1).normal(size=(1200, 2))


def named(share: float = 0.0, algorithm: Any = None, limits: Any = (0, 2)) -> OpenPolicy:
    problem = bw.OpenProblem(context=2, arms=ARMS, reward_range=limits)
    policy: OpenPolicy = (algorithm or bw.LCTsallisINF()).start(problem, rng=7, holdout=share)
    return policy


def ends(rate: Rate) -> tuple[float, float]:
    return rate.low, rate.high


def test_counts_by_hand() -> None:
    """Arms that are offered alone: red twice at 2 and 1, green once at 0, blue without feedback."""
    policy = named()
    for arm, reward in (("red", 2), ("red", 1), ("green", 0)):
        policy.update(policy.act(ROWS[0], offered=[arm]), reward=reward)
    policy.act(ROWS[0], offered=["blue"])
    found = policy.health(alpha=0.1)
    assert [(rate.name, rate.decisions, rate.answers) for rate in found.arms] == [
        ("red", 2, 2), ("green", 1, 1), ("blue", 1, 0),
    ]  # fmt: skip
    assert [rate.mean for rate in found.arms[:2]] == [1.5, 0.0]
    low, high = average_rate_interval(2, 1.5, alpha=0.1 / 3)
    assert ends(found.arms[0]) == pytest.approx((2 * float(low), 2 * float(high)))
    assert ends(found.arms[2]) == (0.0, 2.0)
    assert found.unanswered.value == 0.25
    assert (found.value, found.holdout, found.gain) == (None, None, None)
    assert [reading.name for reading in found.alarms] == ["unanswered"]
    text = str(found)
    assert "1 of 4 decisions (25.0%) have no feedback" in text
    assert "context  decisions" not in text
    assert "traffic" not in text.split("unanswered")[1]


@pytest.mark.parametrize("limits", [(0, 2), None])
def test_arms_and_holdout_are_as_in_a_list_of_one_context(limits: Any) -> None:
    """Health of a list splits alpha in three, between contexts, too; here it is split in two."""
    policy, reward = named(0.3, limits=limits), [0.1, 0.7, 0.4]
    tables = np.zeros((2, 3, 1, 3))  # holdout; decided, answered, rewards
    for i, row in enumerate(ROWS[:300]):
        decision = policy.act(row)
        tables[int(decision.holdout), 0, 0, decision.arm] += 1
        if i % 10:
            policy.update(decision, reward=reward[decision.arm])
            tables[int(decision.holdout), 1:, 0, decision.arm] += 1, reward[decision.arm]
    problem = bw.Problem(features=np.eye(3)[None], probabilities=[1.0], arms=ARMS, reward_range=limits)
    own, held = tables
    listed = bw.health_of(
        problem,
        decided=own[0], answered=own[1], rewards=own[2],
        probabilities=[[0.2, 0.5, 0.3]], holdout=tuple(held), alpha=0.075,
    )  # fmt: skip
    found = policy.health(alpha=0.05)
    for ours, theirs in zip((*found.who, *found.arms), (*listed.who, *listed.arms), strict=True):
        assert (ours.name, ours.decisions, ours.answers) == (theirs.name, theirs.decisions, theirs.answers)
        numbers = (theirs.mean, theirs.low, theirs.high, theirs.variance)
        assert (ours.mean, ours.low, ours.high, ours.variance) == pytest.approx(numbers)
    assert found.gain is not None
    assert found.gain.value == pytest.approx(listed.gain.value if listed.gain else None)
    assert found.unanswered.value == pytest.approx(0.1)


def test_exploration_is_that_of_the_present_plan_in_recent_requests() -> None:
    policy = named()
    assert (policy.health().explored, policy.health().smallest_propensity) == (None, None)
    for row in ROWS[:100]:
        decision = policy.act(row)
        policy.update(decision, reward=2.0 * (decision.arm == (row[0] > 0)))
    pi = np.array([policy.probabilities(row) for row in ROWS[:100]])
    found = policy.health()
    assert found.explored is not None
    assert found.smallest_propensity is not None
    assert found.explored.value == pytest.approx(float((1 - pi.max(axis=1)).mean()))
    assert found.smallest_propensity.value == pi.min()
    least = ARMS[int(pi.min(axis=0).argmin())]
    assert f"for arm '{least}' in a recent context" in found.smallest_propensity.sentence
    assert named(algorithm=bw.LinUCB()).health().explored is None


def test_of_many_arms_that_share_a_model_requests_are_not_kept_whole() -> None:
    arms = [f"arm {i}" for i in range(300)]
    problem = bw.OpenProblem(arms=arms, arm_features=np.linspace(0, 1, 300)[:, None], reward_range=(0, 1))
    policy = bw.LCTsallisINF().start(problem, rng=7)
    policy.update(policy.act(), reward=1)
    assert (policy.health().explored, policy.health().smallest_propensity) == (None, None)
    assert sum(rate.answers for rate in policy.health().arms) == 1


def test_restarts() -> None:
    policy = named()
    assert policy.restarts == (0, 0.0, 0)
    for i, row in enumerate(ROWS):
        decision = policy.act(row)
        policy.update(decision, reward=2.0 * (decision.arm == (0 if i < 800 else 2)))
    restarts = policy.restarts
    assert restarts is not None
    assert (restarts.number, restarts.updates) == (policy.learnt()["restarts"][0], 1200)
    assert restarts.number >= 1
    assert restarts.remembered < 900
    changes = policy.health().changes
    assert changes is not None
    assert changes.value == restarts.number
    assert "of 1,200" in changes.sentence
    linear = named(algorithm=bw.LinUCB())
    assert (linear.restarts, linear.health().changes) == (None, None)


def test_candidates_have_no_table() -> None:
    policy = bw.LCTsallisINF().start(bw.OpenProblem(candidates=1, reward_range=(0, 1)), rng=7, holdout=0.3)
    decisions = policy.act_batch(candidates=[[[0.0], [1.0], [2.0]]] * 400)
    policy.update(decisions[:300], reward=decisions.arms[:300] / 2)
    found, held = policy.health(), decisions.holdouts
    assert (found.arms, found.explored, found.smallest_propensity) == ((), None, None)
    assert [rate.decisions for rate in found.who] == [int((~held).sum()), int(held.sum())]
    assert [rate.mean for rate in found.who] == pytest.approx(
        [decisions.arms[:300][mine[:300]].mean() / 2 for mine in (~held, held)]
    )
    answers = held[:300].sum(), decisions.arms[:300][held[:300]].sum() / 2
    assert ends(found.who[1]) == pytest.approx(average_rate_interval(*answers, alpha=0.05 / 2))
    assert [reading.name for reading in found.readings] == ["gain", "unanswered", "changes"]
    assert str(found).startswith("decided by")
    assert "arm " not in str(found).split("\n")[0]


def test_the_gain_is_found() -> None:
    policy = named(0.2)
    for row in ROWS:
        decision = policy.act(row)
        policy.update(decision, reward=2 * (decision.arm == 1))
    found = policy.health()
    assert found.gain is not None
    assert found.gain.sentence.startswith("the policy earns more than uniform play")
    assert not found.gain.alarm


def test_counts_are_saved_and_plans_count_with_their_feedback(tmp_path: Path) -> None:
    policy = named(0.3)
    policy.update(policy.act_batch(ROWS[:50]), reward=np.linspace(0, 2, 50))
    late, given = policy.act(ROWS[50]), policy.plan().act(ROWS[51], id="visit 9")
    policy.save(tmp_path / "policy.npz")
    lost = policy.act(ROWS[52])
    again = bw.load(tmp_path / "policy.npz")
    before = again.health()
    assert sum(rate.decisions for rate in before.who) == 51
    for decision in (late, given, lost):
        again.update(decision, reward=1)
        policy.update(decision, reward=1)
    after = again.health()
    assert [sum(getattr(rate, part) for rate in after.who) for part in ("decisions", "answers")] == [53, 53]
    assert str(after) == str(policy.health())


def test_the_command_line(tmp_path: Path) -> None:
    policy, path = named(0.3), str(tmp_path / "policy.npz")
    policy.update(policy.act_batch(ROWS[:50]), reward=np.linspace(0, 2, 50))
    policy.save(path)
    shown = CliRunner().invoke(health, [path])
    assert shown.exit_code == 0
    assert shown.output.startswith(str(policy.health()))
    values = json.loads(CliRunner().invoke(health, [path, "--json"]).output)
    assert [rate["name"] for rate in values["arms"]] == ARMS
    assert values["contexts"] == []
    refused = CliRunner().invoke(health, [path, "--log", str(tmp_path / "log.jsonl")])
    assert refused.exit_code != 0
    assert "--log needs a policy on a Problem" in refused.output


@pytest.mark.parametrize("alpha", [0, 1, 1.5, float("nan"), "0.05"])
def test_an_alpha_that_is_no_probability_is_refused(alpha: Any) -> None:
    with pytest.raises(ValueError, match="alpha is the probability"):
        named().health(alpha=alpha)
