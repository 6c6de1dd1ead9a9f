"""Logdet-FTRL: its point against scipy, a centred estimator by enumeration, its own condition in every round."""

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.experts.logdet_point import GAP, logdet_point
from bothworlds.kernels.status import OK
from support.problems import bits, coordinates, directions, play, random_problem


def lifted(seed: int, K: int, d: int) -> np.ndarray:
    phi = np.random.default_rng(seed).normal(size=(K, d))
    return np.concatenate([phi / np.linalg.norm(phi, axis=1, keepdims=True), np.ones((K, 1))], axis=1)


def point(psi: np.ndarray, losses: np.ndarray, eta: float) -> np.ndarray:
    K, d = psi.shape
    work = SimpleNamespace(moment=np.zeros((d, d)), factor=np.zeros((d, d)), losses=losses, lev=np.zeros(K))
    p = np.full(K, 1.0 / K)
    assert logdet_point(eta, psi, d, p, work) == OK
    return p


def log_det(psi: np.ndarray, p: np.ndarray) -> float:
    return float(np.linalg.slogdet(psi.T @ (p[:, None] * psi))[1])


@pytest.mark.parametrize(("K", "d", "size"), [(4, 3, 1.0), (8, 3, 1.0), (8, 3, 30.0), (6, 2, 5.0), (12, 4, 3.0)])
def test_the_point_is_scipys(K: int, d: int, size: float) -> None:
    psi, losses, eta = lifted(K, K, d), size * np.random.default_rng(1).normal(size=K), 0.7
    p = point(psi, losses, eta)
    assert p.sum() == pytest.approx(1.0, abs=1e-12)

    def objective(q: np.ndarray) -> float:
        return float(eta * losses @ q - log_det(psi, np.abs(q)))

    found = minimize(
        objective,
        np.full(K, 1.0 / K),
        method="SLSQP",
        bounds=[(1e-12, 1)] * K,
        constraints={"type": "eq", "fun": lambda q: q.sum() - 1.0},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert objective(p) <= found.fun + GAP
    moments = [psi.T @ (q[:, None] * psi) for q in (p, found.x)]
    assert np.abs(moments[0] - moments[1]).max() < 0.01


def test_each_step_minimises_a_bound_that_touches_the_objective() -> None:
    """log det Cov(p) >= log det Cov(p0) + sum p0 lev0 log(p/p0), the inequality behind the iteration."""
    rng = np.random.default_rng(3)
    psi = lifted(5, 7, 3)
    for _ in range(200):
        p0, p = rng.dirichlet(np.ones(7)), rng.dirichlet(np.ones(7))
        lev = np.einsum("ai,ij,aj->a", psi, np.linalg.inv(psi.T @ (p0[:, None] * psi)), psi)
        assert log_det(psi, p) >= log_det(psi, p0) + (p0 * lev * np.log(p / p0)).sum() - 1e-9


def test_without_losses_it_is_the_d_optimal_design_and_on_a_simplex_the_log_barrier() -> None:
    psi = lifted(2, 9, 3)
    p = point(psi, np.zeros(9), 1.0)
    lev = np.einsum("ai,ij,aj->a", psi, np.linalg.inv(psi.T @ (p[:, None] * psi)), psi)
    assert lev.max() <= 4.0 + 2 * GAP
    losses = np.array([0.0, 1.0, 5.0, 40.0])
    p = point(np.eye(4), losses, 0.3)
    assert 1 / p - 0.3 * losses == pytest.approx(np.full(4, 1 / p[0]), rel=1e-9)


def test_a_level_of_all_losses_does_not_move_the_point() -> None:
    """Of cumulative losses, exactly; of single losses the estimate's mean does not change (enumerated below)."""
    psi, losses = lifted(4, 5, 4), np.random.default_rng(2).normal(size=5)
    assert point(psi, losses, 0.5) == pytest.approx(point(psi, losses + 1000.0, 0.5), abs=1e-9)
    assert np.ptp(point(psi, losses, 0.5)) > 0.05


@pytest.mark.parametrize(("K", "d"), [(3, 3), (4, 2)])
def test_the_estimate_is_centred_unbiased_and_small_enough_in_every_round(K: int, d: int) -> None:
    """Differences of losses by enumeration, with a level added; eta |G| <= 1/2 in the local norm; gamma <= 1/2."""
    problem = random_problem(2, S=3, K=K, d=d, rarity=30.0)
    policy = bw.LogdetFTRL(horizon=10_000).start(problem, rng=1)
    phi, g = problem.features, problem.probabilities
    theta = np.random.default_rng(5).normal(size=d)

    def check(policy: bw.Policy) -> None:
        z, pi, q = coordinates(policy), policy.probabilities(), policy.state.q
        eta, gamma = policy.state.rates
        assert gamma <= 0.5 + 1e-12
        lifts = directions(policy)
        weights = g[:, None] * pi
        mean = np.einsum("xa,xai->i", weights, phi)
        sigma = np.einsum("xa,xai,xaj->ij", weights, phi - mean, phi - mean)
        centred = np.einsum("ij,xaj->xai", np.linalg.inv(sigma), phi - mean)
        ours = np.einsum("ybi,xai->ybxa", z - z[0, 0], lifts)
        assert ours == pytest.approx(np.einsum("ybi,xai->ybxa", phi - phi[0, 0], centred), abs=1e-8)
        expected = np.einsum("xa,xai,xa->i", weights, lifts, phi @ theta + 0.7)
        assert (z - z[0, 0]) @ expected == pytest.approx((phi - phi[0, 0]) @ theta, abs=1e-9)
        for x in range(3):
            spread = np.cov(phi[x].T, aweights=q[x], ddof=0).reshape(d, d)
            norms = np.einsum("yai,ij,yaj->ya", centred, spread, centred) / 2
            assert eta * math.sqrt(norms.max()) <= 0.5 + 1e-9

    play(policy, 40, each=check)


def test_rates_and_their_cap() -> None:
    problem = random_problem(1, S=2, K=3, d=2)
    policy = bw.LogdetFTRL(horizon=5000).start(problem, rng=1)
    ones = np.ones((2, 3, 1))
    lifts = bw.Problem(features=np.concatenate([problem.features, ones], axis=2), probabilities=problem.probabilities)
    weight = 1 / (bw.design(lifts).coverage * problem.probabilities.min())
    for t in (1, 200):
        eta = min(math.sqrt(3 * math.log(5000) / (2 * t)), math.sqrt(1 / (8 * weight)))
        assert policy.state.rates == pytest.approx([eta, 4 * eta**2 * weight], rel=1e-3)
        play(policy, 199)


def test_it_conforms_learns_and_survives_files(tmp_path: Path) -> None:
    algorithm = bw.LogdetFTRL(horizon=20_000)
    assert bw.check_algorithm(algorithm) == []
    world = en.stochastic(en.random_instance(contexts=2, arms=3, dimension=2, gap=0.4, seed=2))
    run = bw.simulate(world, {"a": algorithm, "u": bw.FixedPolicy()}, horizon=20_000, replications=4)
    assert run["a"].regret[-1] < 0.25 * run["u"].regret[-1]  # 0.10 with this seed
    policy = algorithm.start(random_problem(1, S=3, K=4, d=2), rng=1)
    play(policy, 20)
    policy.save(tmp_path / "p.npz")
    copy = bw.load(tmp_path / "p.npz")
    assert play(copy, 30) == play(policy, 30)
    assert bits(copy) == bits(policy)


def test_interpreted_and_compiled_runs_agree_bit_for_bit() -> None:
    problem = random_problem(5)
    one, two = (bw.LogdetFTRL(horizon=1000).start(problem, rng=9, interpreted=flag) for flag in (False, True))
    assert play(one, 300) == play(two, 300)
    assert bits(one) == bits(two)


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ValueError, match="horizon"):
        bw.LogdetFTRL(horizon=0)
    with pytest.raises(ValueError, match="unknown design"):
        bw.LogdetFTRL(horizon=10, design="x")  # type: ignore[arg-type]
