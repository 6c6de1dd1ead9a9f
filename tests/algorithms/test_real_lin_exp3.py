"""RealLinExp3 and RobustLinExp3: Exp3 as a special case, their tunings, and what Matrix Geometric Resampling does."""

import math
import warnings
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.registry import make_algorithm
from bothworlds.kernels.random import ARM, draw, two_uniforms
from bothworlds.theory.armwise import Scales, armwise_frame
from bothworlds.theory.exp_weights_rates import exact_rates, log_bias, printed_rates, resampled_rates, robust_rates
from support.armwise_problems import context_coordinates, independent_problem, masked_problem, spectral_filter
from support.problems import coordinates, play, random_problem, set_plan

BOTH = [bw.RealLinExp3(horizon=500), bw.RobustLinExp3(horizon=500)]


def exp3_against(policy: bw.Policy, shares: list[float], rounds: int, key: int) -> None:
    """Play a policy beside one Exp3 per context, its estimates divided by the context's share, on the same numbers."""
    eta, gamma = policy.state.rates
    K = policy.problem.n_arms
    totals = np.zeros((len(shares), K))
    rng = np.random.default_rng(1)
    for time in range(1, rounds + 1):
        x = int(rng.choice(len(shares), p=shares))
        weights = np.exp(-eta * (totals[x] - totals[x].min()))
        pi = (1 - gamma) * weights / weights.sum() + gamma / K
        decision = policy.act(x)
        assert decision.arm == draw(pi, two_uniforms(key, time, ARM, 0)[0])
        assert decision.propensity == pytest.approx(pi[decision.arm], rel=1e-10)
        loss = float(rng.choice([-1.0, 1.0]))
        totals[x, decision.arm] += loss / (shares[x] * pi[decision.arm])
        policy.update(decision, loss=loss)
    assert np.ptp(policy.probabilities()) > 0.1


@pytest.mark.parametrize("algorithm", BOTH, ids=repr)
def test_one_constant_context_is_exp3(algorithm: Any) -> None:
    """The textbook rates, eta = sqrt(log K/(3 K T)) and gamma = K eta for RealLinExp3, and the same decisions."""
    problem = bw.Problem.from_arm_independent([[1.0]], probabilities=[1.0], arms=4)
    policy = algorithm.start(problem, rng=3)
    if isinstance(algorithm, bw.RealLinExp3):
        eta = math.sqrt(math.log(4) / (12 * 500))
        assert policy.state.rates == pytest.approx([eta, 4 * eta], rel=1e-12)
    exp3_against(policy, [1.0], 500, 3)


@pytest.mark.parametrize("algorithm", BOTH, ids=repr)
def test_unit_vectors_are_one_exp3_per_context(algorithm: Any) -> None:
    """Importance weights are 1/(g(x) pi(a|x))."""
    shares = [0.5, 0.3, 0.2]
    problem = bw.Problem.from_arm_independent(np.eye(3), probabilities=shares, arms=3)
    exp3_against(algorithm.start(problem, rng=5), shares, 500, 5)


@pytest.mark.parametrize("problem", [independent_problem(1, K=2, d=2), masked_problem()], ids=["plain", "masked"])
def test_resampled_estimates_have_the_stated_bias(problem: bw.Problem) -> None:
    """The mean over fresh draws is the spectral filter of Sigma_{t,a}, arm by arm, within 4 standard errors."""
    draws = 12
    policy = bw.RealLinExp3(horizon=10_000, covariance=bw.MGR(samples=draws)).start(problem, rng=5)
    table = np.where(problem.available, [0.6] + [0.4] * (problem.n_arms - 1), 0.0)
    set_plan(policy, table / table.sum(axis=1, keepdims=True))
    x, g, pi = context_coordinates(policy), problem.probabilities, policy.probabilities()
    beta = policy._machine.options.fixed.resampling.beta
    assert beta == pytest.approx(0.5 / (x**2).sum(axis=1).max())
    for context in (0, 3):
        decisions = policy.act([context] * 12_000)
        for arm in np.flatnonzero(problem.available[context]):
            found = np.array([decision.direction for decision in decisions if decision.arm == arm])
            sigma = np.einsum("x,xi,xj->ij", g * pi[:, arm], x, x)
            expected = spectral_filter(sigma, beta, draws) @ x[context]
            exact = np.linalg.pinv(sigma, rcond=1e-10) @ x[context]
            error = found.std(axis=0) / math.sqrt(len(found))
            assert np.abs((found.mean(axis=0) - expected) / error).max() < 4.0
            assert np.abs((found.mean(axis=0) - exact) / error).max() > 20.0  # twelve draws are few


def test_resampling_with_arm_dependent_features_counts_every_draw() -> None:
    problem = random_problem(14, S=3, K=3, d=2)
    algorithm = bw.RealLinExp3(horizon=10_000, features="arm-dependent", covariance=bw.MGR(samples=12))
    policy = algorithm.start(problem, rng=5)
    z, g, pi = coordinates(policy), problem.probabilities, policy.probabilities()
    beta = policy._machine.options.resampling.beta
    decisions = policy.act([0] * 12_000)
    expected = spectral_filter(np.einsum("x,xa,xai,xaj->ij", g, pi, z, z), beta, 12)
    for arm in range(3):
        found = np.array([decision.direction for decision in decisions if decision.arm == arm])
        error = found.std(axis=0) / math.sqrt(len(found))
        assert np.abs((found.mean(axis=0) - expected @ z[0, arm]) / error).max() < 4.0


def test_with_the_theorems_draws_the_bias_is_within_its_bound_and_so_is_the_variance() -> None:
    """Bias of a loss at most sigma R exp(-gamma M/(2 W)) <= 1/sqrt(T); mean square at most 3 K d, at pi_1."""
    horizon, problem = 3000, independent_problem(1, K=2, d=2)
    policy = bw.RealLinExp3(horizon=horizon, covariance=bw.MGR()).start(problem, rng=5)
    scales = Scales(*armwise_frame(problem)["scales"])
    _, gamma, (beta, draws, _) = policy._machine.options.fixed
    x, g = context_coordinates(policy), problem.probabilities
    bound = math.sqrt(scales.norm) * math.exp(-gamma * draws / (2 * scales.resampling))
    assert bound <= 1 / math.sqrt(horizon) * (1 + 1e-9)
    # the policy that exploration alone keeps away from a singular matrix
    sigma = gamma / 2 * np.eye(2)
    remainder = np.eye(2) - sigma @ spectral_filter(sigma, beta, int(draws))
    assert np.linalg.norm(remainder, 2) * math.sqrt(scales.norm) <= bound
    decisions = policy.act(np.random.default_rng(0).choice(5, size=1500, p=g))
    squares = [np.einsum("x,x->", g, (x @ decision.direction) ** 2) / 2 for decision in decisions]  # pi_1 = 1/2
    mean, error = np.mean(squares), np.std(squares) / math.sqrt(1500)
    assert mean + 4 * error > 1.0 * 2 * 2  # the exact inverse has K d = 4
    assert mean + 4 * error < 3 * 2 * 2  # 4.56 + 4 x 0.11


SIZES = [
    (K, d, T, spread)
    for K in (2, 3, 10, 500)
    for d in (1, 2, 50)
    for T in (1, 100, 10**6, 10**12)
    for spread in (1, 30)
]


@pytest.mark.parametrize(("K", "d", "T", "spread"), SIZES)
def test_every_rate_meets_the_condition_of_its_theorem_but_the_printed_one(K: int, d: int, T: int, spread: int) -> None:
    """eta |l_hat| <= 1 and gamma <= 1; printed, eta (M + 1) > 2 for every T as soon as K d log K >= 4."""
    scales = Scales(K * d, K * d * spread, d * spread, 1 / K, 1.0)
    exact = exact_rates(T, n_arms=K, scales=scales)
    assert exact.eta * scales.leverage / exact.gamma <= 1 + 1e-12
    resampled = resampled_rates(T, n_arms=K, scales=scales)
    assert resampled.eta * (resampled.samples + 1) <= 2
    robust = robust_rates(T, n_arms=K, scales=scales)
    assert robust.eta * scales.leverage / robust.gamma <= 1 + 1e-12
    printed = printed_rates(T, n_arms=K, scales=scales)
    assert max(exact.gamma, resampled.gamma, robust.gamma, printed.gamma) <= 1
    if printed.unclipped_gamma <= 1:
        step = scales.resampling * math.sqrt(math.log(K) / (K * d))
        assert printed.eta * printed.samples == pytest.approx(step, rel=1.01 / printed.samples + 1e-9)
        if K * d * math.log(K) >= 4:
            assert printed.eta * (printed.samples + 1) > 2


def test_the_rates_are_the_stationary_points_of_the_bounds() -> None:
    """No eta near the chosen one gives a smaller bound, exploration and draws following the constraint."""
    scales, T, K = Scales(6, 15, 4, 1 / 3, 1.0), 10**6, 3
    ell = log_bias(T, scales)

    def exact_bound(eta: float) -> float:
        return 2 * eta * 15 * T + eta * 6 * T + math.log(K) / eta

    def resampled_bound(eta: float) -> float:
        return 2 * eta * 12 * ell * T + 3 * eta * 6 * T + math.log(K) / eta

    for bound, make in ((exact_bound, exact_rates), (resampled_bound, resampled_rates)):
        eta = make(T, n_arms=K, scales=scales).eta
        assert bound(eta) < min(bound(0.99 * eta), bound(1.01 * eta))
    assert exact_bound(exact_rates(T, n_arms=K, scales=scales).eta) == pytest.approx(
        2 * math.sqrt(T * (6 + 30) * math.log(K))
    )


def test_robust_rates_by_hand_and_by_scaling() -> None:
    """K = 2, D = 4: gamma = (D log K/T)^(1/3), eta = (log K)^(2/3) T^(-2/3) D^(-1/3), and the bound of both."""
    scales, log_arms = Scales(4, 4, 2, 0.5, 1.0), math.log(2)
    rates = {T: robust_rates(T, n_arms=2, scales=scales) for T in (10**6, 8 * 10**6, 10**9)}
    one, eight, many = rates.values()
    assert one.gamma == pytest.approx((4 * log_arms) ** (1 / 3) / 100)
    assert one.eta == pytest.approx(log_arms ** (2 / 3) / 10**4 / 4 ** (1 / 3))
    assert [eight.gamma / one.gamma, eight.eta / one.eta] == pytest.approx([1 / 2, 1 / 4])
    assert [many.gamma / one.gamma, many.eta / one.eta] == pytest.approx([1 / 10, 1 / 100])

    def bound(eta: float, gamma: float, T: float) -> float:
        return 2 * gamma * T + 4 * eta * T / gamma + log_arms / eta

    for T, (eta, gamma, *_) in rates.items():
        assert bound(eta, gamma, T) == pytest.approx(4 * T ** (2 / 3) * (4 * log_arms) ** (1 / 3))
        assert bound(eta, gamma, T) < min(bound(0.9 * eta, gamma, T), bound(1.1 * eta, gamma, T))


def test_the_printed_tuning_warns_with_its_arithmetic() -> None:
    problem = independent_problem(1)
    for horizon in (1000, 10**9):
        with pytest.warns(bw.TuningWarning, match=r"eta \(M \+ 1\) = .* > 2.*No horizon helps"):
            bw.RealLinExp3(horizon=horizon, covariance=bw.MGR(), tuning="printed").machine(problem)
    bw.RealLinExp3(horizon=10**6, covariance=bw.MGR()).machine(problem)  # no warning
    one = bw.Problem.from_arm_independent([[1.0]], probabilities=[1.0], arms=2)  # K d log K = 1.4
    bw.RealLinExp3(horizon=10**6, covariance=bw.MGR(), tuning="printed").machine(one)
    with pytest.warns(bw.TuningWarning, match="Fewer draws"):
        bw.RealLinExp3(horizon=10**6, covariance=bw.MGR(samples=10**6)).machine(problem)


@pytest.mark.parametrize("options", [{}, {"covariance": bw.MGR()}, {"features": "arm-dependent"}, None], ids=str)
def test_a_short_horizon_plays_uniformly_and_names_one_that_would_do(options: dict[str, Any] | None) -> None:
    problem = independent_problem(1)

    def algorithm_for(horizon: int) -> Any:
        return bw.RobustLinExp3(horizon=horizon) if options is None else bw.RealLinExp3(horizon=horizon, **options)

    with pytest.warns(bw.TuningWarning, match="gamma = .* is clipped to 1") as caught:
        policy = algorithm_for(1).start(problem, rng=1, interpreted=True)
    decision = policy.act(0)
    policy.update(decision, loss=1.0)
    uniform = policy._machine.known.e
    assert policy.probabilities() == pytest.approx(uniform, rel=1e-12)
    enough = int(str(caught[0].message).split("horizon of at least ")[1].split(" or")[0].split(";")[0].replace(",", ""))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        algorithm_for(enough).machine(problem)
    with pytest.warns(bw.TuningWarning, match="clipped"):
        algorithm_for(int(0.97 * enough)).machine(problem)


def test_draws_follow_the_policy() -> None:
    """Chi-square of the arms of 5,000 decisions, after learning: below the 0.999 quantile for 3 - 1 degrees."""
    policy = bw.RealLinExp3(horizon=400).start(independent_problem(1), rng=6)
    play(policy, 300)
    expected = 5000 * policy.probabilities(1)
    counts = np.bincount([decision.arm for decision in policy.act([1] * 5000)], minlength=3)
    assert float(((counts - expected) ** 2 / expected).sum()) < 13.8
    assert np.ptp(expected) > 200


def test_it_withstands_an_adversary_and_keeps_its_bound() -> None:
    """Regret against an adversary that sees the policy stays below 2 sqrt(T (K d + 2/lambda) log K)."""
    problem = independent_problem(1)
    theta = np.random.default_rng(1).normal(size=9)
    theta *= 0.8 / np.abs(problem.features @ theta).max()
    world = en.adaptive_adversary(problem, en.opposite(theta))
    T = 20_000
    algorithms = {"real": bw.RealLinExp3(horizon=T), "robust": bw.RobustLinExp3(horizon=T)}
    calm = bw.simulate(en.stochastic(en.Instance(problem, theta)), algorithms, horizon=T, replications=4)
    hostile = bw.simulate(world, algorithms, horizon=T, replications=4)
    scales = Scales(*armwise_frame(problem)["scales"])
    bound = 2 * math.sqrt(T * (scales.dimension + 2 * scales.leverage) * math.log(3))
    for results in (calm, hostile):
        assert results["real"].regret[-1] < bound  # 1048 and 97 of 2221
    uniform = bw.simulate(en.stochastic(en.Instance(problem, theta)), bw.FixedPolicy(), horizon=T)
    assert calm["real"].regret[-1] < 0.4 * uniform["FixedPolicy(uniform)"].regret[-1]  # 1048 of 3507
    assert calm["robust"].regret[-1] < 0.5 * uniform["FixedPolicy(uniform)"].regret[-1]  # 1458


def test_studies_know_them() -> None:
    decision = make_algorithm(
        {"kind": "RealLinExp3", "horizon": 100, "covariance": {"kind": "mgr"}, "tuning": "printed"}
    )
    assert decision == bw.RealLinExp3(horizon=100, covariance=bw.MGR(), tuning="printed")
    assert make_algorithm({"kind": "RobustLinExp3", "horizon": 100}) == bw.RobustLinExp3(horizon=100)
    with pytest.raises(ValueError, match="horizon"):
        make_algorithm({"kind": "FTRLLC"})
