"""D-LinUCB and SW-LinUCB: sums written out, LinUCB as the special case, late answers, changes of the problem."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.arrays import Floats
from bothworlds.simulation.replication import Replications
from bothworlds.simulation.setting import make_setting
from support.problems import bits, parameters, play, random_problem

Answers = list[tuple[Floats, float]]
BOTH = [bw.DLinUCB(width=0.7, discount=0.95, ridge=0.5), bw.SWLinUCB(width=0.7, window=30, ridge=0.5)]


def fading(answers: Answers, d: int) -> tuple[Floats, Floats, Floats]:
    """Return V, V~ and the response of D-LinUCB from all answers, as sums."""
    ages = range(len(answers) - 1, -1, -1)
    V, squared, response = 0.5 * np.eye(d), 0.5 * np.eye(d), np.zeros(d)
    for age, (z, loss) in zip(ages, answers, strict=True):
        V += 0.95**age * np.outer(z, z)
        squared += 0.95 ** (2 * age) * np.outer(z, z)
        response += 0.95**age * loss * z
    return V, squared, response


def latest(answers: Answers, d: int) -> tuple[Floats, Floats, Floats]:
    """Return V of SW-LinUCB from the last 30 answers, twice, and the response."""
    V = 0.5 * np.eye(d) + sum((np.outer(z, z) for z, _ in answers[-30:]), np.zeros((d, d)))
    return V, V, sum((loss * z for z, loss in answers[-30:]), np.zeros(d))


@pytest.mark.parametrize(("algorithm", "sums"), [(BOTH[0], fading), (BOTH[1], latest)], ids=["fading", "window"])
@pytest.mark.parametrize("late", [1, 7])
def test_the_index_is_that_of_the_sums_over_the_answers(
    algorithm: bw.DLinUCB | bw.SWLinUCB, sums: Callable[..., Any], late: int
) -> None:
    """Answers come ``late`` at a time, the newest first, and count in the order in which they come."""
    problem = random_problem(1, S=4, K=3, d=3, available=[[1, 1, 1]] * 3 + [[0, 1, 1]])
    phi, blocked = problem.features, np.where(problem.available, 0.0, np.inf)
    policy, rng = algorithm.start(problem, rng=1, interpreted=True), np.random.default_rng(0)
    answers: Answers = []
    waiting: list[tuple[bw.Decision, float]] = []
    for _ in range(150):
        V, squared, response = sums(answers, 3)
        theta, inverse = np.linalg.solve(V, response), np.linalg.inv(V)
        covariance = inverse @ squared @ inverse
        index = phi @ theta - 0.7 * np.sqrt(np.einsum("xai,ij,xaj->xa", phi, covariance, phi)) + blocked
        best = index <= index.min(axis=1, keepdims=True) + 1e-9
        assert policy.probabilities() == pytest.approx(best / best.sum(axis=1, keepdims=True), abs=1e-12)
        assert policy.state.theta == pytest.approx(theta, abs=1e-11)
        waiting.append((policy.act(int(rng.integers(4))), float(rng.choice([-1.0, 1.0]))))
        if len(waiting) == late:
            for decision, loss in waiting[::-1]:
                policy.update(decision, loss=loss)
                answers.append((phi[decision.context, decision.arm], loss))
            waiting = []
    assert policy.state.sigma == pytest.approx(sums(answers, 3)[0], rel=1e-12)


def outcome(algorithm: Any, horizon: int) -> Any:
    """Play a world that changes, interpreted, with late answers in batches."""
    instance = en.random_instance(contexts=4, arms=3, dimension=3, gap=0.2, seed=3)
    world = en.alternating(instance.problem, en.opposite(instance.theta), every=60)
    return bw.replay(world, algorithm, horizon=horizon, rng=5, delay=2, batch=3)


def test_without_discount_d_linucb_is_linucb() -> None:
    one, two = outcome(bw.DLinUCB(discount=1, width=0.5, ridge=0.3), 300), outcome(bw.LinUCB(width=0.5, ridge=0.3), 300)
    for name in ("sigma", "response", "t"):
        np.testing.assert_array_equal(one.final[name], two.final[name])
    np.testing.assert_array_equal(one.final["squared"], one.final["sigma"])
    np.testing.assert_array_equal(one.trace, two.trace)
    assert one.expected == pytest.approx(two.expected, abs=1e-12)


def test_with_a_window_of_all_rounds_sw_linucb_is_linucb_bit_for_bit() -> None:
    one, two = outcome(bw.SWLinUCB(window=301, width=0.5), 300), outcome(bw.LinUCB(width=0.5), 300)
    for name in ("sigma", "response", "t"):
        np.testing.assert_array_equal(one.final[name], two.final[name])
    np.testing.assert_array_equal(one.trace, two.trace)
    assert one.expected.tobytes() == two.expected.tobytes()
    assert not np.array_equal(outcome(bw.SWLinUCB(window=60, width=0.5), 300).trace, two.trace)


@pytest.mark.parametrize("algorithm", BOTH, ids=["fading", "window"])
def test_what_changes_is_followed(algorithm: bw.DLinUCB | bw.SWLinUCB) -> None:
    """Two opposite parameters, 300 rounds each: LinUCB pays for its memory, these two do not."""
    instance = en.random_instance(contexts=3, arms=3, dimension=3, gap=0.4, seed=2)
    world = en.alternating(instance.problem, en.opposite(instance.theta), every=300, noise="none")
    runs = bw.simulate(world, {"it": algorithm, "LinUCB": bw.LinUCB(width=0.7)}, horizon=3000, replications=8, rng=1)
    assert runs["it"].dynamic_regret[-1] < 0.4 * runs["LinUCB"].dynamic_regret[-1]  # 0.23 and 0.21 seen


@pytest.mark.parametrize("algorithm", BOTH, ids=["fading", "window"])
def test_lanes_have_the_outcomes_of_each_replication_alone(algorithm: bw.DLinUCB | bw.SWLinUCB) -> None:
    world = en.corrupted(en.random_instance(contexts=5, arms=3, dimension=3, gap=0.2, seed=2), budget=5.0)
    machine = algorithm.machine(world.problem)
    setting = make_setting(world, horizon=300, rng=4, checkpoints=20, delay=2, batch=3)
    some = Replications(machine, setting, range(3, 12), trace=True)
    some.advance(110)
    some.advance(1000)
    for number, found in enumerate(some.outcomes(), start=3):
        alone = Replications(machine, setting, [number], trace=True)
        alone.advance(1000)
        [one] = alone.outcomes()
        for name in ("expected", "realised", "own_best", "round_best", "trace"):
            np.testing.assert_array_equal(getattr(found, name), getattr(one, name))
        for name, values in one.final.items():
            np.testing.assert_array_equal(found.final[name], values)


@pytest.mark.parametrize("algorithm", BOTH, ids=["fading", "window"])
def test_they_conform_and_survive_files(algorithm: bw.Algorithm, tmp_path: Path) -> None:
    assert bw.check_algorithm(algorithm) == []
    policy = algorithm.start(random_problem(2), rng=1)
    play(policy, 50)
    policy.save(tmp_path / "p.npz")
    assert play(bw.load(tmp_path / "p.npz"), 60) == play(policy, 60)
    one, two = (algorithm.start(random_problem(2), rng=1, interpreted=flag) for flag in (False, True))
    assert play(one, 200) == play(two, 200)
    assert bits(one) == bits(two)


def test_rounding_errors_do_not_build_up_in_the_window() -> None:
    """After 200,000 additions and subtractions V is that of the window as if it had been added up once."""
    problem = random_problem(1, S=3, K=3, d=3)
    policy = bw.SWLinUCB(window=97, ridge=1e-3).start(problem, rng=1)
    play(policy, 20_000, theta=parameters(problem))
    codes = policy.state.window[:, 0].astype(int) - 1
    z = problem.features[codes // 3, codes % 3]
    assert policy.state.sigma == pytest.approx(1e-3 * np.eye(3) + z.T @ z, rel=1e-13, abs=1e-13)
    assert policy.state.rounds[0] == 97


def with_another_arm(problem: bw.Problem) -> bw.Problem:
    """Return the problem in rotated features with one more arm, which is the mean of two others."""
    rotation = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
    more = np.concatenate([problem.features, problem.features[:, :2].mean(axis=1, keepdims=True)], axis=1)
    return bw.Problem(
        features=more @ rotation,
        probabilities=problem.probabilities,
        arms=[*problem.arms, "another"],
        contexts=problem.contexts,
    )


def variances_of(policy: bw.Policy) -> Floats:
    """Return the variance of the estimate of every mean loss, in units of the noise, as the plan has it."""
    state, phi = policy.state, policy.problem.features
    covariance = getattr(state, "covariance", state.inverse.T @ state.inverse)
    return np.asarray(np.einsum("xai,ij,xaj->xa", phi, covariance, phi))


@pytest.mark.parametrize("algorithm", BOTH, ids=["fading", "window"])
def test_a_change_of_the_problem_keeps_estimates_and_their_covariance(algorithm: bw.Algorithm) -> None:
    problem = random_problem(1, S=4, K=3, d=3)
    policy = algorithm.start(problem, rng=1, interpreted=True)
    play(policy, 80, theta=parameters(problem))
    before, pi = problem.features @ policy.state.theta, policy.probabilities()
    variances = variances_of(policy)
    policy.change(with_another_arm(problem))
    after = policy.problem.features @ policy.state.theta
    assert after[:, :3] == pytest.approx(before, abs=1e-9)
    assert variances_of(policy)[:, :3] == pytest.approx(variances, rel=1e-9)
    others = policy.probabilities()[:, 3] == 0.0
    assert policy.probabilities()[others, :3] == pytest.approx(pi[others], abs=1e-12)
    play(policy, 31)
    if isinstance(algorithm, bw.SWLinUCB):  # after a full window of new answers nothing else is left
        codes = policy.state.window[:, 0].astype(int) - 1
        z = policy.problem.features[codes // 4, codes % 4]
        assert policy.state.sigma == pytest.approx(0.5 * np.eye(3) + z.T @ z, abs=1e-12)


@pytest.mark.parametrize("algorithm", BOTH, ids=["fading", "window"])
def test_priors_go_in_and_come_out(algorithm: bw.Algorithm) -> None:
    problem = random_problem(1, S=4, K=3, d=3)
    policy = algorithm.start(problem, rng=1, interpreted=True)
    play(policy, 80, theta=parameters(problem))
    prior = policy.prior()
    effective = (1.0 - 0.95**80) / 0.05 if isinstance(algorithm, bw.DLinUCB) else 30.0
    assert prior.rounds == pytest.approx(effective)
    assert prior.information == pytest.approx(policy.state.sigma - 0.5 * np.eye(3), abs=1e-9)
    again = algorithm.start(problem, rng=1, prior=prior, interpreted=True)
    assert again.state.theta == pytest.approx(policy.state.theta, abs=1e-9)
    assert again.state.rounds[0] == prior.rounds


@pytest.mark.parametrize("value", [0.0, -0.1, 1.01, math.nan, math.inf, True, "1", None])
def test_discounts_lie_between_nothing_and_everything(value: Any) -> None:
    with pytest.raises(ValueError, match="discount must be a number above 0 and at most 1"):
        bw.DLinUCB(discount=value)


@pytest.mark.parametrize(("value", "words"), [(0, "window"), (2.5, "window"), (10**7, "at most 1,000,000 answers")])
def test_windows_are_whole_numbers_of_answers(value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bw.SWLinUCB(window=value)


@pytest.mark.parametrize("make", [bw.DLinUCB, bw.SWLinUCB])
@pytest.mark.parametrize("options", [{"width": -1.0}, {"ridge": 0.0}])
def test_impossible_numbers_are_refused(make: Any, options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must"):
        make(**options)
