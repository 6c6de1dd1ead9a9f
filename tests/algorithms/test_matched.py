"""The matched tuning: its rule by hand, and the inequalities that its theorem rests on."""

import math
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.kernels.contract import Play
from bothworlds.theory.schedules import Covering, Matching
from support.matched_plans import Plan, put_plan
from support.problems import masked, play, random_problem, records

MATCHED = bw.LCTsallisINF(tuning="matched")
PLAIN = bw.LCTsallisINF(tuning=bw.Matched(drift_cap=0.0))
PROBLEM = random_problem(5, S=4, K=3, d=3)
SPARSE = bw.Problem(features=np.eye(9).reshape(3, 3, 9), probabilities=[0.2, 0.3, 0.5])
PROBLEMS = {
    "random features": PROBLEM,
    "one context": random_problem(4, S=1, K=4, d=3),
    "arms not offered": masked(),
    "nine contexts": random_problem(2, S=9, K=3, d=4),
}


def step_of(policy: bw.Policy, plan: Plan, theta: Any) -> Any:
    """Return the step since a plan: the new estimate less its prediction."""
    return policy.state.theta - theta - plan.m


def check_growth(policy: bw.Policy, plan: Plan, z: float, u: float) -> float:
    """Check that beta grew by the rule from a plan with these costs of its step; return beta after the jump."""
    start, h, due = plan.due(policy, z, u)
    beta = float(policy.state.inverse_rate[0])
    assert (beta - start) * (beta / start) * h == pytest.approx(due, rel=1e-6, abs=1e-9)
    assert (beta - start) * policy.state.entropy[0] <= due * (1 + 1e-6) + 1e-9
    return start


@pytest.mark.parametrize("algorithm", [PLAIN, MATCHED], ids=["estimates alone", "regression drift"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_rule_by_hand(name: str, algorithm: bw.LCTsallisINF) -> None:
    """beta grows to the root of (beta - beta') (beta/beta') h = what is due, h of the next plan at beta'.

    beta' is the rate of this plan, times what a play that was not covered multiplies it by.
    """
    problem = PROBLEMS[name]
    policy, rng, uncovered = algorithm.start(problem, rng=3), np.random.default_rng(0), 0
    for _ in range(150):
        plan, theta = Plan(policy), policy.state.theta.copy()
        decision = policy.act(int(rng.choice(problem.n_contexts, p=problem.probabilities)))
        loss = float(rng.uniform(-1, 1))
        assert decision.baseline == pytest.approx(plan.m)
        residual = loss - plan.z[decision.context, decision.arm] @ plan.m
        policy.update(decision, loss=loss)
        assert policy.state.theta == pytest.approx(theta + plan.m + decision.direction * residual)
        z, u = plan.paid_for(step_of(policy, plan, theta))
        check_growth(policy, plan, z, u)
        uncovered += u > 0.0
        assert policy.state.inverse_rate[0] >= plan.beta
    assert 0 < uncovered < 100


def test_the_rule_by_hand_where_predictions_are_scaled() -> None:
    """Predictions are scaled to at most 1: caution uses the variance of the scaled ones."""
    policy, rng, scaled = PLAIN.start(PROBLEM, rng=3, interpreted=True), np.random.default_rng(0), 0
    for _ in range(30):
        policy.state.response[...] = rng.normal(size=3) * (1.0 + policy.state.t[0])
        plan, decision = Plan(policy), policy.act(int(rng.choice(4, p=PROBLEM.probabilities)))
        policy.update(decision, loss=0.1)
        step = decision.direction * (0.1 - plan.z[decision.context, decision.arm] @ plan.m)
        check_growth(policy, plan, *plan.paid_for(step))
        scaled += np.abs(plan.z @ np.linalg.solve(policy.state.ridge, policy.state.response)).max() > 1.0
    assert scaled > 5


def test_the_rule_by_hand_around_b() -> None:
    """Below b, from b on, and where a jump takes beta beyond b: by the plan's beta it is early or late.

    Caution and the early share of the price have beta as it is after the jump. Some propensities are reduced.
    """
    policy, rng = PLAIN.start(PROBLEM, rng=3, interpreted=True), np.random.default_rng(0)
    seen = {"early": 0, "jump": 0, "late": 0, "beyond b": 0}
    for n in range(160):
        b = policy._machine.options.covered
        if n % 2 == 0:
            beta = float(rng.choice([3.0, 0.5 * b, 0.999 * b, 1.001 * b, 2.0 * b]))
            put_plan(policy, beta=beta, theta=3.0 * rng.normal(size=3), t=float(rng.choice([1.0, 30.0])))
        plan, decision = Plan(policy), policy.act(int(rng.choice(4, p=PROBLEM.probabilities)))
        loss, rarer = float(rng.choice([-1.0, 1.0])), float(rng.choice([1.0, 20.0]))
        decision = decision._replace(propensity=decision.propensity / rarer, direction=decision.direction * rarer)
        policy.update(decision, loss=loss)
        z, u = plan.paid_for(decision.direction * (loss - plan.z[decision.context, decision.arm] @ plan.m))
        start = check_growth(policy, plan, z, u)
        seen["late" if plan.beta >= b else "early" if start < b else "beyond b"] += 1
        seen["jump"] += u > 0.0
    assert min(seen.values()) > 2


def test_b_is_where_the_covering_rate_costs_a_quarter() -> None:
    covering = Covering.of(rarity=PROBLEM.rarity, coverage=PLAIN.design_for(PROBLEM).coverage, c=Matching.c)
    b = PLAIN.start(PROBLEM, rng=3)._machine.options.covered
    assert 2.0 * covering.curved / b**2 == pytest.approx(0.25)


def priced_plan(policy: bw.Policy, rng: np.random.Generator) -> Plan:
    """Make a plan from beta = b on that leaves plays uncovered."""
    while True:
        theta = rng.normal(size=9) * 10.0 ** rng.uniform(1.0, 4.0)
        plan = put_plan(policy, beta=1.05 * policy._machine.options.covered, theta=theta, t=1e4)
        if plan.charged > 0.0:
            return plan


@pytest.mark.parametrize("drift_cap", [0.0, 0.3])
def test_from_b_on_the_plan_is_charged_and_not_the_play(drift_cap: float) -> None:
    """Uncovered plays do not change beta; price and account have those of the plan, whatever the play costs."""
    policy = bw.LCTsallisINF(tuning=bw.Matched(drift_cap=drift_cap)).start(SPARSE, rng=3, interpreted=True)
    rng, uncovered = np.random.default_rng(0), 0
    for _ in range(40):
        plan, pi = priced_plan(policy, rng), policy.probabilities()
        inverse = plan.inverse(plan.gamma)
        x, a = (int(i) for i in np.unravel_index(int(pi.argmin()), pi.shape))
        account, theta = float(policy.state.account[0]), policy.state.theta.copy()
        one = policy.act(x)._replace(arm=a, arm_name=str(a), propensity=pi[x, a], direction=inverse @ plan.z[x, a])
        policy.update(one, loss=-1.0)
        z, u = plan.step_costs(step_of(policy, plan, theta))
        assert check_growth(policy, plan, z, 0.0) == plan.beta
        penalty = (float(policy.state.inverse_rate[0]) - plan.beta) * float(policy.state.entropy[0])
        paid = float(policy.state.account[0]) - account
        assert paid == pytest.approx((1.0 + drift_cap) * (z + plan.explored + penalty), rel=1e-6)
        uncovered += u > 0.0
    assert uncovered > 2


def test_below_b_a_play_that_is_not_covered_is_paid_for_when_it_is_made() -> None:
    """By a jump of beta, and in the account with the penalty of the jump. Some propensities are reduced."""
    policy, rng, jumps = PLAIN.start(SPARSE, rng=3, interpreted=True), np.random.default_rng(1), 0
    for _ in range(60):
        beta = float(rng.uniform(1.0, 30.0))
        plan = put_plan(policy, beta=beta, theta=beta * rng.normal(size=9), t=float(rng.integers(1, 200)))
        account, decision = float(policy.state.account[0]), policy.act(int(rng.integers(3)))
        rarer = float(rng.choice([1.0, 20.0]))
        decision = decision._replace(propensity=decision.propensity / rarer, direction=decision.direction * rarer)
        policy.update(decision, loss=1.0)
        z, u = plan.paid_for(decision.direction * (1.0 - plan.z[decision.context, decision.arm] @ plan.m))
        check_growth(policy, plan, z, u)
        assert plan.charged == 0.0
        penalty = (float(policy.state.inverse_rate[0]) - plan.beta) * float(policy.state.entropy[0])
        assert float(policy.state.account[0]) - account == pytest.approx(z + u + plan.explored + penalty, rel=1e-6)
        jumps += u > 0.0
    assert 2 < jumps < 58


def test_late_answers_bring_the_prediction_of_their_moment() -> None:
    policy = PLAIN.start(PROBLEM, rng=3)
    late = policy.act(1)
    play(policy, 20)
    plan, theta = Plan(policy), policy.state.theta.copy()
    policy.update(late, loss=0.5)
    assert policy.state.theta - theta - plan.m == pytest.approx(
        late.direction * (0.5 - plan.z[1, late.arm] @ late.baseline) + late.baseline - plan.m
    )
    check_growth(policy, plan, *plan.paid_for(policy.state.theta - theta - plan.m))


def test_a_plan_without_new_feedback_changes_nothing() -> None:
    """Computed again, it has the same bits, and neither beta, account nor drift has moved."""
    policy = MATCHED.start(PROBLEM, rng=3, interpreted=True)
    play(policy, 40)
    before, table = policy.learnt(), policy.probabilities()
    for _ in range(2):
        policy._learner_state.refresh()
    assert policy.probabilities().tobytes() == table.tobytes()
    assert {name: part.tobytes() for name, part in policy.learnt().items()} == {
        name: part.tobytes() for name, part in before.items()
    }


def test_a_plan_that_is_sure_but_for_rounding() -> None:
    """Its entropy counts as 1e-13, and nothing overflows."""
    policy = PLAIN.start(PROBLEM, rng=3)
    put_plan(policy, beta=float(policy.state.inverse_rate[0]), theta=np.full(3, 1e20))
    assert 0.0 <= policy.state.entropy[0] <= 1e-13
    for _ in range(500):
        policy.update(policy.act(0), loss=0.5)
    assert 0.0 < policy.state.rates[0] < math.inf


def test_a_step_is_the_last_observation_less_the_plans_prediction() -> None:
    """In the kernel: each observation replaces the step, because a plan follows each of them."""
    machine = MATCHED.machine(PROBLEM)
    state, work, sizes = records(machine)
    assert machine.kernel.row_by_row
    assert machine.kernel.refresh(machine.known, machine.options, state, work) == 0
    state.baseline[...] = 0.5, -0.25, 0.125
    for loss in (0.5, -1.0):
        carried = machine.kernel.carried_of(np.array([0.3, 0.0, -0.2]), np.array([0.1, 0.2, 0.3]), sizes)
        machine.kernel.learn(machine.known, machine.options, state, Play(1, 2, loss), carried)
        residual = loss - machine.known.z[1, 2] @ carried.baseline
        assert state.step == pytest.approx(carried.baseline + residual * carried.direction - state.baseline)
    assert (state.t[0], state.remembered[0], state.new_update[0]) == (3.0, 2.0, 1.0)


def test_what_it_does_not_do_is_refused() -> None:
    with pytest.raises(ValueError, match="alpha = 1/2"):
        bw.LCTsallisINF(tuning="matched", alpha=0.7)
    with pytest.raises(ValueError, match="below 1/2"):
        bw.Matched(c=0.5)
    with pytest.raises(ValueError, match="exact leverages"):
        bw.LCTsallisINF(tuning="matched", covariance=bw.MGR())
    with pytest.raises(ValueError, match="no schedule"):
        MATCHED.forecast(random_problem(), horizon=10)
