"""The plain NumPy version of Algorithm 1 and the compiled kernels compute the same probabilities, round by round."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bothworlds as bw
from bothworlds.algorithms.lc_tsallis.reference import ReferenceLCTsallisINF, covariance, ftrl_points, rates
from support.problems import parameters, random_problem


def largest_difference(
    problem: bw.Problem, *, alpha: float, rounds: int, t: int = 1, seed: int = 1, interpreted: bool = False
) -> float:
    """Play both on the same arms and losses from round t on; return the largest difference of probabilities."""
    algorithm = bw.LCTsallisINF(alpha=alpha, tuning="paper")
    e = algorithm.design_for(problem).exploration
    reference = ReferenceLCTsallisINF(problem.features, problem.probabilities, e, alpha=alpha)
    policy = algorithm.start(problem, rng=seed, interpreted=interpreted)
    theta, rng, difference = parameters(problem), np.random.default_rng(seed), 0.0
    if t > 1:  # begin in the middle of a run: sums of estimates that make plans far from uniform
        policy.state.t[0] = reference.t = t
        _, K, d = problem.features.shape
        reference.Theta = 5.0 * theta / rates(t, alpha, K, d, reference.lam, reference.L)[0]
        z = policy._machine.known.z.reshape(problem.available.size, -1)
        sums = (problem.features @ reference.Theta).reshape(-1)
        policy.state.theta[...] = np.linalg.lstsq(z, sums, rcond=None)[0]
        policy._learner_state.refresh()
    for _ in range(rounds):
        pi = reference.policy()
        difference = max(difference, float(np.abs(pi - policy.probabilities()).max()))
        x = int(rng.choice(problem.n_contexts, p=problem.probabilities))
        decision = policy.act(x)
        loss = float(np.clip(problem.features[x, decision.arm] @ theta + rng.normal(scale=0.1), -1.0, 1.0))
        policy.update(decision, loss=loss)
        reference.learn(pi, x, decision.arm, loss)
    return difference


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("t", [1, 100_000])
def test_the_kernels_follow_the_reference(alpha: float, t: int) -> None:
    problem = random_problem(3, S=5, K=4, d=3, rarity=12.0)
    assert largest_difference(problem, alpha=alpha, rounds=300, t=t) < 1e-10  # measured: 2e-15


def test_plans_of_the_middle_of_a_run_are_far_from_uniform() -> None:
    problem = random_problem(3, S=5, K=4, d=3, rarity=12.0)
    learner = ReferenceLCTsallisINF(problem.features, problem.probabilities, np.full((5, 4), 0.25))
    learner.t, eta = 100_000, rates(100_000, 0.5, 4, 3, learner.lam, learner.L)[0]
    learner.Theta = 5.0 * parameters(problem) / eta
    assert learner.policy().max() > 0.6


def test_the_kernels_follow_the_reference_with_many_contexts() -> None:
    assert largest_difference(random_problem(5, S=19, K=6, d=7), alpha=0.5, rounds=200, t=50_000) < 1e-10


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    S=st.integers(1, 6),
    K=st.integers(2, 5),
    d=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    alpha=st.floats(0.1, 0.9),
    t=st.sampled_from([1, 1_000, 10**6]),
)
def test_the_kernels_follow_the_reference_on_any_problem(
    S: int, K: int, d: int, seed: int, alpha: float, t: int
) -> None:
    problem = random_problem(seed, S=S, K=K, d=min(d, S * K))
    assert largest_difference(problem, alpha=alpha, rounds=40, t=t, interpreted=True) < 1e-10


def test_the_rates_are_those_printed_for_alpha_one_half() -> None:
    K, d, lam, L = 5, 3, 0.2, 20.0
    for t in (1, 100, 10**7):
        eta, gamma = rates(t, 0.5, K, d, lam, L)
        assert eta == pytest.approx(min(K**0.25 / np.sqrt(d * t), np.sqrt(lam / L) / 16), rel=1e-12)
        assert gamma == pytest.approx(128 * L * eta**2 / lam, rel=1e-12)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
def test_no_distribution_nearby_has_a_smaller_objective(alpha: float) -> None:
    rng = np.random.default_rng(2)
    losses, eta = rng.normal(size=(4, 5)) * 20.0, 0.3

    def objective(q: np.ndarray) -> np.ndarray:
        return np.asarray((losses * q).sum(axis=1) + (1 - (q**alpha).sum(axis=1)) / (alpha * eta))

    q = ftrl_points(losses, eta, alpha)
    assert q.sum(axis=1) == pytest.approx(1.0)
    for other in rng.dirichlet(np.ones(5), size=(50, 4)):
        assert (objective(q) <= objective(q + 0.01 * (other - q)) + 1e-12).all()


def test_the_estimate_is_unbiased() -> None:
    problem = random_problem(4)
    phi, g, theta = problem.features, problem.probabilities, parameters(problem)
    learner = ReferenceLCTsallisINF(phi, g, np.full(phi.shape[:2], 1 / 3))
    pi = learner.policy()
    mean = np.zeros(3)
    for x, a in np.ndindex(pi.shape):
        one = ReferenceLCTsallisINF(phi, g, learner.e)
        one.learn(pi, x, a, float(phi[x, a] @ theta))
        mean += g[x] * pi[x, a] * one.Theta
    assert mean == pytest.approx(theta, rel=1e-10)
    assert covariance(pi, phi, g) == pytest.approx(covariance(pi, phi, g).T)
