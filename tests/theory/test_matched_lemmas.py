"""The inequalities behind the theorem of the matched tuning, at random points and where they are attained."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import bothworlds as bw
from bothworlds.theory import lemmas
from bothworlds.theory.lemmas.matching import CENTRED, SHARE
from bothworlds.theory.schedules import Covering
from support.problems import random_problem

constants = st.floats(0.02, 0.49)
larger_constants = st.floats(0.02, 0.98)
seeds = st.integers(0, 10**6)


def drawn(seed: int, arms: int, c: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return q, from nearly uniform to nearly deterministic, losses with largest centred step c, and beta."""
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
def test_stability_cost_bounds_covered_steps(seed: int, arms: int, c: float) -> None:
    q, losses, beta = drawn(seed, arms, c * (1 - 1e-9))
    cost = lemmas.stability_cost(q, losses, beta=beta, c=c)
    assert lemmas.stability_value(q, losses, 1.0 / beta) <= cost * (1 + 1e-9) + 1e-9 * beta
    squares = (q**1.5 * lemmas.centred(q, losses) ** 2).sum()
    assert cost <= squares / ((1.0 - c) * beta) * (1 + 1e-9)
    assert squares <= min((q**1.5 * losses**2).sum(), (q**1.5 * (losses - losses[q.argmax()]) ** 2).sum()) * (1 + 1e-9)
    others = np.delete(q, q.argmax()).sum()
    assert squares <= lemmas.stability_factor(1e-9) * math.sqrt(others) * (q * losses**2).sum() * (1 + 1e-6)
    assert cost <= lemmas.stability_share(c) * beta * entropy(q) * (1 + 1e-9) + 1e-9 * beta


def test_steps_beyond_c_are_not_covered() -> None:
    q, losses, beta = drawn(1, 4, 0.3)
    assert lemmas.stability_cost(q, 1.01 * losses, beta=beta, c=0.3) == math.inf


@given(seeds, st.integers(2, 12), st.floats(0.1, 1e3))
def test_the_linear_cost_bounds_stability_without_a_condition(seed: int, arms: int, c: float) -> None:
    q, losses, beta = drawn(seed, arms, c)
    for sign in (-1.0, 1.0):
        value = lemmas.stability_value(q, sign * losses, 1.0 / beta)
        assert value <= lemmas.linear_cost(q, losses) * (1 + 1e-9) + 1e-9 * beta
    widest = np.abs(lemmas.centred(q, losses) * np.sqrt(q)).max()
    assert lemmas.linear_cost(q, losses) >= 0.5 * widest * (1 - 1e-9)  # so uncovered contexts cost at least c beta/2


@given(seeds, st.sampled_from([2, 3, 10, 300]))
def test_the_length_of_centred_features_is_bounded_for_many_arms(seed: int, arms: int) -> None:
    q, _, _ = drawn(seed, arms, 1.0)
    assert lemmas.centred_lengths(q).max() <= CENTRED


def test_the_length_of_centred_features_is_attained_by_two_arms() -> None:
    tau = float(np.roots([1.0, -3.0, 0.0, -2.0])[0].real)
    assert tau == pytest.approx(3.196, abs=1e-3)
    largest = lemmas.centred_lengths(np.array([1.0, tau**2]) / (1.0 + tau**2))[0]
    assert CENTRED - 1e-5 <= largest <= CENTRED
    optimum = minimize_scalar(
        lambda p: -lemmas.centred_lengths(np.array([p, 1.0 - p]))[0], bounds=(1e-9, 0.5), method="bounded"
    )
    assert -optimum.fun == pytest.approx(largest, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_centred_features_have_small_leverages(seed: int) -> None:
    """By enumeration: q psi^T Sigma(q)^-1 psi is at most L times the squared length of its weights."""
    problem, rng, nearest = random_problem(seed, S=2, K=6, d=3), np.random.default_rng(seed), 0.0
    phi, g = problem.features, problem.probabilities
    for _ in range(100):
        q = np.array([drawn(int(rng.integers(10**6)), 6, 1.0)[0] for _ in range(2)])
        inverse = np.linalg.inv(np.einsum("x,xa,xai,xaj->ij", g, q, phi, phi))
        psi = phi - np.einsum("xa,xai->xi", q**1.5 / (q**1.5).sum(axis=1, keepdims=True), phi)[:, None]
        for x in range(2):
            share = q[x] * np.einsum("ai,ij,aj->a", psi[x], inverse, psi[x]) / problem.rarity
            longest = lemmas.centred_lengths(q[x]) ** 2
            assert (share <= longest * (1 + 1e-6)).all()
            nearest = max(nearest, float((share / longest).max()))
    assert nearest > 0.3


@pytest.mark.parametrize("seed", range(6))
def test_the_covering_rate_covers_every_play(seed: int) -> None:
    """By enumeration with gamma = u/beta^2, residuals of 2 and many plans."""
    problem, rng, c, worst = random_problem(seed, S=2, K=6, d=3), np.random.default_rng(seed), 0.45, 0.0
    algorithm = bw.LCTsallisINF()
    known, g = algorithm.machine(problem).known, problem.probabilities
    u = Covering.of(rarity=problem.rarity, coverage=algorithm.design_for(problem).coverage, c=c).curved
    for _ in range(200):
        beta = math.sqrt(2.0 * u) * 10.0 ** rng.uniform(0.0, 2.0)
        q = np.array([drawn(int(rng.integers(10**6)), 6, 1.0)[0] for _ in range(2)])
        pi = (1.0 - u / beta**2) * q + u / beta**2 * known.e
        inverse = np.linalg.inv(np.einsum("x,xa,xai,xaj->ij", g, pi, known.z, known.z))
        for step in 2.0 * np.einsum("yai,ij,xbj->yaxb", known.z, inverse, known.z).reshape(-1, 2, 6):
            centred = [lemmas.centred(*pair) * np.sqrt(pair[0]) for pair in zip(q, step, strict=True)]
            worst = max(worst, float(np.abs(centred).max()) / (c * beta))
    assert 0.1 < worst <= 1.0


@given(seeds, st.integers(2, 12), constants, st.floats(0.0, 3.0))
def test_the_largest_cost_bounds_every_smaller_step(seed: int, arms: int, c: float, factor: float) -> None:
    """For every residual up to the largest; and the cost is at most the range of the losses."""
    q, losses, beta = drawn(seed, arms, factor * c)
    cost = lemmas.largest_cost(q, losses, beta=beta, c=c)
    for share in (-1.0, -0.7, 0.3, 1.0):
        assert lemmas.stability_value(q, share * losses, 1.0 / beta) <= cost * (1 + 1e-9) + 1e-9 * beta
    assert cost <= (losses.max() - losses.min()) * (1 + 1e-9)
    widest = np.abs(lemmas.centred(q, losses) * np.sqrt(q)).max()
    assert cost >= c * beta * (1 - 1e-9) or widest <= 2.0 * c * beta * (1 + 1e-9)


@given(seeds, st.integers(2, 12), constants, st.floats(0.0, 30.0))
def test_the_cost_of_a_step_bounds_its_stability(seed: int, arms: int, c: float, factor: float) -> None:
    """Covered or not; and the cost never exceeds that of the largest step."""
    q, losses, beta = drawn(seed, arms, factor * c)
    cost = lemmas.step_cost(q, losses, beta=beta, c=c)
    assert lemmas.stability_value(q, losses, 1.0 / beta) <= cost * (1 + 1e-9) + 1e-9 * beta
    assert cost <= lemmas.largest_cost(q, losses, beta=beta, c=c) * (1 + 1e-9) + 1e-12


@given(seeds, st.integers(2, 12))
def test_entropy_and_the_roots_of_the_others(seed: int, arms: int) -> None:
    q, _, _ = drawn(seed, arms, 1.0)
    others = np.sqrt(np.delete(q, q.argmax())).sum()
    assert 2.0 * SHARE * others * (1 - 1e-9) - 1e-12 <= entropy(q) <= 2.0 * others * (1 + 1e-9) + 1e-12


def test_the_others_attain_their_share_of_entropy() -> None:
    """Two equal arms attain it, so the constant is optimal."""
    assert entropy(np.array([0.5, 0.5])) == pytest.approx(2.0 * SHARE * math.sqrt(0.5))


@settings(max_examples=300)
@given(seeds, st.integers(2, 40), larger_constants)
def test_entropy_cannot_jump(seed: int, arms: int, c: float) -> None:
    """A covered step multiplies every root by at most 1/(1 - c), and the entropy by at most B(c)."""
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
    first, second = (entropy(q) for q in points)
    assert first * (1 - 1e-9) - 1e-12 <= second <= factor * first * (1 + 1e-9) + 1e-12
    assert (np.sqrt(points[1]) <= factor * np.sqrt(points[0]) * (1 + 1e-6)).all()


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_a_payment_raises_beta_and_its_cube(beta: float, due: float) -> None:
    """With due = (beta' - beta) (beta'/beta) h' and h' = 1: beta'^3 - beta^3 >= 3 beta^2 due."""
    after = 0.5 * beta * (1.0 + math.sqrt(1.0 + 4.0 * due / beta))
    assert (after - beta) * (after / beta) == pytest.approx(due, rel=1e-5, abs=1e-14 * beta)  # after - beta rounds
    assert after**3 >= (beta**3 + 3.0 * beta**2 * due) * (1 - 1e-9)
    assert after <= (beta + math.sqrt(beta * due)) * (1 + 1e-9)
    assert due <= (after - beta) * (1.0 + math.sqrt(due / beta)) * (1 + 1e-5) + 1e-14 * beta


def test_entropy_jumps_without_the_condition() -> None:
    q = np.array([1.0 - 1e-8, 1e-8])
    p = bw.ftrl_point(1.0 / np.sqrt(q) - np.array([0.0, 1e4]))
    assert entropy(p) > 1000 * entropy(q)
