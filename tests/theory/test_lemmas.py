"""The paper's lemmas by enumeration on random problems, each with a violated precondition that makes it fail."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import brentq

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.arrays import Floats
from bothworlds.theory import designs, lemmas
from support.problems import random_problem

SEEDS = st.integers(0, 10**6)


def points(rng: np.random.Generator, S: int, K: int) -> Floats:
    """Return random points of the simplex, from uniform to nearly deterministic."""
    return np.asarray(rng.dirichlet(np.full(K, 10.0 ** rng.uniform(-1.5, 1.0)), size=S)) * (1 - 1e-9) + 1e-9 / K


@given(SEEDS, st.floats(1e-4, 0.5), st.integers(2, 5))
def test_a3_estimates_are_bounded(seed: int, gamma: float, K: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(seed, S=4, K=K, d=3, rarity=float(rng.uniform(4.0, 200.0)))
    explore = bw.design(problem, "uniform")
    z, g, q = problem.span.coordinates, problem.probabilities, points(rng, 4, K)
    pi = (1.0 - gamma) * q + gamma * explore.exploration
    largest = lemmas.largest_estimates(z, g, pi)
    assert (largest <= lemmas.estimate_bound(q, g, gamma=gamma, coverage=explore.coverage) * (1 + 1e-9)).all()


def test_a3_is_attained() -> None:
    """One dimension, two equal arms with half of the plays each: both bounds are attained."""
    z, g, q = np.ones((1, 2, 1)), np.ones(1), np.array([[1.0, 0.0]])
    explore = np.array([[0.0, 1.0]])
    largest = lemmas.largest_estimates(z, g, 0.5 * q + 0.5 * explore)
    assert largest[0, 0] == pytest.approx(lemmas.estimate_bound(q, g, gamma=0.5, coverage=1.0)[0, 0])


def test_a3_needs_the_coverage_of_the_exploration_policy() -> None:
    """Assumption 2.4 violated: with twice the true lambda the bound, attained for unit features, fails."""
    z, g, q = np.eye(2)[None], np.ones(1), np.array([[1.0, 0.0]])
    pi = 0.99 * q + 0.01 * 0.5
    largest = lemmas.largest_estimates(z, g, pi)[0, 1]
    assert largest == pytest.approx(lemmas.estimate_bound(q, g, gamma=0.01, coverage=0.5)[0, 1])
    assert largest > 1.9 * lemmas.estimate_bound(q, g, gamma=0.01, coverage=1.0)[0, 1]


@given(SEEDS, st.integers(2, 5))
def test_a4_second_moments_are_at_most_leverages_and_average_to_at_most_d(seed: int, K: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(seed, S=4, K=K, d=3)
    z, g, pi = problem.span.coordinates, problem.probabilities, 0.9 * points(rng, 4, K) + 0.1 / K
    squares = rng.random((4, K))  # E[loss^2] of any losses in [-1, 1]
    moments = lemmas.second_moments(z, g, pi, squares)
    lev = designs.leverages(z, designs.covariance(z, g, pi))
    assert (moments <= lev * (1 + 1e-9)).all()
    assert float((g[:, None] * pi * moments).sum()) <= 3.0 + 1e-9
    signs = lemmas.second_moments(z, g, pi, np.ones((4, K)))
    assert float((g[:, None] * pi * signs).sum()) == pytest.approx(3.0, rel=1e-9)
    too_large = lemmas.second_moments(z, g, pi, 1.0 + squares)  # Assumption 2.1 violated
    assert float((g[:, None] * pi * too_large).sum()) > 3.0


def losses_within(rng: np.random.Generator, q: Floats, step: float) -> Floats:
    """Return losses with max |l| sqrt q = step, of random shape and signs, some arms at the limit."""
    raw = rng.choice([-1.0, 1.0], size=len(q)) * rng.random(len(q)) ** rng.choice([0.1, 1.0, 5.0])
    return np.asarray(step * raw / np.abs(raw).max() / np.sqrt(q))


@given(SEEDS, st.integers(2, 6), st.floats(0.01, 0.45))
def test_b1_and_b2_stability(seed: int, K: int, c: float) -> None:
    rng = np.random.default_rng(seed)
    q = points(rng, 1, K)[0]
    eta = float(10.0 ** rng.uniform(-3, 0))
    losses = losses_within(rng, q, c) / eta
    assert lemmas.stability_step(q, losses, eta) <= c * (1 + 1e-12)
    value = lemmas.stability_value(q, losses, eta)
    rounding = 1e-11 / eta
    assert value <= lemmas.stability_bound_of_paper(q, losses, eta, c=c) + rounding
    assert value <= lemmas.stability_bound(q, losses, eta, c=c) + rounding


@given(SEEDS)
def test_c1_one_arm_exactly(seed: int) -> None:
    """The maximum of l (q - p) - d(p, q) over p >= 0 is q^(3/2) l^2/(1 + l sqrt q)."""
    rng = np.random.default_rng(seed)
    q, u = float(rng.uniform(0.01, 1.0)), float(rng.uniform(-0.9, 3.0))
    loss = u / math.sqrt(q)
    p = np.concatenate([np.linspace(0.0, 10.0 * q, 2001), [q / (1 + u) ** 2]])
    values = loss * (q - p) - (np.sqrt(p) - math.sqrt(q)) ** 2 / math.sqrt(q)
    assert values.max() == pytest.approx(q**1.5 * loss**2 / (1 + u), rel=1e-9, abs=1e-15)
    assert values.argmax() == len(p) - 1


def test_stability_needs_the_step_to_be_bounded() -> None:
    """Lemma B.1's condition violated: a large negative loss on a rare arm exceeds both bounds."""
    q = np.array([1.0 - 1e-4, 1e-4])
    losses = np.array([0.0, -0.9 / math.sqrt(1e-4)])
    assert lemmas.stability_step(q, losses, 1.0) == pytest.approx(0.9)
    value = lemmas.stability_value(q, losses, 1.0)
    assert value > 3.0 * lemmas.stability_bound_of_paper(q, losses, 1.0)  # 3.7 measured
    assert value > 3.0 * lemmas.stability_bound(q, losses, 1.0)  # 5.4 measured


def test_the_constant_of_b1_is_at_least_2() -> None:
    """Opposite losses on two arms reach 2.0005 of 2/(1 - 2c) = 2.667; the paper omits the constant."""
    q = np.array([1.0 - 1e-6, 1e-6])
    losses = np.array([0.125, -0.125])
    assert lemmas.stability_step(q, losses, 1.0) <= 0.125
    value, bound = lemmas.stability_value(q, losses, 1.0), lemmas.stability_bound_of_paper(q, losses, 1.0)
    assert 0.74 < value / bound <= 1.0
    without_constant = bound * 3.0 / 8.0
    assert value > 1.9 * without_constant


@given(SEEDS, st.integers(2, 6))
def test_e1_stability_for_shannon_entropy(seed: int, K: int) -> None:
    rng = np.random.default_rng(seed)
    q, eta = points(rng, 1, K)[0], float(10.0 ** rng.uniform(-3, 0))
    losses = rng.uniform(-1.0, 3.0, size=K) / eta
    value = lemmas.shannon_stability_value(q, losses, eta)
    assert -1e-12 / eta <= value <= lemmas.shannon_stability_bound(q, losses, eta) + 1e-12 / eta


def test_e1_needs_steps_of_at_most_one() -> None:
    """One rare arm with eta l = -1 comes within 1 % of the bound; with -3 it is twice as large."""
    q = np.array([0.999, 0.001])
    value = lemmas.shannon_stability_value(q, np.array([0.0, -1.0]), 1.0)
    assert 0.99 < value / lemmas.shannon_stability_bound(q, np.array([0.0, -1.0]), 1.0) <= 1.0
    large = np.array([0.0, -3.0])
    assert lemmas.shannon_stability_value(q, large, 1.0) > 2.0 * lemmas.shannon_stability_bound(q, large, 1.0)


@pytest.mark.parametrize(("c", "printed"), [(1e-9, 1.47), (1 / 8, 1.85), (1 / 4, 2.55), (0.4, 5.47)])
def test_stability_factor_is_where_its_two_bounds_meet(c: float, printed: float) -> None:
    """sqrt((1 - omega)/omega)/(1 - c) falls, 1/((1 - 2c)(1 - omega)) grows in omega: the factor is where they meet."""

    def plain(omega: float) -> float:
        return math.sqrt((1.0 - omega) / omega) / (1.0 - c)

    def shifted(omega: float) -> float:
        return 1.0 / ((1.0 - 2.0 * c) * (1.0 - omega))

    cross = brentq(lambda omega: plain(omega) - shifted(omega), 1e-9, 0.5, xtol=1e-15)
    assert lemmas.stability_factor(c) == pytest.approx(shifted(cross), rel=1e-9)
    assert lemmas.stability_factor(c) == pytest.approx(printed, abs=0.006)


def test_stability_factor_refuses_what_is_not_proved() -> None:
    with pytest.raises(ValueError, match="strictly between"):
        lemmas.stability_factor(0.5)


@given(SEEDS, st.integers(2, 8), st.integers(1, 4))
def test_b3_penalty(seed: int, K: int, S: int) -> None:
    q = points(np.random.default_rng(seed), S, K)
    assert lemmas.tsallis_entropy(q).max() <= lemmas.penalty_bound(lemmas.omega(q), K) + 1e-12


def test_b3_needs_omega_of_all_contexts() -> None:
    q = np.array([[0.999, 0.001], [0.5, 0.5]])
    assert lemmas.tsallis_entropy(q).max() > lemmas.penalty_bound(lemmas.omega(q[:1]), 2)


@given(SEEDS, st.integers(2, 6), st.integers(2, 60))
def test_e4_entropy_against_misses(seed: int, K: int, T: int) -> None:
    rng = np.random.default_rng(seed)
    q = np.concatenate([points(rng, 1, K) for _ in range(T)])
    best = int(rng.integers(K))
    misses = (1.0 - q[:, best]).sum()
    total = -(q * np.log(q)).sum()
    assert total <= lemmas.entropy_sum_bound(np.array([misses]), K, np.array([float(T)]))[0] + 1e-9


def test_e4_needs_the_horizon_that_was_played() -> None:
    q = np.full((100, 2), 0.5)
    total, misses = -(q * np.log(q)).sum(), np.array([50.0])
    assert total <= lemmas.entropy_sum_bound(misses, 2, np.array([100.0]))[0]
    assert total > lemmas.entropy_sum_bound(misses, 2, np.array([50.0]))[0]


@given(SEEDS, st.sampled_from([0.2, 0.5, 1.0, 3.0, math.inf]))
def test_a5_margin_lemma_for_every_mean(seed: int, margin: float) -> None:
    """E[U V] >= Delta_* M(E U) for any U in [0, 1]; also for E U > 1/2, where the paper's lemma stops."""
    rng = np.random.default_rng(seed)
    S = int(rng.integers(1, 12))
    g = rng.dirichlet(np.full(S, 1.0))
    v = np.sort(rng.random(S) ** 2 + 1e-3)
    gap = lemmas.largest_margin_gap(v, g, margin=margin) * (1.0 - 1e-9)
    assert lemmas.margin_condition(v, g, gap=gap, margin=margin)
    for u in (rng.random(S), (rng.random(S) < 0.5).astype(float), (v <= np.median(v)).astype(float), np.ones(S)):
        mu = float(g @ u)
        assert float(g @ (u * v)) >= gap * float(lemmas.margin_value(mu, margin)) - 1e-12
        if math.isfinite(margin):  # the form of Lemma B.4, up to 1
            assert lemmas.margin_value(mu, margin) >= margin / (1 + margin) * mu ** (1 + 1 / margin) - 1e-12


def test_a5_needs_the_margin_condition_and_its_printed_formula_stops_at_one_half() -> None:
    v, g = np.array([0.01, 1.0]), np.array([0.3, 0.7])
    u = np.array([1.0, 0.0])
    assert not lemmas.margin_condition(v, g, gap=0.5, margin=2.0)
    assert float(g @ (u * v)) < 0.5 * float(lemmas.margin_value(0.3, 2.0))
    # All gaps just above Delta_* = 1, U = 1: E[UV] = 1, while the printed formula at mu = 1 is 4/3 for beta = 1/2.
    beta, mu = 0.5, 1.0
    assert beta / (2 * (1 + beta)) * (2 * mu) ** ((1 + beta) / beta) > 1.3 > float(lemmas.margin_value(mu, beta))


@given(SEEDS, st.sampled_from([0.3, 1.0, 2.0, math.inf]))
def test_definition_25_on_margin_instances(seed: int, margin: float) -> None:
    instance = en.margin_instance(
        contexts=6, arms=3, dimension=3, gap=0.2, margin=margin, rarity=20.0, seed=seed % 1000
    )
    world = en.stochastic(instance)
    g = world.problem.probabilities
    assert lemmas.margin_condition(world.context_gaps, g, gap=0.2, margin=margin)
    h = np.linspace(0.0, 0.2, 400)
    if math.isfinite(margin):
        assert (world.margin_curve(h) <= 0.5 * (h / 0.2) ** margin + 1e-9).all()
    assume(math.isfinite(margin))
    assert lemmas.largest_margin_gap(world.context_gaps, g, margin=margin) >= 0.2 * (1 - 1e-6)
    assert not lemmas.margin_condition(world.context_gaps, g, gap=0.25, margin=margin)  # tight at its support


@given(SEEDS, st.sampled_from([0.5, 1.0, 2.0, math.inf]))
def test_b4_omega_against_regret(seed: int, margin: float) -> None:
    """For any path of q with gamma <= 1/2 on an instance with a margin, the regret bounds the omegas."""
    rng = np.random.default_rng(seed)
    instance = en.margin_instance(contexts=5, arms=3, dimension=3, gap=0.3, margin=margin, rarity=8.0, seed=seed % 500)
    world = en.stochastic(instance)
    g, T = world.problem.probabilities, int(rng.integers(1, 40))
    regret, omegas = 0.0, 0.0
    for _ in range(T):
        q = points(rng, 5, 3)
        if (
            rng.random() < 0.7
        ):  # least regret for a large omega: deterministic except in the context with the smallest gap
            q = np.eye(3)[world.comparator]
            q[int((world.context_gaps * g).argmin())] = 1.0 / 3.0
        pi = 0.5 * q + 0.5 * np.eye(3)[world.comparator]  # exploration that costs nothing: the worst case
        regret += float(g @ (pi * world.gaps).sum(axis=1))
        omegas += lemmas.omega(q)
    options = {"horizon": T, "gap": 0.3, "margin": margin}
    assert omegas <= lemmas.omega_sum_bound(regret, rarity=world.problem.rarity, **options) * (1 + 1e-9)  # type: ignore[arg-type]


def test_b4_needs_exploration_of_at_most_one_half_and_the_rarest_context() -> None:
    gaps, g = np.array([0.3, 0.3]), np.array([0.1, 0.9])
    q = np.array([[0.5, 0.5], [1.0, 0.0]])
    best = np.array([[1.0, 0.0], [1.0, 0.0]])
    for gamma, rarity, holds in ((0.5, 10.0, True), (0.9, 10.0, False), (0.5, 2.0, False)):
        pi = (1 - gamma) * q + gamma * best
        regret = float(g @ (pi[:, 1] * gaps))
        bound = lemmas.omega_sum_bound(regret, horizon=1, rarity=rarity, gap=0.3)
        assert (lemmas.omega(q) <= bound * (1 + 1e-9)) is holds
