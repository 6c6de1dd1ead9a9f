"""Decisions held out on open problems: which, their arms, files, and that nothing is learned from them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare

import bothworlds as bw
from bothworlds import OpenDecision, OpenPolicy
from bothworlds.policy.holdout import Holdout

ARMS = ["red", "green", "blue"]
ROWS = np.random.default_rng(1).normal(size=(400, 2))


def named(share: float = 0.3, algorithm: Any = None) -> OpenPolicy:
    problem = bw.OpenProblem(context=2, arms=ARMS, reward_range=(0, 1))
    policy: OpenPolicy = (algorithm or bw.LCTsallisINF()).start(problem, rng=7, holdout=share)
    return policy


def listing(share: float = 0.3) -> OpenPolicy:
    problem = bw.OpenProblem(candidates=1, reward_range=(0, 1))
    return bw.LCTsallisINF().start(problem, rng=7, holdout=share)


def plain(decision: OpenDecision) -> dict[str, Any]:
    """What a decision says, but for names that are random."""
    return {name: value for name, value in decision.to_dict().items() if name not in ("id", "policy")}


def test_share_and_uniformity() -> None:
    decisions = named(0.3).act_batch(np.repeat(ROWS[:1], 6000, axis=0), offered=["red", "blue"])
    held = decisions.holdouts
    assert binomtest(int(held.sum()), 6000, 0.3).pvalue > 0.01
    assert set(decisions.propensities[held]) == {0.5}
    counts = np.bincount(decisions.arms[held], minlength=3)
    assert counts[1] == 0
    assert chisquare(counts[[0, 2]]).pvalue > 0.01


def test_candidates_are_uniform_whatever_their_number() -> None:
    policy = listing(0.5)
    for count in (1, 3, 7):
        decisions = policy.act_batch(candidates=[[[float(i)] for i in range(count)]] * 2000)
        held = [decision for decision in decisions if decision.holdout]
        assert {decision.propensity for decision in held} == {1 / count}
        counts = np.bincount([decision.arm for decision in held], minlength=count)
        assert count == 1 or chisquare(counts).pvalue > 0.01


def test_ids_are_held_out_as_for_listed_policies() -> None:
    """With the same secret the same ids are held out, with the same arms."""
    plan = named(0.3).plan()
    listed = Holdout(bw.Problem.from_sample(["day"], arms=ARMS), 0.3, plan.secret)
    for i in range(300):
        ours, theirs = plan.act(ROWS[0], id=f"visit {i}"), listed.decide("p", 0, f"visit {i}", 0, 0)
        assert ours.holdout == (theirs is not None)
        assert theirs is None or (ours.arm, ours.propensity) == (theirs.arm, theirs.propensity)


def test_the_others_are_drawn_as_without_a_holdout() -> None:
    apart, whole = named(0.3), named(0.0)
    found = [(apart.act(row), whole.act(row)) for row in ROWS[:200]]
    assert 30 < sum(one.holdout for one, _ in found) < 90
    assert all(plain(one) == plain(two) for one, two in found if not one.holdout)
    assert not any(two.holdout for _, two in found)
    assert [plain(one) for one, _ in found] == [plain(again) for again in named(0.3).act_batch(ROWS[:200])]


@pytest.mark.parametrize("algorithm", [bw.LCTsallisINF(), bw.LinUCB()], ids=["default", "LinUCB"])
def test_what_is_held_out_is_taken_once_and_not_learned(algorithm: Any) -> None:
    apart, without = named(0.3, algorithm), named(0.0, algorithm)
    held = 0
    for row in ROWS[:60]:
        decision = OpenDecision.from_dict(json.loads(json.dumps(apart.act(row).to_dict())))
        before = apart.digest, apart.version, apart.updates
        apart.update(decision, reward=0.25)
        if decision.holdout:
            held += 1
            assert (apart.digest, apart.version, apart.updates) == before
        else:
            without.update(decision._replace(policy=without.name, source=f"visit {decision.round}"), reward=0.25)
        assert not apart.accepts(decision)
        with pytest.raises(ValueError, match="each decision takes feedback once"):
            apart.update(decision, reward=0.25)
    assert 5 < held < 35
    assert apart.updates == without.updates == 60 - held
    assert apart.open_rounds == 0
    assert all((part == without.learnt()[name]).all() for name, part in apart.learnt().items())
    assert apart.digest != without.digest  # their plans decide differently


def test_a_batch_with_held_out_decisions() -> None:
    policy, single = named(0.4), named(0.4)
    rewards = np.linspace(0, 1, 50)
    policy.update(policy.act_batch(ROWS[:50]), reward=rewards)
    for decision, reward in zip(single.act_batch(ROWS[:50]), rewards, strict=True):
        single.update(decision, reward=reward)
    assert policy.updates == single.updates < 50
    held = [decision for decision in policy.act_batch(ROWS[:50]) if decision.holdout]
    before = policy.digest
    policy.update(held, reward=[1.0] * len(held))
    assert policy.digest == before
    assert "held out" in repr(held[0])
    assert "held out" in held[0]._repr_html_()


def test_plans_and_files(tmp_path: Path) -> None:
    policy = named(0.3)
    policy.update(policy.act_batch(ROWS[:100]), reward=np.linspace(0, 1, 100))
    policy.plan().save(tmp_path / "plan.npz")
    policy.save(tmp_path / "policy.npz")
    plan, again = bw.load_plan(tmp_path / "plan.npz"), bw.load(tmp_path / "policy.npz")
    assert plan.digest == policy.digest == again.digest
    ids = [f"visit {i}" for i in range(100)]
    batches = [part.act_batch(ROWS[:100], ids=ids) for part in (policy, plan, again)]
    assert all([d.to_dict() for d in batch] == [d.to_dict() for d in batches[0]] for batch in batches)
    assert 15 < batches[0].holdouts.sum() < 45
    held = next(decision for decision in batches[0] if decision.holdout)
    assert plan.redecide(held.id, ROWS[0]).arm == held.arm
    assert [plain(policy.act(row)) for row in ROWS[:50]] == [plain(again.act(row)) for row in ROWS[:50]]
    whole = named(0.0)
    assert whole.digest != named(0.3).digest


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan"), True, "0.1", None])
def test_what_is_no_share_is_refused(share: Any) -> None:
    with pytest.raises(ValueError, match="share of decisions to hold out, from 0 to less than 1"):
        named(share)


def test_damaged_decisions_are_refused() -> None:
    policy = named(0.5)
    held = next(decision for decision in policy.act_batch(ROWS[:50]) if decision.holdout)
    for wrong, words in (
        ({"arm": 9}, "the problem has no arm 9 called"),
        ({"arm": (held.arm + 1) % 3}, "the problem has no arm"),
        ({"propensity": 0.0}, r"its propensity 0\.0 is damaged"),
        ({"holdout": False}, "its arrays are damaged"),
        ({"policy": "other"}, "the decision is of policy"),
    ):
        with pytest.raises(ValueError, match=words):
            policy.update(held._replace(**wrong), reward=1.0)
    with pytest.raises(ValueError, match="holdout missing"):
        OpenDecision.from_dict({name: value for name, value in held.to_dict().items() if name != "holdout"})
    with pytest.raises(ValueError, match="its holdout is 1"):
        OpenDecision.from_dict({**held.to_dict(), "holdout": 1})
    policy.update(held, reward=1.0)
