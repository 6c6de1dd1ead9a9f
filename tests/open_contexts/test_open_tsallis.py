"""The default rule for open problems: kernels against NumPy, a listed play as a special case, and the bias."""

from typing import Any

import numpy as np
import pytest

from bothworlds import OpenProblem
from bothworlds.algorithms.lc_tsallis import reference_matched
from bothworlds.algorithms.lc_tsallis.matched import Matched
from bothworlds.algorithms.lc_tsallis.reference_matched import WINDOWS, C, ReferenceMatched
from bothworlds.algorithms.open_rules import open_memories
from bothworlds.algorithms.open_rules.open_tsallis import OpenTsallis, TsallisLearner
from bothworlds.algorithms.open_rules.reference_open_tsallis import ReferenceOpen, Settings
from bothworlds.arrays import Floats
from bothworlds.kernels.random import ARM, draw, two_uniforms
from bothworlds.open_contexts.rule_contract import PlanArrays, Rows


class Requests:
    """Requests of a changing linear world: named arms with a model each, or between two and five candidates."""

    def __init__(self, *, blocks: int, size: int, seed: int) -> None:
        self.rng, self.blocks, self.size = np.random.default_rng(seed), blocks, size
        self.theta = self.rng.uniform(-1.0, 1.0, (blocks, size))

    def draw(self) -> tuple[Floats, Floats, Floats]:
        """Return the features as the learner has them, offers, and the same features for the reference."""
        if self.blocks == 1:
            z = self.rng.uniform(-1.0, 1.0, (int(self.rng.integers(2, 6)), self.size))
            return z, np.ones(len(z)), z
        x = np.append(1.0, self.rng.uniform(-1.0, 1.0, self.size - 1))
        return x[None], np.ones(self.blocks), np.kron(np.eye(self.blocks), x)

    def loss(self, dense: Floats, a: int, *, turned: bool) -> float:
        """Return a loss; the world turns round once."""
        mean = float(dense[a] @ self.theta.ravel()) * (-1.0 if turned else 1.0)
        return float(np.clip(mean + self.rng.uniform(-0.2, 0.2), -1.0, 1.0))


def learner_for(problem: OpenProblem, capacity: int, *, piece: int = 1, interpreted: bool = True) -> TsallisLearner:
    learner = OpenTsallis(Matched(), capacity).learner(problem, key=3, interpreted=interpreted)
    learner.options = learner.options._replace(row_by_row=0.0, rows_per_piece=5.0, longest_piece=float(piece))
    return learner


def decide(learner: TsallisLearner, plan: PlanArrays, z: Floats, offered: Floats, number: int) -> Any:
    return learner.decide(plan, z[None], offered[None], np.array([3]), np.array([number]))


def as_rows(z: Floats, offered: Floats, a: int, loss: float, direction: Floats, baseline: Floats) -> Rows:
    whole = np.zeros(1, dtype=np.int64)
    return Rows(z[None], offered[None], whole + a, np.array([loss]), direction[None], baseline[None], whole)


class InPieces(ReferenceOpen):
    """The reference with the lengths of pieces of `learner_for`."""

    longest = 1

    def next_piece(self) -> float:
        return float(min(1 + int(self.n // 5), self.longest))


def place_of(before: Floats, after: Floats, kept: int, now: int) -> int | None:
    """Return which context of the reservoir has been replaced."""
    if now > kept:
        return kept
    width = min(before.shape[1], after.shape[1])
    changed = np.flatnonzero((before[:, :width] != after[:, :width]).any(axis=(1, 2)))
    return int(changed[0]) if len(changed) else None


@pytest.mark.parametrize(
    ("blocks", "size", "piece", "rounds"),
    [(3, 2, 1, 60), (1, 3, 1, 60), (3, 2, 4, 90), (1, 3, 3, 60), (2, 2, 2, 450)],
)
def test_kernels_and_numpy_agree(
    monkeypatch: pytest.MonkeyPatch, blocks: int, size: int, piece: int, rounds: int
) -> None:
    """Round by round to 1e-9: probabilities, directions, beta; the last case is long enough for a restart."""
    monkeypatch.setattr(open_memories, "LIMIT", 20.0)
    arms = [str(a) for a in range(blocks)]
    problem = OpenProblem(context=size - 1, arms=arms) if blocks > 1 else OpenProblem(candidates=size - 1)
    requests, learner = (
        Requests(blocks=blocks, size=size, seed=4),
        learner_for(problem, 8, piece=piece),
    )
    reference = InPieces(blocks * size, blocks if blocks > 1 else 10, Settings(limit=20.0))
    reference.longest = piece
    for t in range(rounds):
        z, offered, dense = requests.draw()
        plan = learner.plan()
        choices = decide(learner, plan, z, offered, t)
        a = int(choices.arms[0])
        np.testing.assert_allclose(choices.probabilities[0], reference.probabilities(dense), atol=1e-9)
        direction, baseline = reference.decision(dense, a)
        mine = np.zeros((blocks, size))
        mine[a if blocks > 1 else 0] = choices.directions[0]
        np.testing.assert_allclose(mine.ravel(), direction, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(plan.baseline.ravel(), baseline, atol=1e-9)
        loss, before, kept = requests.loss(dense, a, turned=t > 250), learner.state.z.copy(), learner.state.kept[0]
        learner.learn(as_rows(z, offered, a, loss, choices.directions[0], plan.baseline))
        place = place_of(before, learner.state.z, int(kept), int(learner.state.kept[0]))
        reference.learn(dense, a, loss, (direction, baseline), place)
        assert learner.state.inverse_rate[0] == pytest.approx(reference.beta, rel=1e-9)
        assert learner.state.restarts[0] == reference.restarts
    assert reference.restarts > 0 or rounds < 450


class Listed(ReferenceMatched):
    """The listed rule with what the open one leaves out: prices, the limit by the account, sweeps."""

    def __init__(self, phi: Floats, g: Floats, e: Floats) -> None:
        super().__init__(phi, g, e)
        self.b, self.A = 4 * phi.shape[2] / C, np.inf

    def explore(self) -> None:
        self.gamma, self.price = min(1 / (self.n + 1), 0.5), 0.0
        self.mix()

    def pay(self, z: float, u: float, explored: float) -> None:
        super().pay(z, u, 0.0)

    def remember(self, z: Floats, loss: float) -> None:
        for memory, window in zip(self.recent, WINDOWS, strict=True):
            keep, (V, moment, _, rounds) = 1 - 1 / window, memory
            V = keep * V + np.outer(z, z) + (1 - keep) * np.eye(len(z))
            moment = keep * moment + loss * z
            memory[:] = V, moment, np.linalg.solve(V, moment), keep * rounds + 1


def test_a_reservoir_that_is_the_list_plays_the_listed_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the list as reservoir, each context as often as its probability says, and no ridge, plans are the same."""
    monkeypatch.setattr(reference_matched, "LIMIT", 20.0)
    rng = np.random.default_rng(2)
    phi, g, e = rng.normal(size=(4, 3, 3)), np.array([0.4, 0.2, 0.2, 0.2]), np.full((4, 3), 1 / 3)
    listed = Listed(phi, g, e)
    opened = ReferenceOpen(3, 3, Settings(ridge=0.0, leave_in=0.0, limit=20.0))
    opened.z, opened.on = listed.z[[0, 0, 1, 2, 3]], np.ones((5, 3), dtype=bool)
    opened.make_plan(*opened.even_moment())
    theta = rng.uniform(-0.5, 0.5, 3)
    for t in range(700):
        x = int(rng.choice(4, p=g))
        pi = opened.probabilities(listed.z[x])
        np.testing.assert_allclose(pi, listed.pi[x], atol=1e-9)
        a = int(rng.choice(3, p=pi / pi.sum()))
        mean = float(listed.z[x, a] @ theta) * (1 if t < 400 else -1)
        loss = float(np.clip(mean + rng.uniform(-0.2, 0.2), -1, 1))
        ours, theirs = opened.decision(listed.z[x], a), listed.decision(x, a)
        np.testing.assert_allclose(ours[0], theirs[0], atol=1e-8)
        opened.learn(listed.z[x], a, loss, ours)
        listed.learn(x, a, loss, *theirs)
        assert opened.beta == pytest.approx(listed.beta, rel=1e-9)
    assert opened.restarts == listed.restarts > 0


def learned(ridge: float, leave_in: float, contexts: Floats, kept: list[int]) -> ReferenceOpen:
    """Return the reference after some rounds, with some of the contexts as its reservoir."""
    rng = np.random.default_rng(4)
    rule = ReferenceOpen(3, 3, Settings(ridge=ridge, leave_in=leave_in))
    rule.z, rule.on = contexts[kept], np.ones((len(kept), 3), dtype=bool)
    rule.make_plan(*rule.even_moment())
    for _ in range(30):
        x = int(rng.integers(len(contexts)))
        rule.learn(contexts[x], 0, float(rng.choice([-1.0, 1.0])), rule.decision(contexts[x], 0))
    return rule


def mean_estimate(rule: ReferenceOpen, contexts: Floats, theta: Floats) -> Floats:
    """Return E theta_hat, enumerated over contexts, all alike, and candidates."""
    total: Floats = np.zeros(3)
    for z in contexts:
        for a, pi in enumerate(rule.probabilities(z)):
            direction, baseline = rule.decision(z, a)
            total += pi * (baseline + direction * (z[a] @ (theta - baseline))) / len(contexts)
    return total


def test_estimates_are_unbiased_if_the_reservoir_has_all_contexts() -> None:
    contexts, theta = np.random.default_rng(1).normal(size=(12, 3, 3)), np.array([0.3, -0.5, 0.2])
    rule = learned(0.0, 0.0, contexts, list(range(12)))
    np.testing.assert_allclose(mean_estimate(rule, contexts, theta), theta, atol=1e-10)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_the_bias_is_what_the_formula_says(ridge: float) -> None:
    """E theta_hat - theta = (Sigma_hat^-1 Sigma - I)(theta - m), enumerated over twelve contexts; seven are kept."""
    contexts, theta = np.random.default_rng(1).normal(size=(12, 3, 3)), np.array([0.3, -0.5, 0.2])
    rule = learned(ridge, 0.0, contexts, list(range(7)))
    pi = np.array([rule.probabilities(z) for z in contexts])
    sigma = np.einsum("xa,xai,xaj->ij", pi, contexts, contexts) / 12
    bias = (np.linalg.solve(rule.Sigma, sigma) - np.eye(3)) @ (theta - rule.m)
    assert np.abs(bias).max() > 0.01
    np.testing.assert_allclose(mean_estimate(rule, contexts, theta) - theta, bias, atol=1e-10)


def test_a_request_in_its_own_covariance_bounds_its_estimate() -> None:
    """Even a request of a direction never seen: phi^T direction is at most (n + 1)/pi."""
    contexts = np.random.default_rng(1).normal(size=(12, 3, 3))
    contexts[:, :, 2] = 0.0
    rule = learned(0.1, 1.0, contexts, list(range(12)))
    strange = np.array([[0.0, 0.0, 1e6], [1.0, 0.0, 0.0], [0.0, 1.0, 1e-6]])
    for a, pi in enumerate(rule.probabilities(strange)):
        assert strange[a] @ rule.decision(strange, a)[0] <= 13 / pi * (1 + 1e-12)


def test_compiled_and_interpreted_functions_agree_bit_for_bit() -> None:
    problem, requests = OpenProblem(context=2, arms=["a", "b", "c"]), Requests(blocks=3, size=3, seed=8)
    both = [learner_for(problem, 6, piece=2, interpreted=interpreted) for interpreted in (True, False)]
    for t in range(40):
        z, offered, dense = requests.draw()
        left, right = (decide(learner, learner.plan(), z, offered, t) for learner in both)
        assert all((one == other).all() for one, other in zip(left, right, strict=True))
        a = int(left.arms[0])
        loss = requests.loss(dense, a, turned=False)
        for learner in both:
            learner.learn(as_rows(z, offered, a, loss, left.directions[0], learner.plan().baseline))
    assert all((one == other).all() for one, other in zip(both[0].state, both[1].state, strict=True))


def test_a_batch_is_learned_as_its_rows_one_by_one() -> None:
    problem, requests = OpenProblem(context=2, arms=["a", "b", "c"]), Requests(blocks=3, size=3, seed=8)
    whole, single = (learner_for(problem, 6, piece=3) for _ in range(2))
    plan, parts = whole.plan(), []
    for t in range(25):
        z, offered, dense = requests.draw()
        choices = decide(whole, plan, z, offered, t)
        a = int(choices.arms[0])
        parts.append(
            as_rows(z, offered, a, requests.loss(dense, a, turned=False), choices.directions[0], plan.baseline)
        )
    for rows in parts:
        single.learn(rows)
    whole.learn(Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))._replace(
        baselines=plan.baseline[None], plans=np.zeros(25, dtype=np.int64)
    ))  # fmt: skip
    assert all((one == other).all() for one, other in zip(whole.state, single.state, strict=True))


def test_the_draw_is_that_of_key_and_time() -> None:
    problem, requests = OpenProblem(context=2, arms=["a", "b", "c"]), Requests(blocks=3, size=3, seed=8)
    learner = learner_for(problem, 6)
    for t in range(20):
        z, offered, _ = requests.draw()
        choices = decide(learner, learner.plan(), z, offered, t)
        assert choices.arms[0] == draw(choices.probabilities[0], two_uniforms(3, t, ARM, 0)[0])
