"""The account of a path of the matched tuning: the sums of Theorem 1, as the learner itself keeps them."""

import itertools

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.kernels.arrays import Floats
from bothworlds.theory.lemmas.matching import step_cost
from bothworlds.theory.path import optimistic_terms
from worlds import random_problem

C = bw.Matched().c


def spent(policy: bw.Policy, theta: Floats, q: Floats, eta: float, foreseen: Floats) -> tuple[float, bool]:
    """Return z_t, or u_t, as docs/theory.md has them, of the step from ``theta``, and whether it was covered."""
    problem = policy.problem
    z = bw.LCTsallisINF().machine(problem).known.z
    delta = z @ (policy.state.theta + policy.state.lean - theta - foreseen)
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
@pytest.mark.parametrize("leaning", [0.1, 0.0])
def test_an_account_is_what_steps_exploration_and_penalties_cost(seed: int, leaning: float) -> None:
    problem = random_problem(seed, S=3, K=3, d=2)
    tuning = bw.Matched(caution=4.0, leaning=leaning)
    policy = bw.LCTsallisINF(tuning=tuning).start(problem, rng=seed, interpreted=True)
    rng = np.random.default_rng(seed)
    expected = entropy(policy) / float(policy.state.rates[0])
    covered, b = 0, policy._machine.options.covered
    for _ in range(79):
        assert float(policy.learnt()["account"][0]) == pytest.approx((1.0 + leaning) * expected, rel=1e-9)
        state = policy.state
        theta, q, eta, foreseen = state.theta + state.lean, state.q.copy(), float(state.rates[0]), state.baseline.copy()
        price = 2.0 * float(state.rates[1])
        assert 1.0 / eta < b
        assert (state.charge[0], state.debt[0]) == (0.0, 0.0)
        policy.update(policy.act(int(rng.integers(3))), loss=float(rng.uniform(-1.0, 1.0)))
        step, within = spent(policy, theta, q, eta, foreseen)
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


class Tree:
    """All plays and losses of +-1 of some rounds: the mean regret, and what Theorem 1 says of it."""

    def __init__(self, means: Floats, leaning: float) -> None:
        self.means, (_, S, K), self.leaning = means, means.shape, leaning
        self.regret = dict.fromkeys(itertools.product(range(K), repeat=S), 0.0)
        self.terms = self.account = self.leant = 0.0

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
            one = policy.copy()
            made = one.act(x)._replace(arm=a, arm_name=str(a), propensity=pi[x, a], direction=inverse @ z[x, a])
            one.update(made, loss=loss)
            found = optimistic_terms(
                points=np.stack([state.q, one.state.q]),
                rates=np.array([state.rates[0], one.state.rates[0]]),
                estimates=z @ (one.state.theta + one.state.lean - state.theta - state.lean),
                predicted=z @ state.baseline,
            )
            last = t + 1 == len(self.means)
            self.terms += share * float(g @ (found.stability[0] + (0.0 if last else found.penalty[1])))
            if last:
                leant = float(g @ (z @ one.state.lean).max(axis=1) + one.state.owed[0])
                self.terms, self.leant = self.terms + share * leant, max(self.leant, leant)
                grown = 1.0 / float(one.state.rates[0]) - 1.0 / float(state.rates[0])
                grown *= (1.0 + self.leaning) * float(one.state.entropy[0])
                self.account += share * (float(one.state.account[0]) - grown)
            else:
                self.grow(one, share, t + 1)


@pytest.mark.parametrize("beta", [0.05, 1.2, 4.0])
@pytest.mark.parametrize("leaning", [0.3, 0.0])
def test_theorem_1_by_enumeration(beta: float, leaning: float) -> None:
    """E regret <= E[stability + penalties + 2 gamma + B] <= E account, exactly; mu_t follows the losses."""
    problem = bw.Problem(features=[[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.5], [0.5, 1.0]]], probabilities=[0.1, 0.9])
    policy = bw.LCTsallisINF(tuning=bw.Matched(leaning=leaning)).start(problem, rng=0)
    policy.state.inverse_rate[0], policy.state.account[0] = beta, 0.0
    policy._mind.refresh()
    thetas = np.array([[0.6, -0.4], [-0.4, 0.6], [0.66, -0.66]])
    tree = Tree(np.einsum("xai,ti->txa", problem.features, thetas), leaning)
    tree.terms = beta * entropy(policy)
    tree.grow(policy, 1.0, 0)
    assert 0.3 < max(tree.regret.values()) <= tree.terms <= tree.account
    assert (tree.leant > 0.0) == (leaning > 0.0)
