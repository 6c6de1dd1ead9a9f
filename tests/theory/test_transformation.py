"""Theorem 4.5: algorithms of either setting on problems of the other, and warnings for degenerate problems."""

import warnings
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.algorithms.registry import algorithms, make_algorithm
from support.armwise_problems import context_vectors, independent_problem
from support.problems import coordinates, directions, parameters, play, random_problem

INDEPENDENT: list[Any] = [
    bw.RealLinExp3(horizon=5000),
    bw.RealLinExp3(horizon=5000, covariance=bw.MGR(samples=20)),
    bw.RobustLinExp3(horizon=5000),
    bw.FTRLLC(horizon=5000),
    bw.FTRLLC(horizon=5000, covariance=bw.MGR(samples=20)),
    bw.MWULC(speed=100),
    bw.BoBWMWULC(horizon=5000, scale=1e-8, speed=100),
    bw.BoBWRealLinExp3(horizon=5000, features="arm-independent", scale=0.01),
    bw.BoBWRealLinExp3(horizon=5000, features="arm-independent", constants="printed", candidate="per-context"),
]
each_independent = pytest.mark.parametrize("algorithm", INDEPENDENT, ids=repr)
SHAPES = {"S < d K": (3, 4, 2), "S = d K": (6, 3, 2), "S > d K": (9, 2, 2)}


def repeated() -> bw.Problem:
    """Return six contexts, two of them linear combinations of others, which span four of 2 x 3 dimensions."""
    phi = random_problem(4, S=6, K=3, d=2).features.copy()
    phi[4] = 0.5 * phi[0] - 0.5 * phi[1]
    phi[5] = phi[2]
    return bw.Problem(features=phi, probabilities=np.full(6, 1 / 6))


def warnings_of(algorithm: Any, problem: bw.Problem) -> list[str]:
    """Return the messages of DegenerateProblemWarning at the start of an algorithm; they must point to this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        algorithm.start(problem, rng=1)
    degenerate = [w for w in caught if issubclass(w.category, bw.DegenerateProblemWarning)]
    assert all("test_transformation" in w.filename for w in degenerate)  # the user's line
    return [str(w.message) for w in degenerate]


@pytest.mark.filterwarnings("ignore::bothworlds.DegenerateProblemWarning", "ignore::bothworlds.TuningWarning")
@pytest.mark.parametrize("shape", [*SHAPES, "repeated"])
@each_independent
def test_on_arm_dependent_problems_they_play_the_stacked_one(algorithm: Any, shape: str) -> None:
    """Decisions equal those on x = (phi(1, x), .., phi(K, x)), stacked by hand, with theta in block a."""
    problem = repeated() if shape == "repeated" else random_problem(3, *SHAPES[shape])
    x = problem.arm_independent_features()
    stacked = bw.Problem.from_arm_independent(x, probabilities=problem.probabilities, arms=problem.n_arms)
    theta = parameters(problem)
    thetas = bw.stacked_parameters(theta, problem.n_arms)
    assert x @ thetas.T == pytest.approx(problem.features @ theta)
    direct, by_hand = algorithm.start(problem, rng=6), algorithm.start(stacked, rng=6)
    assert play(direct, 150, theta=theta) == play(by_hand, 150, theta=bw.block_parameters(thetas))
    assert direct.probabilities() == pytest.approx(by_hand.probabilities(), rel=1e-7)
    assert np.abs(direct.probabilities() - 1 / problem.n_arms).max() > 1e-4


@each_independent
def test_the_warning_fires_wherever_the_stacked_problem_is_degenerate(algorithm: Any) -> None:
    for shape in ("S < d K", "S = d K"):
        [message] = warnings_of(algorithm, random_problem(3, *SHAPES[shape]))
        assert "learns each context and arm on its own" in message
    [message] = warnings_of(algorithm, repeated())
    assert "they fill 4 of 6 dimensions" in message
    assert bw.transformation(repeated()).degenerate
    assert warnings_of(algorithm, random_problem(3, *SHAPES["S > d K"])) == []
    assert warnings_of(algorithm, independent_problem(1)) == []


@pytest.mark.parametrize("S", [1, 3, 5, 8, 12])
@pytest.mark.parametrize(("K", "d"), [(2, 1), (2, 3), (4, 2), (3, 3)])
def test_every_degenerate_problem_gives_the_warning(S: int, K: int, d: int) -> None:
    problem = random_problem(S + K, S=S, K=K, d=d)
    messages = warnings_of(bw.FTRLLC(horizon=1000), problem)
    rank = np.linalg.matrix_rank(problem.features.reshape(S, -1))
    assert len(messages) == int(rank == S or bw.transformation(problem).degenerate)
    assert bw.transformation(problem).degenerate == (rank < K * problem.dimension)


def arm_dependent() -> list[Any]:
    """Return every registered algorithm with default options that does not need arm-independent features."""
    kinds = [kind for kind in algorithms() if kind not in {type(algorithm).__name__ for algorithm in INDEPENDENT[:7]}]
    instances = []
    for kind in kinds:
        fields = getattr(algorithms()[kind], "__dataclass_fields__", {})
        needs = "horizon" in fields and not isinstance(fields["horizon"].default, int | None)
        instances.append(make_algorithm({"kind": kind, **({"horizon": 5000} if needs else {})}))
    return [*instances, bw.RealLinExp3(horizon=5000, features="arm-dependent")]


@pytest.mark.filterwarnings("ignore::bothworlds.TuningWarning")
@pytest.mark.parametrize("algorithm", arm_dependent(), ids=repr)
def test_algorithms_for_arm_dependent_features_play_the_block_problem_in_any_coordinates(algorithm: Any) -> None:
    """Decisions on blocks (0, .., x, .., 0) in d K dimensions equal those after a rotation that hides the blocks."""
    x = context_vectors(2, S=4, d=2)
    problem = bw.Problem.from_arm_independent(x, probabilities=[0.1, 0.2, 0.3, 0.4], arms=2)
    mapping, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))  # a rotation: ridges see no other map
    hidden = bw.Problem(features=problem.features @ mapping, probabilities=problem.probabilities)
    theta = bw.block_parameters(np.array([[0.3, -0.2], [-0.1, 0.25]]))
    assert problem.features @ theta == pytest.approx(x @ theta.reshape(2, 2).T)
    assert warnings_of(algorithm, problem) == warnings_of(algorithm, hidden) == []
    blocks, rotated = algorithm.start(problem, rng=3), algorithm.start(hidden, rng=3)
    assert play(blocks, 150, theta=theta) == play(rotated, 150, theta=theta @ mapping)
    assert blocks.probabilities() == pytest.approx(rotated.probabilities(), abs=1e-4)


@pytest.mark.parametrize(
    "algorithm", [bw.LCTsallisINF(tuning="certified"), bw.RealFTRL(horizon=1000), bw.LinearEXP4(horizon=50_000)]
)
def test_on_the_block_problem_every_arms_theta_is_estimated_without_bias(algorithm: Any) -> None:
    problem = independent_problem(1, S=4, K=2, d=2)
    thetas = np.random.default_rng(4).normal(size=(2, 2))
    losses = problem.arm_independent_features() @ thetas.T
    policy = algorithm.start(problem, rng=1, interpreted=True)
    play(policy, 30)
    weights = problem.probabilities[:, None] * policy.probabilities()
    mean = np.einsum("xa,xai,xa->i", weights, directions(policy), losses)
    assert coordinates(policy) @ mean == pytest.approx(losses, abs=1e-9)
