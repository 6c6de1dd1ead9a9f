"""Regression drift of plans: its two limits, computed by hand in every round."""

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.lc_tsallis.reference import ftrl_points
from bothworlds.arrays import Floats
from bothworlds.theory.schedules import Matching
from support.problems import random_problem

PROBLEM = random_problem(5, S=4, K=3, d=3)


class Before:
    """State of a plan before its round."""

    def __init__(self, policy: bw.Policy) -> None:
        state = policy.state
        self.q, self.beta, self.m = state.q.copy(), 1.0 / float(state.rates[0]), state.baseline.copy()
        self.theta, self.drift = state.theta.copy(), state.drift.copy()
        self.z, self.g = policy._machine.known.z, policy.problem.probabilities
        self.account = float(state.account[0])

    def scaled(self, step: Floats) -> Floats:
        """Return y of a step in all plays."""
        delta, weights = self.z @ step, self.q**1.5
        middle = (weights * delta).sum(axis=1, keepdims=True) / weights.sum(axis=1, keepdims=True)
        return np.asarray((delta - middle) * np.sqrt(self.q) / self.beta)

    def potential(self, theta: Floats, got: float, drift: Floats) -> float:
        """Return S after the round if mu moves to ``drift``."""
        losses = self.z @ (theta + drift)
        q = ftrl_points(losses, 1.0 / self.beta, 0.5)
        least = (q * losses).sum(axis=1) - 2.0 * self.beta * (np.sqrt(q).sum(axis=1) - 1.0)
        return float(got + self.g @ ((self.z @ drift).max(axis=1) - least))


def loss_of(arm: int, t: int) -> float:
    """Return the loss of an arm; the best arm changes after 150 rounds."""
    return float((-0.5, 0.3, 0.6)[arm if t < 150 else 2 - arm])


def followed(drift_cap: float, rounds: int) -> Floats:
    """Play and check the limits in every round; return zeta, S over the account, and the reach of |y| over c."""
    tuning = bw.Matched(drift_cap=drift_cap)
    policy, rng = bw.LCTsallisINF(tuning=tuning).start(PROBLEM, rng=3), np.random.default_rng(1)
    found = []
    for t in range(rounds):
        before = Before(policy)
        decision = policy.act(int(rng.choice(4, p=before.g)))
        policy.update(decision, loss=loss_of(decision.arm, t))
        after = policy.state
        bare = before.scaled(after.theta - before.theta - before.m)
        cost = before.potential(after.theta, float(after.got[0]), after.drift)
        assert cost <= max(before.account, before.potential(after.theta, float(after.got[0]), before.drift)) + 1e-6
        gone = after.drift - before.drift
        if np.abs(bare).max() > Matching.c:
            assert not gone.any()
            continue
        regression = after.baseline / float(after.scale[0])
        way = float(after.remembered[0]) * regression - after.theta - before.drift
        length = float(gone @ way) / float(way @ way)
        assert gone == pytest.approx(length * way, abs=1e-7 * (1.0 + np.abs(way).max()))
        assert -1e-9 <= length <= 1.0 + 1e-9
        reach = np.abs(bare).max() + length * np.abs(before.scaled(way)).max()
        found.append((length, cost / before.account, reach / Matching.c))
    return np.array(found)


def test_plans_drift_as_far_as_both_limits_allow() -> None:
    found = followed(0.1, 800)
    length, share, reach = found.T
    assert 100 < len(found) < 800, "in some rounds the step alone exceeds c"
    assert (length > 1.0 - 1e-9).sum() > 10, "plans reach the regression in some rounds"
    stopped = length < 1.0 - 1e-6
    assert (stopped & (reach > 0.998)).any(), "the step is the limit in some rounds"
    assert (reach <= 1.0).all()
    # S is convex, so where it is the limit the part of the way that is gone leaves some of the account
    assert (stopped & (reach < 0.98) & (share > 0.5)).any()
    assert not (stopped & (reach < 0.98) & (share < 0.2)).any(), "nothing else stops plans"


def test_without_drift_plans_follow_the_estimates_alone() -> None:
    policy = bw.LCTsallisINF(tuning=bw.Matched(drift_cap=0.0)).start(PROBLEM, rng=3)
    rng = np.random.default_rng(1)
    for t in range(100):
        decision = policy.act(int(rng.integers(4)))
        policy.update(decision, loss=loss_of(decision.arm, t))
    assert not policy.state.drift.any()


def test_the_drift_is_part_of_the_learner_state() -> None:
    """A loaded policy drifts as before; a changed one starts with the sum that its plans followed."""
    policy, rng = bw.LCTsallisINF().start(PROBLEM, rng=3), np.random.default_rng(1)
    for t in range(60):
        decision = policy.act(int(rng.integers(4)))
        policy.update(decision, loss=loss_of(decision.arm, t))
    policy.save("policy.npz")
    again = bw.load("policy.npz")
    assert again.probabilities().tobytes() == policy.probabilities().tobytes()
    assert again.learnt()["drift"].any()
    assert again.learnt()["drift"].tobytes() == policy.learnt()["drift"].tobytes()
    losses = policy._machine.known.z @ (policy.state.theta + policy.state.drift)
    policy.change_probabilities(PROBLEM.probabilities[::-1].copy())
    assert not policy.state.drift.any()
    assert policy._machine.known.z @ policy.state.theta == pytest.approx(losses)


def test_it_pays_where_the_world_changes_and_where_clicks_are_rare() -> None:
    instance = en.random_instance(contexts=4, arms=3, dimension=3, gap=0.3, seed=2)
    worlds = [
        en.flip(instance.problem, en.opposite(instance.theta), at=1_000),
        en.clicks(attributes=(3, 4), arms=3, rates=(0.003, 0.05), rarity=600.0, seed=1),
    ]
    players = {"drift": bw.LCTsallisINF(), "none": bw.LCTsallisINF(tuning=bw.Matched(drift_cap=0.0))}
    for world, horizon in zip(worlds, (2_000, 8_000), strict=True):
        found = bw.simulate(world, players, horizon=horizon, replications=16, checkpoints=[horizon])
        assert found["drift"].regret[-1] < found["none"].regret[-1]
