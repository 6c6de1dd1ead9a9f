"""LinUCB and OFUL: index and radius by hand, UCB as a special case, and failure where they must fail."""

import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from support.problems import bits, parameters, play, random_problem, state_after

BOTH = [bw.LinUCB(width=0.7, ridge=0.5), bw.OFUL(delta=0.01, ridge=0.5, bound=0.8)]


@pytest.mark.parametrize("algorithm", BOTH, ids=str)
def test_the_index_is_the_lower_confidence_bound(algorithm: bw.LinUCB | bw.OFUL) -> None:
    problem = random_problem(1, S=4, K=3, d=3)
    policy = algorithm.start(problem, rng=1)
    rng = np.random.default_rng(0)
    V, b = 0.5 * np.eye(3), np.zeros(3)
    for _ in range(200):
        theta, inverse = np.linalg.solve(V, b), np.linalg.inv(V)
        radius = 0.7
        if isinstance(algorithm, bw.OFUL):
            radius = math.sqrt(np.linalg.slogdet(V)[1] - 3 * math.log(0.5) - 2 * math.log(0.01)) + math.sqrt(0.5) * 0.8
        phi = problem.features
        index = phi @ theta - radius * np.sqrt(np.einsum("xai,ij,xaj->xa", phi, inverse, phi))
        assert policy.probabilities().argmax(axis=1).tolist() == index.argmin(axis=1).tolist()
        assert policy.state.theta == pytest.approx(theta, abs=1e-12)
        decision = policy.act(int(rng.integers(4)))
        loss = float(rng.choice([-1.0, 1.0]))
        z = phi[decision.context, decision.arm]
        V, b = V + np.outer(z, z), b + loss * z
        policy.update(decision, loss=loss)


def test_unit_features_make_linucb_the_classical_ucb() -> None:
    """S = 1, phi = one-hot: mean - width/sqrt(n + ridge), arm by arm."""
    policy = bw.LinUCB(width=0.5).start(bw.Problem(features=np.eye(3)[None], probabilities=[1.0]), rng=2)
    counts, sums = np.zeros(3), np.zeros(3)
    rng = np.random.default_rng(1)
    for _ in range(300):
        index = sums / (counts + 1.0) - 0.5 / np.sqrt(counts + 1.0)
        tied = np.flatnonzero(index <= index.min() + 1e-12)
        assert np.flatnonzero(policy.probabilities(0)).tolist() == tied.tolist()
        assert policy.probabilities(0)[tied] == pytest.approx(np.full(len(tied), 1 / len(tied)))
        decision = policy.act(0)
        loss = float(rng.choice([-1.0, 1.0]))
        counts[decision.arm] += 1
        sums[decision.arm] += loss
        policy.update(decision, loss=loss)


@pytest.mark.parametrize("algorithm", [bw.LinUCB(), bw.OFUL(), bw.LinTS()], ids=str)
@pytest.mark.parametrize("scale", [2.0**-46, 2.0**46])
def test_the_unit_of_the_features_does_not_decide_ties(algorithm: bw.LinUCB | bw.OFUL | bw.LinTS, scale: float) -> None:
    """With V = I and theta_hat = 0 all scores are proportional to the features: the same plan, equal arms sharing."""
    features = random_problem(3, S=4, K=4, d=3).features * [[[1.0], [0.9], [0.8], [1.0]]]
    features[:, 3] = features[:, 0]
    features[3] = features[3, 0]
    plans = [
        algorithm.start(bw.Problem(features=size * features, probabilities=np.full(4, 0.25)), rng=1).probabilities()
        for size in (1.0, scale)
    ]
    assert plans[1].tolist() == plans[0].tolist()
    assert plans[0][3].tolist() == [0.25] * 4
    assert plans[0][:, 0].tolist() == plans[0][:, 3].tolist()
    assert plans[0][:3].max() > 0.3


@pytest.mark.parametrize("make", [bw.LinUCB, bw.OFUL, bw.LinTS], ids=str)
@pytest.mark.parametrize("scale", [2.0**-46, 2.0**46])
def test_features_and_ridge_in_another_unit_give_the_same_play(
    make: Callable[..., bw.LinUCB | bw.OFUL | bw.LinTS], scale: float
) -> None:
    """phi -> c phi and V -> c^2 V leave every score as it was; OFUL's norm of theta becomes 1/c of it."""
    problem = random_problem(1, S=5, K=3, d=3, available=[[1, 1, 1]] * 4 + [[0, 1, 1]])
    theta = parameters(problem)
    options = {"bound": 1.0 / scale} if make is bw.OFUL else {}
    scaled = bw.Problem(
        features=scale * problem.features, probabilities=problem.probabilities, available=problem.available
    )
    one = make().start(problem, rng=3)
    two = make(ridge=scale**2, **options).start(scaled, rng=3)
    assert play(one, 200, theta=theta) == play(two, 200, theta=theta / scale)
    assert one.probabilities().tolist() == two.probabilities().tolist()


@pytest.mark.parametrize("algorithm", [bw.LinUCB(), bw.OFUL(), bw.LinTS()], ids=str)
def test_v_times_the_stored_inverse_is_the_identity_after_a_million_rank_one_updates(
    algorithm: bw.LinUCB | bw.OFUL | bw.LinTS,
) -> None:
    """The arrays the run itself ends with, nothing recomputed: V is the sum of its plays, and G^T G its inverse."""
    world = en.stochastic(en.random_instance(contexts=2, arms=2, dimension=2, gap=0.3, seed=1))
    state, counts = state_after(world, algorithm, 1_000_000)
    V = np.eye(2) + np.einsum("xa,xai,xaj->ij", counts, world.problem.features, world.problem.features)
    assert state.sigma == pytest.approx(V, rel=1e-10)  # a million roundings: 1.1e-11 seen
    error = np.abs(state.sigma @ (state.inverse.T @ state.inverse) - np.eye(2)).max()
    assert error <= 100 * 2.2e-16 * np.linalg.cond(V)


@pytest.mark.parametrize("algorithm", [bw.LinUCB(), bw.OFUL()], ids=str)
def test_they_conform_and_survive_files(algorithm: bw.LinUCB | bw.OFUL, tmp_path: Path) -> None:
    assert bw.check_algorithm(algorithm) == []
    policy = algorithm.start(random_problem(2), rng=1)
    play(policy, 30)
    policy.save(tmp_path / "p.npz")
    assert play(bw.load(tmp_path / "p.npz"), 40) == play(policy, 40)
    one, two = (algorithm.start(random_problem(2), rng=1, interpreted=flag) for flag in (False, True))
    assert play(one, 300) == play(two, 300)
    assert bits(one) == bits(two)


def test_optimism_is_good_in_a_calm_world_and_fails_in_a_hostile_one() -> None:
    """Negative control: regret grows linearly against an adversary that sees the policy, ours does not."""
    instance = en.random_instance(contexts=5, arms=4, dimension=4, gap=0.2, seed=7)
    algorithms = {"ucb": bw.LinUCB(width=0.5), "oful": bw.OFUL(), "ours": bw.LCTsallisINF(tuning="matched")}
    options = {"horizon": 20_000, "replications": 4, "rng": 3, "checkpoints": [10_000]}
    calm = bw.simulate(en.stochastic(instance), algorithms, **options)  # type: ignore[arg-type]
    for label in ("ucb", "oful"):
        assert calm[label].regret[-1] < 100  # 31 and 39 with this seed
    pair = en.opposite(instance.theta)
    hostile = bw.simulate(en.adaptive_adversary(instance.problem, pair), algorithms, **options)  # type: ignore[arg-type]
    ours = hostile["ours"].regret[-1]
    for label in ("ucb", "oful"):
        half, whole = hostile[label].regret
        assert whole > 10 * ours  # 5262 and 4557 against 83
        assert whole > 1.6 * half


@pytest.mark.parametrize(
    "algorithm",
    [
        bw.LinUCB(width=np.float32(0.5), ridge=np.int64(2)),  # type: ignore[arg-type]
        bw.OFUL(delta=np.float32(0.25), bound=np.int32(1)),  # type: ignore[arg-type]
        bw.LinTS(spread=np.float32(0.5), ridge=np.int64(1)),  # type: ignore[arg-type]
        bw.LinUCB(width=2),
    ],
    ids=str,
)
def test_options_in_numbers_of_numpy_survive_files(algorithm: bw.Algorithm, tmp_path: Path) -> None:
    policy = algorithm.start(random_problem(), rng=1, interpreted=True)
    policy.save(tmp_path / "policy.npz")
    again = bw.load(tmp_path / "policy.npz", interpreted=True)
    assert again.algorithm == algorithm
    assert again.digest == policy.digest


@pytest.mark.parametrize("value", [math.inf, math.nan, "1", True, 1j, Decimal(1), None])
@pytest.mark.parametrize(
    ("algorithm", "name"),
    [(bw.LinUCB, "width"), (bw.LinUCB, "ridge"), (bw.OFUL, "bound"), (bw.OFUL, "ridge"), (bw.LinTS, "spread")],
)
def test_what_is_no_finite_number_is_refused(algorithm: Any, name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a"):
        algorithm(**{name: value})


@pytest.mark.parametrize("algorithm", [bw.LinUCB(), bw.OFUL(), bw.LinTS()], ids=str)
def test_features_whose_squares_overflow_are_refused(algorithm: bw.Algorithm) -> None:
    """Every answer would be refused as damaged."""
    problem = random_problem()
    large = bw.Problem(features=1e160 * problem.features, probabilities=problem.probabilities)
    with pytest.raises(ValueError, match="in a larger unit"):
        algorithm.start(large, interpreted=True)


@pytest.mark.parametrize("options", [{"width": -1.0}, {"ridge": 0.0}])
def test_linucb_refuses_impossible_numbers(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must"):
        bw.LinUCB(**options)


@pytest.mark.parametrize("options", [{"delta": 0.0}, {"delta": 1.0}, {"ridge": -1.0}, {"bound": -1.0}])
def test_oful_refuses_impossible_numbers(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must"):
        bw.OFUL(**options)
