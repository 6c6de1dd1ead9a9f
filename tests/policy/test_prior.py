"""Priors: from rows, with and without propensities, from expected rewards, and from policies."""

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.policy.prior import Plays, doubly_robust
from support.problems import TUNINGS, play, random_problem


def rows_of(problem: bw.Problem, n: int, seed: int = 0) -> list[Any]:
    """Rows of uniform play with linear losses."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=problem.features.shape[2])
    theta *= 0.8 / np.abs(problem.features @ theta).max()
    rows = []
    for _ in range(n):
        x, a = int(rng.choice(problem.n_contexts, p=problem.probabilities)), int(rng.integers(problem.n_arms))
        loss = 1.0 if rng.random() < (1.0 + problem.features[x, a] @ theta) / 2.0 else -1.0
        names = {"context": problem.contexts[x], "arm": problem.arms[a]}
        rows.append(SimpleNamespace(**names, reward=-loss, propensity=1.0 / problem.n_arms))
    return rows


PROBLEM = random_problem(2, S=3, K=4, d=3)


def test_a_start_from_rows_has_the_ridge_regression_of_numpy() -> None:
    rows = rows_of(PROBLEM, 50)
    policy = bw.LCTsallisINF().start(PROBLEM, rng=1, interpreted=True, prior=bw.Prior.from_rows(PROBLEM, rows))
    z = policy._machine.known.z
    used = np.array([z[PROBLEM.contexts.index(row.context), PROBLEM.arms.index(row.arm)] for row in rows])
    losses = np.array([-row.reward for row in rows])
    expected = np.linalg.solve(np.eye(3) + used.T @ used, used.T @ losses)
    state = policy.state
    assert np.allclose(state.ridge, np.eye(3) + used.T @ used)
    assert np.allclose(np.linalg.solve(state.ridge, state.response), expected)
    assert np.allclose(state.baseline, expected / max(1.0, np.abs(z @ expected).max()))
    assert state.t[0] == 51.0
    assert policy.updates == policy.version == 0


def test_regressions_start_as_if_the_rows_were_their_own() -> None:
    rows = rows_of(PROBLEM, 40)
    for algorithm in (bw.LinUCB(), bw.OFUL(), bw.LinTS(draws=1)):
        warm = algorithm.start(PROBLEM, rng=1, interpreted=True, prior=bw.Prior.from_rows(PROBLEM, rows)).state
        own = algorithm.start(PROBLEM, rng=1, interpreted=True)
        for row in rows:
            x, a = PROBLEM.contexts.index(row.context), PROBLEM.arms.index(row.arm)
            made = own.act(x)
            own.update(made._replace(arm=a, arm_name=PROBLEM.arms[a]), reward=row.reward)
        assert np.allclose(warm.sigma, own.state.sigma)
        assert np.allclose(warm.response, own.state.response)
        assert np.allclose(warm.theta, own.state.theta)


@pytest.mark.parametrize("tuning", TUNINGS)
def test_ftrl_begins_with_the_sum_that_so_many_rounds_leave(tuning: Any) -> None:
    prior = bw.Prior.from_rewards(PROBLEM, {"1": 0.5, "2": -0.5}, rounds=30)
    policy = bw.LCTsallisINF(tuning=tuning).start(PROBLEM, rng=1, interpreted=True, prior=prior)
    sums = policy._machine.known.z @ policy.state.theta
    assert np.allclose(sums, 30 * PROBLEM.features @ prior.theta)
    assert np.allclose(PROBLEM.features @ policy.prior().theta, PROBLEM.features @ prior.theta)
    play(policy, 3)
    assert policy.updates == 3


def test_the_weighted_estimate_is_unbiased_whatever_the_losses() -> None:
    """By enumeration of all rows of two rounds; losses are not linear, and the second propensities see the first."""
    rng = np.random.default_rng(3)
    problem = random_problem(4, S=2, K=3, d=2)
    losses = rng.uniform(-1, 1, size=(2, 3))
    g, z = problem.probabilities, problem.span.coordinates
    even = np.full((2, 3), 1 / 3)
    sigma = np.einsum("x,xa,xai,xaj->ij", g, even, z, z)
    best = problem.span.basis @ np.linalg.solve(sigma, np.einsum("x,xa,xai,xa->i", g, even, z, losses))
    first = rng.dirichlet(np.ones(3), size=2)
    later = rng.dirichlet(np.ones(3), size=(2, 3, 2))
    total, mass = np.zeros(2), 0.0
    for (x, a), (y, b) in itertools.product(itertools.product(range(2), range(3)), repeat=2):
        p, q = first[x, a], later[x, a, y, b]
        plays = Plays(np.array([x, y]), np.array([a, b]), losses[[x, y], [a, b]], np.array([p, q]))
        total += g[x] * p * g[y] * q * doubly_robust(problem, plays)[0]
        mass += g[x] * p * g[y] * q
    assert np.isclose(mass, 1.0)
    assert np.allclose(total, best)


def test_both_methods_agree_on_many_linear_rows() -> None:
    rows = rows_of(PROBLEM, 20_000)
    one = bw.Prior.from_rows(PROBLEM, rows)
    two = bw.Prior.from_rows(PROBLEM, rows, method="propensities")
    assert np.abs(PROBLEM.features @ (one.theta - two.theta)).max() < 0.04  # 0.016 measured
    assert np.isclose(two.rounds, 20_000)
    assert one.rounds == 20_000


def test_what_is_left_out_is_said() -> None:
    rows = rows_of(PROBLEM, 10)
    rows[0].arm, rows[1].context, rows[2].reward = "gone", "gone", None
    prior = bw.Prior.from_rows(PROBLEM, rows)
    assert prior.rounds == 7
    assert prior.notes == (
        "2 rows have a context and an arm that the problem does not offer, and were left out",
        "1 rows have no reward yet, and were left out",
    )
    with pytest.raises(ValueError, match="no row can be used"):
        bw.Prior.from_rows(PROBLEM, rows[:3])
    del rows[5].propensity
    with pytest.raises(ValueError, match="use method='regression'"):
        bw.Prior.from_rows(PROBLEM, rows, method="propensities")


@pytest.mark.parametrize(
    "algorithm", [bw.LCTsallisINF(tuning="certified"), bw.LCTsallisINF(tuning="matched"), bw.LinUCB()], ids=str
)
def test_what_a_policy_has_learnt_starts_another(algorithm: bw.Algorithm) -> None:
    policy = algorithm.start(PROBLEM, rng=1, interpreted=True)
    play(policy, 30)
    again = algorithm.start(PROBLEM, rng=2, interpreted=True, prior=policy.prior())
    learnt, lean = policy.learnt(), policy.learnt().get("drift", 0.0)
    for name in ("theta", "ridge", "response", "sigma"):
        if name in learnt:
            assert np.allclose(again.learnt()[name], learnt[name] + (lean if name == "theta" else 0.0))
    other = bw.LinUCB().start(PROBLEM, rng=2, interpreted=True, prior=policy.prior())
    assert np.isfinite(other.state.theta).all()


SAME = bw.Problem(features=[[[1.0], [1.0]]], probabilities=[1])  # every estimate is the loss itself


@pytest.mark.parametrize("rounds", [25.0, 12.3, 0.4])
def test_the_losses_of_a_policy_are_what_its_prior_says(rounds: float) -> None:
    """Begun with another's, for any number of rounds: each of them is in Theta, clocks count whole ones."""
    algorithm = bw.LCTsallisINF(tuning=bw.Matched(drift_cap=0.0))
    policy = algorithm.start(SAME, rng=1, interpreted=True)
    for _ in range(25):
        policy.update(policy.act(0), loss=0.5)
    assert policy.prior().rounds == 25.0
    assert np.allclose(policy.prior().theta, 0.5)
    told = bw.Prior(theta=policy.prior().theta, information=policy.prior().information, rounds=rounds)
    again = algorithm.start(SAME, rng=2, interpreted=True, prior=told)
    assert np.allclose(again.learnt()["theta"], rounds / 25.0 * policy.learnt()["theta"])
    for _ in range(25):
        again.update(again.act(0), loss=0.5)
    seen = again.prior().rounds
    assert seen == pytest.approx(rounds + 25.0)
    again.change(SAME, trust=0.4)
    share = round(0.4 * (round(rounds) + 25)) / (round(rounds) + 25)
    assert again.prior().rounds == pytest.approx(share * seen)
    assert np.allclose(again.prior().theta, 0.5)
    other = bw.LCTsallisINF(tuning="certified").start(SAME, rng=2, interpreted=True, prior=again.prior())
    assert np.allclose(other._machine.known.z @ other.state.theta, share * seen * 0.5)


def test_mistakes_are_answered_with_a_sentence() -> None:
    prior = bw.Prior(theta=[0.1, 0.2], information=np.eye(2), rounds=10)
    with pytest.raises(ValueError, match="2 features and the problem has 3"):
        bw.LCTsallisINF(tuning="certified").start(PROBLEM, prior=prior, interpreted=True)
    with pytest.raises(ValueError, match="cannot take over earlier learning"):
        bw.PerContextExp3().start(PROBLEM, prior=prior, interpreted=True)
    for options, match in (
        ({"theta": [[1.0]]}, "a number for each feature"),
        ({"information": -np.eye(2)}, "negative eigenvalue"),
        ({"information": np.array([[1.0, 2.0], [0.0, 1.0]])}, "symmetric"),
        ({"rounds": -1}, "not negative"),
        ({"theta": [np.nan, 0.0]}, "finite"),
    ):
        with pytest.raises(ValueError, match=match):
            bw.Prior(**{"theta": [0.1, 0.2], "information": np.eye(2), "rounds": 10, **options})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="names of arms"):
        bw.Prior.from_rewards(PROBLEM, {"nobody": 1.0}, rounds=3)
    with pytest.raises(ValueError, match="table of shape"):
        bw.Prior.from_rewards(PROBLEM, [[1.0]], rounds=3)


@pytest.mark.parametrize("method", ["regression", "propensities"])
def test_rows_of_pairs_that_are_not_offered_are_left_out(method: Any) -> None:
    """Their features count for nothing in the problem; alone, their weights would be divided by their sum, zero."""
    offered = np.array([[True, True, False], [True, True, True]])
    phi = np.random.default_rng(1).normal(size=(2, 3, 2))
    problem = bw.Problem(features=phi, probabilities=[0.5, 0.5], available=offered)
    rows = rows_of(problem, 20)
    known = [row for row in rows if offered[int(row.context), int(row.arm)]]
    strange = SimpleNamespace(context="0", arm="2", reward=0.5, propensity=0.5)
    prior, same = (bw.Prior.from_rows(problem, some, method=method) for some in ([*known, strange], known))
    assert prior.rounds == same.rounds
    assert np.array_equal(prior.information, same.information)
    assert np.array_equal(prior.theta, same.theta)
    assert "1 rows" in prior.notes[0]
    with pytest.raises(ValueError, match="no row can be used"):
        bw.Prior.from_rows(problem, [strange], method=method)


@pytest.mark.parametrize("rounds", [-1, "5", np.nan, None, 1e300])
def test_a_prior_is_worth_a_number_of_rounds(rounds: Any) -> None:
    with pytest.raises(ValueError, match="rounds must be a number of rounds"):
        bw.Prior.from_rewards(PROBLEM, np.zeros(PROBLEM.available.shape), rounds=rounds)
    with pytest.raises(ValueError, match="rounds must be a number of rounds"):
        bw.Prior(theta=[0.1, 0.2], information=np.eye(2), rounds=rounds)


@pytest.mark.parametrize("reward", [50.0, -0.1, np.nan])
def test_rewards_out_of_range_are_refused(reward: float) -> None:
    problem = bw.Problem.from_sample(["day", "night"], arms=["red", "blue"], reward_range=(0, 1))
    row = SimpleNamespace(context="day", arm="red", reward=reward, propensity=0.5)
    for method in ("regression", "propensities"):
        with pytest.raises(ValueError, match="outside"):
            bw.Prior.from_rows(problem, [row], method=method)
    for rewards in ({"red": reward, "blue": 0.5}, [[0.5, 0.5], [0.5, reward]]):
        with pytest.raises(ValueError, match="outside"):
            bw.Prior.from_rewards(problem, rewards, rounds=10)


def test_arms_without_a_reward_have_the_mean_of_the_others() -> None:
    phi = np.eye(3)[None].repeat(2, 0)
    offered = np.array([[True, True, True], [True, True, False]])
    problem = bw.Problem(features=phi, probabilities=[0.5, 0.5], available=offered, arms=["a", "b", "c"])
    by_name = bw.Prior.from_rewards(problem, {"c": 0.5, "a": -0.1}, rounds=10)
    assert by_name.theta == pytest.approx([0.1, -0.2, -0.5])
    table = bw.Prior.from_rewards(problem, [[0.1, 0.2, 0.3], [0.1, 0.2, np.nan]], rounds=10)
    assert table.theta == pytest.approx([-0.1, -0.2, -0.3])
    whole = bw.Problem(features=np.ones((1, 3, 1)), probabilities=[1], reward_range=(0, 0.1), arms=["a", "b", "c"])
    best = bw.Prior.from_rewards(whole, {"a": 0.1, "b": 0.1}, rounds=10)  # all at the end of the range
    assert best.theta == pytest.approx([-1.0])
