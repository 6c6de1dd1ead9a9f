"""Linear EXP4 and Logdet-FTRL without context probabilities: counts, ridge, bonus, and what known ones would do."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.experts.logdet_point import GAP
from support.problems import bits, coordinates, directions, living, masked, play, random_problem, set_options

KINDS = ["linear", "all", "listed"]
SEEN = [
    bw.LinearEXP4(horizon=1000, contexts="empirical"),
    bw.LinearEXP4(horizon=1000, contexts="empirical", policies="all", scale=0.0),
    bw.LogdetFTRL(horizon=1000, contexts="empirical"),
    bw.LogdetFTRL(horizon=1000, contexts="empirical", scale=0.001),
]
each = pytest.mark.parametrize("algorithm", SEEN, ids=repr)
GREATEST = 1e15  # so many contexts seen that the next thousand change nothing


def empirical_distribution(policy: bw.Policy) -> np.ndarray:
    """The empirical context distribution."""
    return np.asarray(policy.state.counts / policy.state.counts.sum())


@each
def test_probabilities_of_contexts_are_not_used(algorithm: Any) -> None:
    phi = random_problem(1).features
    distributions = ([0.25, 0.25, 0.25, 0.25], [0.97, 0.01, 0.01, 0.01])
    one, two = (algorithm.start(bw.Problem(features=phi, probabilities=g), rng=3) for g in distributions)
    rng = np.random.default_rng(2)
    for _ in range(100):
        x, loss = int(rng.choice(4, p=[0.1, 0.2, 0.3, 0.4])), float(rng.choice([-1.0, 1.0]))
        for policy in (one, two):
            decision = policy.act(x)
            policy.update(decision, loss=loss if decision.arm else -loss)
    assert bits(one) == bits(two)
    assert one.state.counts.sum() == 100


@pytest.mark.parametrize("kind", KINDS)
def test_exp4_with_true_frequencies_and_no_bonus_is_the_known_version(kind: Any) -> None:
    """No ridge, no bonus, counts in proportion to g; the known version without its exploration, at the same rate."""
    problem = random_problem(3, S=4, K=3, d=3)
    known = bw.LinearEXP4(horizon=400, policies=kind).start(problem, rng=5)
    seen = bw.LinearEXP4(horizon=400, policies=kind, contexts="empirical").start(problem, rng=5)
    living(seen).counts[...] = GREATEST * problem.probabilities
    eta = known._machine.options.eta
    set_options(known, gamma=0.0)
    set_options(seen, eta=eta, alpha=0.0, ridge=0.0, floor=0.0)
    assert play(known, 300) == play(seen, 300)
    assert seen.probabilities() == pytest.approx(known.probabilities(), rel=1e-7)
    assert np.ptp(seen.probabilities(), axis=1).max() > 0.3  # it learnt something


@pytest.mark.parametrize(("K", "d", "close"), [(3, 3, 1e-7), (3, 2, 1e-7), (5, 2, 0.02)])
def test_logdet_with_true_frequencies_and_no_bonus_is_the_known_version(K: int, d: int, close: float) -> None:
    """The same, where points are exact (K <= d + 1) and where they are computed to a duality gap."""
    problem = random_problem(3, S=3, K=K, d=d)
    known = bw.LogdetFTRL(horizon=400).start(problem, rng=5)
    seen = bw.LogdetFTRL(horizon=400, contexts="empirical", scale=0.0).start(problem, rng=5)
    living(seen).counts[...] = GREATEST * problem.probabilities
    gain = known._machine.options.squared_gain
    set_options(known, squared_gain=gain / 50, cap=math.inf, weight=0.0)
    set_options(seen, squared_gain=gain / 50, ridge=0.0)
    rounds = 200 if close < 1e-3 else 20
    assert play(known, rounds) == play(seen, rounds)
    assert seen.probabilities() == pytest.approx(known.probabilities(), abs=close)
    assert np.ptp(seen.probabilities(), axis=1).max() > 0.1


@pytest.mark.parametrize("problem", [random_problem(2, S=4, K=3, d=3), masked()], ids=["plain", "masked"])
def test_logdet_estimates_are_centred_and_biased_by_the_ridge_alone(problem: bw.Problem) -> None:
    """Under the empirical distribution E[theta_hat] = M Cov theta for any level of the losses; M = (Cov + beta)^-1."""
    policy = bw.LogdetFTRL(horizon=1000, contexts="empirical", scale=1e-4).start(problem, rng=1)
    d = problem.dimension
    theta = np.random.default_rng(5).normal(size=d)

    def check(policy: bw.Policy) -> None:
        if policy.updates == 0:
            assert policy.state.sigma.tolist() == np.eye(d + 1).tolist()
            return
        phi, beta = coordinates(policy)[:, :, :d], policy.state.rates[1]
        weights = empirical_distribution(policy)[:, None] * policy.probabilities()
        mean = np.einsum("xa,xai->i", weights, phi)
        cov = np.einsum("xa,xai,xaj->ij", weights, phi - mean, phi - mean)
        inverse = np.linalg.inv(cov + beta * np.eye(d))
        lifts = directions(policy)
        offered = problem.available
        expected = np.einsum("ij,xaj->xai", inverse, phi - mean)
        assert lifts[offered][:, :d] == pytest.approx(expected[offered], rel=1e-6, abs=1e-9)
        for level in (0.0, 0.7):
            found = np.einsum("xa,xai,xa->i", weights, lifts[:, :, :d], phi @ theta + level)
            assert found == pytest.approx(inverse @ cov @ theta, abs=1e-9)

    play(policy, 40, each=check)
    assert policy.state.counts.tolist() != [40 / len(problem.contexts)] * len(problem.contexts)


@pytest.mark.parametrize(("scale", "strong"), [(1.0, False), (0.01, False), (1.0, True)])
def test_logdet_losses_carry_the_bonus_and_points_are_scipys(scale: float, strong: bool) -> None:
    """Sums of <phi, theta_hat_s> - alpha_s |phi - mean_s|^2, kept by hand; then the point of a context by SLSQP.

    ``strong``: a larger rate and less ridge, so that the bonus decides.
    """
    problem = random_problem(4, S=2, K=5, d=2)
    T, d = 1000, 2
    policy = bw.LogdetFTRL(horizon=T, contexts="empirical", scale=scale).start(problem, rng=1)
    limit, ridge = 1 / (64 * d * scale), scale * 100 * 27 * math.log(3 * T)
    if strong:
        limit, ridge = 0.4, 0.5
        set_options(policy, limit=limit, ridge=ridge)
    phi = coordinates(policy)[:, :, :d]
    assert np.linalg.norm(phi, axis=2).max() == pytest.approx(1.0)
    sums, bonus, rng = np.zeros((2, 5)), np.zeros((2, 5)), np.random.default_rng(2)
    for t in range(1, 61):
        eta, beta = policy.state.rates
        known_rate = math.sqrt(3 * math.log(T) / (d * t))
        assert eta == pytest.approx(min(limit / math.sqrt(t), known_rate))
        assert beta == pytest.approx(ridge / max(t - 1, 1))
        n = max(policy.state.counts.sum(), 1)
        weights = (policy.state.counts / n)[:, None] * policy.probabilities()
        mean = np.einsum("xa,xai->i", weights, phi)
        cov = np.einsum("xa,xai,xaj->ij", weights, phi - mean, phi - mean)
        inverse = np.eye(d) if t == 1 else np.linalg.inv(cov + beta * np.eye(d))
        decision = policy.act(int(rng.integers(2)))
        loss = float(rng.choice([-1.0, 1.0]))
        policy.update(decision, loss=loss)
        sums += phi @ (inverse @ (phi[decision.context, decision.arm] - mean)) * loss
        bonus += scale * d / math.sqrt(t) * np.einsum("xai,ij,xaj->xa", phi - mean, inverse, phi - mean)
    sums -= bonus
    psi, eta = coordinates(policy), policy.state.rates[0]
    losses = psi @ policy.state.theta - np.einsum("xai,ij,xaj->xa", psi, policy.state.bonus, psi)
    assert losses - losses[0, 0] == pytest.approx(sums - sums[0, 0], abs=1e-9)

    def objective(q: np.ndarray) -> float:
        cov = psi[1].T @ (np.abs(q)[:, None] * psi[1])
        return float(eta * sums[1] @ q - np.linalg.slogdet(cov)[1])

    found = minimize(
        objective,
        np.full(5, 0.2),
        method="SLSQP",
        bounds=[(1e-12, 1)] * 5,
        constraints={"type": "eq", "fun": lambda q: q.sum() - 1.0},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert objective(policy.probabilities(1)) <= found.fun + GAP
    assert (eta * np.ptp(bonus[1]) > 0.5) == strong


@pytest.mark.parametrize("scale", [1.0, 0.0])
@pytest.mark.parametrize("kind", KINDS)
def test_exp4_weighs_policies_by_empirical_losses_less_bonuses(kind: Any, scale: float) -> None:
    """By brute force over the policies; theta_hat has the ridge's empirical bias; eta |l_hat| <= 1."""
    problem = random_problem(2, S=3, K=3, d=2, rarity=30.0)
    T, d = 50, 2
    policy = bw.LinearEXP4(horizon=T, policies=kind, contexts="empirical", scale=scale).start(problem, rng=1)
    listed = bw.LinearEXP4(horizon=T, policies="linear" if kind == "linear" else "listed", contexts="empirical")
    maps = listed.machine(problem).frame["policies"].astype(int)
    z, cells = coordinates(policy), np.arange(3)
    eta = math.sqrt(math.log(len(maps)) / (d * T))
    losses, rng, theta = np.zeros(len(maps)), np.random.default_rng(2), np.array([0.5, -0.4])
    for t in range(1, 41):
        weights = np.exp(-eta * (losses - losses.min()))
        expected = np.zeros((3, 3))
        for one, weight in zip(maps, weights / weights.sum(), strict=True):
            expected[cells, one] += weight
        assert policy.probabilities() == pytest.approx(expected, abs=1e-12)
        beta = max(eta, scale * d * math.log(3 * T) / max(t - 1, 1))
        assert policy.state.rates == pytest.approx([eta, beta])
        n = max(policy.state.counts.sum(), 1)
        ghat = policy.state.counts / n
        second = np.einsum("x,xa,xai,xaj->ij", ghat, expected, z, z)
        inverse = np.eye(d) if t == 1 else np.linalg.inv(second + beta * np.eye(d))
        found = np.einsum("x,xa,xai,xa->i", ghat, expected, directions(policy), z @ theta)
        assert found == pytest.approx(inverse @ second @ theta, abs=1e-12)
        decision = policy.act(int(rng.choice(3, p=problem.probabilities)))
        points = np.einsum("x,pxi->pi", ghat, z[cells, maps])
        levels = np.einsum("xai,ij,xaj->xa", z, inverse, z)
        assert decision.direction == pytest.approx(inverse @ z[decision.context, decision.arm])
        assert eta * np.abs(points @ inverse @ z.reshape(-1, d).T).max() <= 1.0 + 1e-9
        loss = float(rng.choice([-1.0, 1.0]))
        losses += points @ decision.direction * loss - scale * eta * (ghat * levels[cells, maps]).sum(axis=1)
        policy.update(decision, loss=loss)
    assert np.ptp(losses) > 1.0


def test_the_averaged_bonus_is_larger_than_that_of_the_average_and_has_the_mean_of_the_proof() -> None:
    """Jensen: |E phi|^2 <= E |phi|^2 for every policy; over the weights the latter is at most d."""
    problem = random_problem(5, S=4, K=3, d=3)
    policy = bw.LinearEXP4(horizon=500, policies="listed", contexts="empirical").start(problem, rng=1)
    play(policy, 100)
    z, ghat = coordinates(policy), empirical_distribution(policy)
    inverse = np.linalg.inv(policy.state.sigma)
    lev = np.einsum("xai,ij,xaj->xa", z, inverse, z)
    maps = policy._machine.frame["policies"].astype(int)
    points = np.einsum("x,pxi->pi", ghat, z[np.arange(4), maps])
    ours = (ghat * lev[np.arange(4), maps]).sum(axis=1)
    assert (ours >= np.einsum("pi,ij,pj->p", points, inverse, points)).all()
    assert np.einsum("x,xa,xa->", ghat, policy.probabilities(), lev) <= 3.0


@each
def test_contexts_are_counted_when_feedback_comes(algorithm: Any) -> None:
    policy = algorithm.start(random_problem(1), rng=1)
    waiting = policy.act([0, 1, 1, 3])
    assert not policy.state.counts.any()
    policy.update(waiting[3], loss=0.5)
    policy.update(waiting[1:3], loss=[0.5, -0.5])
    assert policy.state.counts.tolist() == [0.0, 2.0, 0.0, 1.0]


@each
def test_they_conform_and_survive_files(algorithm: Any, tmp_path: Path) -> None:
    assert bw.check_algorithm(algorithm) == []
    policy = algorithm.start(masked(), rng=1)
    play(policy, 30)
    policy.save(tmp_path / "p.npz")
    copy = bw.load(tmp_path / "p.npz")
    assert repr(copy.algorithm) == repr(algorithm)
    assert play(copy, 30) == play(policy, 30)
    assert bits(copy) == bits(policy)


@each
def test_interpreted_and_compiled_runs_agree_bit_for_bit(algorithm: Any) -> None:
    one, two = (algorithm.start(masked(), rng=9, interpreted=flag) for flag in (False, True))
    assert play(one, 150) == play(two, 150)
    assert bits(one) == bits(two)


def test_published_constants_play_evenly_and_scaled_ones_learn() -> None:
    """research/algorithms.md has the computation."""
    world = en.stochastic(en.random_instance(contexts=3, arms=3, dimension=2, gap=0.4, seed=2))
    decision: dict[str, Any] = {
        "published": bw.LogdetFTRL(horizon=20_000, contexts="empirical"),
        "scaled": bw.LogdetFTRL(horizon=20_000, contexts="empirical", scale=0.001),
        "exp4": bw.LinearEXP4(horizon=20_000, contexts="empirical"),
        "uniform": bw.FixedPolicy(),
    }
    run = bw.simulate(world, decision, horizon=20_000, replications=4)
    share = {name: run[name].regret[-1] / run["uniform"].regret[-1] for name in decision}
    assert share["published"] > 0.9  # 0.995 with this seed
    assert share["scaled"] < 0.1  # 0.024
    assert share["exp4"] < 0.1  # 0.036


@pytest.mark.parametrize("kind", [bw.LinearEXP4, bw.LogdetFTRL])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"contexts": "some"}, "contexts must be one of"),
        ({"contexts": "empirical", "scale": -1.0}, "scale"),
        ({"contexts": "empirical", "design": "uniform"}, "needs the probabilities"),
        ({"scale": 0.5}, "contexts='known' has neither"),
    ],
)
def test_wrong_options_are_refused(kind: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        kind(horizon=100, **options)
