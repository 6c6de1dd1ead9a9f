"""Early rounds of the matched tuning, by NumPy: no play costs more than 96/lambda, whatever the search does."""

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.arrays import Floats
from bothworlds.theory.schedules import Matching
from support.problems import coordinates, play, random_problem

MATCHED = bw.LCTsallisINF(tuning="matched")
LOOKED, LARGEST = 64.0, 96.0  # times 1/lambda: what a play costs at most when it is looked at, and at any time
FALLS = 4.0  # what covariances may become less by at most before plays are looked at again
ONE_HOT = bw.Problem(features=np.eye(9).reshape(3, 3, 9), probabilities=[0.01, 0.3, 0.69])
PROBLEMS = {
    "a rare context": random_problem(5, S=4, K=3, d=4, rarity=30.0),
    "coordinates of their own": ONE_HOT,
    "more than 128 plays": random_problem(2, S=33, K=4, d=6, rarity=500.0),
    "b is soon reached": random_problem(3, S=3, K=3, d=2),
}


class Watch:
    """Follows a policy: the covariance below which plays have to be checked again, by the theory."""

    def __init__(self, policy: bw.Policy) -> None:
        self.policy, self.z, self.g = policy, coordinates(policy), policy.problem.probabilities
        self.coverage, self.b = MATCHED.design_for(policy.problem).coverage, policy._machine.options.covered
        self.covariance_floor, self.start = np.eye(self.z.shape[2]), 0.5

    def covariance(self, gamma: float) -> Floats:
        """Return Sigma_t for a rate; that of e* is the identity."""
        sums = np.einsum("x,xa,xai,xaj->ij", self.g, self.policy.state.q, self.z, self.z)
        return np.asarray((1.0 - gamma) * sums + gamma * np.eye(len(sums)))

    def cost_bound(self, sigma: Floats) -> float:
        """Return D(Sigma) = 4 max sqrt(lev) E_X[max_a sqrt(lev)], times lambda; infinite if Sigma is singular."""
        if np.linalg.eigvalsh(sigma)[0] <= 0.0:
            return float("inf")
        lev = np.einsum("xai,ij,xaj->xa", self.z, np.linalg.inv(sigma), self.z).clip(min=0.0)
        return float(4.0 * np.sqrt(lev.max()) * (self.g @ np.sqrt(lev.max(axis=1)))) * self.coverage

    def largest_cost(self, sigma: Floats) -> float:
        """Return the largest u of all plays and losses, times lambda."""
        state, c = self.policy.state, Matching.c
        q, beta, plays = state.q, float(state.inverse_rate[0]), self.z.reshape(-1, self.z.shape[2])
        steps = (plays @ np.linalg.inv(sigma) @ plays.T).reshape(-1, *q.shape)
        costs = []
        for loss in (-1.0, 1.0):
            delta = (loss - plays @ state.baseline)[:, None, None] * steps
            s = (q**1.5 * delta).sum(axis=2) / (q**1.5).sum(axis=1)
            y = (delta - s[:, :, None]) * np.sqrt(q) / beta
            m, fall = np.abs(y).max(axis=2), (q * delta).sum(axis=2) - delta.min(axis=2)
            near = beta * (np.sqrt(q) * y * y).sum(axis=2) / np.maximum(1.0 - m, 1.0 - 2.0 * c)
            k = np.where(m <= 2.0 * c, np.minimum(near, fall), fall)
            costs.append(np.where((m <= c).all(axis=1), 0.0, k @ self.g).max())
        return float(max(costs)) * self.coverage

    def check(self) -> str:
        """Check the plan; return whether it is late, was looked at, or rests with what it had."""
        state = self.policy.state
        gamma, looks = float(state.rates[1]), bool(state.share[0])
        sigma = self.covariance(gamma)
        assert np.tril(state.sigma) == pytest.approx(np.tril(sigma), abs=1e-9 * np.abs(sigma).max())
        assert np.tril(state.covariance_floor) == pytest.approx(
            np.tril(self.covariance_floor), abs=1e-9 * np.abs(self.covariance_floor).max()
        )
        if state.inverse_rate[0] >= self.b:
            assert not looks
            return "late"
        assert state.charge[0] == 0.0
        cost_bound = self.cost_bound(sigma)
        assert self.largest_cost(sigma) <= cost_bound * (1 + 1e-6)
        assert cost_bound <= (LOOKED if looks else LARGEST) * (1 + 1e-6)
        before = self.covariance(self.start)
        room = np.linalg.eigvalsh(before - self.covariance_floor)[0]
        if abs(room) > 1e-9 * np.abs(before).max():  # else rounding decides
            assert looks == (state.search_pause[0] < 1.0 or room < 0.0)
        assert looks or gamma == self.start
        return "raised" if looks and self.cost_bound(before) > LOOKED else "looks" if looks else "rests"

    def answered(self) -> None:
        """Note the plan that is about to be answered."""
        state = self.policy.state
        self.start = float(state.rates[1])
        if state.share[0]:
            sigma = self.covariance(self.start)
            share = min(max(self.cost_bound(sigma) / LARGEST, 1.0 / FALLS), LOOKED / LARGEST)
            assert state.share[0] == pytest.approx(share, rel=1e-6)
            self.covariance_floor = share * sigma


def disturb(watch: Watch, rng: np.random.Generator) -> None:
    """Set other estimates, another beta, below b or above, or another first gamma, and plan again."""
    state, here = watch.policy.state, rng.random(4) < 0.4
    if here[0]:
        state.theta[...] = rng.normal(size=len(state.theta)) * 10.0 ** rng.uniform(0.0, 6.0)
    if here[1]:
        state.theta[...] *= -1.0
    if here[2]:
        state.inverse_rate[0] = watch.b * rng.choice([rng.uniform(0.1, 1.0), 0.999, 1.001])
    if here[3]:
        state.start_rate[0] = watch.start = 10.0 ** rng.uniform(-12.0, -1.0) * (rng.random() < 0.7)
    watch.policy._learner_state.refresh()


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_early_play_costs_more_than_is_proved(name: str) -> None:
    """Disturbed, in batches too: u <= D <= 96/lambda, 64/lambda if plays are checked; if not, gamma stays."""
    problem, rng = PROBLEMS[name], np.random.default_rng(1)
    policy = bw.LCTsallisINF(tuning=bw.Matched(drift_cap=0.0)).start(problem, rng=3)
    watch, seen = Watch(policy), set()
    for t in range(240):
        if rng.random() < 0.2:
            disturb(watch, rng)
        seen.add(watch.check())
        watch.answered()
        if t % 40 == 39:
            decisions = policy.act(rng.choice(problem.n_contexts, size=9, p=problem.probabilities))
            policy.update(decisions, loss=rng.choice([-1.0, 1.0], size=9))
        else:
            policy.update(policy.act(int(rng.integers(problem.n_contexts))), loss=float(rng.choice([-1.0, 1.0])))
    assert seen >= {"late", "looks", "rests"}
    assert "raised" in seen or name in ("more than 128 plays", "b is soon reached")


def test_while_the_search_pauses_costs_come_near_the_bound_and_not_beyond() -> None:
    """From a checked plan with nearly 64/lambda, with less and less exploration: nearly 96/lambda, never more."""
    policy = MATCHED.start(ONE_HOT, rng=3)
    watch, theta = Watch(policy), 1e5 * np.random.default_rng(3).normal(size=9)

    def plan(gamma: float, rest: float) -> float:
        state = policy.state
        state.theta[...], state.inverse_rate[0], state.start_rate[0] = theta, 0.9 * watch.b, gamma
        state.search_pause[0], state.search_direction[0], state.excess_limit[0] = (
            rest,
            3.0,
            1e300,
        )  # other rates: none but zero
        policy._learner_state.refresh()
        return watch.cost_bound(watch.covariance(float(policy.state.rates[1])))

    low, high = 0.0, 0.5
    for _ in range(40):
        gamma = 0.5 * (low + high)
        plan(gamma, 0.0)
        low, high = (low, gamma) if policy.state.rates[1] == gamma else (gamma, high)
    assert 63.9 < plan(high, 0.0) <= LOOKED * (1 + 1e-9)
    policy.update(policy.act(0), loss=0.0)
    seen = []
    for share in np.linspace(0.6, 1.0, 401):
        found = plan(share * high, 1e6)
        assert found <= (LOOKED if policy.state.share[0] else LARGEST) * (1 + 1e-9)
        seen.append((bool(policy.state.share[0]), found))
    assert max(found for looks, found in seen if not looks) > 94.0
    assert any(looks for looks, _ in seen)


def test_a_policy_starts_with_a_valid_covariance_floor() -> None:
    """The identity is Sigma(e*), with D <= 4/lambda: at the start, in old files, after a change, and with a prior."""
    problem = PROBLEMS["a rare context"]
    policy = MATCHED.start(problem, rng=3)
    assert Watch(policy).cost_bound(policy.state.covariance_floor) <= 4.0 * (1 + 1e-9)
    play(policy, 100)
    assert not np.array_equal(np.tril(policy.state.covariance_floor), np.eye(4))
    begun = MATCHED.start(problem, prior=policy.prior(), rng=1)
    policy.change(bw.Problem(features=problem.features, probabilities=[0.5, 0.1, 0.1, 0.3]))
    for other in (policy, begun):
        np.testing.assert_array_equal(other.state.covariance_floor, np.eye(4))
