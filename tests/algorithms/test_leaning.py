"""How far plans lean on the regression: the two conditions of docs/theory.md, by hand in every round."""

from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.lc_tsallis.leaning import NEAR, PACE
from bothworlds.kernels.arrays import Floats
from bothworlds.theory.schedules import ROOM, Matching
from worlds import random_problem

PROBLEM = random_problem(5, S=4, K=3, d=3)


class Before:
    """What is known of a plan before its round."""

    def __init__(self, policy: bw.Policy) -> None:
        state = policy.state
        self.q, self.beta, self.m = state.q.copy(), 1.0 / float(state.rates[0]), state.baseline.copy()
        self.theta, self.lean, self.owed = state.theta.copy(), state.lean.copy(), float(state.owed[0])
        self.z, self.g = policy._machine.known.z, policy.problem.probabilities
        self.account, self.share = float(state.account[0]), policy._machine.options.leaning
        self.rests = bool(state.beat[0] > 0.0 and state.gone[0] >= NEAR)

    def scaled(self, step: Floats) -> Floats:
        """Return y of a step in all plays."""
        delta, weights = self.z @ step, self.q**1.5
        middle = (weights * delta).sum(axis=1, keepdims=True) / weights.sum(axis=1, keepdims=True)
        return np.asarray((delta - middle) * np.sqrt(self.q) / self.beta)

    def squares(self, y: Floats) -> float:
        """Return E_X sum_a r y^2."""
        return float(self.g @ (np.sqrt(self.q) * y**2).sum(axis=1))

    def cost(self, lean: Floats) -> float:
        """Return B: what leaning can have cost if this is where it leads."""
        middle = np.einsum("x,xa,xai->i", self.g, self.q, self.z)
        return float(self.g @ (self.z @ lean).max(axis=1) + self.owed - (lean - self.lean) @ middle)

    @property
    def allowed(self) -> float:
        """Return leaning times what the path has cost otherwise."""
        return float(self.share / (1.0 + self.share) * self.account)


def loss_of(arm: int, t: int) -> float:
    """Another arm is the best one after 150 rounds."""
    return float((-0.5, 0.3, 0.6)[arm if t < 150 else 2 - arm])


def followed(leaning: float, rounds: int, **options: Any) -> list[tuple[float, float, float]]:
    """Play; check the conditions in every round, and return B over what is allowed, |y| and squares over theirs."""
    tuning = bw.Matched(leaning=leaning, **options)
    policy, rng = bw.LCTsallisINF(tuning=tuning).start(PROBLEM, rng=3), np.random.default_rng(1)
    found = []
    for t in range(rounds):
        before = Before(policy)
        made = policy.act(int(rng.choice(4, p=before.g)))
        policy.update(made, loss=loss_of(made.arm, t))
        after = policy.state
        step = after.theta - before.theta - before.m
        bare, whole = before.scaled(step), before.scaled(step + after.lean - before.lean)
        cost = before.cost(after.lean)
        assert float(before.g @ (before.z @ after.lean).max(axis=1) + after.owed[0]) == pytest.approx(cost, abs=1e-9)
        assert cost <= before.allowed + 1e-9
        assert before.squares(whole) <= (1.0 + ROOM) * before.squares(bare) + 1e-12
        assert after.beat[0] == (t + 1) % PACE
        if before.rests or np.abs(bare).max() > Matching.c:
            assert np.array_equal(after.lean, before.lean)
            assert after.owed[0] == before.owed
            continue
        assert np.abs(whole).max() <= Matching.c
        wanted = float(after.counted[0]) * after.baseline - after.theta
        share = min(max_share(before, wanted), 1.0)
        way = share * wanted - before.lean
        gone = after.lean - before.lean
        length = float(gone @ way) / float(way @ way)
        assert after.gone[0] == pytest.approx(length, abs=1e-6)
        assert gone == pytest.approx(length * way, abs=1e-7 * (1.0 + np.abs(way).max()))
        assert -1e-9 <= length <= 1.0 + 1e-9
        reach = np.abs(bare).max() + length * np.abs(before.scaled(share * wanted) - before.scaled(before.lean)).max()
        full = before.squares(whole) / before.squares(bare) / (1.0 + ROOM)
        found.append((cost / before.allowed if leaning else 0.0, length, max(full, reach / Matching.c)))
    return found


def max_share(before: Before, wanted: Floats) -> float:
    """Return the lambda with B = what is allowed, B being linear."""
    none, all_of_it = before.cost(np.zeros_like(wanted)), before.cost(wanted)
    return (before.allowed - none) / (all_of_it - none)


def test_plans_lean_as_far_as_both_conditions_allow() -> None:
    found = np.array(followed(0.1, 800))
    assert 100 < len(found) < 400, "in most of the others plans rest, in some the step is too far already"
    whole = found[:, 1] > 1.0 - 1e-9
    assert 10 < whole.sum() < len(found) - 10, "the way is gone to its end in some rounds, and not in others"
    # a way that is not gone to its end ends where a condition does; |y| is bounded by parts of ways, so nearly
    assert (found[~whole, 2] > 0.5).all()
    assert found[:, 0].max() == pytest.approx(1.0, abs=1e-6), "what it may cost binds in some rounds"


def test_without_leaning_plans_follow_the_estimates_alone() -> None:
    policy = bw.LCTsallisINF(tuning=bw.Matched(leaning=0.0)).start(PROBLEM, rng=3)
    rng = np.random.default_rng(1)
    for t in range(100):
        made = policy.act(int(rng.integers(4)))
        policy.update(made, loss=loss_of(made.arm, t))
    assert not policy.state.lean.any()
    assert float(policy.state.owed[0]) == 0.0


def test_leaning_is_learnt() -> None:
    """A policy that is loaded leans as before; one on another problem begins with the sum that its plans followed."""
    policy, rng = bw.LCTsallisINF().start(PROBLEM, rng=3), np.random.default_rng(1)
    for t in range(60):
        made = policy.act(int(rng.integers(4)))
        policy.update(made, loss=loss_of(made.arm, t))
    policy.save("policy.npz")
    again = bw.load("policy.npz")
    assert again.probabilities().tobytes() == policy.probabilities().tobytes()
    assert again.learnt()["lean"].any()
    assert again.learnt()["lean"].tobytes() == policy.learnt()["lean"].tobytes()
    losses = policy._machine.known.z @ (policy.state.theta + policy.state.lean)
    policy.change_probabilities(PROBLEM.probabilities[::-1].copy())
    assert not policy.state.lean.any()
    assert policy._machine.known.z @ policy.state.theta == pytest.approx(losses)


def test_it_pays_where_the_world_changes_and_where_clicks_are_rare() -> None:
    instance = en.random_instance(contexts=4, arms=3, dimension=3, gap=0.3, seed=2)
    worlds = [
        en.flip(instance.problem, en.opposite(instance.theta), at=1_000),
        en.clicks(attributes=(3, 4), arms=3, rates=(0.003, 0.05), rarity=600.0, seed=1),
    ]
    players = {"leaning": bw.LCTsallisINF(), "not": bw.LCTsallisINF(tuning=bw.Matched(leaning=0.0))}
    for world, horizon in zip(worlds, (2_000, 8_000), strict=True):
        found = bw.simulate(world, players, horizon=horizon, replications=16, checkpoints=[horizon])
        assert found["leaning"].regret[-1] < found["not"].regret[-1]
