"""The account of a path of the matched tuning: the sums of Theorem 1 as the learner computes them."""

import itertools

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.arrays import Floats
from bothworlds.theory.ftrl_path import optimistic_terms
from bothworlds.theory.lemmas.matching import step_cost
from support.problems import random_problem

C = bw.Matched().c


def step_cost_of(
    policy: bw.Policy, theta: Floats, q: Floats, eta: float, predicted_theta: Floats
) -> tuple[float, bool]:
    """Return z_t, or u_t, of the step from ``theta`` (research/default-rule.md), and whether it was covered."""
    problem = policy.problem
    z = bw.LCTsallisINF().machine(problem).known.z
    delta = z @ (policy.state.theta - theta - predicted_theta)
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
@pytest.mark.parametrize("drift_cap", [0.1, 0.0])
def test_an_account_is_what_steps_exploration_and_penalties_cost(seed: int, drift_cap: float) -> None:
    problem = random_problem(seed, S=3, K=3, d=2)
    tuning = bw.Matched(caution=4.0, drift_cap=drift_cap)
    policy = bw.LCTsallisINF(tuning=tuning).start(problem, rng=seed, interpreted=True)
    rng = np.random.default_rng(seed)
    expected = entropy(policy) / float(policy.state.rates[0])
    covered, b = 0, policy._machine.options.covered
    for _ in range(79):
        assert float(policy.learnt()["account"][0]) == pytest.approx((1.0 + drift_cap) * expected, rel=1e-9)
        state = policy.state
        theta, q, eta, predicted_theta = (
            state.theta.copy(),
            state.q.copy(),
            float(state.rates[0]),
            state.baseline.copy(),
        )
        price = 2.0 * float(state.rates[1])
        assert 1.0 / eta < b
        assert state.price[0] == 0.0
        policy.update(policy.act(int(rng.integers(3))), loss=float(rng.uniform(-1.0, 1.0)))
        step, within = step_cost_of(policy, theta, q, eta, predicted_theta)
        covered += within
        expected += step + price + (1.0 / float(policy.state.rates[0]) - 1.0 / eta) * entropy(policy)
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
        results = bw.simulate(world, players, horizon=400, replications=64, rng=0, checkpoints=[400])
        run = results["matched"]
        assert run.account is not None
        assert run.account.shape == (64,)
        assert run.regret[-1] + 3.0 * run.standard_error[-1] <= run.account.mean() <= 0.2 * bound
        assert results["certified"].account is None


def test_loading_a_policy_does_not_change_its_account() -> None:
    """A loaded policy continues with the same account."""
    policy = bw.LCTsallisINF().start(random_problem(3, S=2, K=3, d=2), rng=0, interpreted=True)
    for _ in range(5):
        policy.update(policy.act(0), loss=0.5)
    policy.save("policy.npz")
    loaded = bw.load("policy.npz", interpreted=True)
    for each in (policy, loaded):
        each.update(each.act(1), loss=-0.5)
    assert policy.learnt()["account"].tobytes() == loaded.learnt()["account"].tobytes()


class Tree:
    """All plays and losses of +-1 of some rounds: the expected regret, and both sides of Theorem 1."""

    def __init__(self, means: Floats, drift_cap: float) -> None:
        self.means, (_, S, K), self.drift_cap = means, means.shape, drift_cap
        self.regret = dict.fromkeys(itertools.product(range(K), repeat=S), 0.0)
        self.terms = self.account = self.drifted = 0.0

    def grow(self, policy: bw.Policy, chance: float, t: int) -> None:
        """Play round t and all that follow."""
        g, state, pi, (S, K) = policy.problem.probabilities, policy.state, policy.probabilities(), self.means[t].shape
        for u in self.regret:
            lost = (pi * self.means[t]).sum(axis=1) - self.means[t][range(S), u]
            self.regret[u] += chance * float(g @ lost)
        self.terms += chance * 2.0 * float(state.rates[1])
        z = bw.LCTsallisINF().machine(policy.problem).known.z
        inverse = np.linalg.inv(np.einsum("x,xa,xai,xaj->ij", g, pi, z, z))
        for x, a, loss in itertools.product(range(S), range(K), (-1.0, 1.0)):
            share = chance * g[x] * pi[x, a] * (1.0 + loss * self.means[t][x, a]) / 2.0
            successor = policy.copy()
            decision = successor.act(x)._replace(
                arm=a, arm_name=str(a), propensity=pi[x, a], direction=inverse @ z[x, a]
            )
            successor.update(decision, loss=loss)
            path = optimistic_terms(
                points=np.stack([state.q, successor.state.q]),
                rates=np.array([state.rates[0], successor.state.rates[0]]),
                estimates=z @ (successor.state.theta - state.theta),
                predicted=z @ state.baseline,
            )
            last = t + 1 == len(self.means)
            self.terms += share * float(g @ (path.stability[0] + (0.0 if last else path.penalty[1])))
            if last:
                self.drifted = max(self.drifted, float(np.abs(successor.state.drift).max()))
                final_penalty = 1.0 / float(successor.state.rates[0]) - 1.0 / float(state.rates[0])
                final_penalty *= (1.0 + self.drift_cap) * float(successor.state.entropy[0])
                self.account += share * (float(successor.state.account[0]) - final_penalty)
            else:
                self.grow(successor, share, t + 1)


@pytest.mark.parametrize("beta", [0.05, 1.2, 4.0])
@pytest.mark.parametrize("drift_cap", [0.3, 0.0])
def test_theorem_1_by_enumeration(beta: float, drift_cap: float) -> None:
    """E regret <= E account, and E[stability + penalties + 2 gamma] <= E account, which bounds it without drift."""
    problem = bw.Problem(features=[[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.5], [0.5, 1.0]]], probabilities=[0.1, 0.9])
    policy = bw.LCTsallisINF(tuning=bw.Matched(drift_cap=drift_cap)).start(problem, rng=0)
    policy.state.inverse_rate[0], policy.state.account[0] = beta, 0.0
    policy._learner_state.refresh()
    thetas = np.array([[0.6, -0.4], [-0.4, 0.6], [0.66, -0.66]])
    tree = Tree(np.einsum("xai,ti->txa", problem.features, thetas), drift_cap)
    tree.terms = beta * entropy(policy)
    tree.grow(policy, 1.0, 0)
    assert 0.3 < max(tree.regret.values()) <= (tree.account if drift_cap else tree.terms)
    assert (1.0 + drift_cap) * tree.terms <= tree.account + 1e-9
    assert (tree.drifted > 0.0) == (drift_cap > 0.0)
