"""FTRL-LC: its rates by hand, draws and exploration, and learning in both worlds."""

import math

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.exponential import ftrl_lc
from bothworlds.kernels.random import ARM, draw, two_uniforms
from bothworlds.theory.armwise import Scales, armwise_frame
from support.armwise_problems import context_coordinates, independent_problem, masked_problem
from support.problems import play


def entropy(q: np.ndarray) -> float:
    return float(-(q[q > 0] * np.log(q[q > 0])).sum())


@pytest.mark.parametrize("problem", [independent_problem(1), masked_problem()], ids=["plain", "masked"])
@pytest.mark.parametrize("resampled", [False, True], ids=["exact", "MGR"])
def test_rates_draws_and_points_follow_the_paper(problem: bw.Problem, resampled: bool) -> None:
    """By hand from the observed contexts; 1/eta_t never decreases, gamma_t <= 1/2, M_t = 1/eta_t rounded up."""
    horizon, rounds = (40, 50) if resampled else (10_000, 300)
    algorithm = bw.FTRLLC(horizon=horizon, covariance=bw.MGR() if resampled else "exact")
    policy = algorithm.start(problem, rng=1)
    scales = Scales(*armwise_frame(problem)["scales"])
    log_T, log_K = math.log(horizon), math.log(3)
    if resampled:
        first = math.sqrt((3 * scales.dimension + 2 * scales.resampling * log_T) * log_T / log_K)
        cap = max(2.0, 8 * scales.resampling * log_T)
    else:
        first = math.sqrt((scales.dimension + 2 * scales.leverage) * log_T / log_K)
        cap = max(2.0, 2 * scales.leverage)
    inverse_rate, sums, before = first, 0.0, 0.0
    x = context_coordinates(policy)
    rng = np.random.default_rng(4)
    for t in range(1, rounds + 1):
        eta = 1 / max(cap, inverse_rate)
        gamma = 4 * scales.resampling * math.log(min(t, horizon)) * eta if resampled else scales.leverage * eta
        assert policy.state.rates == pytest.approx([eta, gamma], rel=1e-10)
        assert policy.state.rates[1] <= 0.5 + 1e-12
        assert policy.state.inverse_rate[0] > before
        before = float(policy.state.inverse_rate[0])
        if resampled:
            draws = ftrl_lc.draws(policy._machine.options, policy.state)
            assert draws == (1 if t == 1 else math.ceil(1 / eta * (1 - 1e-13)))
            if 1 < t <= horizon:
                assert draws == math.ceil(4 * scales.resampling * math.log(t) / gamma * (1 - 1e-12))
        losses = np.where(problem.available, x @ policy.state.arms.T, np.inf)
        q = np.exp(-eta * (losses - losses.min(axis=1, keepdims=True)))
        q /= q.sum(axis=1, keepdims=True)
        assert policy.probabilities() == pytest.approx((1 - gamma) * q + gamma * policy._machine.known.e, rel=1e-9)
        decision = policy.act(int(rng.choice(5, p=problem.probabilities)))
        policy.update(decision, loss=float(rng.choice([-1.0, 1.0])))
        sums += entropy(q[decision.context])
        inverse_rate += first / math.sqrt(1 + sums / log_K)


def test_one_constant_context_is_exp3_with_an_adaptive_rate() -> None:
    K = 3
    problem = bw.Problem.from_arm_independent([[1.0]], probabilities=[1.0], arms=K)
    policy = bw.FTRLLC(horizon=2000).start(problem, rng=3)
    total = np.zeros(K)
    rng = np.random.default_rng(1)
    first = inverse_rate = math.sqrt((K + 2 * K) * math.log(2000) / math.log(K))
    sums = 0.0
    for time in range(1, 1001):
        eta = 1 / max(2 * K, inverse_rate)
        q = np.exp(-eta * (total - total.min()))
        q /= q.sum()
        pi = (1 - eta * K) * q + eta
        decision = policy.act(0)
        assert decision.arm == draw(pi, two_uniforms(3, time, ARM, 0)[0])
        assert decision.propensity == pytest.approx(pi[decision.arm], rel=1e-10)
        loss = float(rng.random() < 0.5) if decision.arm == 0 else 1.0
        total[decision.arm] += loss / pi[decision.arm]
        sums += entropy(q)
        inverse_rate += first / math.sqrt(1 + sums / math.log(K))
        policy.update(decision, loss=loss)
    assert policy.probabilities(0)[0] > 0.5  # 0.57 with this seed


def test_the_first_round_of_resampling_is_uniform_with_one_draw() -> None:
    """gamma_1 = 0 and M_1 = 1: the direction is beta (x + Y_1), Y_1 = x or x less a multiple of one context."""
    policy = bw.FTRLLC(horizon=1000, covariance=bw.MGR()).start(independent_problem(1), rng=2)
    assert policy.state.rates[1] == 0.0
    x, beta = context_coordinates(policy), policy._machine.options.resampling.beta
    for decision in policy.act([0] * 20):
        rest = decision.direction / beta - 2 * x[0]
        multiples = [np.linalg.norm(rest + beta * (x[0] @ y) * y) for y in x]
        assert min(np.linalg.norm(rest), *multiples) < 1e-12


def test_it_learns_and_flattens_in_a_calm_world_and_withstands_a_hostile_one() -> None:
    x = [[1.0, 0.0], [0.6, 0.8], [-0.3, 1.0]]
    problem = bw.Problem.from_arm_independent(x, probabilities=[0.4, 0.3, 0.3], arms=2)
    theta = np.array([0.5, 0.3, -0.5, -0.3])
    algorithms = {"a": bw.FTRLLC(horizon=20_000), "u": bw.FixedPolicy()}
    options = {"horizon": 20_000, "replications": 4, "checkpoints": [10_000]}
    calm = bw.simulate(en.stochastic(en.Instance(problem, theta)), algorithms, **options)  # type: ignore[arg-type]
    half, whole = calm["a"].regret
    assert whole < 0.25 * calm["u"].regret[-1]  # 1510 of 8140
    assert whole - half < 0.35 * whole  # 392: half of the rounds, a quarter of the regret
    hostile = bw.simulate(en.adaptive_adversary(problem, en.opposite(theta)), algorithms, **options)  # type: ignore[arg-type]
    assert hostile["a"].regret[-1] < 0.02 * calm["u"].regret[-1]  # 11


def test_after_the_horizon_exploration_stays_at_most_one_half() -> None:
    policy = bw.FTRLLC(horizon=2, covariance=bw.MGR()).start(independent_problem(1), rng=1)
    play(policy, 30)
    assert policy.state.rates[1] <= 0.5
