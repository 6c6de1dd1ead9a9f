"""Regret bounds: sums against exact sums, optimisation against brute force, and growth."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bothworlds as bw
from bothworlds.theory.bounds import shannon, tsallis
from bothworlds.theory.bounds.facts import facts_of
from bothworlds.theory.bounds.paper import tsallis_rates
from bothworlds.theory.bounds.shannon import ShannonRates
from bothworlds.theory.bounds.tsallis import TsallisRates
from bothworlds.theory.lemmas import margin_value, stability_factor
from support.problems import random_problem

NOTHING = {"gap": None, "margin": None, "corruption": None, "design": "joint-g"}
ALGORITHMS = {
    "paper": bw.LCTsallisINF(tuning="paper"),
    "certified": bw.LCTsallisINF(tuning="certified"),
    "paper, any support": bw.LCTsallisINF(tuning=bw.Paper(finite_support=False)),
}


def rates_of(problem: bw.Problem, tuning: str = "paper") -> TsallisRates:
    return tsallis_rates(facts_of(problem, horizon=1, **NOTHING), tuning)  # type: ignore[arg-type]


@pytest.mark.parametrize("tuning", list(ALGORITHMS))
@pytest.mark.parametrize("rarity", [6.0, 300.0])
def test_constants_bound_the_algorithms_own_rates(tuning: str, rarity: float) -> None:
    """beta(t) and kappa_T against the schedule of the algorithm itself, round by round."""
    problem = random_problem(1, S=5, K=4, d=3, rarity=rarity)
    algorithm, rates = ALGORITHMS[tuning], rates_of(problem, tuning)
    schedule = algorithm.schedule_for(problem, algorithm.design_for(problem))
    assert rates.schedule == schedule
    T = int(max(2_000, 1.5 * rates.t0)) if rates.t0 < 50_000 else 2_000
    eta = np.array([schedule.learning_rate(t) for t in range(1, T + 1)])
    gamma = np.array([schedule.exploration_rate(t) for t in range(1, T + 1)])
    growth = np.diff(1.0 / eta, prepend=1.0 / eta[0])
    exact = stability_factor(rates.c) * 3 * eta / (1.0 - gamma) + 2.0 * math.sqrt(3.0) * growth
    weight = rates.weight(np.arange(1.0, T + 1.0))
    assert (exact <= weight * (1 + 1e-9)).all()
    assert (np.diff(weight) <= 1e-15).all()
    kappa = 2.0 * (math.sqrt(4) - 1.0) / eta[0] + 2.0 * gamma.sum()
    assert kappa <= rates.kappa(np.array([float(T)]))[0] * (1 + 1e-12) <= kappa * 1.01 * (1 + 1e-12)


@settings(max_examples=25)  # each computes a design
@given(st.integers(0, 1000), st.integers(2, 6), st.integers(1, 5), st.floats(5.0, 500.0), st.integers(1, 12))
def test_bounds_are_below_the_closed_forms_of_the_papers_proof(
    seed: int, K: int, d: int, rarity: float, digits: int
) -> None:
    """Theorems 4.2 and 4.4 in closed form, with 16/3 for stability, 1 for the penalty and 2 sum gamma."""
    problem = random_problem(seed, S=4, K=K, d=d, rarity=rarity)
    rates, T = rates_of(problem), float(10**digits)
    lam = bw.design(problem).coverage
    G, L = math.sqrt(d * math.sqrt(K)), problem.rarity
    t0 = 256 * math.sqrt(K) * L / (d * lam)
    assert rates.t0 == pytest.approx(t0)
    explored = t0 * (1.0 + math.log(T / t0)) if t0 < T else T
    kappa = 32.0 * (math.sqrt(K) - 1.0) * math.sqrt(L / lam) + explored
    horizon = np.array([T])
    slack = 1.006  # blocks of half a percent
    assert rates.kappa(horizon)[0] <= kappa * slack
    adversarial = tsallis.adversarial(rates, horizon)[0]
    assert adversarial <= (38.0 / 3.0 * G * math.sqrt(T) + kappa) * slack
    gap, C = 0.4, 50.0
    V = L / (2 * gap) * (19.0 / 3.0 * G) ** 2 * (1.0 + max(0.0, math.log(T / t0)))
    value = tsallis.self_bounding(rates, horizon, gap=gap, corruption=C)[0]
    assert value <= (2 * V + kappa + 2 * math.sqrt(V * (V + kappa + C))) * slack
    assert value <= (2 * L * (22.0 / 3.0 * G) ** 2 * (1.0 + math.log(T)) / gap + 2 * kappa + C) * slack
    assert value <= adversarial


@given(st.integers(0, 10**6), st.sampled_from([0.5, 1.0, 3.0, math.inf]), st.sampled_from([0.0, 30.0]))
def test_no_path_of_omegas_that_the_margin_allows_exceeds_the_bound(seed: int, margin: float, C: float) -> None:
    """For any E omega_t = y_t that the lower bound does not exclude, the upper bound is below ours."""
    rng = np.random.default_rng(seed)
    rates = rates_of(random_problem(seed % 7, S=1 + seed % 2, K=2, d=1), "certified")
    T, gap = 4000, 1.8
    t = np.arange(1.0, T + 1.0)
    weight, kappa = rates.weight(t), rates.kappa(t[-1:])[0]
    bound = tsallis.self_bounding(rates, t[-1:], gap=gap, margin=margin, corruption=C)[0]
    for _ in range(20):
        y = 0.5 * np.minimum(1.0, 10.0 ** rng.uniform(-4, 0.5) * t ** -rng.uniform(0.0, 1.2))
        upper = float((weight * np.sqrt(y)).sum()) + kappa
        lower = 0.5 * gap * float(margin_value(y / rates.rarity, margin).sum()) - C
        if lower <= upper:
            assert upper <= bound * (1 + 1e-9)


@pytest.mark.parametrize("margin", [0.3, 1.0, 4.0, math.inf])
@pytest.mark.parametrize("rarity", [1.0, 2.0, 50.0])
def test_the_power_law_is_below_the_margin_function(margin: float, rarity: float) -> None:
    power, strength = tsallis._lower_bound(rarity, 0.6, margin)
    y = np.linspace(0.0, 1.0, 1001)
    exact = 0.3 * margin_value(y / rarity, margin)
    assert (strength * y**power <= exact * (1 + 1e-12)).all()
    if rarity >= 2.0:  # equality
        assert strength * y**power == pytest.approx(exact)


@pytest.mark.parametrize(("margin", "corruption"), [(1.0, 0.0), (math.inf, 0.0), (math.inf, 2000.0)])
def test_the_bound_is_nearly_attained(margin: float, corruption: float) -> None:
    """The best y_t comes within 2 % of the bound, so nu and the blocks lose little."""
    rates = TsallisRates(
        schedule=rates_of(random_problem(1, S=2, K=2, d=1)).schedule, n_arms=2, dimension=1, rarity=2.0, c=0.125
    )
    gap, T = 1.9, 300_000
    t = np.arange(1.0, T + 1.0)
    weight, kappa = rates.weight(t), rates.kappa(t[-1:])[0]
    bound = tsallis.self_bounding(rates, t[-1:], gap=gap, margin=margin, corruption=corruption)[0]
    assert bound < 0.98 * tsallis.adversarial(rates, t[-1:])[0]
    power = 1.0 if math.isinf(margin) else 1.0 + 1.0 / margin
    low, high, best = -12.0, 12.0, 0.0
    for _ in range(40):  # the largest y_t of the optimal shape that its own regret allows
        y = np.minimum(0.5, (math.exp(0.5 * (low + high)) * weight) ** (2.0 / (2.0 * power - 1.0)))
        upper = float((weight * np.sqrt(y)).sum()) + kappa
        if 0.5 * gap * float(margin_value(y / 2.0, margin).sum()) - corruption <= upper:
            low, best = 0.5 * (low + high), upper
        else:
            high = 0.5 * (low + high)
    assert 0.98 * bound < best <= bound


@pytest.mark.parametrize("margin", [0.5, 1.0, 2.0])
def test_theorem_43_grows_without_the_logarithm(margin: float) -> None:
    """Asymptotically T^(1/(2+beta)), and always below the paper's Cauchy-Schwarz with the same constants."""
    rates = rates_of(random_problem(2, S=3, K=3, d=2))
    horizons = np.array([1e13, 1e15])
    value = tsallis.self_bounding(rates, horizons, gap=1.5, margin=margin)
    main = value - rates.kappa(horizons)
    slope = math.log(main[1] / main[0]) / math.log(100.0)
    assert slope == pytest.approx(1.0 / (2.0 + margin), abs=0.02)
    t0, B = rates.t0, rates.weight(np.array([1.0]))[0] * math.sqrt(rates.t0)
    squares = B**2 * (1.0 + np.log(horizons / t0))
    power = margin / (1.0 + margin)
    x = tsallis.adversarial(rates, horizons)
    for _ in range(200):  # R <= sqrt(sum beta^2 sum omega) + kappa with Lemma B.4, from above to its fixed point
        omegas = rates.rarity * horizons ** (1 - power) * (2.0 * (1.0 + margin) * x / (margin * 1.5)) ** power
        x = np.sqrt(squares * omegas) + rates.kappa(horizons)
    assert (value < x).all()


def test_bounds_are_monotone_in_gap_margin_and_corruption() -> None:
    rates = rates_of(random_problem(2, S=3, K=3, d=2))
    T = np.array([1e10])

    def value(gap: float, margin: float = math.inf, corruption: float = 0.0) -> float:
        return float(tsallis.self_bounding(rates, T, gap=gap, margin=margin, corruption=corruption)[0])

    assert value(0.5) > value(1.0) > value(2.0)
    assert value(1.0, corruption=1e6) > value(1.0, corruption=1e3) > value(1.0)
    assert value(1.0, margin=0.5) > value(1.0, margin=2.0) > value(1.0)
    assert value(1.0, margin=1e9) == pytest.approx(value(1.0), rel=1e-3)
    more = [value(1.0, corruption=c) - value(1.0) for c in (1e6, 4e6)]
    assert 1.8 < more[1] / more[0] < 3.0  # between sqrt C and C: 4 would be C


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 4), st.integers(2, 400))
def test_shannon_sums_bound_the_recursion(seed: int, K: int, d: int, T: int) -> None:
    """For any entropies h_t <= 1, learning rates and penalties are below the right side of Theorem D.1."""
    rng = np.random.default_rng(seed)
    lam = float(rng.uniform(0.02, 1.0)) / d
    rates = ShannonRates(n_arms=K, dimension=d, coverage=lam, tuned_to=float(T))
    h = np.minimum(1.0, 2.0 * rng.random(T) * np.arange(1.0, T + 1.0) ** -rng.uniform(0.0, 1.5))
    h[0] = rng.choice([1.0, rng.random()])  # less than 1 where some arms are not offered
    uncapped = rates.beta_1 * (1.0 + np.concatenate([[0.0], np.cumsum(1.0 / np.sqrt(1.0 + np.cumsum(h)))[:-1]]))
    inverse = np.maximum(uncapped, 2.0 / lam)
    penalty = math.log(K) * float((np.diff(inverse, prepend=0.0) * h).sum())
    cost = (2.0 / lam + 2.0 * (math.e - 2.0) * d) * float((1.0 / inverse).sum())
    assert penalty + cost <= rates.given_entropy(np.array([float(T)]), np.array([h.sum()]))[0] * (1 + 1e-12)
    assert (inverse[np.arange(1, T + 1) > rates.t0] >= 2.0 / lam * (1 - 1e-12)).all()
    assert (uncapped[np.arange(1, T + 1) > rates.t0] >= 2.0 / lam * (1 - 1e-12)).all()


@pytest.mark.parametrize("margin", [0.5, 2.0, math.inf])
def test_shannon_fixed_point_is_the_largest_regret_that_its_lemmas_allow(margin: float) -> None:
    rates = ShannonRates(n_arms=3, dimension=2, coverage=0.4, tuned_to=1e8)
    T, gap, C = np.array([1e8]), 0.8, 100.0
    bound = shannon.self_bounding(rates, T, gap=gap, margin=margin, corruption=C)[0]
    best = 0.0
    for misses in np.logspace(0, 8, 2_001):
        entropy = misses * math.log(math.e * 2 * T[0] / misses) / math.log(3)
        upper = rates.given_entropy(T, np.minimum(np.array([entropy]), T))[0]
        if 0.5 * gap * T[0] * float(margin_value(misses / T[0], margin)) - C <= upper:
            best = max(best, upper)
    assert 0.98 * bound < best <= bound * (1 + 1e-9)
    assert bound < shannon.adversarial(rates, T)[0]


def test_shannon_constants_by_hand() -> None:
    """K = 4, d = 5 and T = 4^9, so that log T/log K = 9: B_1 = sqrt((1/lambda + d) 9) = 9 at lambda = 1/4."""
    T, log_arms = 4.0**9, math.log(4)
    rates = ShannonRates(n_arms=4, dimension=5, coverage=0.25, tuned_to=T)
    assert rates.beta_1 == pytest.approx(9.0)
    late = (8.0 + 10.0 * (math.e - 2.0)) * (1.0 + 9.0 * log_arms) * 2.0 / 9.0  # S = 3: sqrt(1 + S) = 2
    late += 18.0 * math.sqrt(3) * log_arms
    assert rates.given_entropy(np.array([T]), np.array([3.0]))[0] == pytest.approx(late)
    soon = (8.0 + 10.0 * (math.e - 2.0)) * 2.0 / 8.0  # T lambda/2 of two rounds
    assert rates.given_entropy(np.array([2.0]), np.array([1.0]))[0] == pytest.approx(soon + 18.0 * log_arms)
    rare = ShannonRates(n_arms=4, dimension=5, coverage=1 / 95, tuned_to=T)  # B_1 = 30, the cap lasts until 190
    assert rare.beta_1 == pytest.approx(30.0)
    capped = (190.0 + 10.0 * (math.e - 2.0)) * 4.0 / 190.0 + log_arms * (60.0 + 2.0 * (95.0 - 30.0))
    assert rare.given_entropy(np.array([4.0]), np.array([1.0]))[0] == pytest.approx(capped)


def test_shannon_shapes() -> None:
    """D.2 has sqrt(T log T log K), not log(KT) sqrt(T log T); D.3 tends to D.4, which the printed exponent cannot."""
    T = np.array([1e6])
    rates = ShannonRates(n_arms=3, dimension=2, coverage=0.4, tuned_to=1e6)
    form = math.sqrt((1 / 0.4 + 2) * 1e6 * math.log(1e6) * math.log(3))
    assert 3.0 * form < shannon.adversarial(rates, T)[0] < 4.3 * form
    near = shannon.self_bounding(rates, T, gap=1.0, margin=1e8)
    assert near == pytest.approx(shannon.self_bounding(rates, T, gap=1.0), rel=1e-4)
