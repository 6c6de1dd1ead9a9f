"""What the algorithms for arm-independent features share: estimates, steps, stacking, arms not offered, sizes."""

import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.theory.armwise import armwise_frame
from bothworlds.theory.coordinates import whiten
from support.armwise_problems import (
    MASK,
    all_directions,
    context_coordinates,
    context_vectors,
    independent_problem,
    masked_problem,
)
from support.problems import bits, parameters, play, random_problem, set_plan

EXACT = [bw.RealLinExp3(horizon=5000), bw.RobustLinExp3(horizon=200), bw.FTRLLC(horizon=5000)]
RESAMPLED = [bw.RealLinExp3(horizon=300, covariance=bw.MGR()), bw.FTRLLC(horizon=50, covariance=bw.MGR())]
PROBLEMS = {"plain": independent_problem(1), "rare": independent_problem(2, rarity=500.0), "masked": masked_problem()}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("algorithm", EXACT, ids=repr)
def test_every_arm_is_estimated_without_bias_and_steps_are_bounded(algorithm: Any, name: str) -> None:
    """E[theta_hat_a] = theta_a by enumeration (on the span of the contexts that offer a), and eta |l_hat| <= 1."""
    problem = PROBLEMS[name]
    policy = algorithm.start(problem, rng=1, interpreted=True)
    x, g = context_coordinates(policy), problem.probabilities
    thetas = np.random.default_rng(3).normal(size=(problem.n_arms, x.shape[1]))
    largest = []

    def check(policy: bw.Policy) -> None:
        directions, pi = all_directions(policy), policy.probabilities()
        means = np.einsum("x,xa,xai,xa->ai", g, pi, directions, x @ thetas.T)
        losses = x @ (means - thetas).T
        scale = 100 * 2.2e-16 * np.abs(directions).max() * np.abs(x).max() ** 2
        assert np.abs(losses[problem.available]).max() <= scale
        estimates = np.abs(np.einsum("yi,xai->yxa", x, directions))  # at y, after playing a in x
        possible = problem.available[:, None, :] & problem.available[None, :, :]
        largest.append(policy.state.rates[0] * estimates[possible].max())

    play(policy, 12, each=check)
    for seed in range(6):  # policies that leave nearly all to exploration
        policy.state.theta[...] = 1e5 * np.random.default_rng(seed).normal(size=policy.state.theta.shape)
        policy._learner_state.refresh()
        check(policy)
    assert 0.3 < max(largest) <= 1.0 + 1e-9


@pytest.mark.parametrize("algorithm", RESAMPLED, ids=repr)
def test_resampled_steps_are_bounded_whatever_is_drawn(algorithm: Any) -> None:
    policy = algorithm.start(independent_problem(1), rng=1)
    x = context_coordinates(policy)
    rng = np.random.default_rng(0)
    sizes = []
    for _ in range(50):
        decision = policy.act(int(rng.integers(5)))
        sizes.append(policy.state.rates[0] * np.abs(x @ decision.direction).max())
        policy.update(decision, loss=1.0)
    assert 0.001 < max(sizes) <= 1.0


@pytest.mark.parametrize("name", PROBLEMS)
def test_one_matrix_per_arm_is_one_matrix_for_the_block_problem(name: str) -> None:
    """P.Indep embedded in P.Dep: the arm-dependent version with uniform exploration decides alike."""
    options: list[dict[str, Any]] = [{}, {"features": "arm-dependent", "design": "uniform"}]
    native, blocks = (bw.RealLinExp3(horizon=400, **o).start(PROBLEMS[name], rng=4) for o in options)
    assert native.state.rates == pytest.approx(blocks.state.rates, rel=1e-9)
    assert play(native, 300) == play(blocks, 300)
    assert native.probabilities() == pytest.approx(blocks.probabilities(), rel=1e-7)


@pytest.mark.parametrize("algorithm", [*EXACT, bw.MWULC(speed=1000.0)], ids=repr)
def test_exact_versions_do_not_see_linear_maps_of_the_contexts(algorithm: Any) -> None:
    x, mapping = context_vectors(6), np.array([[2.0, 1.0, 0.0], [0.0, 30.0, -1.0], [0.1, 0.0, 0.02]])
    first, second = (
        bw.Problem.from_arm_independent(v, probabilities=np.full(5, 0.2), arms=3) for v in (x, x @ mapping.T)
    )
    theta = parameters(first)
    mapped = bw.block_parameters(theta.reshape(3, 3) @ np.linalg.inv(mapping))
    one, two = algorithm.start(first, rng=2), algorithm.start(second, rng=2)
    assert play(one, 200, theta=theta) == play(two, 200, theta=mapped)
    assert one.probabilities() == pytest.approx(two.probabilities(), rel=1e-8)
    assert np.abs(one.probabilities() - 1 / 3).max() > 0.01


@pytest.mark.parametrize("algorithm", [*EXACT, bw.MWULC(speed=1000.0)], ids=repr)
def test_stacking_arm_dependent_features_makes_one_bandit_per_context(algorithm: Any) -> None:
    """Theorem 4.5 with S <= d K: as if contexts were unit vectors, and the user is told."""
    problem = random_problem(3, S=3, K=4, d=2)
    with pytest.warns(bw.DegenerateProblemWarning, match="each context and arm on its own"):
        stacked = algorithm.start(problem, rng=1)
    units = bw.Problem.from_arm_independent(np.eye(3), probabilities=problem.probabilities, arms=4)
    alone = algorithm.start(units, rng=1)
    theta = parameters(problem)
    losses = bw.block_parameters((problem.features @ theta).T)
    assert play(stacked, 200, theta=theta) == play(alone, 200, theta=losses)
    assert stacked.probabilities() == pytest.approx(alone.probabilities(), rel=1e-9)


def test_stacking_many_contexts_is_no_degeneration() -> None:
    """S > d K: all d K dimensions, no warning, and unbiased for theta in block a."""
    problem = random_problem(3, S=9, K=2, d=2)
    policy = bw.RealLinExp3(horizon=1000).start(problem, rng=1, interpreted=True)
    x = context_coordinates(policy)
    assert x.shape == (9, 4)
    losses = problem.features @ parameters(problem)
    mean = np.einsum("x,xa,xai,xa->ai", problem.probabilities, policy.probabilities(), all_directions(policy), losses)
    assert x @ mean.T == pytest.approx(losses, abs=1e-12)


def test_the_scales_of_masked_arms_are_what_enumeration_says() -> None:
    problem = masked_problem()
    frame = armwise_frame(problem)
    x, e, g = frame["contexts"], frame["exploration"], problem.probabilities
    assert e == pytest.approx(MASK / MASK.sum(axis=1, keepdims=True))
    ranks, levers, floors = [], [], []
    for a in range(3):
        sigma = np.einsum("x,xi,xj->ij", g * e[:, a], x, x)
        inverse = np.linalg.pinv(sigma, rcond=1e-10)
        ranks.append(int(np.linalg.matrix_rank(sigma, tol=1e-10)))
        levers.append(max(float(x[y] @ inverse @ x[y]) for y in range(5) if MASK[y, a]))
        floors.append(min(value for value in np.linalg.eigvalsh(sigma) if value > 1e-10))
        span = np.eye(3) - frame["complements"][a]
        assert span @ x[MASK[:, a]].T == pytest.approx(x[MASK[:, a]].T, abs=1e-12)
    assert ranks == [3, 3, 2]
    dimension, leverage, norm, floor, _ = frame["scales"]
    assert [dimension, leverage, norm, floor] == pytest.approx([8, max(levers), (x**2).sum(axis=1).max(), min(floors)])


SHAPES = {
    "S = 1": {"S": 1, "K": 3, "d": 1},
    "K = 2, d = 1": {"S": 4, "K": 2, "d": 1},
    "K = 500": {"S": 2, "K": 500, "d": 1},
    "d = 50": {"S": 60, "K": 2, "d": 50},
    "rare": {"S": 5, "K": 3, "d": 3, "rarity": 1e7},
}


@lru_cache
def problem_of(shape: str) -> bw.Problem:
    return independent_problem(1, **SHAPES[shape])  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("algorithm", [*EXACT, bw.RealLinExp3(horizon=5000, covariance=bw.MGR(samples=20))], ids=repr)
def test_all_sizes_run(algorithm: Any, shape: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bw.TuningWarning)
        policy = algorithm.start(problem_of(shape), rng=1)
    play(policy, 20)
    assert policy.probabilities().sum(axis=1) == pytest.approx(np.ones(policy.problem.n_contexts))


def test_dependent_context_features_change_nothing() -> None:
    x = context_vectors(4)
    wider = np.concatenate([x, x[:, :1] + x[:, 1:2], np.zeros((5, 1))], axis=1)
    narrow, wide = (
        bw.FTRLLC(horizon=500).start(bw.Problem.from_arm_independent(v, probabilities=np.full(5, 0.2), arms=3), rng=1)
        for v in (x, wider)
    )
    rng = np.random.default_rng(0)
    for _ in range(100):
        y, loss = int(rng.integers(5)), float(rng.choice([-1.0, 1.0]))
        one, two = narrow.act(y), wide.act(y)
        assert one.arm == two.arm
        assert one.propensity == pytest.approx(two.propensity, rel=1e-9)
        narrow.update(one, loss=loss)
        wide.update(two, loss=loss)


@pytest.mark.filterwarnings("ignore::bothworlds.DegenerateProblemWarning")
@pytest.mark.parametrize("algorithm", [*EXACT, bw.RealLinExp3(horizon=5000, features="arm-dependent")], ids=repr)
def test_they_conform_and_survive_files(algorithm: Any, tmp_path: Path) -> None:
    assert bw.check_algorithm(algorithm) == []
    policy = algorithm.start(masked_problem(), rng=1)
    play(policy, 20)
    policy.save(tmp_path / "p.npz")
    again = bw.load(tmp_path / "p.npz")
    assert repr(again.algorithm) == repr(algorithm)
    assert play(again, 30) == play(policy, 30)
    assert again.probabilities().tobytes() == policy.probabilities().tobytes()


@pytest.mark.parametrize(
    "algorithm",
    [
        *EXACT,
        bw.RealLinExp3(horizon=5000, covariance=bw.MGR(samples=15)),
        bw.FTRLLC(horizon=5000, covariance=bw.MGR(samples=15)),
        bw.RealLinExp3(horizon=5000, features="arm-dependent"),
        bw.RealLinExp3(horizon=5000, features="arm-dependent", covariance=bw.MGR(samples=15)),
    ],
    ids=repr,
)
def test_interpreted_and_compiled_runs_agree_bit_for_bit(algorithm: Any) -> None:
    one, two = (algorithm.start(masked_problem(), rng=9, interpreted=flag) for flag in (False, True))
    assert play(one, 300) == play(two, 300)
    assert bits(one) == bits(two)


def test_a_direction_that_does_not_exist_is_refused() -> None:
    """If arm 0 were played in one context only, its matrix would be singular: no estimate, no update."""
    policy = bw.RealLinExp3(horizon=500).start(independent_problem(1), rng=1)
    pi = policy.probabilities()
    pi[...] = [0.0, 0.5, 0.5]
    pi[0] = [1.0, 0.0, 0.0]
    set_plan(policy, pi)
    decision = policy.act(0)
    with pytest.raises(ValueError, match="damaged"):
        policy.update(decision, loss=1.0)
    assert policy.updates == 0


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        (bw.RealLinExp3, {"horizon": 0}, "at least 1"),
        (bw.RobustLinExp3, {"horizon": 2.5}, "whole number"),
        (bw.FTRLLC, {"horizon": 1}, "at least 2"),
        (bw.FTRLLC, {"horizon": 10, "covariance": "MGR"}, "covariance"),
        (bw.FTRLLC, {"horizon": 10, "covariance": bw.MGR(bias=0.1)}, "number of draws"),
        (bw.RealLinExp3, {"horizon": 10, "features": "both"}, "arm-dependent"),
        (bw.RealLinExp3, {"horizon": 10, "tuning": "theory"}, "printed"),
        (bw.RealLinExp3, {"horizon": 10, "tuning": "printed"}, "MGR"),
        (bw.RealLinExp3, {"horizon": 10, "design": "joint-g"}, "arm-dependent"),
        (bw.RealLinExp3, {"horizon": 10, "features": "arm-dependent", "design": "x"}, "unknown design"),
    ],
)
def test_wrong_options_are_refused(kind: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        kind(**options)


def test_a_direction_that_rounding_loses_is_named() -> None:
    """A root of what is not positive would make coordinates of no numbers."""
    z, g = np.array([[[1.0, 0.0]], [[1.0, 1e-200]]]), np.array([0.5, 0.5])
    with pytest.raises(ValueError, match=r"lost in rounding\. The rarest context has probability 0.5"):
        whiten(z, g, np.ones((2, 1)))
