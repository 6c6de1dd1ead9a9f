"""The matched tuning: its rule by hand, its prices by enumeration, and the inequalities that its theorem rests on."""

import math

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.algorithms.lc_tsallis import exploration_cost, exploration_search, leverage_bounds
from bothworlds.kernels.random import price_uniform
from bothworlds.kernels.rates import STAYS
from bothworlds.theory import lemmas
from bothworlds.theory.schedules import Covering, Matching
from support.matched_plans import Plan, put_rate
from support.problems import coordinates, play, random_problem

MATCHED = bw.LCTsallisINF(tuning="matched")
PLAIN = bw.LCTsallisINF(tuning=bw.Matched(drift_cap=0.0))


SPARSE = bw.Problem(features=np.eye(9).reshape(3, 3, 9), probabilities=[0.2, 0.3, 0.5])


def put_late(policy: bw.Policy, rng: np.random.Generator, factor: float = 1.0) -> Plan:
    """Make a plan from beta = b on that may leave plays uncovered."""
    policy.state.theta[...] = rng.normal(size=9) * 10.0 ** rng.uniform(1.0, 4.0)
    policy.state.start_rate[0], policy.state.search_pause[0] = 10.0 ** rng.uniform(-5.0, -0.3), 8.0 * rng.integers(2)
    put_rate(policy, factor * policy._machine.options.covered)
    return Plan(policy)


def test_from_b_on_the_covering_rate_leaves_nothing_uncovered_and_no_rate_is_larger() -> None:
    policy, rng = MATCHED.start(SPARSE, rng=3, interpreted=True), np.random.default_rng(0)
    covering = Covering.of(rarity=SPARSE.rarity, coverage=MATCHED.design_for(SPARSE).coverage, c=Matching.c)
    for n in range(40):
        plan = put_late(policy, rng, 1.0 + 0.01 * n)
        rate = min(covering.curved / plan.beta**2, covering.linear / plan.beta)
        assert plan.covering == pytest.approx(rate)
        assert plan.gamma <= rate <= 0.125 * (1 + 1e-12)
        assert plan.price(rate, c=Matching.c) == pytest.approx(2.0 * rate)


def test_from_b_on_a_charge_is_in_the_mean_what_uncovered_plays_cost() -> None:
    """By enumeration of all plays that may be drawn, and of all pairs; no draw charges more than the stated maximum."""
    policy, rng, seen = MATCHED.start(SPARSE, rng=3, interpreted=True), np.random.default_rng(0), 0
    for _ in range(100):
        plan = put_late(policy, rng)
        known, case = plan.case()
        bounds = leverage_bounds.bound_rate(known, case, plan.gamma)
        _, most = exploration_cost.charge(known, case, bounds, plan.gamma, 0.5)
        chances = case.draw_weight.ravel().copy()
        uncovered = plan.price(plan.gamma, c=Matching.c) - 2.0 * plan.gamma
        if chances.sum() <= 0.0:
            assert (uncovered, plan.charge) == (0.0, 0.0)
            continue
        ends = chances.cumsum() / chances.sum()
        charges = [
            exploration_cost.charge(known, case, bounds, plan.gamma, u)[0] for u in ends - 0.5 * chances / chances.sum()
        ]
        assert chances @ charges / chances.sum() == pytest.approx(uncovered, rel=1e-9)
        assert max(charges) <= most * (1 + 1e-9)
        wide = np.where(plan.q > 0.0, plan.leverages(plan.gamma)[1], 0.0)
        width = plan.g @ (np.sqrt(wide.max(axis=1)) + np.sqrt((plan.q * wide).sum(axis=1)))
        assert most == pytest.approx(chances.sum() * width, rel=1e-5)
        u = price_uniform(float(policy.state.t[0]))
        assert plan.charge == pytest.approx(exploration_cost.charge(known, case, bounds, plan.gamma, u)[0], rel=1e-6)
        seen += plan.charge > 0.0
    assert seen > 5


def test_a_debt_that_could_exceed_b_makes_the_plan_cover_all() -> None:
    policy, rng, covered = MATCHED.start(SPARSE, rng=3, interpreted=True), np.random.default_rng(0), 0
    for _ in range(60):
        policy.state.debt[0] = 0.0
        plan = put_late(policy, rng)
        known, case = plan.case()
        _, most = exploration_cost.charge(
            known, case, leverage_bounds.bound_rate(known, case, plan.gamma), plan.gamma, 0.5
        )
        if plan.gamma == plan.covering or most == 0.0:
            continue
        for share in (1.01, 0.99):
            policy.state.debt[0] = plan.b - share * most
            put_rate(policy, plan.beta)
            after = Plan(policy)
            expected = (plan.gamma, plan.charge) if share > 1.0 else (plan.covering, 0.0)
            assert (after.gamma, after.charge) == expected
            covered += share < 1.0
    assert covered > 3


def test_charges_are_the_same_interpreted_and_compiled() -> None:
    instance = bw.environments.random_instance(contexts=2, arms=4, dimension=8, gap=0.2, seed=1)
    algorithm, charged = bw.LCTsallisINF(tuning=bw.Matched(gain=5.0, price=20.0)), 0
    policies = [algorithm.start(instance.problem, rng=3, interpreted=interpreted) for interpreted in (True, False)]
    means, rng = instance.problem.features @ instance.theta, np.random.default_rng(0)
    for _ in range(200):
        x, u = int(rng.integers(2)), 2.0 * rng.random() - 1.0
        for policy in policies:
            decision = policy.act(x)
            policy.update(decision, loss=1.0 if u < means[x, decision.arm] else -1.0)
        charged += policies[0].state.charge[0] > 0.0
        assert policies[0].learnt()["debt"].tobytes() == policies[1].learnt()["debt"].tobytes()
    assert policies[0].digest == policies[1].digest
    assert charged > 5


def test_charges_are_paid_as_far_as_the_round_limit_allows() -> None:
    """The account has them at once; a batch pays for itself, without the charge of its plan."""
    policy, rng, seen = PLAIN.start(SPARSE, rng=3, interpreted=True), np.random.default_rng(0), set()
    for n in range(60):
        policy.state.debt[0] = rng.choice([0.0, 0.001, 1.0])
        put_late(policy, rng)
        policy.state.charge[0] = rng.choice([0.0, 0.0001, 0.5])
        plan, account, answers = Plan(policy), float(policy.state.account[0]), 1 + n % 2
        decisions = policy.act(rng.choice(3, size=answers, p=SPARSE.probabilities))
        policy.update(decisions, loss=np.full(answers, 0.1))
        new, paid = plan.charge if answers == 1 else 0.0, plan.paid(answers) - answers * 2.0 * plan.gamma
        assert policy.state.debt[0] == pytest.approx(plan.debt + new - paid, rel=1e-9, abs=1e-15)
        assert 2.0 * plan.gamma + paid <= 2.0 * plan.covering * (1 + 1e-12)
        beta, h = float(policy.state.inverse_rate[0]), float(policy.state.entropy[0])
        least = answers * 2.0 * plan.gamma + new + (beta - plan.beta) * h
        assert float(policy.state.account[0]) - account >= least * (1 - 1e-9)
        seen.add((answers, plan.charge > 0.0, policy.state.debt[0] > 0.0))
    assert len(seen) == 8


def test_below_b_exploration_is_paid_for_and_no_play_costs_too_much() -> None:
    """For any plan, also a nearly deterministic one: a play costs at most 96/lambda, by enumeration."""
    problem = random_problem(5, S=4, K=3, d=4, rarity=30.0)
    policy = MATCHED.start(problem, rng=3)
    coverage, raised = MATCHED.design_for(problem).coverage, 0
    rng = np.random.default_rng(0)
    for _ in range(160):
        policy.state.theta[...] = rng.normal(size=4) * 10.0 ** rng.uniform(0.0, 6.0)
        policy.state.start_rate[0] = 10.0 ** rng.uniform(-12.0, -1.0) * (rng.random() < 0.8)
        policy.state.search_pause[0] = rng.integers(3)
        started = float(policy.state.start_rate[0])
        put_rate(policy, float(rng.uniform(1.0, 0.99 * Plan(policy).b)))
        plan = Plan(policy)
        assert (plan.charge, plan.paid()) == (0.0, 2.0 * plan.gamma)
        assert plan.largest_cost(plan.gamma) <= plan.cost_bound(plan.gamma) * (1 + 1e-6)
        assert plan.cost_bound(plan.gamma) <= 96.0 / coverage * (1 + 1e-6)
        if policy.state.share[0]:
            assert STAYS * plan.cost_bound(plan.gamma) <= 96.0 / coverage * (1 + 1e-6)
        assert plan.largest == pytest.approx(96.0 / coverage)
        raised += plan.largest_cost(max(started, 1e-9)) > 96.0 / coverage
    assert raised > 5


def test_plays_that_move_further_than_before_are_checked_at_once() -> None:
    """While the search pauses plays are checked if covariances fell below a share of those at the last check.

    If the excess has more than doubled the search continues, and the new excess is stored.
    """
    problem = random_problem(6, S=6, K=3, d=4, rarity=60.0)
    policy, rng, looks, jumps = MATCHED.start(problem, rng=3), np.random.default_rng(0), 0, 0
    means = problem.features @ np.random.default_rng(6).normal(size=4)
    means /= np.abs(means).max()
    for t in range(1000):
        decision = policy.act(int(rng.choice(6, p=problem.probabilities)))
        policy.state.theta[...] *= -1.0 if t % 70 == 60 else 1.0  # other arms, at once
        mean = means[decision.context, decision.arm]
        excess_before, start = float(policy.state.excess[0]), float(policy.state.rates[1])
        share = float(policy.state.share[0])
        floor = share * policy.state.sigma if share else policy.state.covariance_floor.copy()
        policy.update(decision, loss=1.0 if rng.random() < (1.0 + mean) / 2.0 else -1.0)
        state, plan = policy.state, Plan(policy)
        assert np.tril(state.covariance_floor) == pytest.approx(np.tril(floor))
        early = plan.beta < plan.b
        if state.search_pause[0] < 1.0 or not early:
            assert (state.share[0] > 0.0) == early
            continue
        stayed = plan.above_floor(start, floor)
        assert (state.share[0] > 0.0) != stayed
        unsafe = STAYS * plan.cost_bound(start) > plan.largest
        exceeded = not stayed and (
            unsafe or plan.excess(start) > max(1.0, exploration_search.EXCESS_GROWTH * excess_before)
        )
        assert state.excess_limit[0] == excess_before
        assert state.excess[0] == pytest.approx(plan.excess(plan.gamma) if exceeded else excess_before, rel=1e-6)
        assert exceeded or plan.gamma == start
        looks, jumps = looks + (not stayed), jumps + exceeded
    assert looks > jumps > 2


def test_a_few_plays_estimate_the_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many points the estimate is by enumeration; with six it is near. Uncovered plays count by their share."""
    problem = random_problem(5, S=6, K=4, d=3, rarity=30.0)
    policy, near = MATCHED.start(problem, rng=3, interpreted=True), []
    for gamma in (0.0, 0.01, 0.1, 0.3):
        play(policy, 4)
        exact = 2.0 * gamma + exploration_cost.LIKELY * (Plan(policy).price(gamma, c=Matching.c) - 2.0 * gamma)
        near.append(estimated(policy, gamma) / exact)
        with monkeypatch.context() as patch:
            patch.setattr(exploration_cost, "POINTS", 4000.0)
            assert estimated(policy, gamma) == pytest.approx(exact, rel=2e-3)
    assert 0.7 < min(near) <= max(near) < 1.4
    assert max(near) > 1.0001 or min(near) < 0.9999


def test_from_b_on_the_whole_price_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, rng, uncovered = MATCHED.start(SPARSE, rng=3, interpreted=True), np.random.default_rng(1), 0
    monkeypatch.setattr(exploration_cost, "MORE_POINTS", 400.0)
    for _ in range(5):
        plan = put_late(policy, rng)
        for gamma in (1e-3, 1e-2):
            exact = plan.price(gamma, c=Matching.c)
            assert estimated(policy, gamma) == pytest.approx(exact, rel=0.03)
            uncovered += exact > 2.0 * gamma
    assert uncovered > 3


def estimated(policy: bw.Policy, gamma: float) -> float:
    """Return the kernel's estimate from a few plays."""
    known, case = Plan(policy).case()
    bounds = leverage_bounds.bound_rate(known, case, gamma)
    exploration_cost.write_lengths(known, case)
    return float(exploration_cost.price(known, case, bounds, gamma, math.inf))


def test_the_rule_by_hand() -> None:
    """beta grows to the root of (beta - beta') (beta/beta') h = what is due, h of the next plan at beta'.

    beta' is the rate of this plan, times what a play that was not covered multiplies it by.
    """
    problem = random_problem(5, S=4, K=3, d=3)
    policy = PLAIN.start(problem, rng=3)
    z, g = coordinates(policy), problem.probabilities
    rng = np.random.default_rng(0)
    grown, uncovered = [], 0
    for _ in range(200):
        plan, theta = Plan(policy), policy.state.theta.copy()
        decision = policy.act(int(rng.choice(4, p=g)))
        loss = float(rng.uniform(-1, 1))
        assert decision.baseline == pytest.approx(plan.m)
        step = decision.direction * (loss - z[decision.context, decision.arm] @ plan.m)
        policy.update(decision, loss=loss)
        after = policy.state
        assert after.theta == pytest.approx(theta + plan.m + step)
        stability, u = plan.paid_for(step)
        uncovered += u > 0.0
        start, h, due = plan.due(policy, stability, u)
        beta = after.inverse_rate[0]
        assert (beta - start) * (beta / start) * h == pytest.approx(due, rel=1e-6, abs=1e-9)
        assert (beta - start) * after.entropy[0] <= due * (1 + 1e-6) + 1e-9
        grown.append(beta / plan.beta)
    assert min(grown) >= 1.0
    assert 0 < uncovered < 100


def test_the_rule_by_hand_where_predictions_are_scaled() -> None:
    """Predictions are scaled to at most 1: caution uses the variance of the scaled ones."""
    problem = random_problem(5, S=4, K=3, d=3)
    policy, rng, scaled = PLAIN.start(problem, rng=3), np.random.default_rng(0), 0
    for _ in range(30):
        policy.state.response[...] = rng.normal(size=3) * (1.0 + policy.state.t[0])
        plan, decision = Plan(policy), policy.act(int(rng.choice(4, p=problem.probabilities)))
        policy.update(decision, loss=0.1)
        z, u = plan.paid_for(decision.direction * (0.1 - plan.z[decision.context, decision.arm] @ plan.m))
        start, h, due = plan.due(policy, z, u)
        beta = policy.state.inverse_rate[0]
        assert (beta - start) * (beta / start) * h == pytest.approx(due, rel=1e-6, abs=1e-9)
        scaled += np.abs(plan.z @ np.linalg.solve(policy.state.ridge, policy.state.response)).max() > 1.0
    assert scaled > 5


def test_the_rule_by_hand_around_b() -> None:
    """Below b, from b on, and where a jump takes beta beyond b: by the plan's beta it is early or late.

    Caution and the early share of the price have beta as it is after the jump. Some propensities are reduced.
    """
    problem = random_problem(5, S=4, K=3, d=3)
    policy, rng = PLAIN.start(problem, rng=3), np.random.default_rng(0)
    seen = {"early": 0, "jump": 0, "late": 0, "beyond b": 0}
    for n in range(160):
        b = policy._machine.options.covered
        if n % 2 == 0:
            policy.state.theta[...] = 3.0 * rng.normal(size=3)
            policy.state.start_rate[0], policy.state.search_pause[0] = 0.05, 8.0
            put_rate(policy, float(rng.choice([3.0, 0.5 * b, 0.999 * b, 1.001 * b, 2.0 * b])))
        plan, decision = Plan(policy), policy.act(int(rng.choice(4, p=problem.probabilities)))
        loss = float(rng.choice([-1.0, 1.0]))
        rarer = float(rng.choice([1.0, 20.0]))
        decision = decision._replace(propensity=decision.propensity / rarer, direction=decision.direction * rarer)
        policy.update(decision, loss=loss)
        step = decision.direction * (loss - plan.z[decision.context, decision.arm] @ plan.m)
        z, u = plan.paid_for(step)
        start, h, due = plan.due(policy, z, u)
        beta = policy.state.inverse_rate[0]
        assert (beta - start) * (beta / start) * h == pytest.approx(due, rel=1e-6, abs=1e-9)
        if plan.paid() > 0.01:
            seen["late" if plan.beta >= b else "early" if start < b else "beyond b"] += 1
            seen["jump"] += u > 0.0
    assert min(seen.values()) > 2


def test_prices_count_in_full_from_b_on() -> None:
    """b is where the covering rate costs 1/4; there the rule has the whole share of what is paid."""
    problem = random_problem(5, S=4, K=3, d=3)
    coverage = PLAIN.design_for(problem).coverage
    covering = Covering.of(rarity=problem.rarity, coverage=coverage, c=Matching.c)
    policy = PLAIN.start(problem, rng=3)
    b = policy._machine.options.covered
    assert 2.0 * covering.curved / b**2 == pytest.approx(0.25)
    for start in (1.0 * b, 3.0 * b):
        put_rate(policy, start)
        plan, decision = Plan(policy), policy.act(1)
        policy.update(decision, loss=0.5)
        z, u = plan.paid_for(decision.direction * (0.5 - plan.z[1, decision.arm] @ plan.m))
        assert u == 0.0
        _, h, due = plan.due(policy, z, u)
        beta = policy.state.inverse_rate[0]
        assert (beta - start) * (beta / start) * h == pytest.approx(due, rel=1e-6)


def test_from_b_on_a_play_that_is_not_covered_is_paid_for_beforehand_alone() -> None:
    """It does not change beta, and the account has the charge of the plan, whatever the step costs."""
    policy, rng, count = PLAIN.start(SPARSE, rng=3), np.random.default_rng(0), 0
    for _ in range(150):
        policy.state.theta[...] = rng.normal(size=9) * 10.0 ** rng.uniform(1.0, 4.0)
        policy.state.start_rate[0] = 1e-6
        put_rate(policy, 1.05 * policy._machine.options.covered)
        plan, pi, inverse = Plan(policy), policy.probabilities(), Plan(policy).inverse(Plan(policy).gamma)
        x, a = np.unravel_index(int(pi.argmin()), pi.shape)
        step = inverse @ plan.z[x, a] * (-1.0 - plan.z[x, a] @ plan.m)
        pairs = zip(plan.q, plan.z @ step, strict=True)
        if max(lemmas.stability_cost(*pair, beta=plan.beta, c=Matching.c) for pair in pairs) < math.inf:
            continue
        account = float(policy.state.account[0])
        one = policy.act(int(x))._replace(
            arm=int(a), arm_name=str(a), propensity=pi[x, a], direction=inverse @ plan.z[x, a]
        )
        policy.update(one, loss=-1.0)
        start, h, due = plan.due(policy, 0.0, 0.0)
        beta, entropy = float(policy.state.inverse_rate[0]), float(policy.state.entropy[0])
        assert start == plan.beta
        assert (beta - start) * (beta / start) * h == pytest.approx(due, rel=1e-6)
        paid = float(policy.state.account[0]) - account
        assert paid == pytest.approx(2.0 * plan.gamma + plan.charge + (beta - plan.beta) * entropy, rel=1e-6)
        count += 1
    assert count > 2


@pytest.mark.parametrize(("rounds", "loss", "calm"), [(0, 1.0, False), (2000, 0.1, True)])
def test_batches_are_one_step_and_pay_for_every_decision(rounds: int, loss: float, calm: bool) -> None:
    """The plan contains one prediction. An uncovered sum is not part of the price, and paid when it is made."""
    problem = random_problem(5, S=4, K=3, d=3)
    policy = PLAIN.start(problem, rng=3)
    play(policy, rounds)
    plan, theta = Plan(policy), policy.state.theta.copy()
    decisions = policy.act(np.random.default_rng(0).choice(4, size=10, p=problem.probabilities))
    policy.update(decisions, loss=np.full(10, loss))
    after = policy.state
    step = plan.z @ (after.theta - theta - plan.m)
    surprises = sum(one.direction * (loss - plan.z[one.context, one.arm] @ plan.m) for one in decisions)
    assert step == pytest.approx(plan.z @ (surprises + 9 * plan.m), abs=1e-8)
    covered = [lemmas.stability_cost(row, d, beta=plan.beta, c=Matching.c) for row, d in zip(plan.q, step, strict=True)]
    falls = (plan.q * step).sum(axis=1) - step.min(axis=1)
    costs = np.where(np.isfinite(covered), covered, falls)
    assert np.isfinite(covered).all() == calm
    values = [lemmas.stability_value(row, d, 1.0 / plan.beta) for row, d in zip(plan.q, step, strict=True)]
    assert (np.array(values) <= costs * (1 + 1e-9)).all()
    start, h, due = plan.due(policy, float(plan.g @ costs), 0.0, answers=10)
    beta = after.inverse_rate[0]
    assert (beta - start) * (beta / start) * h == pytest.approx(due, rel=1e-6)


def test_late_answers_bring_the_prediction_of_their_moment() -> None:
    problem = random_problem(5, S=4, K=3, d=3)
    policy = PLAIN.start(problem, rng=3)
    late = policy.act(1)
    play(policy, 20)
    plan, theta = Plan(policy), policy.state.theta.copy()
    policy.update(late, loss=0.5)
    assert policy.state.theta - theta - plan.m == pytest.approx(
        late.direction * (0.5 - plan.z[1, late.arm] @ late.baseline) + late.baseline - plan.m
    )
    start, h, due = plan.due(policy, *plan.paid_for(policy.state.theta - theta - plan.m))
    beta = policy.state.inverse_rate[0]
    assert (beta - start) * (beta / start) * h == pytest.approx(due, rel=1e-6)


def test_a_plan_that_is_sure_but_for_rounding() -> None:
    """Its entropy counts as 1e-13, and nothing overflows."""
    policy = PLAIN.start(random_problem(5, S=4, K=3, d=3), rng=3)
    policy.state.theta[...] = 1e20
    policy._learner_state.refresh()
    assert 0.0 <= policy.state.entropy[0] <= 1e-13
    for _ in range(500):
        policy.update(policy.act(0), loss=0.5)
    assert 0.0 < policy.state.rates[0] < math.inf


def test_what_it_does_not_do_is_refused() -> None:
    with pytest.raises(ValueError, match="alpha = 1/2"):
        bw.LCTsallisINF(tuning="matched", alpha=0.7)
    with pytest.raises(ValueError, match="below 1/2"):
        bw.Matched(c=0.5)
    with pytest.raises(ValueError, match="exact leverages"):
        bw.LCTsallisINF(tuning="matched", covariance=bw.MGR())
    with pytest.raises(ValueError, match="no schedule"):
        MATCHED.forecast(random_problem(), horizon=10)
