"""The inequality that pays for changes by hand of mu and beta (research/changing-worlds.md), on paths."""

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.lc_tsallis.reference import ftrl_points
from bothworlds.arrays import Floats


def negative_entropy(q: Floats) -> Floats:
    """Return psi(q) of every context."""
    return np.asarray(-2.0 * (np.sqrt(q).sum(axis=1) - 1.0))


def minimum(losses: Floats, beta: float) -> Floats:
    """Return min_q [<losses, q> + beta psi(q)] of every context."""
    q = ftrl_points(losses, 1.0 / beta, 0.5)
    return np.asarray((q * losses).sum(axis=1) + beta * negative_entropy(q))


def potential(got: float, z: Floats, g: Floats, theta: Floats, mu: Floats, beta: float) -> float:
    """Return S = got - min_q [<Theta + mu, q> + beta psi(q)] + E_X max_a <mu, phi>."""
    return float(got + g @ ((z @ mu).max(axis=1) - minimum(z @ (theta + mu), beta)))


def stability(delta: Floats, q: Floats, beta: float) -> Floats:
    """Return max_p [<delta, q - p> - beta D(p, q)] of every context, D the Bregman divergence of psi."""
    there = minimum(delta + beta / np.sqrt(q), beta)
    return np.asarray((delta * q).sum(axis=1) - there + beta * (negative_entropy(q) + np.sqrt(q).sum(axis=1)))


def least_slack(seed: int) -> float:
    """Change mu and beta by hand up to some moment; return the least slack, later, over prefixes and comparators."""
    rng = np.random.default_rng(seed)
    S, K, d, rounds = 3, 4, 3, 40
    z, g, moment = rng.normal(size=(S, K, d)), rng.dirichlet(np.ones(S)), int(rng.integers(0, rounds))
    theta, mu, beta, got, slack, bound = np.zeros(d), np.zeros(d), 2.0, 0.0, np.inf, 0.0
    for t in range(rounds):
        m, before = 0.3 * rng.normal(size=d), beta
        if t <= moment:
            mu, beta = rng.choice([0.0, 1.0, 20.0]) * rng.normal(size=d), float(np.exp(rng.normal()))
        else:
            beta *= float(np.exp(rng.uniform(-0.2, 0.4)))
        if t == moment:
            bound = potential(got, z, g, theta, mu, beta)
        q = ftrl_points(z @ (theta + mu + m), 1.0 / beta, 0.5)
        if t > moment:
            bound += (beta - before) * float(g @ -negative_entropy(q))
        estimate = rng.choice([0.1, 3.0]) * rng.normal(size=d)
        got, theta = got + float(g @ (q * (z @ estimate)).sum(axis=1)), theta + estimate
        if t >= moment:
            bound += float(g @ stability(z @ (estimate - m), q, beta))
            slack = min(slack, bound - (got - float(g @ (z @ theta).min(axis=1))))
    return slack


@pytest.mark.parametrize("seed", range(40))
def test_playing_on_costs_at_most_the_potential_and_what_the_account_grows_by(seed: int) -> None:
    assert least_slack(seed) >= -1e-8


def test_the_inequality_is_not_far_from_what_happens() -> None:
    assert min(least_slack(seed) for seed in range(40)) < 10.0


@pytest.mark.parametrize("drift_cap", [0.1, 1.0])
def test_the_rule_keeps_the_potential_within_its_account(drift_cap: float) -> None:
    """A world that turns round: S of the mu and beta of every plan is at most the account."""
    instance = en.random_instance(contexts=4, arms=3, dimension=3, gap=0.3, seed=2)
    problem, means = instance.problem, instance.problem.features @ instance.theta
    tuning = bw.Matched(drift_cap=drift_cap)
    policy, rng = bw.LCTsallisINF(tuning=tuning).start(problem, rng=3), np.random.default_rng(1)
    z, g, got, shares, restarts = policy._machine.known.z, problem.probabilities, 0.0, [], 0.0
    for t in range(1_000):
        state = policy.state
        q, theta = state.q.copy(), state.theta.copy()
        decision = policy.act(int(rng.choice(4, p=g)))
        mean = float(means[decision.context, decision.arm]) * (1.0 if t < 600 else -1.0)
        policy.update(decision, loss=rng.choice([-1.0, 1.0], p=[(1.0 - mean) / 2.0, (1.0 + mean) / 2.0]))
        state = policy.state
        got += float(g @ (q * (z @ (state.theta - theta))).sum(axis=1))
        assert float(state.got[0]) == pytest.approx(got, abs=1e-6 * (1.0 + abs(got)))
        beta = float(state.inverse_rate[0])
        shares.append(potential(got, z, g, state.theta, state.drift, beta) / float(state.account[0]))
        restarts = float(state.restarts[0])
        regret = got - float(g @ (z @ state.theta).min(axis=1))
        assert regret <= float(state.account[0]) + 1e-9
    assert max(shares) <= 1.0 + 1e-6
    assert max(shares) > 0.5, "the limit matters"
    assert restarts >= 1.0
