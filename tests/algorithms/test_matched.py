"""The matched tuning: its rule by hand, and the inequalities that its theorem rests on."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import differential_evolution

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.theory import lemmas
from bothworlds.theory.bounds import matched
from bothworlds.theory.bounds.facts import facts_of
from bothworlds.theory.bounds.own import matched_rates
from bothworlds.theory.schedules import Schedule
from worlds import coordinates, play, random_problem

MATCHED = bw.LCTsallisINF(tuning="matched")
constants = st.floats(0.02, 0.49)
seeds = st.integers(0, 10**6)


def drawn(seed: int, arms: int, c: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return q, from near uniform to near sure, losses on the edge of eta |l| sqrt q <= c, and eta."""
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.full(arms, 10.0 ** rng.uniform(-2.0, 1.0)))
    q = (q + 10.0 ** rng.uniform(-12.0, -2.0)) / (q + 10.0 ** rng.uniform(-12.0, -2.0)).sum()
    q /= q.sum()
    eta = 10.0 ** rng.uniform(-3.0, 1.0)
    share = rng.uniform(-1.0, 1.0, size=arms) if rng.random() < 0.5 else rng.choice([-1.0, 1.0], size=arms)
    return q, share * c / (eta * np.sqrt(q)), eta


@given(seeds, st.integers(2, 12), constants)
def test_the_spread_bounds_stability(seed: int, arms: int, c: float) -> None:
    q, losses, eta = drawn(seed, arms, c)
    value = lemmas.spread(q, losses, limit=c / eta)
    assert lemmas.stability_value(q, losses, eta) <= eta * value / (1.0 - 2.0 * c) * (1 + 1e-9) + 1e-12 / eta
    unshifted = (q**1.5 * losses**2).sum()
    shifted = (q**1.5 * (losses - losses[q.argmax()]) ** 2).sum()
    assert value <= min(unshifted, shifted) * (1 + 1e-12)
    small = np.delete(q, q.argmax()).sum()
    assert value <= lemmas.stability_factor(1e-9) * math.sqrt(small) * (q * losses**2).sum() * (1 + 1e-9)


@given(seeds, st.integers(2, 12), constants)
def test_spread_and_others_are_bounded_by_entropy(seed: int, arms: int, c: float) -> None:
    q, losses, eta = drawn(seed, arms, c)
    entropy = float(lemmas.tsallis_entropy(q))
    others = np.sqrt(np.delete(q, q.argmax())).sum()
    assert entropy >= 2.0 / (1.0 + math.sqrt(0.5)) * others * (1 - 1e-9) - 1e-12
    assert (
        lemmas.spread(q, losses, limit=c / eta) <= lemmas.spread_bound(entropy, eta, c=c) * (1 + 1e-9) + 1e-12 / eta**2
    )
    assert lemmas.spread_bound(entropy, eta, c=c) < entropy / eta**2


def test_the_others_attain_their_share_of_entropy() -> None:
    """Two equal arms: so the constant of the inequality is the best there is."""
    q = np.array([0.5, 0.5])
    assert lemmas.tsallis_entropy(q) == pytest.approx(2.0 / (1.0 + math.sqrt(0.5)) * math.sqrt(0.5))


@settings(max_examples=300)
@given(seeds, st.integers(2, 40), constants, st.floats(1.0, 2.0))
def test_entropy_cannot_jump(seed: int, arms: int, c: float, growth: float) -> None:
    """The next point, with a smaller rate: its entropy is at most B(c) times that before."""
    q, losses, eta = drawn(seed, arms, c)
    p = bw.ftrl_point((1.0 / np.sqrt(q) + eta * losses) / growth)
    before, after = (float(lemmas.tsallis_entropy(one)) for one in (q, p))
    assert after <= lemmas.entropy_growth(c) * before * (1 + 1e-9) + 1e-12


def test_entropy_does_jump_without_the_condition() -> None:
    q = np.array([1.0 - 1e-8, 1e-8])
    p = bw.ftrl_point(1.0 / np.sqrt(q) - np.array([0.0, 1e4]))
    assert lemmas.tsallis_entropy(p) > 1000 * lemmas.tsallis_entropy(q)


def test_the_rule_by_hand() -> None:
    """1/eta grows by (eta V + 2 gamma)/h, never falls, and is stepped up where gamma = 1/2 would not be enough."""
    problem = random_problem(5, S=4, K=3, d=3)
    policy = MATCHED.start(problem, rng=3)
    z, g = coordinates(policy), problem.probabilities
    rng = np.random.default_rng(0)
    steps = []
    for _ in range(200):
        q, (eta, gamma) = policy.state.q.copy(), policy.state.rates.copy()
        made = policy.act(int(rng.choice(4, p=g)))
        loss = float(rng.uniform(-1, 1))
        estimates = loss * z @ made.direction
        spread = g @ [lemmas.spread(row, losses, limit=0.4 / eta) for row, losses in zip(q, estimates, strict=True)]
        growth = (eta * spread + 2.0 * gamma) / (g @ lemmas.tsallis_entropy(q))
        policy.update(made, loss=loss)
        steps.append(1.0 / policy.state.rates[0] / (1.0 / eta + min(growth, 1.0 / eta)))
    stepped = np.array(steps) > 1.0 + 1e-9
    assert np.array(steps)[~stepped] == pytest.approx(1.0, rel=1e-9)
    powers = np.log(np.array(steps)[stepped]) / math.log(1.25)
    assert (powers > 0.0).all()
    assert (~stepped).sum() > 0


def test_the_shift_of_the_estimates_is_limited() -> None:
    """Ten answers at once, all 1: the best shift of their sum is beyond c/(eta max r) in every context.

    V by brute force over the shifts allowed, then 1/eta from V; without the limit V would be 6 in place of 48.
    """
    problem = random_problem(5, S=4, K=3, d=3)
    policy = MATCHED.start(problem, rng=3)
    play(policy, 50)
    z, g = coordinates(policy), problem.probabilities
    q, (eta, gamma) = policy.state.q.copy(), policy.state.rates.copy()
    made = policy.act(np.random.default_rng(0).choice(4, size=10, p=g))
    total = sum(one.direction for one in made)
    spread = 0.0
    for x in range(4):
        most, losses = 0.4 / (eta * math.sqrt(q[x].max())), z[x] @ total
        shifts = np.linspace(-most, most, 20_001)[:, None]
        costs = (q[x] ** 1.5 * (losses - shifts) ** 2).sum(axis=1)
        assert costs.argmin() in (0, 20_000)
        spread += g[x] * costs.min()
    growth = (eta * spread + 10 * 2.0 * gamma) / (g @ (2.0 * (np.sqrt(q).sum(axis=1) - 1.0)))
    assert growth < 1.0 / eta
    policy.update(made, loss=np.ones(10))
    assert 1.0 / policy.state.rates[0] == pytest.approx(1.0 / eta + growth, rel=1e-9)


def by_hand() -> matched.MatchedRates:
    """K = 4 (H = 2), d = 2, L = 12, c = 0.4, u = 9, a first rate of 1 and a cap of 1/8."""
    rules = Schedule(gain=1.0, cap=0.125, linear=math.inf, power_scale=9.0, power=2.0)
    return matched.MatchedRates(schedule=rules, n_arms=4, dimension=2, rarity=12.0, c=0.4)


def test_the_constants_of_the_theorem_by_hand() -> None:
    """Each display of the theorem with numbers that come out even."""
    rates, T = by_hand(), np.array([1e6])
    assert rates.most_entropy == 2.0
    assert rates.first_cost == 2.0 * 8.0
    # sqrt(16 H d T) = sqrt(64e6) and 24 (H/6)^(2/3) (u T)^(1/3) = 24 (9e6/9)^(1/3)
    assert rates.undecided(T)[0] == pytest.approx(8000.0 + 2400.0)
    # sqrt(2u)/beta_1 = 4.24 doubles three times; k = 1/(1 + sqrt(1/2)) and 1 - 2 c^2/k = 0.4537
    assert rates.doublings == pytest.approx((3 + 4 / 3) / (1 - 0.32 * (1 + math.sqrt(0.5))))
    # 1/(1 - 2c) = 5 and B(0.4) = 11.5
    assert rates.factor == pytest.approx(16.5, abs=0.05)
    # J = 20 classes, F = 4 f 2 sqrt(3 12) = 48 f, and f = 1.4656, for omega = 0.3177 solves omega = (1 - omega)^3
    omega = 0.31767219617198067
    assert (1.0 - omega) ** 3 == pytest.approx(omega)
    stability = 4.0 * math.sqrt(20 * 48 / (1.0 - omega) * 1000.0)
    explored = 24.0 * (4 / 36 * 4 * 400 * 9 * 3 * 1000.0) ** (1 / 3)
    rest = 8.0 + 24.0
    assert rates.decided(T, np.array([1000.0]))[0] == pytest.approx(stability + explored + rest, rel=1e-6)
    assert matched.adversarial(rates, T)[0] == pytest.approx(rates.factor * (rates.doublings + 10_400.0) + 16.0)


@pytest.mark.parametrize("c", [0.02, 0.125, 0.4, 0.49])
def test_entropy_growth_is_the_least_value_of_its_formula(c: float) -> None:
    """B(c) by a search of scipy, from docs/theory.md, step 3; a grid of 200 x 200 is within half a percent of it."""

    def larger_of_two(at: np.ndarray) -> float:
        u, m = at
        few = 2.0 / (1.0 - c - u) + math.sqrt(m) / (1.0 - m)
        return float(max(few, math.sqrt(2.0) * c / (u * m**1.5)) * (1.0 + math.sqrt(0.5)))

    box = [(1e-6, 1.0 - c - 1e-6), (1e-6, 1.0 - 1e-6)]
    least = differential_evolution(larger_of_two, box, seed=1, tol=1e-10).fun
    assert least * (1 - 1e-9) <= lemmas.entropy_growth(c) <= 1.02 * least


def test_the_first_rate_is_as_large_as_half_exploration_allows() -> None:
    problem = random_problem(5, S=4, K=3, d=3)
    policy = MATCHED.start(problem, rng=3)
    eta, z, q, g = policy.state.rates[0], coordinates(policy), policy.state.q, problem.probabilities
    sigma = 0.5 * np.einsum("x,xa,xai,xaj->ij", g, q, z, z) + 0.5 * np.eye(3)
    leverage = np.einsum("xai,ij,xaj->xa", z, np.linalg.inv(sigma), z)
    largest = 0.4 / math.sqrt((q * leverage).max() * leverage.max())
    assert eta <= largest < eta * 1.25  # q_1 is uniform whatever eta is
    steps = math.log(1.0 / eta / (math.sqrt(3) * 3**-0.25)) / math.log(1.25)  # from sqrt(d) K^(-1/4), by a quarter each
    assert steps == pytest.approx(7.0, abs=1e-9)


def test_a_plan_that_is_sure_but_for_rounding() -> None:
    """Its entropy counts as 1e-13; the rate falls by halves at most, and nothing overflows."""
    policy = MATCHED.start(random_problem(5, S=4, K=3, d=3), rng=3)
    policy.state.theta[...] = 1e20
    policy._refresh()
    assert 0.0 <= policy.state.entropy[0] < 1e-13
    rates = [float(policy.state.rates[0])]
    for _ in range(2000):
        policy.update(policy.act(0), loss=0.5)
        rates.append(float(policy.state.rates[0]))
    steps = np.array(rates[1:]) / np.array(rates[:-1])
    assert (steps >= 0.5 * (1 - 1e-12)).all()
    assert (steps <= 1.0).all()
    assert rates[-1] > 0.0


def test_what_it_does_not_do_is_refused() -> None:
    with pytest.raises(ValueError, match="alpha = 1/2"):
        bw.LCTsallisINF(tuning="matched", alpha=0.7)
    with pytest.raises(ValueError, match="below 1/2"):
        bw.Matched(c=0.5)
    with pytest.raises(ValueError, match="exact leverages"):
        bw.LCTsallisINF(tuning="matched", covariance=bw.MGR())
    with pytest.raises(ValueError, match="no schedule"):
        MATCHED.forecast(random_problem(), horizon=10)


def test_the_regret_is_below_the_theorem_and_below_what_the_path_says() -> None:
    """In the mean, with 3 standard errors; and the sum that the theorem bounds is the one that the rule matches."""
    instance = en.random_instance(contexts=3, arms=3, dimension=2, gap=0.3, seed=4)
    world = en.stochastic(instance)
    found = [bw.diagnose(world, MATCHED, horizon=400, replication=i, checkpoints=[400]) for i in range(12)]
    bound = np.array([one.bound[-1] for one in found])
    run = bw.simulate(world, {"matched": MATCHED}, horizon=400, replications=200, rng=0, checkpoints=[400])["matched"]
    regret = run.regret[-1] + 3.0 * run.standard_error[-1]
    assert regret <= bound.mean() - 3.0 * bound.std(ddof=1) / math.sqrt(12)  # 26 and 70
    rates = matched_rates(
        facts_of(instance.problem, horizon=400, gap=None, margin=None, corruption=None, design="joint-g")
    )
    assert bound.max() <= matched.adversarial(rates, np.array([400.0]))[0]


def test_growth_of_the_theorem() -> None:
    """Square root of T at first; with a gap logarithmic in the end, and the square root of L where the paper has L."""
    rates = {}
    for rarity in (6.0, 600.0):
        problem = random_problem(1, S=5, K=4, d=3, rarity=rarity)
        rates[rarity] = matched_rates(
            facts_of(problem, horizon=1, gap=None, margin=None, corruption=None, design="joint-g")
        )
    T = np.array([1e24, 1e48, 1e96])
    late = matched.adversarial(rates[6.0], T)
    assert late[1:] / late[:-1] == pytest.approx(np.sqrt(T[1:] / T[:-1]), rel=0.05)
    known = matched.self_bounding(rates[6.0], T, gap=0.5)
    assert (known < late).all()
    assert known[1:] / known[:-1] == pytest.approx(2.0, rel=0.1)
    rare = matched.self_bounding(rates[600.0], T, gap=0.5)
    assert rare[-1] / known[-1] < 12.0  # about sqrt(100)
    corrupted = matched.self_bounding(rates[6.0], T, gap=0.5, corruption=1e12)
    assert (known < corrupted).all()
    assert (corrupted < late).all()
    assert matched.self_bounding(rates[6.0], T, gap=0.5, margin=1e6) == pytest.approx(known, rel=1e-3)
