"""The matched tuning: its rule by hand, its prices by enumeration, and the inequalities that its theorem rests on."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.kernels import worth
from bothworlds.theory import lemmas
from bothworlds.theory.bounds import matched
from bothworlds.theory.bounds.facts import facts_of
from bothworlds.theory.bounds.own import matched_rates
from bothworlds.theory.lemmas.matching import SHARE
from bothworlds.theory.schedules import Covering, Matching
from worlds import coordinates, play, random_problem

MATCHED = bw.LCTsallisINF(tuning="matched")
PLAIN = bw.LCTsallisINF(tuning=bw.Matched(recency=0.0))
constants = st.floats(0.02, 0.49)
seeds = st.integers(0, 10**6)


def drawn(seed: int, arms: int, c: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return q, from near uniform to near sure, losses whose centred steps are on the edge of c, and beta."""
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.full(arms, 10.0 ** rng.uniform(-2.0, 1.0)))
    q = q + 10.0 ** rng.uniform(-12.0, -2.0)
    q /= q.sum()
    beta = 10.0 ** rng.uniform(-1.0, 3.0)
    share = rng.uniform(-1.0, 1.0, size=arms) if rng.random() < 0.5 else rng.choice([-1.0, 1.0], size=arms)
    losses = share / np.sqrt(q)
    largest = np.abs(lemmas.centred(q, losses) * np.sqrt(q)).max()
    return q, losses * (c * beta / largest if largest > 0.0 else 0.0), beta


def entropy(q: np.ndarray) -> float:
    """Return h."""
    return float(lemmas.tsallis_entropy(q))


@given(seeds, st.integers(2, 12), constants)
def test_covered_steps_cost_at_most_what_is_computed(seed: int, arms: int, c: float) -> None:
    q, losses, beta = drawn(seed, arms, c * (1 - 1e-9))
    cost = lemmas.stability_cost(q, losses, beta=beta, c=c)
    assert lemmas.stability_value(q, losses, 1.0 / beta) <= cost * (1 + 1e-9) + 1e-9 * beta
    squares = (q**1.5 * lemmas.centred(q, losses) ** 2).sum()
    assert cost <= squares / ((1.0 - c) * beta) * (1 + 1e-9)
    assert squares <= min((q**1.5 * losses**2).sum(), (q**1.5 * (losses - losses[q.argmax()]) ** 2).sum()) * (1 + 1e-9)
    small = np.delete(q, q.argmax()).sum()
    assert squares <= lemmas.stability_factor(1e-9) * math.sqrt(small) * (q * losses**2).sum() * (1 + 1e-6)
    assert cost <= lemmas.stability_share(c) * beta * entropy(q) * (1 + 1e-9) + 1e-9 * beta


def test_steps_beyond_are_not_taken_for_covered() -> None:
    q, losses, beta = drawn(1, 4, 0.3)
    assert lemmas.stability_cost(q, 1.01 * losses, beta=beta, c=0.3) == math.inf


@given(seeds, st.integers(2, 12), st.floats(0.1, 1e3))
def test_the_linear_cost_bounds_stability_without_a_condition(seed: int, arms: int, c: float) -> None:
    q, losses, beta = drawn(seed, arms, c)
    for sign in (-1.0, 1.0):
        value = lemmas.stability_value(q, sign * losses, 1.0 / beta)
        assert value <= lemmas.linear_cost(q, losses) * (1 + 1e-9) + 1e-9 * beta
    widest = np.abs(lemmas.centred(q, losses) * np.sqrt(q)).max()
    assert lemmas.linear_cost(q, losses) >= 0.5 * widest * (
        1 - 1e-9
    )  # so that uncovered contexts cost c beta/2 or more


@given(seeds, st.integers(2, 30))
def test_centring_multiplies_steps_by_its_constant_at_most(seed: int, arms: int) -> None:
    q, losses, _ = drawn(seed, arms, 1.0)
    largest = np.abs(losses * np.sqrt(q)).max()
    assert np.abs(lemmas.centred(q, losses) * np.sqrt(q)).max() <= lemmas.centring(arms) * largest * (1 + 1e-9)


@pytest.mark.parametrize("arms", [2, 3, 10, 40])
def test_the_centring_constant_is_attained(arms: int) -> None:
    """By one arm of the probability p that makes it largest, the others equal, with losses of the other sign."""

    def centred_by(p: float) -> float:
        q = np.array([p] + [(1.0 - p) / (arms - 1)] * (arms - 1))
        losses = np.array([1.0] + [-1.0] * (arms - 1)) / np.sqrt(q)
        return float(np.abs(lemmas.centred(q, losses) * np.sqrt(q))[0])

    found = minimize_scalar(lambda p: -centred_by(p), bounds=(1e-9, 0.5), method="bounded", options={"xatol": 1e-12})
    assert lemmas.centring(arms) == pytest.approx(-found.fun, rel=1e-9)
    assert lemmas.centring(arms) >= -found.fun * (1 - 1e-12)


@given(seeds, st.integers(2, 12), constants)
def test_calm_contexts_cost_less_than_their_range(seed: int, arms: int, c: float) -> None:
    """So that the price of a play is at most rho times the mean range of d, covered or not."""
    q, losses, beta = drawn(seed, arms, c * (1 - 1e-9))
    squares = (q**1.5 * lemmas.centred(q, losses) ** 2).sum() / ((1.0 - c) * beta)
    assert squares <= (losses.max() - losses.min()) * (1 + 1e-9)
    assert lemmas.linear_cost(q, losses) <= (losses.max() - losses.min()) * (1 + 1e-9)


@given(seeds, st.integers(2, 12))
def test_entropy_and_the_roots_of_the_others(seed: int, arms: int) -> None:
    q, _, _ = drawn(seed, arms, 1.0)
    others = np.sqrt(np.delete(q, q.argmax())).sum()
    assert 2.0 * SHARE * others * (1 - 1e-9) - 1e-12 <= entropy(q) <= 2.0 * others * (1 + 1e-9) + 1e-12


def test_the_others_attain_their_share_of_entropy() -> None:
    """Two equal arms: so the constant of the inequality is the best there is."""
    assert entropy(np.array([0.5, 0.5])) == pytest.approx(2.0 * SHARE * math.sqrt(0.5))


@settings(max_examples=300)
@given(seeds, st.integers(2, 40), constants)
def test_entropy_cannot_jump(seed: int, arms: int, c: float) -> None:
    """After a covered step no root is more than 1/(1 - c) times, and entropy at most B(c) times, what it was."""
    q, losses, beta = drawn(seed, arms, c)
    p = bw.ftrl_point(1.0 / np.sqrt(q) + losses / beta)
    assert (np.sqrt(p) <= np.sqrt(q) / (1.0 - c) * (1 + 1e-6)).all()
    shift = (1.0 / np.sqrt(p) - 1.0 / np.sqrt(q) - lemmas.centred(q, losses) / beta).min()
    assert shift >= -1e-6 / np.sqrt(q.min())  # tau, the same for all arms
    assert entropy(p) <= lemmas.entropy_growth(c) * entropy(q) * (1 + 1e-9) + 1e-12


@given(seeds, st.integers(2, 20), st.floats(1.0, 20.0))
def test_bounded_losses_move_roots_by_a_bounded_factor(seed: int, arms: int, beta: float) -> None:
    q, _, _ = drawn(seed, arms, 1.0)
    losses = np.random.default_rng(seed).uniform(-1.0, 1.0, size=arms)
    ratio = np.sqrt(bw.ftrl_point(1.0 / np.sqrt(q) + losses / beta) / q)
    assert max(ratio.max(), 1.0 / ratio.min()) <= (1.0 + 2.0 / beta) * (1 + 1e-6)


@given(seeds, st.integers(2, 20), st.floats(1.0, 10.0))
def test_entropy_grows_no_faster_than_beta(seed: int, arms: int, factor: float) -> None:
    losses = 10.0 ** np.random.default_rng(seed).uniform(-3.0, 5.0, size=arms)
    points = [bw.ftrl_point(losses / f) for f in (1.0, factor)]
    before, after = (entropy(q) for q in points)
    assert before * (1 - 1e-9) - 1e-12 <= after <= factor * before * (1 + 1e-9) + 1e-12
    assert (np.sqrt(points[1]) <= factor * np.sqrt(points[0]) * (1 + 1e-6)).all()


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_what_is_due_raises_beta_and_its_cube(beta: float, due: float) -> None:
    """With due = (beta' - beta) (beta'/beta) h' and h' = 1: beta'^3 - beta^3 >= 3 beta^2 due."""
    after = 0.5 * beta * (1.0 + math.sqrt(1.0 + 4.0 * due / beta))
    assert (after - beta) * (after / beta) == pytest.approx(due, rel=1e-5)
    assert after**3 >= (beta**3 + 3.0 * beta**2 * due) * (1 - 1e-9)
    assert after <= (beta + math.sqrt(beta * due)) * (1 + 1e-9)
    assert due <= (after - beta) * (1.0 + math.sqrt(due / beta)) * (1 + 1e-5)


def test_entropy_does_jump_without_the_condition() -> None:
    q = np.array([1.0 - 1e-8, 1e-8])
    p = bw.ftrl_point(1.0 / np.sqrt(q) - np.array([0.0, 1e4]))
    assert entropy(p) > 1000 * entropy(q)


class Plan:
    """What a policy's plan says, and what follows from it by NumPy."""

    def __init__(self, policy: bw.Policy) -> None:
        state, problem = policy.state, policy.problem
        self.z, self.g, self.e = coordinates(policy), problem.probabilities, policy._machine.known.e
        self.q, self.m, self.beta = state.q.copy(), state.baseline.copy(), float(state.inverse_rate[0])
        self.gamma, self.paid = float(state.rates[1]), float(state.paid[0])
        weights = self.q**1.5
        self.centre = np.einsum("xa,xai->xi", weights, self.z) / weights.sum(axis=1)[:, None]

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
                calm = rho * np.abs(d * np.sqrt(row)).max() <= c * self.beta
                covered = covered and calm
                squares = rho**2 * (row**1.5 * d**2).sum() / ((1.0 - c) * self.beta)
                costs.append(squares if calm else rho * lemmas.linear_cost(row, d))
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
    """beta grows to the root of (beta - beta_t) (beta/beta_t) h = gain z + price P, h of the next plan at beta_t."""
    problem = random_problem(5, S=4, K=3, d=3)
    policy = PLAIN.start(problem, rng=3)
    z, g, H = coordinates(policy), problem.probabilities, 2.0 * (math.sqrt(3) - 1.0)
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
        next_point = np.array([bw.ftrl_point(row / plan.beta) for row in z @ (after.theta + after.baseline)])
        h = float(g @ lemmas.tsallis_entropy(next_point))
        covered = max(costs) < math.inf
        uncovered += not covered
        due = max(Matching.gain * (h / H) ** 2, Matching.least) * (g @ costs if covered else 0.0)
        due += Matching.price * plan.paid
        beta = after.inverse_rate[0]
        assert (beta - plan.beta) * (beta / plan.beta) * h == pytest.approx(due, rel=1e-6, abs=1e-9)
        assert (beta - plan.beta) * after.entropy[0] <= due * (1 + 1e-6) + 1e-9
        grown.append(beta / plan.beta)
    assert min(grown) >= 1.0
    assert 0 < uncovered < 100


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
    points = [bw.ftrl_point(row / plan.beta) for row in plan.z @ (after.theta + after.baseline)]
    h = float(plan.g @ lemmas.tsallis_entropy(np.array(points)))
    gain = max(Matching.gain * (h / (2.0 * (math.sqrt(3) - 1.0))) ** 2, Matching.least)
    due = 10 * Matching.price * plan.paid + gain * (plan.g @ costs)
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
    points = [bw.ftrl_point(row / plan.beta) for row in plan.z @ (policy.state.theta + policy.state.baseline)]
    h = float(plan.g @ lemmas.tsallis_entropy(np.array(points)))
    step = plan.z @ (policy.state.theta - theta - plan.m)
    costs = [lemmas.stability_cost(row, d, beta=plan.beta, c=Matching.c) for row, d in zip(plan.q, step, strict=True)]
    gain = max(Matching.gain * (h / (2.0 * (math.sqrt(3) - 1.0))) ** 2, Matching.least)
    due = Matching.price * plan.paid + (gain * (plan.g @ costs) if max(costs) < math.inf else 0.0)
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


def by_hand(**options: float) -> matched.MatchedRates:
    """K = 4 (H = 2), d = 2, L = 12, lambda = 0.3."""
    return matched.MatchedRates(
        n_arms=4, dimension=2, rarity=12.0, coverage=0.3, matching=Matching(**{"recency": 0.0, **options})
    )


def test_the_constants_of_the_theorem_by_hand() -> None:
    """The adversarial display, written out with gain = least = 1 and c = 1/4."""
    rates, T = by_hand(gain=1.0, least=1.0, price=0.5, c=0.25), np.array([1e8])
    assert rates.most_entropy == 2.0
    assert rates.first == pytest.approx(1.0)
    assert rates.variance == pytest.approx(4.0 * 2.0 / 0.75)
    u = 2.0 * lemmas.centring(4) ** 2 * 12.0 / (0.0625 * 0.3)
    assert rates.covering.curved == pytest.approx(u)
    assert rates.covering.dearest == pytest.approx(1.0 + 4.0 * math.sqrt(4.0 / 0.3))
    share = 0.0625 / 0.75 * (1.0 + math.sqrt(0.5))
    f = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * share))  # the same for all three: least_rate is 1/2, the weight 2
    assert rates.undecided_scale == pytest.approx(min(4.0 * (2.0 * f + share), 8.0 * f + 4.0 * share))
    X = rates.prices(T)[0]
    late = 3.0 * (2.0 / 1.5) ** (2 / 3) * (2.0 * u * 1e8) ** (1 / 3)
    assert rates.early_prices + late <= X <= rates.early_prices + 1.1 * late
    spent = math.sqrt(rates.variance * (1e8 + X) * 2.0 * (8.0 * f + 4.0 * share)) + 1.5 * X
    assert matched.adversarial(rates, T)[0] == pytest.approx(spent + 2.0)


def test_price_may_be_dear_where_covering_is_cheap() -> None:
    """The step in front of the first covered round is price/(H b), also above 1."""
    rates = by_hand(price=1e6)
    H, b, price = 2.0, rates.covered_from, 1e6
    late = 3.0 * ((1.0 + 3.0 * price / (H * b)) * H / (3.0 * price)) ** (2 / 3) * (b * b * 1e8) ** (1 / 3)
    assert rates.prices(np.array([1e8]))[0] == pytest.approx(rates.early_prices + late)


@given(st.floats(0.01, 10.0), st.floats(0.01, 10.0))
def test_the_rate_of_both_sums_is_the_least(gain: float, least: float) -> None:
    h = np.linspace(1e-6, 1.0, 20_001)
    g = np.maximum(gain * h**2, least)
    rate = matched.least_rate(Matching(gain=gain, least=least))
    assert rate <= (g / (h * (1.0 + g))).min() * (1 + 1e-12)
    assert rate == pytest.approx((g / (h * (1.0 + g))).min(), rel=1e-3)


@pytest.mark.parametrize("a", [0.0, 0.1, 0.2, 1.0, 3.0])
@pytest.mark.parametrize("power", [1.0, 2.0, 3.0])
def test_sums_of_powers_of_the_weights(a: float, power: float) -> None:
    t = np.arange(1.0, 3001.0)
    weights = np.concatenate([[1.0], np.cumprod((t[:-1] + a) / t[:-1])]) ** power
    bound = matched.weighted_rounds(t, a, power=power)
    assert (np.cumsum(weights) / weights <= bound * (1 + 1e-12)).all()
    assert bound[-1] == pytest.approx(np.cumsum(weights)[-1] / weights[-1], rel=0.01)


@given(seeds, st.floats(0.01, 3.0))
def test_sums_of_what_fades(seed: int, a: float) -> None:
    """Sums of z_t by a_t z_t, a_t the faded sum before; sums of growths of x_t by those of x_t^3."""
    rng = np.random.default_rng(seed)
    T = int(rng.integers(2, 200))
    z = rng.random(T) ** rng.uniform(0.1, 20.0) * (rng.random(T) < rng.random())
    F = a / np.arange(1.0, T)
    squares = cubes = sums = before = x = 0.0
    for t in range(1, T + 1):
        squares += 2.0 * before * z[t - 1] + z[t - 1] ** 2
        before = t / (t + a) * (before + z[t - 1])
        grown = np.cbrt(x**3 + z[t - 1])
        sums, cubes, x = sums + grown - x, cubes + z[t - 1], t / (t + a) * grown
    assert z.sum() <= math.sqrt((1.0 + F.sum() / 2.0) * squares) * (1 + 1e-9) + 1e-12
    assert sums <= (1.0 + F.sum() / math.sqrt(3.0)) ** (2 / 3) * np.cbrt(cubes) * (1 + 1e-9) + 1e-12
    assert F.sum() <= by_hand(recency=a).fades(np.array([float(T)]))[0]


@given(seeds, st.floats(0.0, 3.0))
def test_prices_of_rounds_in_which_the_cube_of_beta_doubles(seed: int, a: float) -> None:
    """At most 1/beta^2 each, beta in units of b, from 1 on; between them beta fades or grows."""
    rng = np.random.default_rng(seed)
    beta, total, F = rng.uniform(0.5, 1.5), 0.0, 0.0
    for t in range(1, 300):
        if beta >= 1.0 and rng.random() < 0.7:
            total += beta**-2.0
            beta *= 2.0 ** (1 / 3)
        beta = max(beta * t / (t + a), rng.uniform(0.5, 1.0))
        F += a / t
    assert total <= (1.0 + 2.0 * F) * matched.DOUBLING * (1 + 1e-9)


def test_fading_sums_by_parts() -> None:
    """For Psi = sqrt T the factor is 1 + 2a, for a constant 1 + a log T; the weighted sum has sqrt(1 + 2a) less."""
    T = np.array([1e3, 1e6, 1e9])
    grown = matched.faded(np.sqrt, T, 0.1) / np.sqrt(T)
    assert grown == pytest.approx(1.2, rel=0.03)
    assert (grown >= 1.2 * (1 - 1e-2)).all()
    flat = matched.faded(np.ones_like, T, 0.1)
    assert flat == pytest.approx(1.0 + 0.1 * (np.log(T / 0.1)), rel=0.03)
    late = np.array([1e14])
    plain, faded = by_hand(), by_hand(recency=0.1)
    assert matched.adversarial(faded, late) / matched.adversarial(plain, late) == pytest.approx(
        math.sqrt(1.2), rel=0.03
    )


@pytest.mark.parametrize(
    ("sizes", "rarity"), [((2, 3, 3), None), ((5, 4, 4), None), ((10, 5, 5), None), ((20, 10, 5), 100.0)]
)
def test_the_adversarial_bound_is_at_most_three_times_that_of_certified(
    sizes: tuple[int, int, int], rarity: float | None
) -> None:
    """2.55, 2.37, 2.25, 1.58 times, and 1.97, 1.77, 1.64, 1.02 times without fading; with gaps less at long last."""
    S, K, d = sizes
    instance = en.random_instance(contexts=S, arms=K, dimension=d, gap=0.3, rarity=rarity, seed=1)
    problem = instance.problem
    values = {bound.name: bound.value for bound in bw.bounds(problem, horizon=10**6)}
    known = matched_rates(facts_of(problem, horizon=1, gap=None, margin=None, corruption=None, design="joint-g"))
    plain = matched.MatchedRates(**{**vars(known), "matching": Matching(recency=0.0)})
    assert matched.adversarial(plain, np.array([1e6]))[0] <= 2.0 * values["LC-Tsallis-INF, certified"]
    assert values["LC-Tsallis-INF, matched"] <= 2.6 * values["LC-Tsallis-INF, certified"]  # with fading
    late = np.array([1e12, 1e15])
    gapped = [
        matched.self_bounding(rates, late, gap=0.3) / matched.adversarial(rates, late) for rates in (plain, known)
    ]
    assert gapped[0][0] <= 0.75 or S == 20
    assert max(found[1] for found in gapped) <= 0.5


@pytest.mark.parametrize("recency", [0.0, 0.5])
def test_the_inequality_of_optimistic_ftrl_holds_on_every_path(recency: float) -> None:
    """`diagnose` checks it for every context and arm; the account of the path is finite and not below the estimates."""
    instance = en.random_instance(contexts=3, arms=3, dimension=2, gap=0.3, seed=4)
    world = en.alternating(instance.problem, en.opposite(instance.theta), every=20)
    algorithm = bw.LCTsallisINF(tuning=bw.Matched(recency=recency))
    found = bw.diagnose(world, algorithm, horizon=300, checkpoints=20)
    assert (found.slack >= -1e-9 * (1.0 + found.bound)).all()
    assert (found.bound >= found.estimated_regret).all()


def test_the_regret_is_below_the_theorem() -> None:
    """In the mean, with 3 standard errors."""
    instance = en.random_instance(contexts=3, arms=3, dimension=2, gap=0.3, seed=4)
    world = en.stochastic(instance)
    run = bw.simulate(world, {"matched": MATCHED}, horizon=400, replications=200, rng=0, checkpoints=[400])["matched"]
    rates = matched_rates(
        facts_of(instance.problem, horizon=400, gap=None, margin=None, corruption=None, design="joint-g")
    )
    assert run.regret[-1] + 3.0 * run.standard_error[-1] <= matched.adversarial(rates, np.array([400.0]))[0]


def test_growth_of_the_theorem() -> None:
    """Square root of T at first; with a gap logarithmic in the end, and the square root of L where the paper has L."""
    rates = {}
    for rarity in (6.0, 600.0):
        problem = random_problem(1, S=5, K=4, d=3, rarity=rarity)
        stated = matched_rates(facts_of(problem, horizon=1, gap=None, margin=None, corruption=None, design="joint-g"))
        rates[rarity] = matched.MatchedRates(**{**vars(stated), "matching": Matching(recency=0.0), "sure": 0.0})
    T = np.array([1e30, 1e60, 1e120])
    late = matched.adversarial(rates[6.0], T)
    assert late[1:] / late[:-1] == pytest.approx(np.sqrt(T[1:] / T[:-1]), rel=0.05)
    known = matched.self_bounding(rates[6.0], T, gap=0.5)
    assert (known < late).all()
    assert known[1:] / known[:-1] == pytest.approx(2.0, rel=0.1)
    rare = matched.self_bounding(rates[600.0], T, gap=0.5)
    assert rare[-1] / known[-1] < 12.0  # about sqrt(100)
    corrupted = matched.self_bounding(rates[6.0], T, gap=0.5, corruption=1e15)
    assert (known < corrupted).all()
    assert (corrupted < late).all()
    assert matched.self_bounding(rates[6.0], T, gap=0.5, margin=1e6) == pytest.approx(known, rel=1e-3)
    faded = matched.MatchedRates(**{**vars(rates[6.0]), "matching": Matching()})
    longer = matched.self_bounding(faded, T, gap=0.5)
    assert (known < longer).all()
    assert (longer < known * (1.0 + 0.2 * (1.0 + np.log(T)))).all()
    rounded = matched.MatchedRates(**{**vars(rates[6.0]), "sure": 1e-13})
    assert matched.self_bounding(rounded, np.array([1e12]), gap=0.5) == pytest.approx(
        matched.self_bounding(rates[6.0], np.array([1e12]), gap=0.5)
    )
