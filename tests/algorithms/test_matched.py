"""The matched tuning: its rule by hand, its prices by enumeration, and the inequalities that its theorem rests on."""

import math

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.kernels import worth
from bothworlds.theory import lemmas
from bothworlds.theory.schedules import Covering, Matching
from worlds import coordinates, play, random_problem

MATCHED = bw.LCTsallisINF(tuning="matched")
PLAIN = bw.LCTsallisINF(tuning=bw.Matched(recency=0.0))


class Plan:
    """What a policy's plan says, and what follows from it by NumPy."""

    def __init__(self, policy: bw.Policy) -> None:
        state, problem = policy.state, policy.problem
        self.z, self.g, self.e = coordinates(policy), problem.probabilities, policy._machine.known.e
        self.q, self.m, self.beta = state.q.copy(), state.baseline.copy(), float(state.inverse_rate[0])
        self.gamma, self.paid = float(state.rates[1]), float(state.paid[0])
        self.share = Matching.price * min(self.beta / policy._machine.options.covered, 1.0)
        self.h = float(self.g @ lemmas.tsallis_entropy(self.q))
        weights = self.q**1.5
        self.centre = np.einsum("xa,xai->xi", weights, self.z) / weights.sum(axis=1)[:, None]

    def due(self, policy: bw.Policy, stability: float, *, answers: int = 1) -> tuple[float, float]:
        """Return h of the policy's next plan at the rate of this one, and what its penalty may be."""
        m, H, d = policy.state.baseline, 2.0 * (math.sqrt(self.q.shape[1]) - 1.0), policy.problem.dimension
        losses = self.z @ (policy.state.theta + m)
        points = np.array([bw.ftrl_point(row / self.beta) for row in losses])
        h = float(self.g @ lemmas.tsallis_entropy(points))
        variance = float(self.g @ (points * (1.0 - (self.z @ m) ** 2)).sum(axis=1))
        doubt = (min(h, self.h) / H) ** 8 * variance**4 * math.sqrt(min(1.0, policy.state.t[0] / (400.0 * d)))
        gain = max(Matching.gain * (h / H) ** 2, Matching.least)
        return h, gain * stability + answers * (Matching.caution * d * doubt / self.beta + self.share * self.paid)

    def price(self, gamma: float, *, c: float) -> float:
        """Return 2 gamma and what plays that are not covered cost, one pair after the other."""
        pi = (1.0 - gamma) * self.q + gamma * self.e
        inverse = np.linalg.inv(np.einsum("x,xa,xai,xaj->ij", self.g, pi, self.z, self.z))
        total = 2.0 * gamma
        for x, a in np.ndindex(*self.q.shape):
            direction = inverse @ self.z[x, a]
            rho = 1.0 + abs(self.z[x, a] @ self.m)
            costs, covered = [], True
            for row, features, centre in zip(self.q, self.z, self.centre, strict=True):
                d = (features - centre) @ direction
                covered = covered and rho * np.abs(d * np.sqrt(row)).max() <= c * self.beta
                costs.append(lemmas.largest_cost(row, rho * d, beta=self.beta, c=c))
            total += 0.0 if covered else self.g[x] * pi[x, a] * float(self.g @ costs)
        return total


def test_the_price_is_that_of_enumeration_and_never_above_what_is_known() -> None:
    """At every plan of a path: the price paid is that of gamma_t, and at most that of the covering rate."""
    problem = random_problem(5, S=4, K=3, d=3, rarity=30.0)
    policy = MATCHED.start(problem, rng=3)
    coverage = MATCHED.design_for(problem).coverage
    covering = Covering.of(
        n_arms=3, dimension=problem.dimension, rarity=problem.rarity, coverage=coverage, c=Matching.c
    )
    seen = set()
    for _ in range(60):
        plan = Plan(policy)
        rate = min(covering.curved / plan.beta**2, covering.linear / plan.beta)
        if rate <= 0.5:
            assert plan.price(rate, c=Matching.c) == pytest.approx(2.0 * rate)
        assert plan.price(0.5, c=Matching.c) <= covering.dearest
        assert plan.paid <= (2.0 * rate if rate <= 0.5 else covering.dearest) * (1 + 1e-9)
        assert plan.paid == pytest.approx(plan.price(plan.gamma, c=Matching.c), rel=1e-6)
        seen.add((plan.gamma > 0.0, plan.paid > 2.0 * plan.gamma))
        play(policy, 5)
    assert (True, True) in seen  # some exploration, and some plays that it does not cover


def test_a_price_that_jumps_is_looked_at_at_once() -> None:
    """While the search rests, a price above four times what it was is at most that of a leap, where that is less."""
    problem = random_problem(6, S=6, K=3, d=4, rarity=60.0)
    policy, rng, cheaper = MATCHED.start(problem, rng=3), np.random.default_rng(0), 0
    means = problem.features @ np.random.default_rng(6).normal(size=4)
    means /= np.abs(means).max()
    for t in range(700):
        decision = policy.act(int(rng.choice(6, p=problem.probabilities)))
        mean = means[decision.context, decision.arm]
        policy.update(decision, loss=1.0 if rng.random() < (1.0 + mean) / 2.0 else -1.0)
        state, plan = policy.state, Plan(policy)
        if t < 100 or state.rest[0] < 1.0:
            continue
        held = plan.price(float(state.start_rate[0]), c=Matching.c)
        if held > worth.JUMP * state.level[0]:
            leap = plan.price(min(held / 4.0, 0.5), c=Matching.c)
            assert plan.paid <= min(held, leap) * (1 + 1e-6)
            cheaper += leap < held
    assert cheaper > 5


def test_beyond_many_plays_the_price_is_never_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leverages alone charge at least as much as pairs."""
    problem = random_problem(5, S=4, K=3, d=3)
    policy = MATCHED.start(problem, rng=3, interpreted=True)
    monkeypatch.setattr(worth, "MOST_PLAYS", 0)
    for _ in range(10):
        play(policy, 3)
        plan = Plan(policy)
        assert plan.paid >= plan.price(plan.gamma, c=Matching.c) * (1 - 1e-9)


def test_the_rule_by_hand() -> None:
    """beta grows to the root of (beta - beta_t) (beta/beta_t) h = what is due, h of the next plan at beta_t."""
    problem = random_problem(5, S=4, K=3, d=3)
    policy = PLAIN.start(problem, rng=3)
    z, g = coordinates(policy), problem.probabilities
    rng = np.random.default_rng(0)
    grown, uncovered = [], 0
    for _ in range(200):
        plan, theta = Plan(policy), policy.state.theta.copy()
        made = policy.act(int(rng.choice(4, p=g)))
        loss = float(rng.uniform(-1, 1))
        assert made.baseline == pytest.approx(plan.m)
        step = made.direction * (loss - z[made.context, made.arm] @ plan.m)
        costs = [
            lemmas.stability_cost(row, losses, beta=plan.beta, c=Matching.c)
            for row, losses in zip(plan.q, z @ step, strict=True)
        ]
        policy.update(made, loss=loss)
        after = policy.state
        assert after.theta == pytest.approx(theta + plan.m + step)
        covered = max(costs) < math.inf
        uncovered += not covered
        h, due = plan.due(policy, float(g @ costs) if covered else 0.0)
        beta = after.inverse_rate[0]
        assert (beta - plan.beta) * (beta / plan.beta) * h == pytest.approx(due, rel=1e-6, abs=1e-9)
        assert (beta - plan.beta) * after.entropy[0] <= due * (1 + 1e-6) + 1e-9
        grown.append(beta / plan.beta)
    assert min(grown) >= 1.0
    assert 0 < uncovered < 100


def test_prices_count_in_full_from_b_on() -> None:
    """b is where the covering rate costs 1; below, the share is in proportion to beta, that of the next plan's rule."""
    problem = random_problem(5, S=4, K=3, d=3)
    covering = Covering.of(
        n_arms=3,
        dimension=problem.dimension,
        rarity=problem.rarity,
        coverage=PLAIN.design_for(problem).coverage,
        c=Matching.c,
    )
    policy = PLAIN.start(problem, rng=3)
    b = policy._machine.options.covered
    assert 2.0 * covering.curved / b**2 == pytest.approx(1.0)
    for beta, share in ((0.25 * b, 0.25), (b, 1.0), (3.0 * b, 1.0)):
        policy.state.inverse_rate[0] = beta
        assert Plan(policy).share == pytest.approx(share * Matching.price)


def test_fading_is_a_smaller_weight_of_what_was_before() -> None:
    """Theta and beta are multiplied by t/(t + recency) with every update, beta never below its first."""
    problem = random_problem(5, S=4, K=3, d=3)
    policy = bw.LCTsallisINF(tuning=bw.Matched(recency=2.0)).start(problem, rng=3)
    first = float(policy.state.inverse_rate[0])
    for t in range(1, 30):
        theta, plan = policy.state.theta.copy(), Plan(policy)
        made = policy.act(0)
        residual = 0.25 - plan.z[0, made.arm] @ plan.m
        policy.update(made, loss=0.25)
        expected = t / (t + 2.0) * (theta + plan.m + residual * made.direction)
        assert policy.state.theta == pytest.approx(expected)
        assert policy.state.inverse_rate[0] >= max(first, t / (t + 2.0) * plan.beta) * (1 - 1e-12)


@pytest.mark.parametrize(("rounds", "loss", "calm"), [(0, 1.0, False), (2000, 0.1, True)])
def test_batches_are_one_step_and_pay_for_every_decision(rounds: int, loss: float, calm: bool) -> None:
    """The plan foresaw one prediction. A sum that is not covered is no part of the price, and paid when it is made."""
    problem = random_problem(5, S=4, K=3, d=3)
    policy = PLAIN.start(problem, rng=3)
    play(policy, rounds)
    plan, theta = Plan(policy), policy.state.theta.copy()
    made = policy.act(np.random.default_rng(0).choice(4, size=10, p=problem.probabilities))
    policy.update(made, loss=np.full(10, loss))
    after = policy.state
    step = plan.z @ (after.theta - theta - plan.m)
    surprises = sum(one.direction * (loss - plan.z[one.context, one.arm] @ plan.m) for one in made)
    assert step == pytest.approx(plan.z @ (surprises + 9 * plan.m), abs=1e-8)
    covered = [lemmas.stability_cost(row, d, beta=plan.beta, c=Matching.c) for row, d in zip(plan.q, step, strict=True)]
    falls = (plan.q * step).sum(axis=1) - step.min(axis=1)
    costs = np.where(np.isfinite(covered), covered, falls)
    assert np.isfinite(covered).all() == calm
    values = [lemmas.stability_value(row, d, 1.0 / plan.beta) for row, d in zip(plan.q, step, strict=True)]
    assert (np.array(values) <= costs * (1 + 1e-9)).all()
    h, due = plan.due(policy, float(plan.g @ costs), answers=10)
    beta = after.inverse_rate[0]
    assert (beta - plan.beta) * (beta / plan.beta) * h == pytest.approx(due, rel=1e-6)


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
    step = plan.z @ (policy.state.theta - theta - plan.m)
    costs = [lemmas.stability_cost(row, d, beta=plan.beta, c=Matching.c) for row, d in zip(plan.q, step, strict=True)]
    h, due = plan.due(policy, float(plan.g @ costs) if max(costs) < math.inf else 0.0)
    beta = policy.state.inverse_rate[0]
    assert (beta - plan.beta) * (beta / plan.beta) * h == pytest.approx(due, rel=1e-6)


def test_a_plan_that_is_sure_but_for_rounding() -> None:
    """Its entropy counts as 1e-13, and nothing overflows."""
    policy = PLAIN.start(random_problem(5, S=4, K=3, d=3), rng=3)
    policy.state.theta[...] = 1e20
    policy._mind.refresh()
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
