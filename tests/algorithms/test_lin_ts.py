"""LinTS: plans by hand, exact probabilities of two arms, the distribution of Thompson sampling, random numbers."""

import math
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from scipy import stats

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.kernels.random import POSTERIOR, stream_key, two_normals, two_uniforms
from support.problems import bits, play, random_problem


def normals(seed: float, t: int, number: int, d: int) -> np.ndarray:
    """The standard normals of one draw of a plan, from the counters the docstrings promise; odd ones are opposite."""
    count = (d + 1) // 2
    found = [two_normals(int(seed * 2**53), t, POSTERIOR, number // 2 * count + j) for j in range(count)]
    return np.array(found).reshape(-1)[:d] * (-1.0) ** number


@pytest.mark.parametrize("spread", [0.4, "theory"])
def test_the_plan_is_the_frequency_table_of_posterior_draws(spread: float | Literal["theory"]) -> None:
    """V, theta_hat, v, the draws and the seed that a decision brings, all recomputed in NumPy."""
    problem = random_problem(1, S=4, K=3, d=3)
    policy = bw.LinTS(spread=spread, draws=21, ridge=0.5, delta=0.01).start(problem, rng=11, interpreted=True)
    rng = np.random.default_rng(0)
    V, b, seed = 0.5 * np.eye(3), np.zeros(3), two_uniforms(11, 0, POSTERIOR, 0)[0]
    for t in range(1, 40):
        v = spread if spread != "theory" else math.sqrt(27 * math.log(t / 0.01))
        root = np.linalg.inv(np.linalg.cholesky(V)).T
        samples = [np.linalg.solve(V, b) + v * root @ normals(seed, t, m, 3) for m in range(21)]
        best = [(problem.features @ theta).argmin(axis=1) for theta in samples]
        table = np.array([np.bincount(column, minlength=3) for column in np.array(best).T]) / 21
        assert policy.probabilities() == pytest.approx(table, abs=1e-15)
        decision = policy.act(int(rng.integers(4)))
        seed = two_uniforms(11, t, POSTERIOR, 0)[0]
        z, loss = problem.features[decision.context, decision.arm], float(rng.choice([-1.0, 1.0]))
        V, b = V + np.outer(z, z), b + loss * z
        policy.update(decision, loss=loss)


def test_two_arms_are_compared_by_the_normal_distribution() -> None:
    """With a third arm that is not offered, too; far tails keep their relative accuracy."""
    features = random_problem(3, S=5, K=3, d=2).features
    available = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1], [0, 0, 1]], dtype=bool)
    problem = bw.Problem(features=features, probabilities=np.full(5, 0.2), available=available)
    policy = bw.LinTS(spread=0.05).start(problem, rng=2, interpreted=True)
    smallest = 1.0
    for _ in range(150):
        play(policy, 1, seed=policy.updates)
        theta, inverse = policy.state.theta, np.linalg.inv(policy.state.sigma)
        for x in range(3):
            first, second = np.flatnonzero(available[x])
            gap = features[x, first] - features[x, second]
            z = gap @ theta / (0.05 * math.sqrt(gap @ inverse @ gap))
            pi = policy.probabilities(x)
            assert pi[first] == pytest.approx(stats.norm.cdf(-z), rel=1e-8, abs=1e-290)
            assert pi[second] == pytest.approx(stats.norm.sf(-z), rel=1e-8, abs=1e-290)
            assert pi.sum() == pytest.approx(1.0, abs=1e-15)
            smallest = min(smallest, pi[available[x]].min())
        assert policy.probabilities(4).tolist() == [0.0, 0.0, 1.0]
    assert smallest < 1e-20


def test_averaged_over_seeds_the_plan_is_thompson_sampling() -> None:
    """Three arms, unit features, two plays: P(arm is best) by integration, against plans of 3 draws."""
    problem = bw.Problem(features=np.eye(3)[None], probabilities=[1.0])
    means, deviations = np.array([-0.5, 0.25, 0.0]), np.array([math.sqrt(0.5), math.sqrt(0.5), 1.0])
    grid = np.linspace(-8, 8, 20_001)
    others = [
        np.prod([stats.norm.sf(grid, means[j], deviations[j]) for j in range(3) if j != i], axis=0) for i in range(3)
    ]
    exact = [np.trapezoid(stats.norm.pdf(grid, means[i], deviations[i]) * others[i], grid) for i in range(3)]
    assert sum(exact) == pytest.approx(1.0, abs=1e-9)
    policy = bw.LinTS(spread=1.0, draws=3).start(problem, rng=1)
    policy.state.sigma[...] = np.diag([2.0, 2.0, 1.0])
    policy.state.response[...] = [-1.0, 0.5, 0.0]
    total = np.zeros(3)
    for number in range(4000):
        policy.state.seed[0] = two_uniforms(number, 1, POSTERIOR, 0)[0]
        policy._learner_state.refresh()
        total += policy.probabilities(0)
    error = np.sqrt(np.array(exact) * (1 - np.array(exact)) / 12_000)
    assert (np.abs(total / 4000 - exact) < 4 * error).all()  # at most 1.1 standard errors with these seeds


def test_equal_arms_share_and_a_plan_waits_for_feedback() -> None:
    features = np.array([[[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])
    policy = bw.LinTS(draws=7).start(bw.Problem(features=features, probabilities=[0.5, 0.5]), rng=1)
    for _ in range(20):
        play(policy, 1, seed=policy.updates)
        table = policy.probabilities()
        assert table[0] == pytest.approx(np.full(3, 1 / 3))
        assert table[1, 0] == table[1, 1]
        for _ in range(3):
            policy.act(1)
        assert policy.probabilities().tolist() == table.tolist()


def test_arms_are_drawn_from_the_plan() -> None:
    """Chi-square of 4000 draws from one plan; every propensity is the plan's."""
    policy = bw.LinTS(spread=1.0).start(random_problem(4, S=2, K=4, d=3), rng=3)
    play(policy, 5)
    pi = policy.probabilities(1)
    decisions = policy.act([1] * 4000)
    assert {d.propensity for d in decisions} <= set(pi.tolist())
    seen = np.bincount([d.arm for d in decisions], minlength=4)
    assert (seen[pi == 0.0] == 0).all()
    p_value = stats.chisquare(seen[pi > 0.0], 4000 * pi[pi > 0.0]).pvalue
    assert p_value > 0.01  # 0.57 with this seed


@pytest.mark.parametrize("algorithm", [bw.LinTS(draws=15), bw.LinTS(spread="theory", draws=9)], ids=str)
def test_it_conforms_survives_files_and_is_the_same_interpreted(algorithm: bw.LinTS, tmp_path: Path) -> None:
    assert bw.check_algorithm(algorithm) == []
    policy = algorithm.start(random_problem(2), rng=1)
    play(policy, 30)
    policy.save(tmp_path / "p.npz")
    copy = bw.load(tmp_path / "p.npz")
    assert copy.probabilities().tobytes() == policy.probabilities().tobytes()
    assert play(copy, 40) == play(policy, 40)
    for arms in (2, 4):
        problem = random_problem(2, K=arms)
        one, two = (algorithm.start(problem, rng=1, interpreted=flag) for flag in (False, True))
        assert play(one, 300) == play(two, 300)
        assert bits(one) == bits(two)


def test_the_first_plan_is_thompson_sampling_on_average_over_seeds() -> None:
    """Before any feedback theta ~ N(0, v^2 I): by symmetry every arm is the best for a third of the seeds."""
    problem = bw.Problem(features=np.eye(3)[None], probabilities=[1.0])
    for draws in (1, 16):
        plans = np.array([bw.LinTS(draws=draws).start(problem, rng=s).probabilities(0) for s in range(600)])
        assert len(np.unique(plans, axis=0)) > 2
        error = plans.std(axis=0) / math.sqrt(600)
        assert (np.abs(plans.mean(axis=0) - 1 / 3) < 4 * error).all()  # at most 1.7 standard errors with these seeds


def test_replications_differ_while_feedback_is_late() -> None:
    """Nothing is learnt in 50 rounds: the replications' tables are those of policies with their streams' keys."""
    world = en.stochastic(en.random_instance(contexts=2, arms=4, dimension=3, gap=0.3, seed=1))
    late = bw.simulate(world, {"a": bw.LinTS(draws=2)}, horizon=60, delay=50, replications=12, rng=5, checkpoints=[50])
    assert len(np.unique(late["a"].expected[:, 0])) > 6
    for number in range(3):
        first = bw.LinTS(draws=2).start(world.problem, rng=stream_key(5, number)).probabilities()
        mean = world.problem.probabilities @ (first * world.tables[0]).sum(axis=1)
        assert late["a"].expected[number, 0] == pytest.approx(50 * mean, rel=1e-12)


def test_a_file_written_before_the_first_plan_had_a_seed_continues(tmp_path: Path) -> None:
    """Such a file keeps seed 0 until the first feedback."""
    policy = bw.LinTS(draws=3).start(random_problem(2), rng=1)
    fresh = policy.probabilities()
    policy.state.seed[0] = 0.0
    policy.save(tmp_path / "p.npz")
    copy = bw.load(tmp_path / "p.npz")
    policy._learner_state.refresh()
    assert copy.probabilities().tobytes() == policy.probabilities().tobytes() != fresh.tobytes()
    assert play(copy, 40) == play(policy, 40)


def test_replications_draw_plans_of_their_own() -> None:
    """The seed of a plan comes with the decision: same seed, same path; other replication, other plans."""
    world = en.stochastic(en.random_instance(contexts=2, arms=3, dimension=2, gap=0.3, seed=1))
    options = {"horizon": 300, "replications": 3, "rng": 5}
    one, two = (bw.simulate(world, {"a": bw.LinTS()}, **options)["a"] for _ in range(2))  # type: ignore[arg-type]
    assert one.expected.tobytes() == two.expected.tobytes()
    assert len(set(one.final["seed"][:, 0].tolist())) == 3


def test_a_seed_that_is_no_seed_is_refused() -> None:
    policy = bw.LinTS().start(random_problem(2), rng=1)
    decision = policy.act(0)
    for wrong in ([1e308, 0.0, 0.0], [-0.1, 0.0, 0.0], [1.0, 0.0, 0.0], [0.5, 1.0, 0.0]):
        with pytest.raises(ValueError, match="damaged"):
            policy.update(decision._replace(direction=np.array(wrong)), loss=0.0)
    policy.update(decision, loss=0.0)


@pytest.mark.parametrize(
    "options",
    [
        {"spread": 0.0},
        {"spread": "practice"},
        {"spread": math.nan},
        {"delta": 1.0},
        {"ridge": 0.0},
        {"draws": 0},
        {"draws": 2.5},
    ],
)
def test_impossible_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must"):
        bw.LinTS(**options)  # type: ignore[arg-type]
