"""Policies saved before the memory was declared: they load, and go on as they would have then, up to rounding.

tests/shared/saved has them half way through a path of 40 decisions, a quarter of them not answered; rest.json has the
arms of the rest and the probabilities at its end. What was learnt is taken bit for bit; since then products are added
with one rounding instead of two, so that what is computed from it may differ in its last bits.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.policy.footing import section
from bothworlds.problem.storage import read_arrays
from bothworlds.theory.schedules import Matching
from goldens import comparable
from worlds import parameters

SAVED = Path(__file__).parents[1] / "shared" / "saved"
REST = json.loads((SAVED / "rest.json").read_text())
FIRST = 20


@pytest.mark.skipif(not comparable(), reason="another C library, with other last bits")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [name for name in REST if name != "matched"])
def test_a_policy_of_before_goes_on(name: str) -> None:
    policy = bw.load(SAVED / f"{name}.npz")
    problem, rng = policy.problem, np.random.default_rng(5)
    theta = parameters(problem)
    for _ in range(FIRST):
        rng.integers(9), rng.random()
    arms = []
    for t in range(len(REST[name]["arms"])):
        decision = policy.act(int(rng.integers(9)))
        mean = float(problem.features[decision.context, decision.arm] @ theta)
        loss = 1.0 if rng.random() < (1 + mean) / 2 else -1.0
        if t % 4 != 3:
            policy.update(decision, loss=loss)
        arms.append(decision.arm)
    assert arms == REST[name]["arms"]
    expected = [[float.fromhex(value) for value in row] for row in REST[name]["probabilities"]]
    assert policy.probabilities() == pytest.approx(np.array(expected), rel=1e-9, abs=1e-15)


def test_a_policy_of_the_former_matched_rule_goes_on_with_the_present_one() -> None:
    """What it had learnt stays: Theta and the learning rate; the regression begins with the next answer."""
    policy = bw.load(SAVED / "matched.npz", interpreted=True)
    theta, updates = policy.state.theta.copy(), policy.updates
    assert updates > 0
    assert np.abs(theta).max() > 0.0
    policy.update(policy.act(0), loss=0.5)
    assert policy.updates == updates + 1
    assert not np.array_equal(policy.state.theta, theta)


def test_a_policy_from_before_caution_goes_on_without_it() -> None:
    """With the numbers of its file; decisions that waited when it was saved are learnt, of a plan too.

    Its estimates faded in every round; now its plans lean.
    """
    policy = bw.load(SAVED / "matched-today.npz", interpreted=True)
    before = bw.Matched(gain=4.5, least=0.4, caution=0.0, price=0.7, c=0.35, forgetting=3.0, leaning=Matching.leaning)
    assert policy.algorithm == bw.LCTsallisINF(tuning=before)
    assert (policy.version, policy.updates) == (31, 30), "another plan than that of version 30"
    assert policy.learnt()["counted"][0] == pytest.approx(30.0 / 1.2), "what steady fading had left"
    lines = (SAVED / "matched-today.jsonl").read_text(encoding="utf-8").splitlines()
    for line, reward in zip(lines, (1, 0, 1), strict=True):
        policy.update(bw.Decision.from_dict(json.loads(line)), reward=reward)
    rest, arms = json.loads((SAVED / "matched-today.json").read_text()), []
    for i in range(len(rest["arms"])):
        decision = policy.act(["c", "a", "b"][i % 3], id=f"then {i}")
        policy.update(decision, reward=i // 2 % 2)
        arms.append(decision.arm)
    assert arms == rest["arms"]
    expected = [[float.fromhex(value) for value in row] for row in rest["probabilities"]]
    assert policy.probabilities() == pytest.approx(np.array(expected), rel=1e-9)


def test_a_policy_whose_estimates_could_fade_is_what_it_was() -> None:
    """The default of then, `recency=0.0`, whose plans lean: all that it had learnt, and what plan this makes now."""
    learnt, policy = section(read_arrays(SAVED / "matched-leaning.npz")[1], "learnt"), load_leaning()
    assert policy.algorithm == bw.LCTsallisINF()
    assert (policy.updates, policy.open_rounds) == (40, 1)
    assert set(learnt) - set(policy.learnt()) == {"predicted", "evidence", "spent"}
    for name, part in policy.learnt().items():
        if name not in ("begun_at", "beat", "gone", "debt"):  # which it did not know yet
            np.testing.assert_array_equal(part, learnt[name], err_msg=name)
    assert policy.state.lean.any()
    told = json.loads((SAVED / "matched-leaning.json").read_text())["probabilities"]
    expected = np.array([[float.fromhex(value) for value in row] for row in told])
    assert policy.probabilities() == pytest.approx(expected, rel=1e-9)


def test_its_open_decisions_are_learnt() -> None:
    """Theta by hand: of each the estimate, with the direction and the prediction that it carries."""
    policy, z = load_leaning(), load_leaning()._machine.known.z
    theta, lines = policy.state.theta.copy(), (SAVED / "matched-leaning.jsonl").read_text(encoding="utf-8").splitlines()
    for line, reward in zip(lines, (1, 0, 1), strict=True):
        made = bw.Decision.from_dict(json.loads(line))
        policy.update(made, reward=reward)
        residual = policy.problem.loss_of(reward) - z[made.context, made.arm] @ made.baseline
        theta = theta + made.baseline + made.direction * residual
    assert policy.state.theta == pytest.approx(theta, rel=1e-9)
    assert (policy.updates, policy.open_rounds, policy.state.counted[0]) == (43, 0, 43.0)


def load_leaning() -> bw.Policy:
    return bw.load(SAVED / "matched-leaning.npz", interpreted=True)
