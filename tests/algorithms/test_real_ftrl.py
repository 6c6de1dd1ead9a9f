"""BoBW-RealFTRL: its rates by hand, unbiasedness, its theorem's precondition, and its simpler case."""

import math
from pathlib import Path

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.kernels.random import ARM, draw, two_uniforms
from support.problems import bits, coordinates, directions, play, random_problem


def entropy(q: np.ndarray) -> float:
    return float(-(q * np.log(q)).sum())


@pytest.mark.parametrize("horizon", [1000, None])
def test_rates_follow_appendix_d_with_the_cap(horizon: int | None) -> None:
    problem = random_problem(1, S=3, K=4, d=2)
    algorithm = bw.RealFTRL(horizon=horizon)
    policy = algorithm.start(problem, rng=1)
    lam, d = bw.design(problem).coverage, 2
    sums = 0.0

    def base(t: int) -> float:
        return math.sqrt((1 / lam + d) * (math.log(1 + t) if horizon is None else math.log(horizon)) / math.log(4))

    inverse_rate = base(1)
    for t in range(1, 200):
        eta = 1 / max(inverse_rate, 2 / lam)
        assert policy.state.rates == pytest.approx([eta, eta / lam], rel=1e-10)
        assert policy.state.rates[1] <= 0.5 + 1e-12
        q = policy.state.q.copy()
        assert q == pytest.approx(bw.ftrl_point(coordinates(policy) @ policy.state.theta, learning_rate=eta, alpha=1.0))
        sums += float(problem.probabilities @ [entropy(row) for row in q])
        play(policy, 1, seed=t)
        inverse_rate += base(t) / math.sqrt(1 + sums / math.log(4))


def test_estimates_are_unbiased_and_steps_bounded_in_every_round() -> None:
    """E[theta_hat] = theta by enumeration, and eta |l_hat| <= 1 for all arms, contexts and plays."""
    policy = bw.RealFTRL(horizon=10_000).start(random_problem(2, S=4, K=3, d=3, rarity=100.0), rng=1)
    theta = np.array([0.4, -0.3, 0.2])

    def check(policy: bw.Policy) -> None:
        z, d = coordinates(policy), directions(policy)
        weights = policy.problem.probabilities[:, None] * policy.probabilities()
        mean = np.einsum("xa,xai,xa->i", weights, d, z @ theta)
        condition = float(np.linalg.cond(policy.state.sigma))
        assert np.abs(mean - theta).max() <= 100 * 2.2e-16 * condition
        estimates = np.abs(z.reshape(-1, 3) @ d.reshape(-1, 3).T)
        assert policy.state.rates[0] * estimates.max() <= 1.0 + 1e-9

    play(policy, 60, each=check)


def test_one_context_with_unit_features_is_exp3_with_an_adaptive_rate() -> None:
    """S = 1, phi = one-hot: exponential weights on importance-weighted losses, arm by arm."""
    K = 3
    problem = bw.Problem(features=np.eye(K)[None], probabilities=[1.0])
    explore = bw.Design.of(problem, np.full((1, K), 1 / K))
    policy = bw.RealFTRL(horizon=500, design=explore).start(problem, rng=3)
    total = np.zeros(K)
    rng = np.random.default_rng(1)
    for time in range(1, 301):
        eta, gamma = policy.state.rates
        weights = np.exp(-eta * (total - total.min()))
        pi = (1 - gamma) * weights / weights.sum() + gamma / K
        decision = policy.act(0)
        assert decision.arm == draw(pi, two_uniforms(3, time, ARM, 0)[0])
        assert decision.propensity == pytest.approx(pi[decision.arm], rel=1e-10)
        loss = float(rng.choice([-1.0, 1.0]))
        total[decision.arm] += loss / pi[decision.arm]
        policy.update(decision, loss=loss)


def test_it_conforms_learns_and_survives_files(tmp_path: Path) -> None:
    algorithm = bw.RealFTRL(horizon=20_000)
    assert bw.check_algorithm(algorithm) == []
    world = en.stochastic(en.random_instance(contexts=4, arms=3, dimension=2, gap=0.4, seed=2))
    run = bw.simulate(world, {"a": algorithm, "u": bw.FixedPolicy()}, horizon=20_000, replications=4)
    assert run["a"].regret[-1] < 0.15 * run["u"].regret[-1]  # 0.08 with this seed
    late = run["a"].regret[-1] - run["a"].regret[np.searchsorted(run.checkpoints, 10_000)]
    assert late < 0.25 * run["a"].regret[-1]  # flattening: half of the rounds, far less than half of the regret
    policy = algorithm.start(world.problem, rng=1)
    play(policy, 20)
    policy.save(tmp_path / "p.npz")
    assert play(bw.load(tmp_path / "p.npz"), 30) == play(policy, 30)


def test_interpreted_and_compiled_runs_agree_bit_for_bit() -> None:
    problem = random_problem(5)
    one, two = (bw.RealFTRL().start(problem, rng=9, interpreted=flag) for flag in (False, True))
    assert play(one, 300) == play(two, 300)
    assert bits(one) == bits(two)


@pytest.mark.parametrize(("options", "words"), [({"horizon": 1}, "horizon"), ({"design": "x"}, "unknown design")])
def test_wrong_options_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bw.RealFTRL(**options)  # type: ignore[arg-type]
