"""The exploration rate of the matched tuning, by NumPy: leverages, all plays and their worst costs enumerated."""

from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.algorithms.lc_tsallis import exploration_rate
from bothworlds.kernels.linalg import invert_mixture
from bothworlds.theory.lemmas import largest_cost
from bothworlds.theory.schedules import Covering, Matching
from support.matched_plans import LATER, SAFE, Plan, put_plan
from support.problems import bits, coordinates, directions, masked, random_problem, records

MATCHED = bw.LCTsallisINF(tuning="matched")
ONE_HOT = bw.Problem(features=np.eye(9).reshape(3, 3, 9), probabilities=[0.01, 0.3, 0.69])
PROBLEMS = {
    "a rare context": random_problem(5, S=4, K=3, d=4, rarity=30.0),
    "coordinates of their own": ONE_HOT,
    "one context": random_problem(4, S=1, K=5, d=3),
    "nine contexts": random_problem(2, S=9, K=4, d=6, rarity=500.0),
    "arms not offered": masked(),
}
EVERYWHERE = {("early", "floor"), ("early", "as checked"), ("late", "covering"), ("late", "nothing uncovered")}
EXPENSIVE, PRICED, DEAR = ("early", "safe"), ("late", "priced"), ("late", "too expensive")
SEEN = {
    "a rare context": EVERYWHERE | {EXPENSIVE, PRICED},
    "coordinates of their own": EVERYWHERE | {EXPENSIVE, PRICED},
    "one context": EVERYWHERE - {("early", "as checked")} | {EXPENSIVE, PRICED, DEAR},
    "nine contexts": EVERYWHERE | {EXPENSIVE},
    "arms not offered": EVERYWHERE,
}


def drawn(policy: bw.Policy, rng: np.random.Generator, *, late: bool | None = None) -> Plan:
    """Make a plan with random estimates at a random time, below b or from there on."""
    late = bool(rng.random() < 0.5) if late is None else late
    share = rng.choice([1.0, 10.0 ** rng.uniform(0.0, 1.0)] if late else [rng.uniform(0.05, 1.0), 0.999])
    theta = rng.normal(size=len(policy.state.theta)) * 10.0 ** rng.uniform(0.0, 5.0)
    beta = float(share) * policy._machine.options.covered
    return put_plan(policy, beta=beta, theta=theta, t=float(np.floor(10.0 ** rng.uniform(0.0, 6.0))))


def branch(plan: Plan) -> tuple[str, str]:
    """Return which way the rule went."""
    rate = plan.stated_rate()
    if plan.early:
        checked = "floor" if plan.above_floor(rate.trial) > 0.0 else "as checked"
        return "early", checked if rate.gamma == rate.trial else "safe"
    if rate.gamma != rate.trial:
        return "late", "too expensive"
    return "late", "priced" if rate.price else "covering" if rate.gamma == plan.covering else "nothing uncovered"


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_rate_is_the_stated_one(name: str) -> None:
    """EARLY/t or SAFE while beta < b, LATER/t or the covering rate from there on; with its price and its inverse."""
    policy, rng, seen = MATCHED.start(PROBLEMS[name], rng=3, interpreted=True), np.random.default_rng(0), set()
    for _ in range(250):
        plan = drawn(policy, rng)
        expected = plan.stated_rate()
        assert abs(expected.ratio - 1.0) > 1e-9, "rounding would decide"
        assert plan.gamma == pytest.approx(expected.gamma, rel=1e-12)
        assert plan.charged == pytest.approx(expected.price, rel=1e-6)
        sigma = plan.sigma(plan.gamma)
        assert policy.state.sigma == pytest.approx(sigma, abs=1e-9 * np.abs(sigma).max())
        assert policy.probabilities() == pytest.approx(plan.pi(plan.gamma), rel=1e-9)
        solved = plan.z @ np.linalg.inv(sigma)
        assert directions(policy) == pytest.approx(solved, abs=1e-6 * np.abs(solved).max())
        seen.add(branch(plan))
    assert seen == SEEN[name]


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_early_play_costs_more_than_64_over_lambda(name: str) -> None:
    """By enumeration of all plays and losses: u <= D <= 64/lambda; at the rate SAFE that holds for every plan."""
    policy, rng, seen = MATCHED.start(PROBLEMS[name], rng=3, interpreted=True), np.random.default_rng(1), []
    largest = 64.0 / MATCHED.design_for(PROBLEMS[name]).coverage
    for _ in range(60):
        plan = drawn(policy, rng, late=False)
        assert plan.largest == pytest.approx(largest)
        assert (plan.charged, plan.gamma <= SAFE) == (0.0, True)
        assert plan.largest_cost(plan.gamma) <= plan.cost_bound(plan.gamma) * (1 + 1e-6)
        assert plan.cost_bound(plan.gamma) <= largest * (1 + 1e-6)
        assert plan.cost_bound(SAFE) <= largest * (1 + 1e-9)
        seen.append(plan.cost_bound(plan.gamma) / largest)
    assert max(seen) > 0.1


@pytest.mark.parametrize("name", PROBLEMS)
def test_from_b_on_the_price_bounds_what_uncovered_plays_cost(name: str) -> None:
    """By enumeration, each play under the worse loss; a round pays no more than at the rate that covers all plays."""
    problem = PROBLEMS[name]
    policy, rng, priced = MATCHED.start(problem, rng=3, interpreted=True), np.random.default_rng(2), []
    covering = Covering.of(rarity=problem.rarity, coverage=MATCHED.design_for(problem).coverage, c=Matching.c)
    for _ in range(80):
        plan = drawn(policy, rng, late=True)
        assert plan.covering == pytest.approx(min(covering.curved / plan.beta**2, covering.linear / plan.beta))
        assert plan.gamma <= min(LATER / plan.t, plan.covering) * (1 + 1e-12) or plan.gamma == plan.covering
        assert plan.explored <= 2.0 * plan.covering * (1 + 1e-12)
        assert plan.covering <= 0.125 * (1 + 1e-12)
        assert plan.price(plan.covering) == 0.0
        cost = plan.mean_uncovered_cost(plan.gamma)
        assert cost <= plan.charged * (1 + 1e-9)
        if plan.charged > 0.0:
            priced.append(cost / plan.charged)
    assert max(priced, default=1.0) > 0.2


def test_leverages_are_spared_where_sigma_is_above_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """While beta < b, D is computed only where Sigma_t >= SAFE Sigma(e) fails."""
    computed: list[float] = []
    largest_cost = exploration_rate.largest_cost

    def counted(*given: Any) -> float:
        computed.append(largest_cost(*given))
        return computed[-1]

    monkeypatch.setattr(exploration_rate, "largest_cost", counted)
    policy, rng, spared = MATCHED.start(ONE_HOT, rng=3, interpreted=True), np.random.default_rng(3), 0
    for _ in range(40):
        computed.clear()
        plan = drawn(policy, rng, late=False)
        trial = plan.stated_rate().trial
        room = plan.above_floor(trial)
        if abs(room) > 1e-9:
            assert len(computed) == (room < 0.0)
            spared += room > 0.0
        for found in computed:
            assert found == pytest.approx(plan.cost_bound(trial), rel=1e-6)
    assert 5 < spared < 35


@pytest.mark.parametrize("name", PROBLEMS)
def test_packs_of_contexts_give_what_one_context_at_a_time_gives(name: str) -> None:
    """A policy has eight contexts at once, the last of them padding; a simulation has one."""
    policy, rng = MATCHED.start(PROBLEMS[name], rng=3), np.random.default_rng(4)
    machine = policy._machine
    for _ in range(25):
        plan, (state, work, _) = drawn(policy, rng), records(machine)
        if abs(plan.stated_rate().ratio - 1.0) < 1e-6:
            continue
        state.theta[...], state.t[0], state.remembered[0] = policy.state.theta, plan.t, plan.t - 1.0
        state.inverse_rate[0] = state.start_inverse_rate[0] = plan.beta
        assert machine.kernel.refresh(machine.known, machine.options, state, work) == 0
        assert state.rates[1] == pytest.approx(plan.gamma, rel=1e-12)
        assert state.price[0] == pytest.approx(plan.charged, rel=1e-6)
        assert state.pi == pytest.approx(policy.probabilities(), rel=1e-9)


def test_prices_are_the_same_interpreted_and_compiled() -> None:
    """Bit for bit, through early and late plans, with uncovered plays and without."""
    policies = [MATCHED.start(ONE_HOT, rng=3, interpreted=interpreted) for interpreted in (True, False)]
    means, rng, seen = coordinates(policies[0]) @ np.linspace(-0.05, 0.05, 9), np.random.default_rng(0), set()
    for n in range(120):
        if n % 6 == 0:
            state = rng.bit_generator.state
            for policy in policies:
                rng.bit_generator.state = state
                drawn(policy, rng)
        x, u = int(rng.integers(3)), 2.0 * rng.random() - 1.0
        seen.add(branch(Plan(policies[1])))
        for policy in policies:
            decision = policy.act(x)
            policy.update(decision, loss=1.0 if u < means[x, decision.arm] else -1.0)
        assert bits(policies[0]) == bits(policies[1])
    assert policies[0].digest == policies[1].digest
    assert seen >= {("early", "floor"), ("early", "safe"), ("late", "priced"), ("late", "nothing uncovered")}


def test_saved_policies_continue_with_the_same_bits() -> None:
    """Early and late, with uncovered plays: the plan after loading, and after the next feedback."""
    policy, rng, priced = MATCHED.start(ONE_HOT, rng=3), np.random.default_rng(5), 0
    for _ in range(30):
        drawn(policy, rng)
        policy.update(policy.act(int(rng.integers(3))), loss=float(rng.choice([-1.0, 1.0])))
        policy.save("policy.npz")
        again: Any = bw.load("policy.npz")
        assert again.probabilities().tobytes() == policy.probabilities().tobytes()
        assert bits(again) == bits(policy)
        priced += float(policy.state.price[0]) > 0.0
        for each in (policy, again):
            each.update(each.act(1), loss=0.5)
        assert bits(again) == bits(policy)
    assert priced > 2


def late_records(problem: bw.Problem, q: Any, *, gamma: float) -> tuple[Any, ...]:
    """Return machine, state and scratch space of a plan with q, and without predictions."""
    machine = MATCHED.machine(problem)
    state, work, _ = records(machine)
    state.q[...], state.roots[...] = q, np.sqrt(q)
    state.sigma[...] = np.einsum("x,xa,xai,xaj->ij", machine.known.g, q, machine.known.z, machine.known.z)
    assert invert_mixture(state.sigma, gamma, work.mixed, state.inverse)
    return machine, state, work


@pytest.mark.parametrize("predicted", [0.0, 1.0])
def test_prices_use_the_largest_residual_of_a_play(predicted: float) -> None:
    """Two arms of one context, by hand: a play is covered for residuals of 1 and not for those of 2."""
    problem = bw.Problem(features=np.eye(2)[None], probabilities=[1.0])
    machine, state, work = late_records(problem, np.array([[0.9, 0.1]]), gamma=0.1)
    z, pi = machine.known.z, 0.9 * state.q + 0.1 * machine.known.e
    work.rho[...] = predicted
    inverse, w = np.linalg.inv(np.einsum("xa,xai,xaj->ij", pi, z, z)), state.q[0] ** 1.5 / (state.q[0] ** 1.5).sum()
    steps = [(z[0] - w @ z[0]) @ (inverse @ z[0, a]) for a in range(2)]
    reach = [float(np.abs(step * state.roots[0]).max()) for step in steps]
    state.inverse_rate[0] = beta = 1.5 * max(reach) / Matching.c
    exploration_rate.largest_cost(machine.known, state, work)
    found = exploration_rate.price_of_plays(machine.known, machine.options, state, work, 0.1, 1e9)
    expected = [
        pi[0, a] * largest_cost(state.q[0], (1.0 + predicted) * steps[a], beta=beta, c=Matching.c)
        for a in range(2)
        if (1.0 + predicted) * reach[a] > Matching.c * beta
    ]
    assert len(expected) == (predicted > 0.0)
    assert found == pytest.approx(sum(expected))


def test_arms_that_are_not_offered_do_not_count() -> None:
    """The range of what a play moves is that of the arms with q > 0."""
    move = exploration_rate.PlayMove(0.0, 0.0, 0.0, 0.0, 0.0)
    for shift, q in ((0.5, 0.64), (-0.25, 0.36), (-90.0, 0.0)):
        move = exploration_rate.add_arm(move, shift, q, q**0.5)
    squares = 0.64**1.5 * 0.25 + 0.36**1.5 * 0.0625
    assert tuple(move) == pytest.approx((squares, 0.64 * 0.5 - 0.36 * 0.25, 0.5, -0.25, 0.4))
