"""The account of a path of the matched tuning: the sums of Theorem 1, as the learner itself keeps them."""

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.kernels.arrays import Floats
from bothworlds.theory.lemmas.matching import step_cost
from worlds import random_problem

C = bw.Matched().c


def spent(
    policy: bw.Policy, theta: Floats, q: Floats, eta: float, foreseen: Floats, faded: float
) -> tuple[float, bool]:
    """Return z_t, or u_t, as docs/theory.md has them, of the estimate that has come to ``theta`` since.

    What is kept has been divided by ``faded`` then. And whether the step was covered.
    """
    problem = policy.problem
    z = bw.LCTsallisINF().machine(problem).known.z
    estimate = policy.state.theta * faded - theta
    delta = z @ (estimate - foreseen)
    middle = (q**1.5 * delta).sum(axis=1, keepdims=True) / (q**1.5).sum(axis=1, keepdims=True)
    y = (delta - middle) * np.sqrt(q) * eta
    if np.abs(y).max() > C:
        costs = [step_cost(row, losses, beta=1.0 / eta, c=C) for row, losses in zip(q, delta, strict=True)]
        return float(problem.probabilities @ costs), False
    terms = np.sqrt(q) / eta * y**2 * (1.0 - y + y**2 / (1.0 - C))
    return float(problem.probabilities @ terms.sum(axis=1)), True


def entropy(policy: bw.Policy) -> float:
    """Return h = E_X[-psi(q)]."""
    return float(policy.problem.probabilities @ (2.0 * (np.sqrt(policy.state.q).sum(axis=1) - 1.0)))


@pytest.mark.parametrize("seed", [1, 2])
def test_an_account_is_what_steps_exploration_and_penalties_cost(seed: int) -> None:
    problem = random_problem(seed, S=3, K=3, d=2)
    policy = bw.LCTsallisINF(tuning=bw.Matched(caution=4.0)).start(problem, rng=seed, interpreted=True)
    rng = np.random.default_rng(seed)
    expected = entropy(policy) / float(policy.state.rates[0])
    covered, fades, b = 0, 0, policy._machine.options.covered
    for t in range(1, 80):
        assert float(policy.learnt()["account"][0]) == pytest.approx(expected, rel=1e-9)
        state = policy.state
        theta, q, eta, foreseen = state.theta.copy(), state.q.copy(), float(state.rates[0]), state.baseline.copy()
        price = float(state.paid[0])
        policy.state.evidence[0] = 1e9 if t % 3 == 0 else 0.0
        counted = float(policy.state.counted[0])
        assert 1.0 / eta < b
        assert price == 2.0 * float(state.rates[1])
        policy.update(policy.act(int(rng.integers(3))), loss=float(rng.uniform(-1.0, 1.0)))
        faded = (counted + 1.0) / float(policy.state.counted[0])
        step, within = spent(policy, theta, q, eta, foreseen, faded)
        covered, fades = covered + within, fades + (faded > 1.0)
        grown = 1.0 / float(policy.state.rates[0]) - 1.0 / (eta * faded)
        expected += step + price + grown * entropy(policy)
    assert fades > 15
    assert 20 < covered < 79, "too few steps of the path were covered, or all, for this to say something"


def test_its_mean_bounds_the_regret_and_is_far_below_the_theorem() -> None:
    instance = en.random_instance(contexts=3, arms=3, dimension=2, gap=0.3, seed=4)
    worlds = [
        en.stochastic(instance),
        en.alternating(instance.problem, en.opposite(instance.theta), every=20),
        en.corrupted(instance, budget=50.0),
    ]
    bound = next(b.value for b in bw.bounds(instance.problem, horizon=400) if b.name == "LC-Tsallis-INF, matched")
    for world in worlds:
        players = {"matched": bw.LCTsallisINF(tuning="matched"), "certified": bw.LCTsallisINF(tuning="certified")}
        found = bw.simulate(world, players, horizon=400, replications=64, rng=0, checkpoints=[400])
        run = found["matched"]
        assert run.account is not None
        assert run.account.shape == (64,)
        assert run.regret[-1] + 3.0 * run.standard_error[-1] <= run.account.mean() <= 0.2 * bound
        assert found["certified"].account is None


def test_a_plan_that_is_made_again_costs_nothing() -> None:
    """A policy that is loaded goes on with the same account."""
    policy = bw.LCTsallisINF().start(random_problem(3, S=2, K=3, d=2), rng=0, interpreted=True)
    for _ in range(5):
        policy.update(policy.act(0), loss=0.5)
    policy.save("policy.npz")
    again = bw.load("policy.npz", interpreted=True)
    for one in (policy, again):
        one.update(one.act(1), loss=-0.5)
    assert policy.learnt()["account"].tobytes() == again.learnt()["account"].tobytes()
